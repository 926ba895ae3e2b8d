"""The arena: every method in one protocol, on the same streams and against the same adversaries, scored by one audit.

A method joins by having a file in `swapcal.rivals`; nothing here names it.
"""
