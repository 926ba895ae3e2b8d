"""`python -m swapcal.demo`: the demo with its usual settings."""

from swapcal.demo import main

main()
