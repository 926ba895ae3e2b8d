"""The command `swapcal`: arguments to calls, nothing more."""

import sys

from swapcal.cli.app import app, main

try:
    import typer  # noqa: F401
except ImportError:
    sys.exit("the command line needs typer and rich: install with  pip install 'swapcal[cli]'")


__all__ = ["app", "main"]
