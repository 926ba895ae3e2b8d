"""The grid that follows the forecasts beside the engine with equal bins, whose numbers are kept in a file."""

from swapcal_benchmarks.grid.grid_row import GridRow, GridScores
from swapcal_benchmarks.grid.recipes import Recipe

__all__ = ["GridRow", "GridScores", "Recipe"]
