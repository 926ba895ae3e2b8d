"""What a column of forecasts comes to: errors, chance, skill, curves, the worst cells."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from swapcal.audits.cells import Cell, Cells, cell_radii, find_witness, make_cells, worst_cell_sentence
from swapcal.audits.chance import ChanceLevel, Skill, StratifiedSample, null_level, skill, skill_of_mean
from swapcal.audits.groups import ALPHA, SHARES, GroupBias, cluster_terms
from swapcal.audits.histograms import Curve, Histograms, OutcomeBins, make_curve
from swapcal.audits.intervals import FEWEST_CLUSTERS, BiasInterval, Terms, cell_bias, exact_bias
from swapcal.audits.scores import BinaryScores, GroupHistory, ScoreSums, fine_edges, onset
from swapcal.audits.sums import SumTable
from swapcal.audits.together import family_of_events, family_of_terms, p_value_of_families, p_value_of_signs
from swapcal.errors import InvalidInput
from swapcal.hypotheses import Linear
from swapcal.typing import Float64Array, IntArray

if TYPE_CHECKING:
    from swapcal.audits.column import Column

CONFIDENCE = 0.95
# Cells of fewer rows are no ranges to be told of.
FEWEST_OF_CELL = 20
N_WORST = 12
NEARLY = 0.9
# A cell is one stratum, whose center does not matter.
HALVES = np.array([0.5])
N_CURVES = 30
N_HISTORIES = 12


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSummary:
    """One column of forecasts: the model's own, or those of swapcal.

    curves: by group, "all" first. bias: mean identification, shape (bins, groups), NaN where nothing was forecast;
    counts: rounds of each such cell. edges: the borders of those bins, in the property's units. histogram: rounds per
    bin. witness: where the forecasts are most wrong, in a sentence.

    chance_mean, chance_high: swap error that perfectly calibrated forecasts would have by chance, on average and in 95
    streams of 100 at most. typical: root mean square of V. constant_loss: loss of the best constant forecast;
    ideal_loss: loss of these forecasts after the best change of each value into another one; slope: of those others
    against the forecasts. n_cells, n_biased: cells in use, and those whose interval leaves out 0. ranges: of
    all rows, the bins of forecasts whose interval does. together: whether the
    global test says that there is bias. weight: sum of the weights, the T of the totals. groups: every group
    over all its rows. constant: the best constant forecast. scores: for 0/1 outcomes. histories: bias over time of
    all rows and of the worst groups, with `times`, what is known of the time at the start of each block; since: number
    of the row, from 1, from which on a group is biased, of those that were not from the start.
    """

    label: str
    swap_error: float
    group_error: float
    overall_error: float
    loss: float
    curves: dict[str, Curve]
    edges: Float64Array
    bias: Float64Array
    counts: Float64Array
    histogram: Float64Array
    worst: tuple[Cell, ...]
    witness: str
    groups: GroupBias
    weight: float
    chance_mean: float | None = None
    chance_high: float | None = None
    typical: float = 0.0
    constant_loss: float | None = None
    ideal_loss: float | None = None
    slope: float | None = None
    n_cells: int = 0
    n_biased: int = 0
    ranges: tuple[Cell, ...] = ()
    together: bool = False
    constant: float | None = None
    scores: BinaryScores | None = None
    histories: dict[str, GroupHistory] | None = None
    times: tuple[str | None, ...] = ()
    since: dict[str, int] | None = None


def summarize(column: "Column", r: float = 2.0, *, brief: bool = False) -> ColumnSummary:
    """Everything that is shown of one column of forecasts; from its parts, as far as it has them.

    If `brief`, curves, histories and chance are left out, which take most of the time, and no verdict needs.
    """
    histograms = column.histograms
    outcomes = None if histograms is None else histograms.outcomes
    if column.n_rounds == 0 or histograms is None or outcomes is None:
        raise InvalidInput("a column of forecasts needs a round to be summed up; add some first")
    table, names = column.table(), column.names
    exact = column.cell_forecasts(column.audit.table())
    cells = make_cells(table, _intervals(column, table, exact), names, r, CONFIDENCE, "adaptive")
    near = np.maximum(cells.low, -cells.high)  # how far the interval stays away from 0; negative if it holds 0
    known = _skill(column, table, histograms, outcomes)
    luck = None if brief else _chance(column, table, r)
    bins = histograms.bins(table.value)
    bias, counts = _heat(table, bins, len(histograms.forecasts))
    groups = column.groups()
    histories, since = (None, None) if brief else _histories(column, groups)
    return ColumnSummary(
        label=column.label,
        swap_error=column.swap_error(r),
        group_error=column.group_error(r),
        overall_error=column.overall_error(r),
        loss=column.loss,
        curves={} if brief else _curves(column, histograms, outcomes, table, bins, groups),
        edges=histograms.edges.copy(),
        bias=bias,
        counts=counts,
        histogram=histograms.forecasts.copy(),
        worst=_worst(cells, near > 0),
        witness=_witness(column, cells, near, r),
        chance_mean=None if luck is None else luck.mean,
        chance_high=None if luck is None else luck.high,
        typical=column.typical,
        constant_loss=known.constant,
        ideal_loss=known.ideal,
        slope=known.slope,
        n_cells=len(cells),
        n_biased=int(np.count_nonzero(near > 0)),
        ranges=_ranges(column, table, bins, len(histograms.forecasts)),
        together=not column.anytime and _p_value(column, exact, bins) <= ALPHA * SHARES["together"],
        weight=column.weight,
        groups=groups,
        constant=known.value,
        scores=_scores(column, table, histograms, outcomes),
        histories=histories,
        times=() if column.timeline is None else tuple(column.timeline.labels),
        since=since,
    )


def _intervals(column: "Column", table: SumTable, forecasts: Float64Array | None) -> tuple[Float64Array, Float64Array]:
    """Intervals of all cells at their share of the error rate; none where rows form clusters.

    Forecasts that react to outcomes may leave a cell when it looks worst, so theirs hold at any time.
    """
    once, used = not (column.anytime or column.adaptive), table.active > 0
    delta = ALPHA * SHARES["cells"] / _possible(column, used, once=once)
    usual = float(table.vv.sum()) / max(float(table.rounds.sum()), 1.0)
    terms = np.zeros(used.shape) if column.clusters is not None else table.active
    bias = Terms(terms, table.xv, table.xvxv, table.weight, usual).bias(delta, once=once)
    low, high = (np.where(used, end, sign) for end, sign in zip(bias, (-1.0, 1.0), strict=True))
    if forecasts is not None and column.clusters is None:
        own = column.audit.table()
        here = np.nonzero(own.active > 0)
        n, p = own.active[here], forecasts[here]
        low[here], high[here] = _bias_of_events(n, np.clip(np.round(p - own.xv[here]), 0.0, n), p, delta, once=once)
    return low, high


def _bias_of_events(
    n: Float64Array, ones: Float64Array, p: Float64Array, delta: float, *, once: bool
) -> tuple[Float64Array, Float64Array]:
    return exact_bias(n[None], ones[None], p, delta, HALVES) if once else cell_bias(n, ones, p, delta)


def _ranges(column: "Column", table: SumTable, bins: IntArray, n_bins: int) -> tuple[Cell, ...]:
    """The biased ranges of forecasts, over all rows: bins of the pictures whose interval leaves out 0."""
    once = not (column.anytime or column.adaptive)
    rows, weight, v, squares, p = (
        _pooled(each[:, None], bins, n_bins)[:, 0]
        for each in (table.rounds, table.count, table.v, table.vv, table.value * table.count)
    )
    used = np.flatnonzero(rows > 0)
    delta = ALPHA * SHARES["ranges"] / _possible(column, rows[:, None] > 0, once=once)
    if column.clusters is None:
        terms = Terms(rows, v, squares, weight, float(squares.sum()) / max(float(rows.sum()), 1.0))
    else:
        totals, sizes = (_pooled(each.T, bins, n_bins).T for each in column.clusters.ranges(table.slot))
        terms = cluster_terms(totals, sizes, weight)
    bias = terms.bias(delta, once=once)
    if column.binary:
        q = _pooled((table.rounds * _center(column, table))[:, None], bins, n_bins)[:, 0]
        events = BiasInterval(*_bias_of_events(rows, np.clip(np.round(q - v), 0.0, rows), q, delta, once=once))
        bias = events if column.clusters is None else events.joined(bias)
    off = [k for k in used.tolist() if bias.low[k] > 0 or bias.high[k] < 0]
    numbers = [(p[k] / weight[k], rows[k], weight[k], v[k] / weight[k], bias.low[k], bias.high[k]) for k in off]
    return tuple(
        Cell(float(at), 0, "all", int(n), float(w), float(mean), float(low), float(high), float(n * mean * mean))
        for at, n, w, mean, low, high in numbers
    )


def _center(column: "Column", table: SumTable) -> Float64Array:
    """The p of V = p - y at each place of the table, on average over its rows."""
    steps = column.property.binary_p(0.0) is not None and column.property.outcome(0.0, 0.0) is None
    return np.asarray(column.property.binary_p(table.value)) if steps else table.value


def _possible(column: "Column", used: npt.NDArray[np.bool_], *, once: bool) -> int:
    """Cells that there are; at any time, that there can be, or so many that it does not matter when each appeared."""
    n_cells, n_bins = int(np.count_nonzero(used)), column.audit.n_bins
    if once:
        return max(n_cells, 1)
    return max(n_cells * (n_cells + 1) if n_bins is None else n_bins * used.shape[1], 1)


def _p_value(column: "Column", forecasts: Float64Array | None, of_value: IntArray) -> float:
    """The p-value of the global test over all groups and all ranges of forecasts, the bins `of_value`."""
    table, families = column.audit.table(), getattr(column.functions, "families", [])
    n_bins = int(of_value.max(initial=-1)) + 1
    if column.clusters is not None:
        if column.clusters.count < FEWEST_CLUSTERS:
            return 1.0
        groups, ranges = (
            column.clusters.of(table.xv.shape[1]).groups()[0],
            _pooled(column.clusters.ranges(table.slot)[0].T, of_value, n_bins).T,
        )
        # Sums of p (1 - p), where outcomes are 0 or 1.
        least = np.zeros_like(table.xv)
        if forecasts is not None:
            least = forecasts - np.divide(forecasts**2, table.active, out=least, where=table.active > 0)
        of_ranges = _pooled(least[:, :1], of_value, n_bins)[:, 0]
        return p_value_of_signs(((groups, least.sum(axis=0)), (ranges, of_ranges)))
    everybody, tested = np.zeros(1, dtype=np.int64), []
    for family in (everybody, *families):
        here = family[family < table.xv.shape[1]]
        if forecasts is None:
            cells = [_pooled(each[:, here], of_value, n_bins) for each in (table.active, table.xv, table.xvxv)]
            tested += [family_of_terms(*(each.sum(axis=0) for each in cells)), family_of_terms(*map(np.ravel, cells))]
            continue
        p, n = forecasts[:, here], table.active[:, here]
        rows = (n, np.clip(np.round(p - table.xv[:, here]), 0.0, n), p)
        pooled = (_pooled(each, of_value, n_bins).reshape(1, -1) for each in rows)
        tested += [family_of_events(*rows), family_of_events(*pooled)]
    return p_value_of_families(tested)


def _pooled(cells: Float64Array, bins: IntArray, n_bins: int) -> Float64Array:
    """Sums of places over the bins that they belong to."""
    sums = np.zeros((n_bins, cells.shape[1]))
    np.add.at(sums, bins, cells)
    return sums


def _histories(column: "Column", groups: GroupBias) -> tuple[dict[str, GroupHistory] | None, dict[str, int] | None]:
    """Bias over time of all rows and of the worst groups, and since when those that are off are."""
    if column.timeline is None:
        return None, None
    chosen = [0, *groups.ranked()[:N_HISTORIES].tolist()]
    histories = {groups.name[j]: column.timeline.of_group(j) for j in chosen}
    since = {}
    for j in chosen:
        block = onset(histories[groups.name[j]], column.typical**2) if groups.biased[j] else None
        if block is not None:
            since[groups.name[j]] = int(histories[groups.name[j]].start[block]) + 1
    return histories, since


def _scores(column: "Column", table: SumTable, histograms: Histograms, outcomes: OutcomeBins) -> BinaryScores | None:
    """Scores for 0/1 outcomes; where each forecast value is judged by itself, the histograms of outcomes tell them."""
    if column.scores is not None:
        return column.scores.scores()
    has_outcome = column.binary and column.property.outcome(0.0, 0.0) is not None
    if not has_outcome or column.slot_edges is not None or outcomes.n != 2:
        return None
    sums = ScoreSums(fine_edges(table.value))
    zeros_and_ones = histograms.by_slot[table.slot]
    sums.add_rows(np.tile([0.0, 1.0], len(table.value)), np.repeat(table.value, 2), zeros_and_ones.reshape(-1))
    return sums.scores()


def _skill(column: "Column", table: SumTable, histograms: Histograms, outcomes: OutcomeBins) -> Skill:
    forecast = column.property
    if forecast.is_conditional_mean:
        fitted = table.value - (forecast.high - forecast.low) * table.v / table.count
        return skill_of_mean(column.outcome_sums, fitted, table.value, table.count)
    known = skill(forecast, outcomes, histograms.by_slot[table.slot], table.value, table.count)
    if column.constant is None or column.constant_loss is None:
        return known
    # The loss of this constant was summed up exactly.
    constant = column.constant_loss
    return known._replace(constant=constant, ideal=min(known.ideal, constant), value=column.constant)


def _chance(column: "Column", table: SumTable, r: float) -> ChanceLevel:
    """What calibrated forecasts would show; the functions of the sample are numbered as those of the table.

    Without a sample chance is drawn for each group by itself, which is too much where groups overlap.
    """
    n_own = column.audit.table().xv.shape[1]
    n_linear = table.xv.shape[1] - n_own
    if column.sample is None:
        return null_level(StratifiedSample(), table.count, table.xvxv, r, n_linear=n_linear)
    n_slots = int(table.slot.max(initial=-1)) + 1
    count, squares = np.zeros(n_slots), np.zeros((n_slots, table.xv.shape[1]))
    count[table.slot], squares[table.slot] = table.count, table.xvxv
    return null_level(column.sample, count, squares, r, n_linear=n_linear)


def _worst(cells: Cells, sure: npt.NDArray[np.bool_]) -> tuple[Cell, ...]:
    """The worst cells by contribution, those whose interval leaves out 0 first: they are bias and not chance."""
    many = sure | (cells.count >= FEWEST_OF_CELL)
    order = np.concatenate([np.flatnonzero(sure), np.flatnonzero(~sure & many), np.flatnonzero(~many)])
    # Two names for the same rows, such as "all" and a value that everybody has, are one cell.
    places: dict[tuple[float, int, float], int] = {}
    for k in order.tolist():
        places.setdefault((float(cells.value[k]), int(cells.count[k]), float(cells.mean[k])), k)
        if len(places) == N_WORST:
            break
    return tuple(cells[k] for k in places.values())


def _heat(table: SumTable, bins: IntArray, n_bins: int) -> tuple[Float64Array, Float64Array]:
    """Mean identification and rounds, shape (bins, functions): forecast values of a bin taken together."""
    sums = {name: np.zeros((n_bins, table.xv.shape[1])) for name in ("xv", "weight", "active")}
    for name, total in sums.items():
        np.add.at(total, bins, getattr(table, name))
    nothing = np.full_like(sums["xv"], np.nan)
    return np.divide(sums["xv"], sums["weight"], out=nothing, where=sums["weight"] > 0), sums["active"]


def _witness(column: "Column", cells: Cells, near: Float64Array, r: float) -> str:
    """The sentence about where the forecasts are most wrong.

    That is the cell that adds most to the swap error, of those that are biased if there are any. A bias of
    one group shows in every larger group, too: of the cells of the same forecast that have 9 tenths of its sum, the one
    with the largest significant bias says most. A direction of the linear class speaks if it adds more.
    """
    sure = np.flatnonzero(near > 0)
    order = sure if len(sure) else np.arange(len(cells))
    first = order[0]
    alike = cells.value[order] == cells.value[first]
    alike &= cells.contribution[order] >= NEARLY**r * cells.contribution[first]
    cell = cells[int(order[alike][np.argmax(near[order[alike]])])]
    value, name, bias, contribution = cell.value, cell.name, (cell.mean, cell.low, cell.high), cell.contribution
    members = True
    if column.linear is not None:
        names, directions = column.linear.function_names, column.linear.table()
        n_bins = column.audit.n_bins
        n_possible = None if n_bins is None else n_bins * len(column.names)
        radii = cell_radii(directions, CONFIDENCE, "adaptive", n_possible)
        along = find_witness(directions, radii, Linear(len(names)), names, r, CONFIDENCE, property=column.property)
        if along.contribution > contribution:
            value, name, bias = along.value, along.name, (along.mean, along.low, along.high)
            contribution, members = along.contribution, False
    total = column.swap_error(r)
    share = contribution / total if total > 0 else 0.0
    return worst_cell_sentence(column.property, value, name, bias, share, CONFIDENCE, members=members)


def _curves(
    column: "Column", histograms: Histograms, outcomes: OutcomeBins, table: SumTable, bins: IntArray, groups: GroupBias
) -> dict[str, Curve]:
    """Reliability curves: of all rounds, and of the worst groups and the largest."""
    names, n_bins = column.audit.function_names, len(histograms.forecasts)
    overall = np.zeros((n_bins, outcomes.n))
    np.add.at(overall, bins, histograms.by_slot[table.slot])
    forecast = _mean(table.count, table.value, bins, n_bins)
    exact = _outcome(column, forecast, table.v, table.count, bins)
    curves = {"all": make_curve(column.property, outcomes, overall, forecast, exact)}
    # Half of the places go to the worst groups, in their order; the rest to the largest groups.
    followed = [j for j, name in enumerate(names) if name != "all" and histograms.of_group(j) is not None]
    by_size = sorted(followed, key=lambda j: -float(groups.rows[j]))
    by_error = [j for j in groups.ranked().tolist() if j in set(followed)]
    chosen = list(dict.fromkeys([*by_error[: N_CURVES // 2], *by_size]))[: N_CURVES - 1]
    for j in sorted(chosen):
        counts = histograms.of_group(j)
        forecast = _mean(table.weight[:, j], table.value, bins, n_bins)
        if counts is not None and (counts.sum(axis=1) > 0).any():
            exact = _outcome(column, forecast, table.xv[:, j], table.weight[:, j], bins)
            curves[names[j]] = make_curve(column.property, outcomes, counts, forecast, exact)
    return curves


def _outcome(
    column: "Column", forecast: Float64Array, v: Float64Array, weight: Float64Array, bins: IntArray
) -> Float64Array | None:
    """The mean outcome of each bin of the pictures, which V tells exactly where a mean is forecast."""
    off = _mean(weight, np.divide(v, weight, out=np.zeros_like(v), where=weight > 0), bins, len(forecast))
    outcome = column.property.outcome(forecast, off)
    return None if outcome is None else np.clip(outcome, column.property.low, column.property.high)


def _mean(weight: Float64Array, value: Float64Array, bins: IntArray, n_bins: int) -> Float64Array:
    """Mean forecast of each bin; NaN where there is none."""
    sums = np.bincount(bins, weights=weight * value, minlength=n_bins)
    total = np.bincount(bins, weights=weight, minlength=n_bins)
    mean: Float64Array = np.divide(sums, total, out=np.full(n_bins, np.nan), where=total > 0)
    return mean
