"""What the terminal and docs/late.md show: targets, the reported half, and what was counted in both."""

from collections.abc import Mapping, Sequence

import numpy as np

from swapcal_benchmarks.late.late_rivals import RECENT, REFIT, SEGMENTS
from swapcal_benchmarks.late.late_rows import METHODS, OURS, LateRow
from swapcal_benchmarks.late.late_scores import LateScore, Pair
from swapcal_benchmarks.late.late_stream import QUANTILE, REPORTED, TUNING
from swapcal_benchmarks.report import Table, Target, document, targets_table

__all__ = ["late_page", "late_tables"]


def late_tables(rows: Sequence[LateRow], targets: Sequence[Target], before: Mapping[str, float]) -> list[Table]:
    """Targets, counts, files, simulations, quantiles, channels; `before` has the losses of an earlier run by label."""
    reported = [row for row in rows if row.reported]
    found = [
        targets_table(targets),
        _misses(targets),
        _counts(rows),
        _files([row for row in reported if row.recorded], before),
        _simulations([row for row in reported if not row.recorded]),
        _coverage([row for row in reported if row.kind == QUANTILE and (row.recorded or "weekly" in row.stream)]),
        _channels([row for row in rows if row.stream.startswith("searches")]),
    ]
    return [table for table in found if table.rows]


def _misses(targets: Sequence[Target]) -> Table:
    lines = tuple((each.asked, "; ".join(each.misses)) for each in targets if each.misses)
    return Table("Rows that miss a target", ("target", "rows"), lines, align="ll")


def _counts(rows: Sequence[LateRow]) -> Table:
    lines = []
    for half in (REPORTED, TUNING):
        for what, recorded in (("files", True), ("simulations", False)):
            chosen = [row for row in rows if row.half == half and row.recorded == recorded]
            if not chosen:
                continue
            cells = [_split([row.pairs[name] for row in chosen]) for name in (REFIT, RECENT)]
            means = [f"{np.mean([row.loss(name) for row in chosen]):+.2f}" for name in (OURS, REFIT, RECENT)]
            worst = f"{max(row.loss() for row in chosen):+.2f}"
            lines.append((f"{half}, {what}", str(len(chosen)), *cells, *means, worst))
    head = (
        "half",
        "rows",
        "against refit",
        "against refit, last 10,000",
        "ours",
        "refit",
        "last 10,000",
        "ours, worst",
    )
    note = "Rows ahead, level and behind, beyond two standard errors; then mean losses in % against the model."
    return Table("Ahead and behind", head, tuple(lines), note)


def _split(pairs: Sequence[Pair]) -> str:
    ahead, behind = (sum(getattr(pair, name) for pair in pairs) for name in ("ahead", "behind"))
    return f"{ahead}, {len(pairs) - ahead - behind}, {behind}"


def _files(rows: Sequence[LateRow], before: Mapping[str, float]) -> Table:
    lines = []
    for row in rows:
        pair = row.pairs[REFIT]
        verdict = "ahead" if pair.ahead else "behind" if pair.behind else "level"
        last = (_percent(before.get(row.label)),) if before else ()
        losses = (_percent(None if row.scores[name] is None else row.loss(name)) for name in METHODS)
        difference = f"{pair.difference:+.2f} ± {pair.error:.2f}"
        lines.append((row.stream, row.delay, *losses, *last, difference, verdict))
    head = ("stream", "delay", *METHODS, *(("before",) if before else ()), "ours less refit", "")
    return Table(
        "Files, the reported half",
        head,
        tuple(lines),
        "Loss in % against the frozen model.",
        "ll" + "r" * (len(head) - 3) + "l",
    )


def _simulations(rows: Sequence[LateRow]) -> Table:
    lines = []
    for name in dict.fromkeys(_without_seed(row.stream) for row in rows):
        for what, depends in (("independent", False), ("dependent", True)):
            chosen = [row for row in rows if _without_seed(row.stream) == name and row.depends == depends]
            if chosen:
                cells = [_mean_and_worst(chosen, method) for method in (OURS, REFIT, RECENT, SEGMENTS)]
                lines.append((name, what, str(len(chosen)), *cells, _split([row.pairs[REFIT] for row in chosen])))
    head = ("stream", "delays", "rows", OURS, REFIT, RECENT, SEGMENTS, "against refit")
    note = "Loss in % against the model: mean and worst over delays; rows ahead, level and behind."
    return Table("Simulations, the reported half", head, tuple(lines), note)


def _without_seed(name: str) -> str:
    return name.rpartition(", seed")[0]


def _mean_and_worst(rows: Sequence[LateRow], method: str) -> str:
    found = [row.loss(method) for row in rows]
    return f"{np.mean(found):+.2f}, {max(found):+.2f}"


def _coverage(rows: Sequence[LateRow]) -> Table:
    def cell(score: LateScore | None) -> str:
        return "-" if score is None or score.coverage is None else f"{score.coverage:.3f} ({score.late_coverage:.3f})"

    lines = tuple(
        (row.stream, row.delay, cell(row.model), *(cell(row.scores[name]) for name in (OURS, REFIT, RECENT)))
        for row in rows
    )
    note = "Share of outcomes at or below the forecast; in brackets that of the last third."
    return Table("Coverage of quantiles", ("stream", "delay", "model", OURS, REFIT, RECENT), lines, note)


def _channels(rows: Sequence[LateRow]) -> Table:
    def cell(score: LateScore | None) -> str:
        return "-" if score is None or score.worst_bias is None else f"{score.worst_bias:.4f}"

    lines = tuple(
        (row.stream, row.delay, cell(row.model), *(cell(row.scores[name]) for name in METHODS)) for row in rows
    )
    note = "Largest bias among channels of at least 1,000 rows. Searches belong to the tuning half."
    return Table("The worst channel", ("stream", "delay", "model", *METHODS), lines, note)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}"


def late_page(rows: Sequence[LateRow], targets: Sequence[Target], before: Mapping[str, float], command: str) -> str:
    """All of docs/late.md."""
    about = f"Made by `{command}`; every number below comes from that run. The files are not part of this project."
    return document("Outcomes that come late", about, _RULES, *late_tables(rows, targets, before))


_RULES = """Each forecast uses the outcomes that are known by then, and nothing else; so do the rivals.

- *ours*: `Forecaster.run(known=...)` with its defaults and `OnlineRegression()` on top of the frozen model. *without
  learning*: the model alone is the hint.
- *refit*: logistic, linear or quantile regression on the model's log-odds or number and an indicator of each group,
  with a ridge of 1 around the model itself, on all known rows; *last 10,000*: on the last 10,000 to become known.
  *rolling isotonic*: isotonic regression on the last 10,000. *by segment*: an intercept and a slope for each value of
  one column (Platt scaling per segment). All are refitted when known outcomes are a fifth more, at least 50 and at
  most 500.
- Files: boosted trees with scikit-learn's defaults, trained on the first fifth and frozen; games have a published
  forecast. Groups as in `streams.md`; no-shows by age band, days ahead, sex, neighbourhood, scholarship and message;
  claims (logarithm of the cost) by injury, injured persons and lawyer; searches by channel, continents, site, mobile
  and package. Rows without an outcome are left out.
- Delays: at once; 200 and 2,000 rows; *real*, where the file says when an outcome was known; *by day*, all of a day
  when the next begins (200 rows where there are no days); *heavy tail*, half within 40 rows and some after 20,000;
  *high ones fast* or *slow*, about 20 rows against 3,000; and a tenth of the high ones never, the others after 200
  rows.
- Simulations: a right model; bias by group; a slow sine; group effects that turn every 3,000 rows; shocks that a day
  shares; heavy-tailed noise; a right and sharp model (deviation 0.005, 30,000 rows, at once); and 50 regions over 85
  weeks, each forecast one to three weeks ahead, with one shock a week and quantiles that are right or too narrow.
- Halves: things may be chosen on the tuning half only. Files in alphabetical order are reported and for tuning by
  turns, from the first on; simulations with odd seeds are for tuning, those with even ones are reported.
- Loss: squared error or pinball loss of all rows, also of those whose outcome is never known, on outcomes as they
  are. Differences have a standard error over parts of 500 rows."""
