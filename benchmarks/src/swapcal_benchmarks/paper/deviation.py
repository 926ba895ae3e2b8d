r"""Lemmas 2 and 3 of the paper with every constant written out.

Notation: alpha_i = sum_t P_t(p~_t in I_i), n_i the visits of bin i, dev_i = sup_f |sum_t 1{p_t = z_i} f(x_t) V(z_i,
y_t)|, M the number of sequences of one kind (|F| N in Lemma 2; 2N in Lemma 3, one for each q_{i,sigma}), s the number
of kinds of events that must not fail, and m, L as in the paper's proof, with the union inside the logarithm:

    L = ln(2 (m + 1) M s / delta),    m the least whole number with 2^-m <= sqrt(L / T).

1. Freedman's inequality |sum X| <= mu V + ln(2/delta') / mu, on the dyadic grid mu_k = 2^-(k+1), k = 0, ..., m, for a
   sequence with |X_t| <= 2 and V <= 4 alpha: |sum X| <= 6 sqrt(alpha L) + 4 L. It serves for X (the label's noise), for
   the draw's noise inside Z, and for A (visits beside their probabilities, with N in place of M).
2. W_t - E_t W_t is bounded by 4, so mu <= 1/4 and the grid starts one step lower: 6 sqrt(alpha L) + 8 L; and
   |sum_t E_t W_t| <= rho.
3. From A, alpha - 6 sqrt(alpha L) <= n_i + 4 L, a quadratic inequality in sqrt(alpha), whose larger root bounds alpha.
4. U: |z_i - p| <= 1/N for the p that was drawn; but E_t V(p~_t, y_t) is also over the other point of P_t, which may lie
   1/T further away, in the neighboring bin. So rho n_i (1/N + 1/T), where the paper has rho n_i / N.
5. Z: sum_t <w_t, gain_t> + regret of the experts at sum of squares alpha + noise of the draw. The first is at most
   sum_t h_t <= rho where V is Lipschitz for each label. For quantiles it is a sum of terms kappa_t 1{a < y_t <= b} with
   kappa_t <= 1/4 and conditional means of at most rho / 4T, to which Freedman's inequality with mu = 4 applies:
   rho / 4 + rho / 4 + ln(2 s / delta) / 4, at the price of one more kind of event.
6. Lemma 3 adds Reg(F, n_i), the learner's declared regret.

So s = 4 (X, Z, W, A), or 5 for quantiles.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from swapcal.paper.algorithms import Algorithm2
from swapcal.typing import Float64Array
from swapcal_benchmarks.paper.cases import PaperAlgorithm, functions_of

__all__ = ["Bins", "bins_of", "explicit_bound", "plain_bound"]


class Bins(NamedTuple):
    """Visits of each bin, and sup_f |sum f V| in it."""

    counts: Float64Array
    deviations: Float64Array


def bins_of(method: PaperAlgorithm, x: Float64Array, y: Float64Array, p: Float64Array) -> Bins:
    """What a run left in each bin; `p` are the forecasts of a method with right ends."""
    grid = method.grid
    low, high = method.property.domain
    index = np.rint((p - low) / (high - low) * grid.n_bins).astype(np.int64) - 1
    v = np.asarray(method.property.identification(p, y))
    sums = np.zeros((grid.n_bins, x.shape[1]))
    np.add.at(sums, index, x * v[:, None])
    counts = np.bincount(index, minlength=grid.n_bins).astype(np.float64)
    return Bins(counts, functions_of(method).supremum(sums))


def explicit_bound(
    method: PaperAlgorithm, counts: Float64Array, *, rho: float, lipschitz: bool, delta: float
) -> Float64Array:
    """The bound of Lemma 2 (Algorithm 1) or Lemma 3 (Algorithm 2) on dev_i, for every bin at once.

    Parameters
    ----------
    method : Algorithm1 or Algorithm2
        Gives T, N, |F|, the experts' regret and the learner's.
    counts : array of shape (N,)
        n_i.
    rho : float
        Of the paper's assumption.
    lipschitz : bool
        Whether V is Lipschitz for every label, or only in the mean over labels.
    delta : float
        The bound may fail with this probability.
    """
    n_bins, horizon = method.grid.n_bins, method.grid.horizon
    oracle = isinstance(method, Algorithm2)
    sequences = 2 * n_bins if oracle else n_bins * method.hypotheses.n
    kinds = 4 if lipschitz else 5
    log_all = _log_term(sequences * kinds / delta, horizon)
    log_bins = _log_term(n_bins * kinds / delta, horizon)
    root = 0.5 * (6.0 * math.sqrt(log_bins) + np.sqrt(36.0 * log_bins + 4.0 * (counts + 4.0 * log_bins)))
    alpha = np.minimum(root**2, float(horizon))
    noise = 6.0 * np.sqrt(alpha * log_all) + 4.0 * log_all
    weighted = rho if lipschitz else 0.5 * rho + 0.25 * math.log(2.0 * kinds / delta)
    shape = (2, n_bins) if oracle else (2, n_bins, method.hypotheses.n)
    squares = np.broadcast_to(alpha if oracle else alpha[:, None], shape)
    regrets = np.asarray(method.experts.regret_bound(squares.ravel())).reshape(2, n_bins, -1)
    z = weighted + regrets.max(axis=(0, 2)) + noise
    w = noise + 4.0 * log_all + rho
    u = rho * counts * (1.0 / n_bins + 1.0 / horizon)
    return np.asarray(u + noise + z + w + _learner_regret(method, counts))


def plain_bound(method: PaperAlgorithm, counts: Float64Array, *, rho: float, delta: float) -> Float64Array:
    """What stands inside the O~ of the lemmas: rho n / N + sqrt(n l) + l + Reg(n), with l = ln(|F| N / delta).

    Lemma 3 has no |F| in its logarithm.
    """
    n_bins = method.grid.n_bins
    functions = 1 if isinstance(method, Algorithm2) else method.hypotheses.n
    log_term = math.log(functions * n_bins / delta)
    plain = rho * counts / n_bins + np.sqrt(counts * log_term) + log_term
    return np.asarray(plain + _learner_regret(method, counts))


def _learner_regret(method: PaperAlgorithm, counts: Float64Array) -> Float64Array:
    learner: Any = getattr(method, "learner", None)
    return np.asarray(learner.regret(counts)) if isinstance(method, Algorithm2) else np.zeros_like(counts)


def _log_term(ratio: float, horizon: int) -> float:
    """L = ln(2 (m + 1) ratio) for the least m with 4^-m <= L / T."""
    m = 0
    while 4.0**-m > math.log(2.0 * (m + 1) * ratio) / horizon:
        m += 1
    return math.log(2.0 * (m + 1) * ratio)
