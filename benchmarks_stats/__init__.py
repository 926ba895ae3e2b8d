"""Measurements of the audit's statistics: widths, errors, power."""
