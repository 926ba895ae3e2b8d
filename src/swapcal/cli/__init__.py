"""The command `swapcal`: arguments to calls, nothing more."""

import codecs
import io
import os
import sys

from swapcal.cli.app import app

try:
    import typer  # noqa: F401
except ImportError:
    sys.exit("the command line needs typer and rich: install with  pip install 'swapcal[cli]'")


__all__ = ["app", "main"]


def main() -> None:
    """The console script."""
    codecs.register_error("swapcal.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="swapcal.plain")
    try:
        app()
    except BrokenPipeError:
        # Whoever read the output has gone, as `head` does; nothing is left to say, also not while Python shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _plain(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that a terminal lacks: a hyphen for the minus sign, so that no number loses it."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join({"\u2212": "-", "\u2013": "-", "\u00d7": "x"}.get(each, "?") for each in lacking), error.end
