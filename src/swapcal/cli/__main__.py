"""`python -m swapcal.cli`."""

from swapcal.cli import main

main()
