"""Fixtures of several files."""
