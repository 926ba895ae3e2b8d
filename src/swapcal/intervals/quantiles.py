"""Several quantiles at once, one inside the other, so that they cannot cross."""

import math
import secrets
from collections.abc import Callable, Iterable, Sequence
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from swapcal import hypotheses, inputs, sparse
from swapcal.engine.composite import Composite
from swapcal.engine.kernels import seed_for
from swapcal.engine.ledger import TieDetector
from swapcal.engine.pending import Asked
from swapcal.errors import InvalidInput
from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses.groups import for_whom
from swapcal.intervals.forecasts import QuantilesForecast
from swapcal.properties import Mean, Quantile
from swapcal.protocols import Elicitable, Hypotheses, Row
from swapcal.state import Packed, Saved
from swapcal.typing import Float64Array, Spec

# --------
# Contexts with the level set of the hint behind the class's own functions.

# So many hints settle the edges.
_FIRST = 256


class Contexts:
    """Reads contexts by a class of functions and adds ten level sets of the hint, which has no range of its own.

    The edges are the deciles of the first 256 hints; until then, and without hints, no level set is active. Classes
    that nothing can join, as `Linear` with the quadratic potential, stay as they are.
    """

    __slots__ = ("edges", "functions", "hints", "hypotheses", "joined", "n_bands")

    def __init__(self, hypotheses: Hypotheses, n_bands: int = 10) -> None:
        self.hypotheses, self.n_bands = hypotheses, n_bands
        extended: Callable[[int], Hypotheses] | None = getattr(hypotheses, "extended", None)
        self.functions = hypotheses if extended is None else extended(n_bands)
        self.joined = self.functions is not hypotheses
        self.hints: list[float] = []
        self.edges: tuple[float, ...] = ()

    def read(self, x: Any, hint: float | None, *, learn: bool = True) -> Any:
        """The context for the forecasters; with `learn`, hints and values of columns are noticed."""
        if not self.joined:
            return x
        look = self.hypotheses.row if learn else getattr(self.hypotheses, "peek", self.hypotheses.row)
        row = look(x)
        if hint is None or not self.n_bands:
            return row
        if learn and len(self.hints) < _FIRST:
            self.hints.append(hint)
            if len(self.hints) == _FIRST:
                cuts = np.quantile(self.hints, np.arange(1, self.n_bands) / self.n_bands)
                self.edges = tuple(np.unique(cuts).tolist())
        if not self.edges:
            return row
        band = self.hypotheses.n + int(np.searchsorted(self.edges, hint))
        return Row(np.append(row.indices, band), np.append(row.values, 1.0))

    def plain(self) -> Spec:
        """What was learned, and the class."""
        return {
            "hypotheses": dict(self.hypotheses.spec()),
            "n_bands": self.n_bands,
            "hints": self.hints,
            "edges": list(self.edges),
        }

    @classmethod
    def from_plain(cls, plain: Spec, hypotheses: Hypotheses) -> "Contexts":
        """What `plain` wrote down."""
        contexts = cls(hypotheses, int(plain["n_bands"]))
        contexts.hints, contexts.edges = [float(h) for h in plain["hints"]], tuple(map(float, plain["edges"]))
        return contexts


# --------
# Outcomes of any size as numbers in [0, 1]: a fixed, increasing map around a center, in units of a scale.

# So many scales from the center the map ends, so near 0 and 1: outcomes beyond count as there, and a quantile that lies
# nearer to 0 or 1 is infinite. Without these, nothing could be said of a level below the share of outcomes beyond.
FAR, BEYOND = 25.0, 0.005
_STEEP = (0.5 - BEYOND) * (1.0 + FAR) / FAR


def unit(y: float, center: float, scale: float) -> float:
    """1/2 at the center, about 1/4 and 3/4 one scale away, increasing up to `FAR` scales and constant from there on.

    Examples
    --------
    >>> unit(3.0, 3.0, 2.0), round(unit(5.0, 3.0, 2.0), 2), unit(1e9, 3.0, 2.0)
    (0.5, 0.76, 0.995)
    >>> round(unit_back(0.994, 3.0, 2.0)), unit_back(0.996, 3.0, 2.0)
    (51, inf)
    """
    z = (y - center) / scale
    if abs(z) >= FAR:
        return 1.0 - BEYOND if z > 0 else BEYOND
    return 0.5 + _STEEP * z / (1.0 + abs(z))


def unit_back(u: float, center: float, scale: float) -> float:
    """The outcome at position `u`."""
    if not BEYOND <= u < 1.0 - BEYOND:
        return math.inf if u > 0.5 else -math.inf
    v = (u - 0.5) / _STEEP
    return center + scale * v / (1.0 - abs(v))


def size(distance: float, typical: float) -> float:
    """A distance, 0 or more, as a number in [0, 1): 1/2 at the typical one."""
    ratio = distance / typical
    return 1.0 if math.isinf(ratio) else ratio / (1.0 + ratio)


def size_back(u: float, typical: float) -> float:
    """The distance of size `u`, from a hundredth to a hundred times the typical one."""
    u = min(max(u, 0.01), 0.99)
    return typical * u / (1.0 - u)


# --------
# The tree in which several quantiles are forecast one inside the other.


class Node(NamedTuple):
    """One quantile, forecast inside the cell between two others.

    `below` and `above` are the positions of the quantiles that bound the cell, None for the ends of the line; `share`
    is the level inside the cell: the part of the cell's probability that lies below this quantile.
    """

    position: int
    below: int | None
    above: int | None
    share: float


def tree(levels: Sequence[float]) -> tuple[Node, ...]:
    """The nodes, parents before children: the middle level first, then the middles of the two halves, and so on.

    Examples
    --------
    >>> for node in tree([0.05, 0.95]):
    ...     print(node.position, node.below, node.above, round(node.share, 4))
    0 None None 0.05
    1 0 None 0.9474
    >>> [node.position for node in tree([0.1, 0.25, 0.5, 0.75, 0.9])]
    [2, 0, 1, 3, 4]
    """
    nodes: list[Node] = []

    def grow(start: int, stop: int) -> None:
        if start >= stop:
            return
        middle = (start + stop - 1) // 2
        below, above = start - 1 if start else None, stop if stop < len(levels) else None
        low = 0.0 if below is None else levels[below]
        high = 1.0 if above is None else levels[above]
        nodes.append(Node(middle, below, above, (levels[middle] - low) / (high - low)))
        grow(start, middle)
        grow(middle + 1, stop)

    grow(0, len(levels))
    return tuple(nodes)


# So many outcomes say how far outcomes lie from the hint.
_WARM = 20
# A scale is about two standard deviations, where the map to (0, 1) still tells outcomes apart.
_STRETCH = 2.5
# A quantile keeps this part of its cell free below it.
_MARGIN = 1e-6
_HEAPS = (
    "An interval covers all of such a heap or nothing of it; groups in which outcomes heap up show how far off that is"
)
# Hints keep this far from the ends of a cell.
_NEAR_END = 0.01
# Where the model has quantiles of its own: so many of its half-widths from their middle the range of corrections ends;
# half-widths count from a fiftieth to fifty times the usual distance.
_REACH, _WIDEST = 10.0, 50.0
# Positions are at most so far from the middle: their squares can be added up.
_FARTHEST = 1e9


class Quantiles(Composite[QuantilesForecast]):
    r"""Quantiles at several levels that never cross, each calibrated given itself and given every group.

    One forecaster per level, in a tree: the middle level is forecast first; a level below it is forecast as a point of
    the cell below that quantile, as the quantile of the outcomes that fall into the cell; and so on. A child learns
    only from outcomes in its cell. That depends on its parents' draws, never on its own, so the theorem of `Forecaster`
    holds for each of them on its own rounds.

    Guarantee: let E_N(g) be the sum, over the rounds of group g with an outcome in the cell of node N, of 1{y <= q_N}
    minus the node's share s_N. Then :math:`|E_N(g)| \le B_N = \sqrt{n_N G_N}` with n_N the node's rounds and G_N its
    `guarantee`, by the inequality of Cauchy and Schwarz over its values, and the error of coverage of q_N,

    .. math:: e_N(g) = \sum_g (1\{y \le q_N\} - \tau_N) = (1 - s_N)\, e_{below}(g) + s_N\, e_{above}(g) + E_N(g),

    where the two are the quantiles that bound the cell (0 at the ends of the line). `miscoverage(delta)` evaluates
    this: it is of order T^(2/3) in total for every group at once, whatever the outcomes do, if they have a density.

    If your model has quantiles of its own at these levels, give them as hints, one for each level. Then there is no
    tree: the forecaster of each level corrects the model's quantile, and shows the share of the correction that the
    outcomes so far speak for (`protect`), so a right model is left as it is. What is shown is put in order. That can
    only lower the sum of the pinball losses over the levels, whatever the outcome y: it is the sum of (q - y)+, which
    the order leaves alone, less that of level times (q - y), which is largest in order. `miscoverage` is
    then the root of rounds times `guarantee` of each level's forecaster, and the rounds in which an outcome lay on the
    other side of what is shown than of what was forecast: for quantiles that were put in order, or beyond the range.

    Parameters
    ----------
    levels : sequence of float
        Strictly between 0 and 1, in increasing order.
    hypotheses : Hypotheses
        For whom: `Groups([...])`, `Finite(n)`, `Linear(n)`, ...; ten level sets of the hint join a finite class.
    spread : float, optional
        About how far outcomes lie from the hint. None: learned from the first 20 outcomes; until then quantiles are
        infinite.
    low, high : float, optional
        Outcomes never lie outside; quantiles then do not either.
    horizon : int, optional
        Number of rounds, as for `Forecaster`.
    seed : int, optional
        Of the draws; None draws one from the system.
    learn : bool
        Whether an `OnlineRegression` on the context guides every forecaster.
    max_pending : int
        As for `Forecaster`.
    protect, budget
        As for `Forecaster`, where hints are the model's own quantiles: who asks for a quantile asks for coverage.

    Notes
    -----
    A round whose outcome misses a node's cell is closed there and not learned: the node's level is a share of the
    outcomes in the cell, of which such an outcome says nothing. One could learn every outcome instead, moved to the end
    of the cell, at the quantile's own level. Then e_N = E_N without the shares, but sums over all rounds instead of
    those of the cell, and in forecasts and coverage it makes no difference that shows, in early rounds as in late ones
    (`tests/intervals`): what early rounds miss is how loud a group is, which the scale's forecaster has to learn first.

    Outcomes need no range: they are mapped to (0, 1) around the hint, in units of a scale that a further forecaster
    learns for every context (the mean size of the distance). The map is in the forecast, so outcomes may come late. It
    ends 25 scales away: what lies beyond counts as there, and where so many do that a quantile lies among them, it is
    infinite. With `low` and `high` quantiles keep to these; an outcome that is `low` itself counts as above them.
    Where outcomes have left it, by 20 more than were on it since, these find it anew: how far from the hint it lies,
    and how wide it is. What was learned of positions on the map stays, and so does what is guaranteed of them.
    Cost: K + 1 rounds of a forecaster; memory likewise.

    Examples
    --------
    >>> import numpy as np, swapcal as sc
    >>> from swapcal.intervals import Quantiles
    >>> rng = np.random.default_rng(0)
    >>> quantiles = Quantiles([0.1, 0.5, 0.9], sc.Finite(1), horizon=2000, seed=1)
    >>> y = rng.normal(50.0, 3.0, 2000)
    >>> q = quantiles.run(np.ones((2000, 1)), y, np.full(2000, 48.0))
    >>> bool((np.diff(q[20:], axis=1) > 0).all()), (y[:, None] <= q)[200:].mean(axis=0).round(1)
    (True, array([0.1, 0.5, 0.9]))
    """

    kind = "quantiles"
    forecast_type: ClassVar[type[QuantilesForecast]] = QuantilesForecast
    # What it is made of first: its name, in the constructor and where it is saved.
    asked: ClassVar[str] = "levels"

    def __init__(
        self,
        levels: Sequence[float] | Float64Array,
        hypotheses: Hypotheses | str | Sequence[Any],
        *,
        spread: float | None = None,
        low: float | None = None,
        high: float | None = None,
        horizon: int | None = None,
        seed: int | None = None,
        learn: bool = True,
        max_pending: int = 65_536,
        protect: str = "calibration",
        budget: float | None = None,
    ) -> None:
        super().__init__(max_pending)
        self.levels = tuple(inputs.level(float(level)) for level in levels)
        if not self.levels or any(b <= a for a, b in zip(self.levels, self.levels[1:], strict=False)):
            raise InvalidInput(f"levels must be numbers between 0 and 1 in increasing order; got {list(levels)!r}")
        self.spread = None if spread is None else inputs.number(spread, "spread", 1e-300, 1e300)
        self.low = -math.inf if low is None else inputs.real(low, "low")
        self.high = math.inf if high is None else inputs.real(high, "high")
        if not self.low < self.high:
            raise InvalidInput(f"low must be smaller than high; got low={self.low:g} and high={self.high:g}")
        self.middle = self.shift = 0.0
        self.seed = secrets.randbits(63) if seed is None else inputs.integer(seed, "seed", 0)
        self._warm: list[tuple[float, float | None, float]] = []
        self._contexts = Contexts(for_whom(hypotheses))
        self._nodes = tree(self.levels)
        self.settings: dict[str, Any] = {"horizon": horizon, "learn": learn, "max_pending": max_pending}
        self.settings |= {"protect": protect, "budget": budget}
        self.own, self.n_crossed = False, 0
        self._size = self._forecaster(Mean(), "size")
        self._ends = self._forecasters()
        self._ties = TieDetector(_HEAPS, "labels, measured from the hint where there is one, are")

    def _forecasters(self) -> list[Forecaster]:
        """One for each level: for its share of a cell of the tree or, with quantiles of the model, for itself."""
        targets = [Quantile(level) for level in self.levels]
        for node in () if self.own else self._nodes:
            targets[node.position] = Quantile(node.share, density=_density(self.levels[node.position]))
        forecasters = [self._forecaster(target, k) for k, target in enumerate(targets)]
        for forecaster in forecasters:
            # Their labels are positions; outcomes are looked at here.
            forecaster._round.state.ties.warned = True
        return forecasters

    def _forecaster(self, target: Elicitable, name: object) -> Forecaster:
        """A forecaster of positions in [0, 1]."""
        rules = {name: self.settings[name] for name in ("horizon", "max_pending", "budget")}
        # In the tree hints are guesses of this class and no model's own forecasts: nothing needs protection.
        rules |= {"protect": self.settings["protect"] if self.own else "nothing"}
        # The ranges of corrections follow outcomes; in the tree that is done by the map.
        rules["outside"] = "follow" if self.own else "clip"
        guide = OnlineRegression() if self.settings["learn"] else None
        return Forecaster(target, self._contexts.functions, hint=guide, seed=seed_for(self.seed, name), **rules)

    def __repr__(self) -> str:
        asked = getattr(self, self.asked)
        return f"{type(self).__name__}({asked}, {self.hypotheses!r}, seed={self.seed}): {self.n_rounds} rounds"

    @property
    def hypotheses(self) -> Hypotheses:  # type: ignore[override]
        """For whom quantiles are calibrated."""
        return self._contexts.hypotheses

    @property
    def n_outputs(self) -> int:
        """Levels."""
        return len(self.levels)

    def outputs(self, forecast: QuantilesForecast) -> Sequence[float]:
        """The quantiles."""
        return forecast.values

    @property
    def n_rounds(self) -> int:
        """Rounds that have had their outcome, without the first ones that only taught the spread."""
        return self._ends[self._nodes[0].position].n_rounds

    def predict(self, x: Any, hint: Any = None, *, unit: float | None = None) -> QuantilesForecast:
        """The quantiles for context `x`, around `hint`; opens a round, learns nothing about outcomes.

        Parameters
        ----------
        x : array, sequence, mapping or record
            The context, as the class of functions takes it.
        hint : float or sequence of floats, optional
            Your own model's forecast, in the outcomes' unit; or its own quantiles, one for each level, in every round.
            A NaN among these: there are none in this round.
        unit : float, optional
            How far your own model expects this outcome from a single hint, such as its standard error or the half-width
            of its interval; `spread` is then a multiple of it. What is guaranteed stays the same, as it only scales the
            map to (0, 1); where it tells certain cases from uncertain ones, intervals are shorter for it.

        Returns
        -------
        QuantilesForecast
            A value with the quantiles in `values`.
        """
        return self._play(x, hint, unit, drawn=True)

    def expected(self, x: Any, hint: Any = None, *, unit: float | None = None) -> Float64Array:
        """The quantiles with the mean of the two values that each forecaster would draw from. Changes nothing."""
        return np.array(self._play(x, hint, unit, drawn=False).values)

    def _play(self, x: Any, hint: Any, unit_given: float | None, *, drawn: bool) -> QuantilesForecast:
        own = self.own if hint is None else np.ndim(hint) > 0
        if own != self.own and (self.own or self.rounds.issued):
            raise InvalidInput("hints are single numbers in all rounds, or in all rounds one number for each level")
        if own:
            if unit_given is not None:
                raise InvalidInput("a unit goes with a single hint; quantiles of your own have their distance")
            given = [math.nan] * len(self.levels) if hint is None else hint
            quantiles = inputs.vector(given, "hint", len(self.levels), missing=True)
            return self._correct(x, None if np.isnan(quantiles).any() else quantiles.tolist(), drawn=drawn)
        guide = None if hint is None else inputs.real(hint, "hint")
        one = 1.0 if unit_given is None else inputs.number(unit_given, "unit", 1e-300, 1e300)
        context = self._contexts.read(x, guide, learn=drawn)
        if self.spread is None:
            ends = tuple(self.low if level < 0.5 else self.high for level in self.levels)
            return self.forecast_type(self.levels, ends, guide, 0.0, (), None, one, self._open() if drawn else -1)
        center = self.middle if guide is None else guide + self.shift
        sized, how_large = _forecast(self._size, context, 0.5, drawn)
        scale = _STRETCH * size_back(how_large, self.spread) * one
        positions, parts = [0.0] * len(self.levels), [sized] * len(self.levels)
        for node in self._nodes:
            start, stop = _cell(node, positions)
            usual = unit(0.5 * _NORMAL.inv_cdf(self.levels[node.position]), 0.0, 1.0)
            guess = min(max(_inside(usual, start, stop), _NEAR_END), 1.0 - _NEAR_END)
            parts[node.position], inside = _forecast(self._ends[node.position], context, guess, drawn)
            positions[node.position] = _at(inside, start, stop)
        values = tuple(min(max(unit_back(u, center, scale), self.low), self.high) for u in positions)
        number, played = (self._open(), tuple(parts)) if drawn else (-1, ())
        return self.forecast_type(self.levels, values, center, scale, played, sized, one, number)

    def _correct(self, x: Any, quantiles: list[float] | None, *, drawn: bool) -> QuantilesForecast:
        """Each of the model's quantiles corrected by its forecaster, then all in order; None for none."""
        middle = None if quantiles is None else 0.5 * quantiles[0] + 0.5 * quantiles[-1]
        context = self._contexts.read(x, middle, learn=drawn)
        if drawn and not self.own:
            self.own = True
            self._ends = self._forecasters()
        number = self._open() if drawn else -1
        if self.spread is None or not self.own:
            shown = (
                [self.low if level < 0.5 else self.high for level in self.levels] if quantiles is None else quantiles
            )
            return self.forecast_type(self.levels, self._ordered(shown), middle, 0.0, (), None, 1.0, number)
        hints: list[float | None] = [None] * len(self.levels)
        center, half = self.middle, self.spread
        if quantiles is not None and middle is not None:
            center, half = middle, 0.5 * abs(quantiles[-1] - quantiles[0]) or self.spread
        scale = _REACH * min(max(half, self.spread / _WIDEST), self.spread * _WIDEST)
        if quantiles is not None:
            hints = [_position(q, center, scale) for q in quantiles]
        played = [_forecast(end, context, hint, drawn) for end, hint in zip(self._ends, hints, strict=True)]
        values = self._ordered(center + scale * (2.0 * u - 1.0) for _, u in played)
        parts = tuple(part for part, _ in played) if drawn else ()
        return self.forecast_type(self.levels, values, center, scale, parts, None, 1.0, number)

    def _ordered(self, values: Iterable[float]) -> tuple[float, ...]:
        return tuple(min(max(value, self.low), self.high) for value in sorted(values))

    def label(self, y: Any) -> float:
        """An outcome that lies in the range."""
        label = inputs.real(y, "label")
        if not self.low <= label <= self.high:
            raise InvalidInput(f"the label {label:g} is outside [{self.low:g}, {self.high:g}]; widen low and high")
        return label

    def forecasters_by_name(self) -> dict[str, Forecaster]:
        """Of each level or, in a tree, where an outcome is told to those whose cell it is in, that of the scale."""
        ends = {f"level {level:g}": each for level, each in zip(self.levels, self._ends, strict=True)}
        return ends if self.own else {"scale": self._size}

    def _learn(self, forecast: QuantilesForecast, label: float) -> None:
        if not forecast.parts or forecast.center is None:
            if self.spread is None:
                self._find(label, forecast.center, forecast.unit)
            return
        self._ties.add(label if forecast.center == self.middle else label - forecast.center)
        if forecast.size is None:
            u, crossed = _position(label, forecast.center, forecast.scale), False
            for forecaster, part, value in zip(self._ends, forecast.parts, forecast.values, strict=True):
                # What is beyond the range of its time counts as its end.
                first, last = forecaster.property.low, forecaster.property.high
                crossed |= (min(max(u, first), last) <= min(max(part.value, first), last)) != (label <= value)
                forecaster.update(part, u)
            self.n_crossed += crossed
            return
        u, positions = unit(label, forecast.center, forecast.scale), [0.0] * len(self.levels)
        # Whether the outcome lies above each quantile, as it would be without `low` and `high`.
        above = [False] * len(self.levels)
        for node in self._nodes:
            start, stop = _cell(node, positions)
            forecaster, part = self._ends[node.position], forecast.parts[node.position]
            positions[node.position] = _at(part.value, start, stop)
            above[node.position] = label > unit_back(positions[node.position], forecast.center, forecast.scale)
            if (node.below is None or above[node.below]) and (node.above is None or not above[node.above]):
                forecaster.update(part, _on_its_side(_inside(u, start, stop), part.value, not above[node.position]))
            else:
                # The label says nothing of this part, and is not out: outcomes that are pending would lower the share.
                forecaster.forget(part)
        assert self.spread is not None  # there was one when the forecast was made
        self._size.update(forecast.size, size(abs(label - forecast.center) / forecast.unit, self.spread))
        # The scale itself follows outcomes that move: those that the usual one would not reach are off the map as well.
        if abs(label - forecast.center) >= FAR * min(forecast.scale, _STRETCH * self.spread * forecast.unit):
            self._find(label, None if forecast.center == self.middle else forecast.center - self.shift, forecast.unit)
        else:
            del self._warm[:1]

    def _forget(self, forecast: QuantilesForecast) -> None:
        for forecaster, part in zip(self._ends if forecast.parts else (), forecast.parts, strict=True):
            forecaster.forget(part)
        if forecast.size is not None:
            self._size.forget(forecast.size)

    def _find(self, label: float, hint: float | None, one: float) -> None:
        """An outcome that is not on the map; the first ones find it, and as many in excess of others find it anew."""
        self._warm.append((label, hint, one))
        if len(self._warm) == _WARM:
            self.middle = float(np.median([y for y, _, _ in self._warm]))
            if self.spread is not None:
                self.shift = float(np.median([y - h for y, h, _ in self._warm if h is not None] or [0.0]))
            centers = [self.middle if h is None else h + self.shift for _, h, _ in self._warm]
            distances = [abs(y - c) / each for (y, _, each), c in zip(self._warm, centers, strict=True)]
            self.spread = max(1.5 * float(np.median(distances)), 1e-12 * max(1.0, abs(self.middle)))
            self._warm = []

    def run(self, X: Any, y: Any, hints: Any = None, *, units: Any = None, **late: Any) -> Float64Array:
        """Forecast and update a whole recorded stream; one row of quantiles for each round.

        Parameters
        ----------
        X : array, sparse rows, frame or list of records
            One context for each round.
        y : array
            Outcomes; where one is NaN the round is forecast and not learned from.
        hints : array, or array of rounds by levels, optional
            Your own model's forecasts, or its own quantiles, as in `predict`; NaN for none.
        units : array, optional
            How far it expects each outcome from its forecast, as in `predict`; NaN for no word.
        **late
            `weights`, `known`, `times`, `order`, `settle` and `waits`, as for `Forecaster.run`.

        Returns
        -------
        array, rounds by levels
            The quantiles.
        """
        return self._run(X, y, hints, units, **late)

    def _given(self, n: int, hints: Any, features: Any) -> tuple[Any, Any]:
        units = None if features is None else inputs.vector(features, "units", n, missing=True)
        if np.ndim(hints) == 2:
            return inputs.table(hints, "hints", n, len(self.levels), "a row of quantiles for each round"), units
        return None if hints is None else inputs.vector(hints, "hints", n, missing=True), units

    def _case(self, asked: Asked, t: int) -> QuantilesForecast:
        hint, unit = (None if values is None else values[t] for values in asked[1:])
        guide = hint if isinstance(hint, np.ndarray) else _or_none(hint)
        return self.predict(sparse.row(asked.rows, t), guide, unit=_or_none(unit))

    def miscoverage(self, delta: float = 0.05) -> Float64Array:
        """For every level, what the sum over a group's rounds of 1{y <= q} - level stays below, for all groups at once.

        Parameters
        ----------
        delta : float
            Probability with which it may fail.

        Returns
        -------
        array
            Totals; divide by a group's rounds for its error of coverage. The rounds that only taught the spread are not
            counted.
        """
        alone = self._alone(delta)
        bounds = np.array(alone)
        for node in () if self.own else self._nodes:
            below = 0.0 if node.below is None else bounds[node.below]
            above = 0.0 if node.above is None else bounds[node.above]
            bounds[node.position] = (1.0 - node.share) * below + node.share * above + alone[node.position]
        return bounds

    def _alone(self, delta: float) -> list[float]:
        """What each forecaster's own sums stay below, in order, together with probability 1 - delta."""
        share = delta / len(self._ends)
        return [self.n_crossed + math.sqrt(f.n_rounds * f.guarantee(share)) if f.n_rounds else 0.0 for f in self._ends]

    def to_state(self) -> Saved:
        """What it is made of: the forecasters of the levels and of the spread are parts."""
        plain = {
            self.asked: getattr(self, self.asked),
            "spread": self.spread,
            "low": None if math.isinf(self.low) else self.low,
            "high": None if math.isinf(self.high) else self.high,
            "seed": self.seed,
            "settings": self.settings,
            "own": self.own,
            "crossed": self.n_crossed,
            "middle": self.middle,
            "shift": self.shift,
            "warm": self._warm,
            "contexts": self._contexts.plain(),
            "rounds": self.rounds_plain(),
        }
        parts = {f"level {k}": forecaster.to_bytes() for k, forecaster in enumerate(self._ends)}
        return Saved(plain, {}, {**parts, "size": self._size.to_bytes()})

    @classmethod
    def from_state(cls, packed: Packed, *, hypotheses: Hypotheses | None = None) -> Self:
        """Make it again; see `from_bytes`."""
        plain, parts = packed.plain, packed.parts
        functions = _hypotheses(plain["contexts"]["hypotheses"], hypotheses)
        names = ("spread", "low", "high", "seed")
        quantiles = cls(plain[cls.asked], functions, **{name: plain[name] for name in names}, **plain["settings"])
        quantiles.own, quantiles.n_crossed = bool(plain["own"]), int(plain["crossed"])
        quantiles.middle, quantiles.shift = float(plain["middle"]), float(plain["shift"])
        quantiles._warm = [(float(y), None if c is None else float(c), float(one)) for y, c, one in plain["warm"]]
        quantiles._contexts = Contexts.from_plain(plain["contexts"], functions)
        quantiles._size = Forecaster.from_bytes(parts["size"])
        quantiles._ends = [Forecaster.from_bytes(parts[f"level {k}"]) for k in range(len(quantiles.levels))]
        quantiles.restore_rounds(plain["rounds"], quantiles.settings["max_pending"])
        return quantiles


_NORMAL = NormalDist()


def _density(level: float) -> float:
    """About how dense mapped outcomes lie around a quantile, in the middle more than in the tails: it sets the grid."""
    return max(1.0, 32.0 * level * (1.0 - level))


def _cell(node: Node, positions: Sequence[float]) -> tuple[float, float]:
    start = 0.0 if node.below is None else positions[node.below]
    return start, 1.0 if node.above is None else positions[node.above]


def _at(forecast: float, start: float, stop: float) -> float:
    """Where a forecast in [0, 1] lies in a cell: inside of it, and at its upper end only where the forecast is 1."""
    return stop if forecast >= 1.0 else min(start + (stop - start) * (_MARGIN + (1.0 - _MARGIN) * forecast), stop)


def _inside(u: float, start: float, stop: float) -> float:
    """The way back; outcomes in the margin count as the lower end; a cell too small for floats has only a middle."""
    if not start < stop:
        return 0.5
    return min(max(((u - start) / (stop - start) - _MARGIN) / (1.0 - _MARGIN), 0.0), 1.0)


def _on_its_side(inside: float, forecast: float, below: bool) -> float:
    """An outcome's place in a cell, at or below the forecast exactly where the outcome is, whatever floats round."""
    return min(inside, forecast) if below else max(inside, math.nextafter(forecast, 2.0))


def _position(y: float, center: float, scale: float) -> float:
    """Where a number lies in a range around the center: in [0, 1] if it is at most a scale away."""
    return 0.5 + 0.5 * min(max((y - center) / scale, -_FARTHEST), _FARTHEST)


def _or_none(number: float | None) -> float | None:
    return None if number is None or math.isnan(number) else float(number)


def _forecast(forecaster: Forecaster, context: Any, hint: float | None, drawn: bool) -> tuple[Any, float]:
    """A forecast and its number; or, without drawing, None and the mean of the two numbers."""
    if drawn:
        forecast = forecaster.predict(context, hint=hint)
        return forecast, forecast.value
    return None, sum(value * p for value, p in forecaster.distribution(context, hint=hint).items())


def _hypotheses(spec: Any, own: Any) -> Hypotheses:
    if own is None:
        return hypotheses.from_spec(spec)
    resumed: Hypotheses = own.resumed(spec) if hasattr(own, "resumed") else own
    return resumed
