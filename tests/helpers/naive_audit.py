"""Slow, obvious audits: the paper's displays for Cal, MCal and SMCal, read aloud with loops and dictionaries.

Notation: y, p, x, v, r as in the paper; `groups[p]` is the list of rounds t with p_t = p. No NumPy, no cleverness:
these functions are the oracle of `swapcal.audits` and must stay easier to believe than it.
"""

import math
from collections.abc import Callable, Sequence

Identification = Callable[[float, float], float]
Vector = Sequence[float]


def rounds_by_forecast(p: Vector) -> dict[float, list[int]]:
    groups: dict[float, list[int]] = {}
    for t in range(len(p)):
        groups.setdefault(float(p[t]), []).append(t)
    return groups


def calibration(y: Vector, p: Vector, v: Identification, r: float) -> float:
    total = 0.0
    for value, rounds in rounds_by_forecast(p).items():
        inner = 0.0
        for t in rounds:
            inner += v(value, y[t])
        total += len(rounds) * abs(inner / len(rounds)) ** r
    return total


def inner_sum(y: Vector, values: Vector, v: Identification, value: float, rounds: list[int]) -> float:
    """Sum over the rounds of f(x_t) V(p, y_t), where `values[t]` is f(x_t)."""
    inner = 0.0
    for t in rounds:
        inner += values[t] * v(value, y[t])
    return inner


def error_of_one_function(y: Vector, p: Vector, values: Vector, v: Identification, r: float) -> float:
    """The sum over p inside the supremum of MCal, for the function with values f(x_t) = values[t]."""
    total = 0.0
    for value, rounds in rounds_by_forecast(p).items():
        total += len(rounds) * abs(inner_sum(y, values, v, value, rounds) / len(rounds)) ** r
    return total


def multicalibration(y: Vector, p: Vector, functions: Sequence[Vector], v: Identification, r: float) -> float:
    """`functions[j][t]` is f_j(x_t)."""
    worst = 0.0
    for values in functions:
        worst = max(worst, error_of_one_function(y, p, values, v, r))
    return worst


def swap_multicalibration(y: Vector, p: Vector, functions: Sequence[Vector], v: Identification, r: float) -> float:
    total = 0.0
    for value, rounds in rounds_by_forecast(p).items():
        worst = 0.0
        for values in functions:
            worst = max(worst, abs(inner_sum(y, values, v, value, rounds) / len(rounds)) ** r)
        total += len(rounds) * worst
    return total


def columns(x: Sequence[Vector]) -> list[list[float]]:
    """The finite class whose j-th function reads off the j-th entry of the context."""
    return [[row[j] for row in x] for j in range(len(x[0]))]


def directions_of_the_plane(x: Sequence[Vector], n_directions: int) -> list[list[float]]:
    """Many unit vectors theta of the plane, each as the function x -> <theta, x>; theta and -theta tie."""
    functions = []
    for k in range(n_directions):
        angle = math.pi * k / n_directions
        functions.append([math.cos(angle) * row[0] + math.sin(angle) * row[1] for row in x])
    return functions


def linear_swap_multicalibration(y: Vector, p: Vector, x: Sequence[Vector], v: Identification, r: float) -> float:
    """The supremum of <theta, s> over the unit ball is the Euclidean norm of s, by Cauchy-Schwarz."""
    total = 0.0
    for value, rounds in rounds_by_forecast(p).items():
        squares = 0.0
        for values in columns(x):
            squares += inner_sum(y, values, v, value, rounds) ** 2
        total += len(rounds) * (math.sqrt(squares) / len(rounds)) ** r
    return total


def cell(y: Vector, p: Vector, values: Vector, v: Identification, value: float) -> tuple[int, float, float]:
    """Rounds with this forecast and f(x_t) != 0, the sum of |f(x_t)| over them, and the weighted mean of V."""
    rounds = [t for t in rounds_by_forecast(p)[value] if values[t] != 0]
    weight = sum(abs(values[t]) for t in rounds)
    mean = inner_sum(y, values, v, value, rounds) / weight if weight else 0.0
    return len(rounds), weight, mean
