"""What the terminal and docs/delay.md show: targets with what was measured, and the tables."""

from collections.abc import Callable, Sequence

from swapcal_benchmarks.delay.late_scores import LATE_RATES, N_SEEDS, LateRow, LateScore
from swapcal_benchmarks.report import Table, document, table_number

__all__ = ["late_page", "late_tables", "targets"]

INDEPENDENT, DEPENDENT, SHARE, SLOWER = 0.002, 0.005, 2.0 / 3.0, 1.2


def targets(rows: Sequence[LateRow], ratios: dict[str, float]) -> Table:
    """Each target beside the worst that was measured, and where it is missed."""
    free, bound = [r for r in rows if not r.depends], [r for r in rows if r.depends]
    yardsticks = [r for r in rows if r.kept is not None]
    lines = [
        _line(
            "delay independent of the outcome: loss of learning at most 0.2 % above the model's",
            free,
            lambda r: r.learning_late.worst_loss <= INDEPENDENT,
            lambda r: f"{100 * r.learning_late.worst_loss:+.2f} %",
        ),
        _line(
            "at 100 rows: learning keeps two thirds of the gain of the best fixed rate in hindsight",
            yardsticks,
            lambda r: (r.kept or 0.0) >= SHARE,
            lambda r: f"{r.kept:.2f} of {-100 * (r.best or 0.0):.2f} %",
        ),
        _line(
            "delay dependent on the outcome: loss of learning at most 0.5 % above the model's",
            bound,
            lambda r: r.learning_late.worst_loss <= DEPENDENT,
            lambda r: f"{100 * r.learning_late.worst_loss:+.2f} %",
        ),
        _line(
            "and of the model as hint",
            bound,
            lambda r: r.hint_late.worst_loss <= DEPENDENT,
            lambda r: f"{100 * r.hint_late.worst_loss:+.2f} %",
        ),
        _line(
            "delay dependent on the outcome: swap error never above the model's",
            bound,
            lambda r: max(r.learning_late.worst_swap, r.hint_late.worst_swap) <= 1.0,
            lambda r: f"{max(r.learning_late.worst_swap, r.hint_late.worst_swap):.3f}",
        ),
        _line("dependent delays are found", bound, lambda r: r.found is not None, lambda r: "not found"),
        _line("and independent ones are not", free, lambda r: r.found is None, lambda r: f"found at {r.found:,}"),
    ]
    for name, ratio in ratios.items():
        met = "met" if ratio <= SLOWER else "MISSED"
        lines.append((f"`run(known=)`, {name}: at most 1.2 times the time of `run` at once", met, f"{ratio:.2f}", ""))
    return Table("Targets", ("target", "", "met by", "missed in"), tuple(lines))


def _line(
    target: str, rows: Sequence[LateRow], met: Callable[[LateRow], bool], shown: Callable[[LateRow], str]
) -> tuple[str, str, str, str]:
    missed = [row for row in rows if not met(row)]
    where = "; ".join(f"{row.stream}, {row.delay}: {shown(row)}" for row in missed)
    return target, "met" if not missed else "MISSED", f"{len(rows) - len(missed)} of {len(rows)} rows", where


def late_tables(rows: Sequence[LateRow]) -> list[Table]:
    """Independent delays, dependent ones, and the best fixed rate at 100 rows."""
    return [
        _table("Delays that do not depend on the outcome", [row for row in rows if not row.depends]),
        _table("Delays that depend on the outcome", [row for row in rows if row.depends]),
        _rates([row for row in rows if row.best is not None]),
    ]


_HEAD = (
    "stream", "delay", "hint at once", "hint late", "learning at once", "learning late", "worst seed",
    "without standing back", "logistic, refitted", "shown", "dependence found",
)  # fmt: skip


def _table(title: str, rows: Sequence[LateRow]) -> Table:
    lines = []
    for row in rows:
        late = row.learning_late
        cells = (row.hint_at_once, row.hint_late, row.learning_at_once, late)
        lines.append(
            (
                row.stream,
                row.delay,
                *(_cell(each) for each in cells),
                f"{100 * late.worst_loss:+.2f} / {late.worst_swap:.2f}",
                _cell(row.ungated),
                _cell(row.refitted),
                f"{row.shown:.2f}",
                "no" if row.found is None else f"row {row.found:,}",
            )
        )
    return Table(title, _HEAD, tuple(lines), _NOTE)


def _rates(rows: Sequence[LateRow]) -> Table:
    lines = tuple(
        (
            row.stream,
            f"{100 * (row.best or 0.0):+.2f}",
            f"{row.best_rate:.3g}",
            f"{100 * row.learning_late.loss:+.2f}",
            "nothing to gain" if row.kept is None else f"{row.kept:.2f}",
        )
        for row in rows
    )
    header = ("stream", "best fixed rate", "its rate", "learning, late", "kept")
    rates = ", ".join(f"{rate:.3g}" for rate in LATE_RATES)
    note = f"Loss in % of the model's at a delay of 100 rows. The best of {rates}, played without standing back."
    return Table("The best fixed rate in hindsight", header, lines, note)


def _cell(scored: LateScore) -> str:
    return f"{100 * scored.loss:+.2f} / {scored.swap:.2f}"


_NOTE = (
    "Loss in % above the model's / swap error over the model's, means over seeds. shown: share of rounds in which what "
    "learning said was shown; in the others the model's own number was."
)


def late_page(rows: Sequence[LateRow], ratios: dict[str, float], command: str) -> str:
    """The whole page, in Markdown."""
    models = {row.stream: (row.n_rounds, row.model_loss, row.model_swap) for row in rows}
    sizes = Table(
        "The models",
        ("stream", "rounds", "loss", "swap error"),
        tuple((name, f"{n:,}", f"{loss:.4g}", table_number(swap)) for name, (n, loss, swap) in models.items()),
    )
    about = f"Made by `{command}`; every number below comes from that run. The files are not part of this project."
    return document("Outcomes that come late", about, _RULES, targets(rows, ratios), *late_tables(rows), sizes)


_RULES = f"""A forecast is made with the outcomes known by then, through `Forecaster.run(known=...)`, with its defaults
and {N_SEEDS} seeds.

- *hint*: the frozen model is the hint. *learning*: `OnlineRegression()` learns on top of it. *at once*: every outcome
  is known before the next row. *without standing back*: learning late with `stand_back=False`.
- *logistic, refitted*: two parameters on the model's log-odds, refitted every day on all that is known by then.
- Recorded streams as in `streams.md`: the model is trained on the first fifth and frozen; `+ past` also sees the last
  outcome and that of a day ago, at once. Delays: elec2 and bike_hour a day, the games until the next day, adult 1,000
  rows, PM2.5 six hours; all of them 100 rows; and three delays that depend on the outcome.
- Delays that depend on the outcome: those above the mean after about 20 rows and the others after about 3,000, the
  other way round, and lead times, where high ones are known at a uniform share of a log-normal time of median 4,600.
- *drift meanwhile*: group effects turn to their opposite while an outcome is out. *a right model*: the truth itself.
- Swap error: SMCal_2 over the groups in 48 equal cells, for the model and for us.
- A target is met by a row if it is with every seed.
- Time: a late round is written down and read again, the gate scores it twice, and the evidence has moved on since it
  was drawn. A learning hint looks at a case once more, as its step is taken from where it is now: steps from where it
  was then are not stable when many outcomes are out."""
