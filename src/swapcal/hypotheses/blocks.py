"""Blocks of functions: the linear functions of each part of a context, and classes side by side."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from swapcal.engine.theorems import certified_separately
from swapcal.errors import InvalidInput, StateFileError
from swapcal.hypotheses.finite import Finite, Gathered, OfMembers
from swapcal.potentials import PNorm, Potential, Quadratic
from swapcal.protocols import Evidence, Hypotheses, Row, Rows, Tally
from swapcal.sparse import checked_rows, each, gathered
from swapcal.typing import Float64Array, IntArray, Spec


class BlocksEvidence(Gathered):
    r"""Per bin the vector S of sums of x V, and per block b its length ||S_b|| and spread C_b = sum of ||x_b|| |V|.

    Phi(x) = sum over b of W(||S_b||, C_b) <S_b, x_b> / ||S_b||, where W is the potential's weight of a function that
    has this sum and spread; a block without a sum adds nothing. Blocks of one are a finite class.

    Guarantee: theorem A' for blocks (docs/guarantees.md, section 2). Cost: O(active entries) for Phi, and for a record
    the sizes of the active blocks.

    Parameters
    ----------
    blocks : array of int
        The block of each position, from 0 up.
    potential : Potential
        One that weighs every function by itself.
    capacity : int
        For how many bins there is room.
    """

    __slots__ = ("blocks", "edges", "factors", "norms")

    follows = ("norms", "factors")

    def __init__(self, blocks: IntArray, potential: Potential, capacity: int) -> None:
        self.blocks, self.edges = blocks, np.flatnonzero(np.diff(blocks, prepend=-1, append=-1))
        n_blocks = len(self.edges) - 1
        super().__init__(potential, capacity, len(blocks), n_blocks)
        self.norms, self.factors = np.zeros((capacity, n_blocks)), np.zeros((capacity, n_blocks))

    def phi(self, bin: int, row: Row) -> float:
        """Added up in the order of the positions."""
        i = row.indices
        if not i.size:
            return 0.0
        factors = self.factors[bin].take(self.blocks.take(i))
        return float((factors * (self.sums[bin].take(i) * row.values)).cumsum()[-1])

    def _active(self, row: Row) -> Iterator[tuple[int, float]]:
        """The blocks of a row, each with the length of its part."""
        of = self.blocks.take(row.indices)
        for b in np.unique(of).tolist():
            part = row.values[of == b]
            yield b, math.sqrt(float((part * part).cumsum()[-1]))

    def record(self, bin: int, row: Row, v: float) -> None:
        """Add x v to the sums, and renew the blocks that it touches."""
        self.sums[bin, row.indices] += row.values * v
        for b, length in self._active(row):
            self.spreads[bin, b] += float(self.potential.spread(np.array([length * v]))[0])
            self._renew(bin, b)
        self.counts[bin] += 1.0

    def _renew(self, bin: int, b: int) -> None:
        part = self.sums[bin, self.edges[b] : self.edges[b + 1]]
        norm = math.sqrt(float((part * part).cumsum()[-1]))
        self.norms[bin, b] = norm
        self.factors[bin, b] = self.potential.weight(norm, float(self.spreads[bin, b])) / norm if norm else 0.0

    def level(self, bin: int, row: Row) -> float:
        """Logarithm of the largest potential that an active block has in the bin."""
        active = np.unique(self.blocks.take(row.indices))
        levels = self.potential.level(self.norms[bin].take(active), self.spreads[bin].take(active))
        return float(levels.max()) if levels is not None and levels.size else 0.0

    @property
    def theorem(self) -> str:
        """Name of the potential's theorem."""
        return f"theorem A' for blocks, {self.potential!r}"

    def certified(self, tally: Tally, r: float) -> float | None:
        """Theorem C for what has been seen."""
        n = tally.n_values
        return certified_separately(self.potential, self.norms[:n], self.spreads[:n], self.counts[:n], tally, r)

    def _follow(self, m: int) -> None:
        """Lengths and factors, of the first `m` values."""
        for b, (begin, end) in enumerate(pairwise(self.edges.tolist())):
            part = self.sums[:m, begin:end]
            self.norms[:m, b] = np.sqrt((part * part).cumsum(axis=1)[:, -1])
        there = self.norms > 0.0
        norms = self.norms[there]
        self.factors[there] = self.potential.weights(norms, self.spreads[there]) / norms


def side_by_side(parts: "Sequence[Hypotheses]") -> IntArray:
    """The block of each position of classes that stand side by side."""
    blocks, n = [np.zeros(0, dtype=np.int64)], 0
    for part in parts:
        own = getattr(part, "blocks", None)
        blocks.append(n + (np.arange(part.n) if own is None else own))
        n = int(blocks[-1][-1]) + 1
    return np.concatenate(blocks)


class Union(OfMembers):
    """The functions of several classes: `A | B`. Each part reads the context by itself; what is promised holds for all.

    A linear class is one block, each function of a finite one a block by itself, and blocks of all parts stand side by
    side: the supremum is the largest of the parts', and the number of blocks takes the place of |F| in the theorem.

    Parameters
    ----------
    parts : sequence of Hypotheses
        Two or more, with the same potential.

    Examples
    --------
    >>> from swapcal import Finite, Linear
    >>> both = Finite(2) | Linear(2)
    >>> both.n, both.row([0.6, 0.8]).values, float(both.supremum([1.0, -2.0, 3.0, 4.0]))
    (4, array([0.6, 0.8, 0.6, 0.8]), 5.0)
    """

    __slots__ = ("blocks", "hidden", "learned", "members", "n", "offsets", "parts", "potential")

    def __init__(self, parts: Sequence[Any]) -> None:
        flat = [each for part in parts for each in (part.parts if isinstance(part, Union) else (part,))]
        # What a learning hint sees comes first.
        self.parts: tuple[Any, ...] = tuple(sorted(flat, key=_place))
        self.members = self.parts
        potentials = [part.potential for part in self.parts]
        if any(isinstance(one, (PNorm, Quadratic)) or one != potentials[0] for one in potentials):
            raise InvalidInput(
                f"classes side by side need one and the same potential, AdaNormalHedge(), Exponential() or Squint(); "
                f"got {', '.join(map(repr, potentials))}"
            )
        learned = [part for part in self.parts if part.dual == "learner"]
        if len(learned) > 1:
            raise InvalidInput(f"one learner can stand beside other classes; got {learned!r}")
        self.learned = learned[0] if learned else None
        self.potential: Potential = potentials[0]
        self.offsets = np.cumsum([0, *(part.n for part in self.parts)]).tolist()
        self.n: int = self.offsets[-1]
        at = self.offsets[self.parts.index(self.learned)] if learned else self.n
        # The positions that the learner reads; all others are functions.
        self.hidden = (at, at + self.learned.n) if self.learned is not None else None
        self.blocks = side_by_side([part for part in self.parts if part is not self.learned])

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.parts))

    @property
    def dual(self) -> str:
        """The norm that the supremum is: "max" if no part is linear, else "blocks"; "learner" if one is learned."""
        if self.learned is not None:
            return "learner"
        return "max" if all(part.dual == "max" for part in self.parts) else "blocks"

    @property
    def n_inputs(self) -> int:
        """How many of the first positions a learning hint sees."""
        seen = [_n_inputs(part) for part in self.parts]
        whole = next((k for k, part in enumerate(self.parts) if seen[k] < part.n), len(seen) - 1)
        return int(self.offsets[whole] + seen[whole])

    @property
    def n_functions(self) -> int:
        """For how many functions a theorem counts: a block is one, and so is an answer."""
        known = int(self.blocks[-1]) + 1 if len(self.blocks) else 0
        return known + (0 if self.learned is None else self.learned.n_functions)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the positions, each with that of its part where two parts would share one."""
        named = [position_names(part) for part in self.parts]
        seen: dict[str, int] = {}
        for names in named:
            for name in set(names):
                seen[name] = seen.get(name, 0) + 1
        return tuple(
            name if seen[name] == 1 else f"{type(part).__name__} {k + 1}: {name}"
            for k, (part, names) in enumerate(zip(self.parts, named, strict=True))
            for name in names
        )

    def row(self, x: Any) -> Row:
        """One context, as each part reads it."""
        return x if isinstance(x, Row) else self._joined([part.row(x) for part in self.parts])

    def peek(self, x: Any) -> Row:
        """What `row` would give, without learning anything."""
        return x if isinstance(x, Row) else self._joined([getattr(part, "peek", part.row)(x) for part in self.parts])

    def _joined(self, rows: Sequence[Row]) -> Row:
        indices = [row.indices + offset for row, offset in zip(rows, self.offsets, strict=False)]
        return Row(np.concatenate(indices), np.concatenate([row.values for row in rows]))

    def rows(self, X: Any, n_rows: int) -> Rows:
        """Many contexts at once."""
        if isinstance(X, Rows):
            return checked_rows(X, self.n, n_rows, 1.0 if self.learned is None else math.inf)
        parts = [part.rows(X, n_rows) for part in self.parts]
        numbers = np.concatenate([rows.numbers for rows in parts])
        order = np.argsort(numbers, kind="stable")
        indices = np.concatenate([rows.indices + offset for rows, offset in zip(parts, self.offsets, strict=False)])
        indptr = np.add.reduce([rows.indptr for rows in parts])
        return Rows(indptr, indices[order], np.concatenate([rows.values for rows in parts])[order])

    def suprema(self, sums: Any) -> list[tuple[Any, Float64Array]]:
        """The largest |sum f V| over each part that is known, from sums over the functions."""
        sums, begin, found = np.asarray(sums), 0, []
        for part in self.parts:
            if part is not self.learned:
                found.append((part, part.supremum(sums[..., begin : begin + part.n])))
                begin += part.n
        return found

    def supremum(self, sums: Any) -> Float64Array:
        """The largest |sum f V| over the parts; exact."""
        largest = np.zeros(np.shape(sums)[:-1])
        for _, one in self.suprema(sums):
            largest = np.maximum(largest, one)
        return largest

    def complexity(self, n_rounds: float) -> float | None:
        """The largest of the parts', and root(2 n ln m) for m parts; None where one is unknown."""
        known = [part.complexity(n_rounds) for part in self.parts]
        return None if None in known else max(known) + math.sqrt(2.0 * n_rounds * math.log(len(known)))

    def extended(self, extra: int) -> "Union":
        """The class with the level sets of a hint behind it."""
        return Union([*self.parts, Levels(extra, potential=self.potential)]) if extra else self

    def start(self, capacity: int) -> Evidence:
        """No evidence, and room for that of `capacity` values."""
        if self.learned is not None and self.hidden is not None:
            evidence: Evidence = self.learned.evidence(self.hidden, self.blocks, capacity)
            return evidence
        if self.dual == "max":
            return Finite(self.n, potential=self.potential).start(capacity)
        return BlocksEvidence(self.blocks, self.potential, capacity)

    def spec(self) -> Spec:
        """Plain data: that of the parts."""
        return {"kind": "Union", "n": self.n, "parts": [dict(part.spec()) for part in self.parts]}

    def resumed(self, spec: Spec) -> "Union":
        """These parts, with what those of `spec` have learned."""
        return Union(resumed_parts(self.parts, spec))


class Levels(Finite):
    """The level sets of a hint: always behind all other parts, and no input of a learning hint."""

    n_inputs = 0

    def __repr__(self) -> str:
        return "level sets of the hint"

    def spec(self) -> Spec:
        """Plain data."""
        return {"kind": "Levels", "n": self.n, "potential": dict(self.potential.spec())}


def _place(part: Any) -> int:
    if isinstance(part, Levels):
        return 3
    return 2 if part.dual == "learner" else int(_n_inputs(part) < part.n)


def _n_inputs(part: Any) -> int:
    return int(getattr(part, "n_inputs", part.n))


def position_names(part: Any) -> list[str]:
    """What audits call the positions of a class."""
    names = list(getattr(part, "names", None) or ())
    return names + [f"{j}" for j in range(len(names), part.n)]


def resumed_parts(parts: Sequence[Any], spec: Spec) -> list[Any]:
    """Each part with what its own spec has learned."""
    specs = spec.get("parts", ())
    if len(specs) != len(parts):
        raise StateFileError(f"the class passed in has {len(parts)} parts, that in the file {len(specs)}")
    return [part.resumed(one) if hasattr(part, "resumed") else part for part, one in zip(parts, specs, strict=True)]


class Product(OfMembers):
    """The functions of one class in each group of another: `groups * features`.

    For each group g there is a block of all g(x) h(x), h of the features; so the supremum is the largest, over groups,
    of what the features have in that group. Where the features are `Finite`, a product of two functions is a function.

    Parameters
    ----------
    groups : Hypotheses
        A finite class: `Groups`, `Trees`, `Finite`, or a union of such.
    features : Hypotheses
        `Numeric`, `Linear`, or finite.

    Examples
    --------
    >>> from swapcal import Finite, Linear
    >>> product = Finite(2) * Linear(2)
    >>> product.n, product.row([1.0, -0.5]).indices, float(product.supremum([3.0, 4.0, 0.0, -1.0]))
    (4, array([0, 1, 2, 3]), 5.0)
    """

    __slots__ = ("blocks", "features", "groups", "members", "n", "potential")

    def __init__(self, groups: Any, features: Any) -> None:
        if groups.dual != "max" or features.dual not in ("max", "euclidean"):
            raise InvalidInput(
                f"a product is of a finite class and a linear or finite one; got {groups!r}, {features!r}"
            )
        if groups.potential != features.potential or isinstance(features.potential, (PNorm, Quadratic)):
            raise InvalidInput(
                "a product needs one potential for both classes, one that weighs functions by themselves"
            )
        self.groups, self.features, self.members = groups, features, (groups, features)
        self.potential = groups.potential
        self.n: int = groups.n * features.n
        own = np.arange(features.n) if features.dual == "max" else np.zeros(features.n, dtype=np.int64)
        self.blocks = (np.arange(groups.n)[:, None] * (int(own[-1]) + 1) + own).ravel()

    def __repr__(self) -> str:
        return f"{self.groups!r} * {self.features!r}"

    @property
    def dual(self) -> str:
        """The norm that the supremum is."""
        return "max" if self.features.dual == "max" else "blocks"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the positions in use: the group's, and the feature's."""
        groups = list(getattr(self.groups, "names", None) or position_names(self.groups))
        return tuple(f"{name} * {own}" for name in groups for own in position_names(self.features))

    def row(self, x: Any) -> Row:
        """One context: the features once for each group that it is in."""
        return x if isinstance(x, Row) else self._product(self.groups.row(x), self.features.row(x))

    def peek(self, x: Any) -> Row:
        """What `row` would give, without learning anything."""
        if isinstance(x, Row):
            return x
        groups, features = (getattr(one, "peek", one.row)(x) for one in (self.groups, self.features))
        return self._product(groups, features)

    def _product(self, groups: Row, features: Row) -> Row:
        indices = groups.indices[:, None] * self.features.n + features.indices
        return Row(indices.ravel(), (groups.values[:, None] * features.values).ravel())

    def rows(self, X: Any, n_rows: int) -> Rows:
        """Many contexts at once."""
        if isinstance(X, Rows):
            return checked_rows(X, self.n, n_rows)
        pairs = zip(each(self.groups.rows(X, n_rows)), each(self.features.rows(X, n_rows)), strict=True)
        return gathered([self._product(*pair) for pair in pairs])

    def supremum(self, sums: Any) -> Float64Array:
        """The largest |sum f V|: over groups, of the features' supremum there; exact."""
        sums = np.asarray(sums)
        largest: Float64Array = self.features.supremum(
            sums.reshape(*sums.shape[:-1], self.groups.n, self.features.n)
        ).max(axis=-1)
        return largest

    def complexity(self, n_rounds: float) -> float:
        """That of the features, and root(2 n ln m) for m groups."""
        return float(self.features.complexity(n_rounds)) + math.sqrt(2.0 * n_rounds * math.log(self.groups.n))

    def spec(self) -> Spec:
        """Plain data: that of both classes."""
        return {"kind": "Product", "n": self.n, "parts": [dict(self.groups.spec()), dict(self.features.spec())]}

    def resumed(self, spec: Spec) -> "Product":
        """These classes, with what those of `spec` have learned."""
        return Product(*resumed_parts(self.members, spec))
