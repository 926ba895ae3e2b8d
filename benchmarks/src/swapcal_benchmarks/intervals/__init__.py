"""Intervals on recorded streams, beside adaptive conformal inference, MVP and MAPIE.

`python -m swapcal_benchmarks.intervals DIRECTORY` reads elec2.csv, bike_hour.csv and fte_games.csv there and prints a
table; MAPIE's rows need the package mapie.
"""
