"""The command `swapcal`: arguments to calls, nothing more."""

import sys

try:
    import typer  # noqa: F401
except ImportError:
    sys.exit("the command line needs typer and rich: install with  pip install 'swapcal[cli]'")

from swapcal.cli.app import app, main

__all__ = ["app", "main"]
