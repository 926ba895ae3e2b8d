"""Whether outcomes that come late are like those that come early: an e-value, from pairs of forecasts of the same time.

Within a cohort of forecasts made one after the other, let v be V of the model's own number and g the logarithm of 1 +
delay, less that of the cohort's first outcome, so that equal delays give exactly 0. If the delay does not depend on the
outcome, the sum

    x = sum v g - (sum v) (sum g) / n

over the cohort's outcomes is as likely to be positive as negative, and drift is no excuse: time is the same within a
cohort. For x that is symmetric about 0, exp(l x - l^2 x^2 / 2) has mean at most 1 for every l (de la Pena), so products
over cohorts are supermartingales. Mixed over l with a normal density of variance 1 / rho this gives, with X the sum of
the x and Y that of their squares,

    ln e = X^2 / (2 (Y + rho)) - ln((Y + rho) / rho) / 2,

which exceeds ln 1000 ever with a probability of at most 1/1000, whenever one looks (Ville). Here rho is the mean of the
x^2 so far, and delays that are not symmetric leave x only nearly so: *about* 1/1000. The test measures it.

A cohort whose delays differ by less than a tenth says nothing. Where outcomes are learned in the order of forecasts,
each waits for those before it, and what is left of a dependence is certain and harmless.
"""

import math

from swapcal.typing import Float64Array

__all__ = ["add", "judge", "log_e", "slope"]

ALARM = math.log(1000.0)

MATERIAL = 0.01
"""Variance of the logarithm of delays in a cohort, at least, for it to count."""

CROSS, CROSS_SQUARES, CROSSINGS, SPREAD = range(4)
N_TOTALS = 4
C_N, C_V, C_G, C_VG, C_GG, C_FIRST = range(6)
WIDTH = 6


def add(cohort: Float64Array, v: float, lag: int) -> None:
    """An outcome of a cohort: V of the model, and after how many later forecasts it came."""
    g = math.log(1.0 + lag)
    if cohort[C_N] == 0.0:
        cohort[C_FIRST] = g
    g -= float(cohort[C_FIRST])
    cohort[C_N] += 1.0
    cohort[C_V] += v
    cohort[C_G] += g
    cohort[C_VG] += v * g
    cohort[C_GG] += g * g


def judge(totals: Float64Array, cohort: Float64Array) -> bool:
    """Add a cohort to the totals; whether delays are now found to depend on outcomes."""
    n, sum_v, sum_g, products, squares, _ = cohort.tolist()
    if n < 2.0:
        return False
    spread = squares - sum_g * sum_g / n
    if not spread > MATERIAL * n:
        return False
    x = products - sum_v * sum_g / n
    totals[CROSS] += x
    totals[CROSS_SQUARES] += x * x
    totals[CROSSINGS] += x != 0.0
    totals[SPREAD] += spread
    return log_e(totals) > ALARM


def log_e(totals: Float64Array) -> float:
    """The logarithm of the e-value against delays that do not depend on outcomes.

    Examples
    --------
    >>> import numpy as np
    >>> round(log_e(np.array([30.0, 30.0, 30.0, 9.0])), 2)
    12.8
    """
    cross, squares, n = (float(each) for each in totals[: CROSSINGS + 1])
    if squares <= 0.0:
        return 0.0
    rho = squares / n
    return cross * cross / (2.0 * (squares + rho)) - 0.5 * math.log((squares + rho) / rho)


def slope(totals: Float64Array) -> float:
    """By how much V is larger for outcomes that come ten times as late, within a cohort."""
    spread = float(totals[SPREAD])
    return math.log(10.0) * float(totals[CROSS]) / spread if spread > 0.0 else 0.0
