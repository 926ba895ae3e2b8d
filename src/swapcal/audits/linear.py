"""Multicalibration of the linear class: the worst single direction, over all forecast values at once.

Notation: n_i rounds had the i-th forecast value, s_i = sum of x_t V_t over them, a_i = n_i^(1/r) s_i / n_i, so that the
error of the direction theta is h(theta) = sum_i |<theta, a_i>|^r, and MCal_r is its largest value on the unit ball.
"""

from typing import NamedTuple

import numpy as np

from swapcal.typing import Float64Array

# Starts of the ascent, of each of three kinds: leading singular directions, the longest a_i, and random directions, as
# the first two can be saddles when some a_i are orthogonal. With many forecast values there are fewer, so that one step
# of all ascents stays near 10 million multiplications.
N_STARTS = 64
N_MULTIPLICATIONS = 10_000_000
N_ASCENT = 500
N_RELAXATION = 100
# Beyond this many forecast values the Gram matrix of the a_i is not formed (cost cubic in their number).
N_GRAM = 1000


class Bounds(NamedTuple):
    """An interval that holds a number: `lower` is attained by a function of the class, `upper` is proved.

    Parameters
    ----------
    lower, upper : float
        Its ends.

    Examples
    --------
    >>> Bounds(0.25, 0.5).upper
    0.5
    """

    lower: float
    upper: float


def linear_bounds(counts: Float64Array, sums: Float64Array, r: float) -> Bounds:
    r"""Lower and upper bounds of sup over ||theta|| <= 1 of sum_i n_i |<theta, s_i> / n_i|^r; equal at r = 2.

    Parameters
    ----------
    counts : array, shape (n_values,)
        Rounds of each forecast value, all positive.
    sums : array, shape (n_values, d)
        Vectors s_i.
    r : float
        Power, 1 or more.

    Notes
    -----
    *r = 2.* h is a quadratic form: its maximum is the largest eigenvalue of sum_i s_i s_i^T / n_i.

    *Lower bound.* h is convex, so h(theta') >= h(theta) + <grad h(theta), theta' - theta>, and moving to the unit
    vector along the gradient never decreases h. The value at the end of the best of several such ascents is reported.

    *Upper bound, r > 2.* Let u_i = a_i / ||a_i||, and g_s(theta) = sum_i ||a_i||^r |<theta, u_i>|^s, so that h = g_r.
    For a whole number k,

    .. math:: g_{2k}(\theta) = \sum_i \|a_i\|^r \langle \theta^{\otimes k}, u_i^{\otimes k} \rangle^2 \le \lambda_k,

    where lambda_k is the largest eigenvalue of the matrix with entries ||a_i||^(r/2) <u_i, u_j>^k ||a_j||^(r/2), as the
    k-th tensor power of theta has norm 1. By Hoelder's inequality log g_s is convex in s, so with k = floor(r / 2) and
    t = r / 2 - k, h <= lambda_k^(1 - t) lambda_(k+1)^t. The trace of each matrix is SMCal_r: the bound is never worse.

    *Upper bound, 1 <= r < 2.* For any numbers q_i > 0, Hoelder's inequality with the exponents 2/r and 2/(2 - r) gives

    .. math:: h(\theta) = \sum_i (\langle \theta, a_i \rangle^2 q_i^{r/2-1})^{r/2} (q_i^{r/2})^{1-r/2}
              \le \lambda_{\max}\Big(\sum_i q_i^{r/2-1} a_i a_i^T\Big)^{r/2} \Big(\sum_i q_i^{r/2}\Big)^{1-r/2}.

    q_i proportional to n_i^(2/r) gives the textbook T^(1 - r/2) MCal_2^(r/2). Better ones come from the concave
    relaxation that replaces theta theta^T by a positive matrix of trace 1, q_i = a_i^T rho a_i: a Frank-Wolfe step
    moves q toward <u, a_i>^2 with u the leading eigenvector. If the q_i of the best direction make it the leading
    eigenvector, the two bounds meet and the direction is proved optimal.

    r = 1 asks for the largest value of a positive form over signs, which is NP-hard in general, so some gap has to
    remain. With 24 Gaussian vectors in 6 dimensions and equal counts it was 3 % at r = 1, 0.4 % at r = 1.5, 16 % at
    r = 3 and 20 % at r = 4; above r = 2 it grows with many vectors of equal length in few dimensions.
    Cost: one eigenvalue problem of size min(n_values, d) for each of at most 100 steps.
    """
    norms = np.linalg.norm(sums, axis=1)
    keep = norms > 0
    if not keep.any():
        return Bounds(0.0, 0.0)
    counts, sums = counts[keep], sums[keep]
    if sums.shape[1] > sums.shape[0]:
        # Only the span of the s_i matters: coordinates in an orthonormal basis of it keep all inner products.
        sums = np.asarray(np.linalg.qr(sums.T, mode="r")).T
    if r == 2.0:
        value = _largest_eigenvalue(sums / np.sqrt(counts)[:, None])
        return Bounds(value, value)
    a = sums * (counts ** (1 / r - 1))[:, None]
    lower, q = _ascend(a, r)
    upper = _upper_above_two(a, r) if r > 2 else _upper_below_two(a, r, lower, q)
    return Bounds(lower, max(lower, upper))


def _largest_eigenvalue(a: Float64Array) -> float:
    """Largest eigenvalue of a^T a."""
    return float(np.linalg.norm(a, 2) ** 2) if a.shape[0] <= N_GRAM else float(np.linalg.eigvalsh(a.T @ a)[-1])


def _ascend(a: Float64Array, r: float) -> tuple[float, Float64Array]:
    """Best value of h that the ascents reach, and <theta, a_i>^2 there."""
    n_starts = min(max(N_MULTIPLICATIONS // (6 * a.size), 4), N_STARTS)
    spread = np.linalg.eigh(a.T @ a)[1].T[::-1][:n_starts]
    longest = a[np.argsort(-np.linalg.norm(a, axis=1), kind="stable")[:n_starts]]
    theta = np.concatenate([spread, longest, np.random.default_rng(0).normal(size=(n_starts, a.shape[1]))])
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    best = np.full(len(theta), -1.0)
    for _ in range(N_ASCENT):
        along = theta @ a.T
        values = np.sum(np.abs(along) ** r, axis=1)
        if np.all(values <= best * (1 + 1e-13)):
            break
        best = values
        # At r = 1 the sign of 0 may be either: any subgradient ascends, and 0 would stop at a saddle.
        gradient = (np.where(along < 0, -1.0, 1.0) * np.abs(along) ** (r - 1)) @ a
        length = np.linalg.norm(gradient, axis=1, keepdims=True)
        # A start orthogonal to every a_i has no gradient; it stays, and loses.
        theta = np.divide(gradient, length, out=theta.copy(), where=length > 0)
    along = theta @ a.T
    values = np.sum(np.abs(along) ** r, axis=1)
    winner = int(np.argmax(values))
    return float(values[winner]), along[winner] ** 2


def _upper_above_two(a: Float64Array, r: float) -> float:
    """lambda_k^(1 - t) lambda_(k+1)^t; lambda_1, which is larger, where there are too many vectors for the matrices."""
    norms = np.linalg.norm(a, axis=1)
    unit = a / norms[:, None]
    if len(a) > N_GRAM:
        return _largest_eigenvalue(unit * (norms ** (r / 2))[:, None])
    cosines, scale = np.clip(unit @ unit.T, -1.0, 1.0), np.outer(norms ** (r / 2), norms ** (r / 2))
    k = int(r // 2)
    t = r / 2 - k
    near, far = (float(np.linalg.eigvalsh(scale * cosines**power)[-1]) for power in (k, k + 1))
    return float(near ** (1 - t) * far**t)


def _upper_below_two(a: Float64Array, r: float, lower: float, best: Float64Array) -> float:
    """Smallest of the Hoelder bounds along a Frank-Wolfe path; `best` is <theta, a_i>^2 of the best direction."""
    squares = np.sum(a**2, axis=1)
    upper = float(np.sum(squares ** (r / 2)))
    # The mixture keeps q positive where the best direction is orthogonal to a_i.
    for mix in (1e-8, 1e-4):
        upper = min(upper, _hoelder(a, r, (1 - mix) * best + mix * squares)[0])
    q = squares / a.shape[1]
    for step in range(N_RELAXATION):
        if upper <= lower * (1 + 1e-9):
            break
        bound, leading = _hoelder(a, r, q)
        upper = min(upper, bound)
        # The classical step 2 / (k + 2), one step later so that q stays positive.
        rate = 2 / (step + 3)
        q = (1 - rate) * q + rate * (a @ leading) ** 2
    return upper


def _hoelder(a: Float64Array, r: float, q: Float64Array) -> tuple[float, Float64Array]:
    """Return the bound for these q, and the leading eigenvector."""
    q = np.maximum(q, 1e-12 * q.max())
    eigenvalues, vectors = np.linalg.eigh((a * (q ** (r / 2 - 1))[:, None]).T @ a)
    bound = float(eigenvalues[-1]) ** (r / 2) * float(np.sum(q ** (r / 2))) ** (1 - r / 2)
    return bound, np.asarray(vectors[:, -1])
