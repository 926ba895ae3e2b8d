"""The command: what it writes, byte by byte, and the figures of what it says, which any form of a result must have."""

import contextlib
import importlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plays import Played, Run, Runs, numbers

T = 360
ASKED = ("--y", "y", "--p", "p", "--seed", "5")
LATE = ("--y", "y", "--p", "wrong", "--seed", "5")
"""A model so wrong that a run whose outcomes come late, which shows the model at first, comes to speak for itself."""
SIDES = ("before", "after")
SCORES = ("loss", "swap_error", "group_error", "overall_error", "chance_mean", "n_cells", "n_biased", "weight")


def figures(data: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a result as JSON, whatever they are called in it; the one place that knows today's form."""
    result = data["result"]
    sections, table = {one["title"]: one for one in result["sections"]}, result["group_table"]
    if result["kind"] == "comparison":
        lines = [
            line | line["before"] | {"model": line["title"], "kind": line["verdict"]}
            for line in result["section_table"]
        ]
        return {
            "models": [{key: line[key] for key in ("model", "kind", "bias", "loss")} for line in lines],
            "changes": {title: difference(result["paired"].get(title)) for title in sections},
            "compared": result["counts"]["scored"],
            "groups": {line["group"]: models(line) for line in table},
            "audits": {title: audited(result, one) for title, one in sections.items()},
        }
    first = result["sections"][0]
    plain: dict[str, Any] = {
        "verdict": result["verdict"]["kind"],
        "rows": result["counts"]["scored"],
        "without outcome": result["counts"]["without_outcome"],
        "groups": {line["group"]: group(line) for line in table},
    }
    changes = [*result["paired"].values(), None, None]
    if result["task"] == "classes":
        plain["groups"] = {line["group"]: of_classes(line, first["means"]) for line in table}
        plain["classes"] = {
            line["title"]: {side: of_class(line[side]) for side in SIDES if side in line}
            for line in result["section_table"]
        }
        return plain | {"change": changes[0], "change of log loss": changes[1]}
    if result["task"] == "interval":
        line = result["section_table"][0]
        off = {side: line[side]["groups_off"] for side in SIDES if side in line}
        return plain | {"change": changes[0], "off": off}
    promise = result["guarantee"]
    plain |= {"guarantee": promise and promise["bound"], "change": changes[0], "discovery": result["discovery"]}
    return plain | scored(first)


def scored(section: dict[str, Any]) -> dict[str, Any]:
    """Errors, losses, the worst cells, and since when groups are off."""
    sides = {side: section[side] for side in SIDES if section[side] is not None}
    plain: dict[str, Any] = {side: {name: sides[side][name] for name in SCORES} for side in sides}
    plain["since"] = {side: sides[side]["since"] for side in sides}
    plain["worst"] = {side: sides[side]["worst"][:3] for side in sides}
    return plain


def audited(result: dict[str, Any], section: dict[str, Any]) -> dict[str, Any]:
    """The audit of one of the models that are compared."""
    title = section["title"]
    rows = [line for line in result["group_table"] if title in line["sections"]]
    losses = ("loss", "loss_low", "loss_high")
    groups = {
        line["group"]: {
            "rows": line["rows"],
            "before": {k: v for k, v in line["sections"][title]["before"].items() if k not in losses},
        }
        for line in rows
    }
    plain = {"verdict": section["verdict"]["kind"], "rows": section["counts"]["scored"], "groups": groups}
    plain |= {"without outcome": section["counts"]["without_outcome"]}
    return plain | {"guarantee": None, "change": None, "discovery": None} | scored(section)


def difference(pair: dict[str, Any] | None) -> dict[str, Any] | None:
    """The difference of the loss of a model from that of the first."""
    return pair and {"first": pair["before"], "mean": pair["difference"], "low": pair["low"], "high": pair["high"]}


def models(line: dict[str, Any]) -> dict[str, Any]:
    """A group with the numbers of each model, without since when it is off."""
    sides = {
        title: {k: v for k, v in side["before"].items() if k != "since"} for title, side in line["sections"].items()
    }
    return {"group": line["group"], "rows": line["rows"], "unit": line["unit"], **sides}


def of_class(side: dict[str, Any]) -> dict[str, Any]:
    """A class, by the names that its numbers were given first."""
    names = {"base_rate": "came", "loss": "brier"}
    return {names.get(name, name): value for name, value in side.items() if name != "log_loss"}


def of_classes(line: dict[str, Any], means: dict[str, Any]) -> dict[str, Any]:
    """A group, with the numbers of the likeliest class and of each class."""
    sections = dict(line["sections"])
    top, plain = sections.pop("top"), {"rows": line["rows"]}
    for side in (side for side in SIDES if side in top):
        own = {name: top[side][name] for name in means[side]}
        bias = {name: value for name, value in top[side].items() if name not in own}
        classes = {name: one.get(side) for name, one in sections.items()}
        plain[side] = {"top": bias, "classes": classes, **own}
    return plain


def group(line: dict[str, Any]) -> dict[str, Any]:
    """Rows of a group, and the numbers of each side."""
    return {"rows": line["rows"], **{side: line[side] for side in SIDES if side in line}}


class Desk:
    """A folder with a table, which is the working directory."""

    def __init__(self, n: int = T) -> None:
        rng = np.random.default_rng(8)
        hour = rng.integers(0, 24, n)
        store = rng.integers(1, 5, n)
        p = np.clip(0.1 + 0.8 * rng.random(n), 0.0, 1.0).round(4)
        share = np.clip(p - 0.2 * (hour >= 12) + 0.1 * (store == 2), 0.02, 0.98)
        amount = (20.0 * share + 3.0 * rng.random(n)).round(3)
        kinds = np.array(["bus", "rail", "walk"])
        given = rng.dirichlet([2.0, 1.0, 1.0], n).round(4)
        day = np.datetime64("2026-01-01") + (np.arange(n) // 4).astype("timedelta64[D]")
        delay = rng.integers(0, 5, n).astype("timedelta64[D]")
        self.columns: dict[str, list[Any]] = {
            "id": [f"b{t}" for t in range(n)],
            "day": day.astype(str).tolist(),
            "known": (day + delay).astype(str).tolist(),
            "store": store.tolist(),
            "hour": hour.tolist(),
            "region": rng.choice(["north", "south", "west"], n).tolist(),
            "w": rng.choice([0.5, 1.0, 2.0], n).tolist(),
            "x": rng.normal(size=n).round(3).tolist(),
            "p": p.tolist(),
            "wrong": (1.0 - p).round(4).tolist(),
            "q": np.clip(share + 0.1 * rng.normal(size=n), 0.01, 0.99).round(4).tolist(),
            "y": (rng.random(n) < share).astype(int).tolist(),
            "drifting": np.clip(share + 0.4 * (np.arange(n) > 0.6 * n), 0.0, 1.0).round(4).tolist(),
            "amount": amount.tolist(),
            "guess": (20.0 * p).round(3).tolist(),
            "mode": kinds[(given.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(0, 2)].tolist(),
            **{kind: given[:, k].tolist() for k, kind in enumerate(kinds.tolist())},
        }

    def write(self, name: str = "in.csv", rows: slice = slice(None), **changes: Sequence[Any]) -> str:
        """Some rows of the table as a file; blanks where a column has None."""
        columns = {**self.columns, **changes}
        cells = list(zip(*(column[rows] for column in columns.values()), strict=True))
        lines = [",".join(columns), *(",".join("" if each is None else str(each) for each in row) for row in cells)]
        Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return name

    def blank(self, column: str, every: int, rest: int) -> list[Any]:
        """A column without some of its values."""
        return [None if t % every == rest else value for t, value in enumerate(self.columns[column])]


def swapcal(*arguments: str, codes: tuple[int, ...] = (0,)) -> str:
    """What the command prints."""
    from typer.testing import CliRunner

    from swapcal.cli import app

    outcome = CliRunner().invoke(app, list(arguments))
    if outcome.exit_code not in codes:
        raise RuntimeError(f"swapcal {' '.join(arguments)} ended with {outcome.exit_code}: {outcome.output}")
    return str(outcome.stdout)


def told(*arguments: str) -> Any:
    """The figures of what a command prints."""
    return figures(json.loads(swapcal(*arguments, "--json")))


def written(name: str = "out.csv") -> bytes:
    """A file byte by byte; of Parquet, whose bytes hold the version of its writer, the columns."""
    if not name.endswith(".parquet"):
        return Path(name).read_bytes()
    parquet: Any = importlib.import_module("pyarrow.parquet")
    table = parquet.read_table(name)
    columns = ((column, table[column].to_numpy()) for column in table.column_names)
    return b"".join(column.encode() + numbers(values) for column, values in columns)


def run(*options: str, out: str = "out.csv", asked: Sequence[str] = ASKED, **changes: Sequence[Any]) -> Played:
    """`swapcal run` on the whole table."""
    name = Desk().write(**changes)  # type: ignore[arg-type]
    plain = told("run", name, *asked, *options, "--out", out)
    return Played(written(out), plain)


def resumed(*options: str, asked: Sequence[str] = ASKED, out: str = "out.csv") -> Played:
    """Two thirds of the table with a state, then the whole of it."""
    desk, files = Desk(), ("--out", out, "--state", "run.state")
    swapcal("run", desk.write(rows=slice(0, 240)), *asked, *options, *files)
    first = written(out)
    plain = told("run", desk.write(), *asked, *options, *files)
    return Played(first + written(out), plain)


def later(order: str, outcomes: bool) -> Played:
    """Outcomes that are blank at first, and filled in later: in the file itself, or by a second one."""
    desk = Desk()
    start = 30 if order == "arrival" else 180
    blank = [value if t % 9 or t < start else None for t, value in enumerate(desk.columns["y"])]
    half = [value if t < 270 else blank[t] for t, value in enumerate(desk.columns["y"])]
    files: tuple[str, ...] = ("--out", "out.csv", "--state", "run.state", "--groups", "region", "--id", "id")
    files = files if order == "arrival" else (*files, "--delay", "5", "--order", order)
    swapcal("run", desk.write(rows=slice(0, 300), y=blank), *LATE, *files, "--later")
    first = written()
    if outcomes:
        told_rows = [f"b{t},{value}" for t, value in enumerate(desk.columns["y"]) if blank[t] is None and t < 270]
        Path("outcomes.csv").write_text("\n".join(["id,y", *reversed(told_rows)]) + "\n")
        plain = told("run", desk.write(y=blank), *LATE, *files, "--later", "--outcomes", "outcomes.csv")
    else:
        plain = told("run", desk.write(y=half), *LATE, *files, "--later")
    return Played(first + written(), plain)


def by_key(*options: str) -> Played:
    """A forecaster for each store; resumed."""
    desk = Desk(800)
    files = ("--by", "store", "--processes", "1", "--out", "out.csv", "--state", "keys.state", "--groups", "region")
    asked = LATE if "--known" in options else ASKED
    swapcal("run", desk.write(rows=slice(0, 500)), *asked, *options, *files)
    first = written()
    again = ("run", desk.write(), *asked, *options, *files)
    if "--weight" in options:  # today the result of keys takes no weights; the forecasts do
        swapcal(*again)
        return Played(first + written())
    plain = told(*again)
    return Played(first + written(), plain)


def audit(*options: str, y: str = "y", p: str = "p") -> Played:
    """`swapcal audit` on a table of 900 rows."""
    name = Desk(900).write()
    return Played(figures=told("audit", name, "--y", y, "--p", p, *options))


def merged(*options: str) -> Played:
    """Audits of two files that are kept, and added up with a third."""
    desk = Desk(900)
    asked = ("--y", "y", "--p", "p", "--groups", "region,store", "--categories", "store", "--low", "0", "--high", "1")
    first = desk.write("a.csv", slice(0, 300)), desk.write("b.csv", slice(300, 600))
    swapcal("audit", *first, "--merge", *asked, *options, "--save", "ab.audit")
    return Played(figures=told("audit", "ab.audit", desk.write("c.csv", slice(600, 900)), "--merge", *asked, *options))


def watch(*options: str, y: str = "y", p: str = "p") -> Played:
    """Alarms, a line each."""
    name = Desk(1500).write()
    arguments = ("watch", name, "--y", y, "--p", p, "--settle", "200", *options, "--json")
    alarms = [json.loads(line) for line in swapcal(*arguments, codes=(0, 1)).splitlines()]
    return Played(figures=[{key: each for key, each in alarm.items() if key != "message"} for alarm in alarms])


def in_folder(play: Callable[[], Played]) -> Callable[[], Played]:
    """The same in a folder of its own."""

    def played() -> Played:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            os.environ["COLUMNS"] = "100"
            return play()

    return played


AMOUNT = ("--y", "amount", "--p", "guess", "--seed", "5")
INTERVAL = ("--y", "amount", "--p", "guess", "--seed", "5", "--interval", "0.8")
MODES = ("--y", "mode", "--p", "bus,rail,walk", "--seed", "5", "--classes")
PLAYS: dict[str, Callable[[], Played]] = {
    "run: plain": run,
    "run: jsonl": lambda: run(out="out.jsonl"),
    "run: parquet": lambda: run("--groups", "region", out="out.parquet"),
    "run: no model": lambda: run(asked=("--y", "y", "--seed", "5"), out="out.csv"),
    "run: groups": lambda: run("--groups", "region,hour >= 12,region*store", "--categories", "store"),
    "run: groups, not learning": lambda: run("--groups", "region,hour", "--no-learn"),
    "run: linear": lambda: run("--linear", "hour,x"),
    "run: linear, groups, learning": lambda: run("--linear", "hour,x", "--groups", "region", "--learn"),
    "run: horizon, bins": lambda: run("--horizon", "1000", "--bins", "12"),
    "run: r, costs, levels, trust": lambda: run("--r", "1.5", "--costs", "1:5", "--levels", "4", "--trust", "0.1"),
    "run: weight": lambda: run("--weight", "w", "--groups", "region"),
    "run: blanks": lambda: run("--groups", "region", y=Desk().blank("y", 7, 3), p=Desk().blank("p", 11, 4)),
    "run: positive": lambda: run("--positive", "rail", asked=("--y", "mode", "--p", "rail", "--seed", "5")),
    "run: amount": lambda: run("--groups", "region", asked=AMOUNT),
    "run: probability": lambda: run("--property", "probability", "--groups", "store", "--limit", "3"),
    "run: quantile": lambda: run("--property", "quantile:0.9", "--groups", "region", "--jitter", "0.01", asked=AMOUNT),
    "run: median": lambda: run("--property", "median", "--low", "0", "--high", "25", asked=AMOUNT),
    "run: expectile": lambda: run("--property", "expectile:0.8", "--groups", "region", asked=AMOUNT),
    "run: moment": lambda: run("--property", "moment:2", "--low", "0", "--high", "25", asked=AMOUNT[:2] + AMOUNT[4:]),
    "run: delay in rows": lambda: run("--delay", "10", "--groups", "region", asked=LATE),
    "run: delay in days": lambda: run("--time", "day", "--delay", "2d", "--groups", "region", asked=LATE),
    "run: known": lambda: run("--time", "day", "--known", "known", "--groups", "region", asked=LATE),
    "run: known, order of forecasts": lambda: run(
        "--time", "day", "--known", "known", "--order", "forecast", "--groups", "region", asked=LATE
    ),
    "run: known, quantile": lambda: run(
        "--time", "day", "--known", "known", "--property", "quantile:0.7", "--groups", "region", asked=AMOUNT
    ),
    "run: known, linear": lambda: run("--time", "day", "--known", "known", "--linear", "x,hour", asked=LATE),
    "run: known, weight": lambda: run(
        "--time", "day", "--known", "known", "--weight", "w", "--groups", "region", asked=LATE
    ),
    "run: resumed": lambda: resumed("--groups", "region"),
    "run: resumed, jsonl, weight": lambda: resumed("--groups", "region", "--weight", "w", out="out.jsonl"),
    "run: resumed, parquet": lambda: resumed("--groups", "region", out="out.parquet"),
    "run: resumed, known": lambda: resumed(
        "--time", "day", "--known", "known", "--order", "forecast", "--groups", "region", asked=LATE
    ),
    "run: resumed, quantile": lambda: resumed("--property", "quantile:0.8", "--groups", "hour", asked=AMOUNT),
    "run: later, by arrival": lambda: later("arrival", False),
    "run: later, by forecast": lambda: later("forecast", False),
    "run: later, second file": lambda: later("arrival", True),
    "run: later, second file, by forecast": lambda: later("forecast", True),
    "run: by key": by_key,
    "run: by key, learning, weight": lambda: by_key("--learn", "--weight", "w"),
    "run: by key, known": lambda: by_key("--time", "day", "--known", "known"),
    "run: interval": lambda: run(asked=INTERVAL),
    "run: interval, groups, ends of the model": lambda: run(
        "--groups", "region", asked=("--y", "amount", "--p", "guess,q90", *INTERVAL[4:]), q90=_above()
    ),
    "run: interval, jsonl, not learning": lambda: run(
        "--groups", "region", "--no-learn", asked=INTERVAL, out="o.jsonl"
    ),
    "run: interval, resumed": lambda: resumed("--groups", "region", asked=INTERVAL),
    "run: interval, parquet, no model": lambda: run(asked=(*INTERVAL[:2], *INTERVAL[4:]), out="out.parquet"),
    "run: classes": lambda: run("--groups", "region", asked=MODES),
    "run: classes, not learning, jsonl": lambda: run("--no-learn", asked=MODES, out="out.jsonl"),
    "run: classes, no model": lambda: run(asked=(*MODES[:2], *MODES[4:])),
    "run: classes, resumed": lambda: resumed("--groups", "region", asked=MODES),
    "audit: plain": audit,
    "audit: groups": lambda: audit("--groups", "region,store,region*store,hour >= 12", "--categories", "store"),
    "audit: time": lambda: audit("--groups", "region", "--time", "day"),
    "audit: time, no cluster": lambda: audit("--groups", "region", "--time", "day", "--cluster", ""),
    "audit: drift": lambda: audit("--groups", "region,hour >= 12", "--time", "day", p="drifting"),
    "audit: cluster": lambda: audit("--groups", "region", "--cluster", "day"),
    "audit: weight, bins, r": lambda: audit("--groups", "region", "--weight", "w", "--bins", "9", "--r", "1"),
    "audit: linear": lambda: audit("--linear", "hour,x"),
    "audit: costs": lambda: audit("--groups", "region", "--costs", "1:4"),
    "audit: discover": lambda: audit("--groups", "region", "--discover"),
    "audit: quantile": lambda: audit("--property", "quantile:0.6", "--groups", "region", y="amount", p="guess"),
    "audit: expectile, cluster": lambda: audit(
        "--property", "expectile:0.7", "--groups", "region", "--cluster", "day", y="amount", p="guess"
    ),
    "audit: amount": lambda: audit("--groups", "region,hour", y="amount", p="guess"),
    "audit: compared": lambda: audit("--groups", "region,hour >= 12", p="p,q"),
    "audit: compared, cluster, weight": lambda: audit(
        "--groups", "region", "--cluster", "day", "--weight", "w", p="p,q"
    ),
    "audit: merged": merged,
    "audit: merged, bins, r": lambda: merged("--bins", "10", "--r", "1.5"),
    "watch: ever": lambda: watch("--groups", "region,hour >= 12"),
    "watch: every, time": lambda: watch(
        "--groups", "region", "--every", "2000", "--time", "day", "--tolerance", "0.02"
    ),
    "watch: quantile, cluster": lambda: watch(
        "--groups", "region", "--property", "quantile:0.6", "--cluster", "day", y="amount", p="guess"
    ),
}


def _above() -> list[float]:
    return [round(value + 3.0, 3) for value in Desk().columns["guess"]]


def runs() -> Runs:
    """Name and play of every run."""
    for name, play in PLAYS.items():
        yield Run(f"swapcal {name}", in_folder(play), both=False)
