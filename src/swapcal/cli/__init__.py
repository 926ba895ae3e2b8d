"""The command `swapcal`: arguments to calls, nothing more."""

import os
import sys

try:
    import typer  # noqa: F401
except ImportError:
    sys.exit("the command line needs typer and rich: install with  pip install 'swapcal[cli]'")

from swapcal.cli.app import app

__all__ = ["app", "main"]


def main() -> None:
    """The console script."""
    try:
        app()
    except BrokenPipeError:
        # Whoever read the output has gone, as `head` does; nothing is left to say, also not while Python shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
