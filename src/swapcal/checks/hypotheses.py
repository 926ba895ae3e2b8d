"""What every class of functions must be: one reading of contexts, an exact supremum, and evidence that is linear."""

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from swapcal.checks.rules import (
    Rules,
    dense,
    expect,
    expect_bound,
    expect_plain,
    expect_role,
    expect_saved,
    refuses,
    sample_rows,
    snapshot,
)
from swapcal.protocols import Evidence, Hypotheses, Row, Tally
from swapcal.typing import Float64Array

_BINS = 5


def check_hypotheses(hypotheses: Hypotheses) -> None:
    """Check that `hypotheses` does what `swapcal.protocols.Hypotheses` promises, and its evidence what `Evidence` does.

    `CheckFailed` says what it does not. Takes a few hundredths of a second.

    Parameters
    ----------
    hypotheses : Hypotheses
        A class of functions, such as `Finite(3)`.

    Examples
    --------
    >>> from swapcal import Finite, Linear
    >>> check_hypotheses(Finite(3))
    >>> check_hypotheses(Linear(3, radius=2.0))
    """
    HypothesesRules(hypotheses).apply()


def _phis(evidence: Evidence, n: int, bins: range = range(_BINS)) -> list[float]:
    return [evidence.phi(i, row) for i in bins for row in sample_rows(n, 8, seed=2)]


def _largest(dual: str, sums: Float64Array, rng: np.random.Generator) -> Float64Array | None:
    """The largest |<f, sums>| over many functions of the class, the best one among them; None for an unknown dual."""
    n = sums.shape[1]
    if dual == "max":
        return np.array([max(abs(float(s[j])) for j in range(n)) for s in sums])
    if dual == "euclidean":
        random = rng.normal(size=(200, n))
        theta = np.concatenate([random, sums])
        theta /= np.linalg.norm(theta, axis=1, keepdims=True)
        return np.asarray(np.abs(sums @ theta.T).max(axis=1))
    return None


class HypothesesRules(Rules[Hypotheses]):
    """What every class of functions must be: one reading of contexts, an exact supremum, evidence that is linear."""

    def has_the_role(self) -> None:
        """A class of functions has every member of `protocols.Hypotheses`, and its evidence every one of `Evidence`.

        The forecaster, the ledger and the audit each use another part of it.
        """
        for part, role in ((self.part, Hypotheses), (self.part.start(_BINS), Evidence)):
            expect_role(part, role, type(part).__name__)
        expect(isinstance(self.part.n, int) and self.part.n >= 1, f"its length n is {self.part.n!r}")

    def rows_agree_with_row(self) -> None:
        """`rows` reads each context as `row` does, to the last bit.

        `run` reads a whole stream at once, and has to give the numbers of the loop.
        """
        n = self.part.n
        X = np.array([dense(row, n) for row in sample_rows(n, 12, seed=3)])
        rows = self.part.rows(X, len(X))
        expect(len(rows.indptr) == len(X) + 1 and rows.indptr[0] == 0, f"indptr is {rows.indptr!r}")
        for t, x in enumerate(X):
            part, one = slice(rows.indptr[t], rows.indptr[t + 1]), self.part.row(x)
            expect(np.array_equal(rows.indices[part], one.indices), f"the positions of {x!r} differ")
            expect(np.array_equal(rows.values[part], one.values), f"the values of {x!r} differ")
        expect(len(self.part.rows(X[:0], 0).indptr) == 1, "no contexts do not give an indptr of length 1")

    def rows_are_in_order(self) -> None:
        """A row holds the entries that are not zero, by increasing position, with |f(x)| <= 1 for every function.

        Sums are added up in the order of the positions, which is what makes them the same on every path; and every
        potential is for gains of size at most 1.
        """
        n = self.part.n
        for sample in sample_rows(n, 12, seed=4):
            row = self.part.row(dense(sample, n))
            expect((np.diff(row.indices) > 0).all() and (row.values != 0.0).all(), f"it is {row!r}")
            expect(not row.indices.size or 0 <= row.indices[0] <= row.indices[-1] < n, f"positions are {row.indices!r}")
            size = float(self.part.supremum(dense(row, n)))
            expect(size <= 1.0 + 1e-12, f"a function has the size {size!r} at {row!r}")

    def contexts_are_copied(self) -> None:
        """Reading a context leaves it as it is, and what was read does not change with it.

        Callers reuse their arrays, and an outcome may come long after its forecast.
        """
        x = np.linspace(-0.3, 0.4, self.part.n) / self.part.n
        X, before = x[None, :].copy(), x.copy()
        row, rows = self.part.row(x), self.part.rows(X, 1)
        values = row.values.copy()
        expect(np.array_equal(x, before) and np.array_equal(X[0], before), "the context was changed")
        x[:], X[:] = 0.77, 0.77
        unchanged = np.array_equal(row.values, values) and np.array_equal(rows.values, values)
        expect(unchanged, "a row changed with its context")

    def bad_contexts_are_refused(self) -> None:
        """NaN, infinities, a wrong length and things that are no numbers are refused with a `SwapcalError`.

        One bad number in a sum spoils the bin for good.
        """
        n = self.part.n
        good = np.full(n, 0.1 / n)
        bad: list[Any] = [None, "x", np.zeros(n + 1), np.zeros((2, n)), [[0.0], [0.0, 0.0]], {n: 1.0}, {-1: 1.0}]
        for wrong in (np.nan, np.inf, -np.inf):
            spoiled = good.copy()
            spoiled[-1] = wrong
            bad.append(spoiled)
        for x in bad:
            expect(refuses(self.part.row, x), f"row took {x!r}")
            wide = np.tile(x, (2, 1)) if isinstance(x, np.ndarray) and x.ndim == 1 else x
            if not (isinstance(x, np.ndarray) and x.ndim == 2):
                expect(refuses(self.part.rows, wide, 2), f"rows took {wide!r}")
        expect(refuses(self.part.rows, np.tile(good, (2, 1)), 3), "rows took two contexts for three")

    def supremum_is_exact(self) -> None:
        """`supremum` is what the best function attains, and no function of the class exceeds it.

        The reported error is a supremum over the class: an estimate would understate or overstate it.
        """
        n, rng = self.part.n, np.random.default_rng(5)
        sums = rng.normal(size=(6, n)) * rng.uniform(0.0, 30.0, (6, 1))
        top = np.asarray(self.part.supremum(sums))
        expect(top.shape == (6,), f"for six vectors it has shape {top.shape}")
        expect(np.allclose(top, [float(self.part.supremum(s)) for s in sums], rtol=1e-14), "one by one it differs")
        expect(np.allclose(self.part.supremum(-2.5 * sums), 2.5 * top, rtol=1e-12), "it does not scale with the sums")
        together = np.asarray(self.part.supremum(sums[:3] + sums[3:]))
        expect((together <= (top[:3] + top[3:]) * (1.0 + 1e-12)).all(), "that of a sum exceeds the sum of both")
        attained = _largest(self.part.dual, sums, rng)
        if attained is not None:
            expect((attained <= top * (1.0 + 1e-12)).all(), f"functions attain {attained!r}, and it says {top!r}")
            expect((attained >= top * (1.0 - 1e-9)).all(), f"it says {top!r}, and no function exceeds {attained!r}")

    def phi_is_linear(self) -> None:
        """Phi is linear in the context, zero before any evidence, and a number for every context.

        The proof cancels the evidence of a whole context by one draw between two bins: that needs a linear Phi.
        """
        n, evidence = self.part.n, self._taught()
        fresh = self.part.start(_BINS)
        rows = sample_rows(n, 8, seed=6)
        for i in range(_BINS):
            for a, b in pairwise(rows):
                expect(fresh.phi(i, a) == 0.0, f"without evidence Phi is {fresh.phi(i, a)!r}")
                mixed = 0.5 * dense(a, n) - 0.25 * dense(b, n)
                at = np.flatnonzero(mixed)
                whole = evidence.phi(i, Row(at, mixed[at]))
                parts = 0.5 * evidence.phi(i, a) - 0.25 * evidence.phi(i, b)
                size = abs(evidence.phi(i, a)) + abs(evidence.phi(i, b)) + 1e-300
                expect(np.isfinite(whole), f"Phi is {whole!r}")
                expect(
                    abs(whole - parts) <= 1e-9 * size, f"Phi of half a less a quarter b is {whole!r} and not {parts!r}"
                )

    def phi_has_the_sign_of_the_bias(self) -> None:
        """Forecasts that were too high (v > 0) make Phi positive in their bin for their context, and leave other bins.

        The forecaster moves down where Phi is positive; with the wrong sign it would move away from calibration.
        """
        row = Row(np.array([0]), np.array([0.9]))
        for v in (0.7, -0.7):
            evidence = self.part.start(_BINS)
            for _ in range(5):
                evidence.record(2, row, v)
            expect(evidence.phi(2, row) * v > 0.0, f"after five rounds with v = {v} Phi is {evidence.phi(2, row)!r}")
            others = [evidence.phi(i, row) for i in range(_BINS) if i != 2]
            expect(not any(others), f"bins that were not played have Phi = {others}")
            expect(np.array_equal(evidence.counts, [0, 0, 5, 0, 0]), f"visits are {evidence.counts!r}")

    def level_rises_with_the_bias(self) -> None:
        """The level of a value is zero without evidence and rises as bias gathers.

        A hint is played at its word while it is low; a class that trusts no hint has infinite levels.
        """
        row, evidence = Row(np.array([0]), np.array([0.9])), self.part.start(_BINS)
        if evidence.level(2, row) == np.inf:
            return
        levels = [evidence.level(2, row)]
        for n_rounds in (1, 5, 40):
            for _ in range(n_rounds):
                evidence.record(2, row, 0.7)
            levels.append(evidence.level(2, row))
        expect(levels[0] == 0.0 and np.isfinite(levels).all(), f"the levels are {levels}")
        expect((np.diff(levels) > 0.0).all(), f"the levels are {levels} as bias gathers")
        expect(evidence.level(1, row) == 0.0, "a value without rounds has a level")

    def growing_keeps_the_evidence(self) -> None:
        """After `grow` every value has its Phi and visits to the last bit, and the new ones have none.

        The grid follows the forecasts: values are added, and nothing is forgotten.
        """
        n, evidence = self.part.n, self._taught()
        before, counts = _phis(evidence, n), evidence.counts.copy()
        evidence.grow(3 * _BINS)
        expect(_phis(evidence, n, range(_BINS)) == before, "Phi has changed")
        expect(not any(_phis(evidence, n, range(_BINS, 3 * _BINS))), "a new value has evidence")
        moved = not np.array_equal(evidence.counts[:_BINS], counts) or evidence.counts.sum() != counts.sum()
        expect(not moved, "visits moved")
        expect(len(evidence.spread()) == len(evidence.counts) == 3 * _BINS, "there is no room for three times as many")

    def drift_is_zero_at_once(self) -> None:
        """Where nothing was learned between a draw and its outcome, a round does not raise the drift; else it counts.

        The draw has canceled the evidence; outcomes that come late, and plays that were not drawn, may add to it.
        """
        evidence = self._taught()
        for row in sample_rows(self.part.n, 10, seed=12):
            for slot in range(_BINS):
                phi = evidence.phi(slot, row)
                for v in (-1.0, -0.3, 0.8):
                    added = evidence.drift(slot, row, phi, v)
                    expect(
                        added <= 1e-12 * (1.0 + abs(phi)), f"the drift rises by {added!r} with Phi {phi!r} and V {v}"
                    )
                expect(evidence.reserve(phi) >= abs(phi), f"a draw at Phi {phi!r} reserves {evidence.reserve(phi)!r}")
                undrawn = evidence.drift(slot, row, 0.0, 1.0) - evidence.drift(slot, row, 0.0, -1.0)
                expect(
                    undrawn * phi >= 1.999 * phi * phi, f"outright plays at Phi {phi!r} differ by {undrawn!r} in drift"
                )

    def evidence_is_shared_with_nobody(self) -> None:
        """Evidence from two calls of `start` has nothing in common.

        One description of a class serves many forecasters.
        """
        one, two = self.part.start(_BINS), self.part.start(_BINS)
        before = snapshot(two)
        one.record(0, Row(np.array([0]), np.array([1.0])), 1.0)
        expect(snapshot(two) == before, "recording in the one has changed the other")

    def evidence_is_saved_exactly(self) -> None:
        """`restore` continues from `arrays` to the last bit, and shares nothing with them or with the original.

        A loaded forecaster has to draw the forecasts that the original would have drawn.
        """
        row, n = Row(np.array([0]), np.array([0.5])), self.part.n
        fresh, answers = self.part.start(_BINS), partial(_phis, n=n)
        expect_saved(self._taught(), fresh, answers, lambda evidence: evidence.record(1, row, 0.3))

    def bound_moves_as_it_should(self) -> None:
        """The bound is finite, grows with rounds, and grows as delta gets smaller; the theorem has a name.

        More rounds cannot have a smaller total error, and a promise that is kept more often has to be weaker.
        """
        evidence = self.part.start(_BINS)
        expect(isinstance(evidence.theorem, str) and evidence.theorem, "its theorem has no name")
        expect_bound(lambda t, delta: evidence.bound(Tally(_BINS, self.part.n, t), 2.0, delta), 0.0)

    def spec_is_plain(self) -> None:
        """`spec` is plain data.

        State files hold specs and never code; a class of your own is passed to `load` again and compared by spec.
        """
        expect_plain(self.part.spec())

    def _taught(self, n_rounds: int = 40) -> Evidence:
        """Evidence of a few rounds."""
        evidence, rng = self.part.start(_BINS), np.random.default_rng(1)
        for row in sample_rows(self.part.n, n_rounds, seed=1):
            evidence.record(int(rng.integers(_BINS)), row, float(rng.uniform(-1.0, 1.0)))
        return evidence
