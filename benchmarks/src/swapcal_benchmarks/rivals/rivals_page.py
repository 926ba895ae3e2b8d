"""The page: the tables and figures of a run, what is surprising in them, and where this package loses."""

from dataclasses import replace

from swapcal_benchmarks.report import Table, document
from swapcal_benchmarks.rivals.board_tables import claims_table, hint_word, reasons, scores_table, streams_table
from swapcal_benchmarks.rivals.findings import losses, surprises
from swapcal_benchmarks.rivals.standings import Summary

__all__ = ["page"]


def page(summary: Summary, n_runs: int, n_seeds: int, command: str) -> str:
    """The whole page, in Markdown; figures are expected in the folder `figures` beside it."""
    horizons = ", ".join(f"{t:,}" for t in summary.plan.horizons)
    parts: list[str] = [
        f"Made by `{command}`; every number in tables, lists and figures comes from that run: {n_runs:,} runs, "
        f"horizons {horizons}, "
        f"{n_seeds} seed{'s' if n_seeds > 1 else ''}. `--full` goes to longer horizons, at which rates show better. "
        "Times are processor time, whatever else the machine was doing.",
        _RULES,
        "## Where swapcal loses",
        "Means over seeds, without a test of whether a difference is more than noise.",
        _listed(losses(summary), "Nowhere in this run."),
        "## What is surprising",
        _listed(surprises(summary), "Nothing that the rules of this page look for."),
    ]
    parts.append("## Error against T")
    parts.append("![Swap multicalibration error against the number of rounds](figures/rivals_growth.png)")
    parts.append(
        "Means over all streams of a board, so the adversaries that hurt a method most weigh most; the clairvoyant's "
        "are over recorded streams only."
    )
    for board in summary.plan.boards:
        parts += [f"## {board.title}", f"![Loss against swap error](figures/rivals_frontier_{board.name}.png)"]
        for table in (streams_table(summary, board.name), scores_table(summary, board.name)):
            played = tuple(row for row in table.rows if any(cell != "-" for cell in row[1:]))
            parts += [f"**{table.title}**", replace(table, rows=played).markdown(), table.note]
        claims = claims_table(summary, board.name)
        parts += [f"**{claims.title}**", claims.markdown(), claims.note]
        refused = reasons(summary, board.name)
        if refused:
            parts.append("Not in these tables: " + "; ".join(refused) + ".")
    parts += [
        "## Cost",
        "![Processor time of a round](figures/rivals_cost.png)",
        "## What each method declares",
        _cards(summary),
        _ADD,
    ]
    return document("Every rival, one arena", *parts)


_RULES = """## Rules

- One protocol: context and the frozen model's forecast in, forecast out, label in. Every method is handed the model;
  methods that have no use for it ignore it. `swapcal` is not told it, `swapcal + model` takes it as its hint, and
  `swapcal + regression` lets an online regression on the groups and the model learn beside the engine. All three show
  what the engine says, which the theorems are about (`protect="nothing"`), and not the share of it that is the
  default. Rivals run with the defaults of their papers, or ours where a paper has none; nobody tuned them.
- Recorded streams have a known truth (iid, drift, abrupt changes, interacting groups, an overconfident model, noise by
  group, heavy tails, sparse groups). Adversaries see everything but the draw and are played live; their hints are
  random numbers, and `anti-hint` always contradicts them.
- SMCal_2 = sum over forecast values p of n_p sup_f (mean of f(x) V(p, y))^2. A method that never says the same number
  twice has no such values: more than 2 T^(2/3) distinct forecasts are rounded to ceil(T^(1/3)) bins for the errors, as
  the clairvoyant's are, and against adversaries such a method speaks rounded. On recorded streams its loss and bias are
  those of the forecasts as they were.
- Methods that promise something of each bin and forecast points at the ends of bins (Gupta et al., Haghtalab et al.,
  MVP, Noarov et al. 2025) speak the mid-point of the bin instead. With their points, one value of a bin may always be
  too low and another too high, which no error that adds up over values forgives.
- What favors us. SMCal_2 is the error that this package is built for; many rivals are built for another, which the
  exponents' tables name. drifting, interacting, overconfident and group-noise are streams on which the engine and its
  regression were developed, and their constants chosen; the other streams and the adversaries' settings are newer.
  We enter three times. Rivals are our reading of papers, and the last table says where a step was reconstructed.
- Two of these rules came after trial runs of 100 and 300 rounds. That methods without a grid speak rounded against
  adversaries: until then `rolling property` had the lowest SMCal of all on the probability board, as an adversary
  that keeps books by value cannot aim at values that never return. That four methods speak mid-points: until then
  some of them had ten times the error against greedy and far. The noise of heavy-tailed was made wider, too.
- The clairvoyant is told the true conditional property and rounds it. Loss above the truth's is measured against the
  truth without rounding. Swap error alone can be gamed by forecasting the overall mean, so loss stands beside it."""

_ADD = """## Adding a method

One file in `src/swapcal/rivals/` with a class that has a `card` and the two methods `plan` and `learn` of `Rounds`. It
is found by itself; no table, test or page needs to be told."""


def _listed(sentences: list[str], otherwise: str) -> str:
    """Findings under the titles of their boards, with which they begin."""
    boards: dict[str, list[str]] = {}
    for each in sentences:
        title, _, rest = each.partition(": ")
        boards.setdefault(title, []).append(f"- {rest}")
    return "\n\n".join(f"**{title}**\n\n" + "\n".join(lines) for title, lines in boards.items()) or otherwise


def _cards(summary: Summary) -> str:
    rows = []
    for each in summary.plan.contestants:
        card = each.card
        claim = "-" if card.exponent is None else f"T^{card.exponent:.2f} for {card.error}"
        hint, reconstructed = hint_word(summary, each.name), card.reconstructed or "nothing"
        rows.append((each.name, card.reference, card.assumes, claim, card.cost, hint, reconstructed))
    header = ("method", "reference", "assumes", "claims", "cost", "hint", "reconstructed")
    return Table("", header, tuple(rows), align="l" * len(header)).markdown()
