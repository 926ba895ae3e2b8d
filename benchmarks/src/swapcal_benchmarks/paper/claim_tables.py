"""What a report looks like: a table for a terminal, JSON, CSV."""

import csv
import io
import json
from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from swapcal.errors import InvalidInput
from swapcal_benchmarks.measurement import Measurement
from swapcal_benchmarks.paper.rates import RATE

__all__ = ["from_csv", "from_json", "tables", "to_csv", "to_json"]

_MARKS = {True: Text("yes", "green"), False: Text("NO", "bold red"), None: Text("open", "yellow")}
_CELLS = {True: "", False: "!", None: "~"}
_COLUMNS = tuple(Measurement.__dataclass_fields__)


def tables(rows: Sequence[Measurement]) -> RenderableType:
    """The rates as a grid of exponents, the other claims row by row, and the notes; 100 columns wide at most."""
    rates = [row for row in rows if row.claim == RATE]
    others = [row for row in rows if row.claim != RATE]
    parts: list[RenderableType] = []
    if rates:
        parts += [_grid(rates), Text("")]
    table = _plain_table("The other claims")
    table.add_column("", overflow="fold")
    for name in ("paper", "measured"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("holds", no_wrap=True)
    notes: dict[str, int] = {}
    last = ""
    for row in others:
        mark = _MARKS[row.holds].copy()
        if row.note:
            mark.append(f" [{notes.setdefault(row.note, len(notes) + 1)}]", "default")
        if row.claim != last:
            table.add_row(Text(row.claim, "bold"))
        last = row.claim
        table.add_row(f" {row.setting}", row.paper, _number(row.measured) + _spread(row), mark)
    parts.append(table)
    parts += [Text(f"[{k}] {note}", "dim") for note, k in notes.items()]
    return Group(*parts)


def _grid(rows: Sequence[Measurement]) -> RenderableType:
    """Algorithms and properties down, r across."""
    cells: dict[str, dict[str, Measurement]] = {}
    for row in rows:
        place, r = row.setting.rsplit(", r = ", 1)
        cells.setdefault(place, {})[r] = row
    powers = list(next(iter(cells.values())))
    table = _plain_table("1 Exponent of SMCal_r against T, and its 95 % interval")
    table.add_column("", no_wrap=True)
    for r in powers:
        table.add_column(Text(f"r = {r}\npaper {rows[powers.index(r)].paper}"), justify="right", no_wrap=True)
    last = ""
    for place, by_power in cells.items():
        algorithm, property_name = place.rsplit(", ", 1)
        if algorithm != last:
            table.add_row(Text(algorithm, "bold"))
        last = algorithm
        table.add_row(f" {property_name}", *(_cell(by_power[r]) for r in powers))
    marked = {
        "~": "above the bare power at these T, within the logarithms that O~ hides",
        "!": "above the claim at these T, logarithms included",
    }
    used = {_CELLS[row.holds] for row in rows}
    legend = [Text(f"{mark} {meaning}", "dim") for mark, meaning in marked.items() if mark in used]
    says = Text("The claims are upper bounds: smaller exponents agree with them.", "dim")
    return Group(table, says, *legend)


def _cell(row: Measurement) -> Text:
    style = {True: "green", False: "bold red", None: "yellow"}[row.holds]
    return Text(f"{_CELLS[row.holds]}{row.measured:.2f}{_spread(row)}", style)


def _plain_table(title: str) -> Table:
    return Table(title=title, title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000.0 else f"{value:.0f}"


def _spread(row: Measurement) -> str:
    """Half the width of the interval; Student's intervals are symmetric."""
    if row.low is None or row.high is None:
        return ""
    half = 0.5 * (row.high - row.low)
    return f" ±{half:.{2 if half < 1.0 else 1}f}"


def to_json(rows: Sequence[Measurement]) -> str:
    """A list of objects, one for each row."""
    return json.dumps([row.to_dict() for row in rows], indent=2, allow_nan=False) + "\n"


def from_json(text: str) -> list[Measurement]:
    """Read what `to_json` wrote."""
    try:
        data = json.loads(text)
        return [Measurement.from_dict(entry) for entry in data]
    except (TypeError, json.JSONDecodeError) as error:
        raise InvalidInput(f"this is not a table that to_json wrote: {error}") from error


def to_csv(rows: Sequence[Measurement]) -> str:
    """A header and one line for each row; empty where there is no interval or verdict."""
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        values = row.to_dict()
        writer.writerow({name: "" if value is None else _exact(value) for name, value in values.items()})
    return buffer.getvalue()


def from_csv(text: str) -> list[Measurement]:
    """Read what `to_csv` wrote."""
    reader = csv.DictReader(io.StringIO(text, newline=""))
    if tuple(reader.fieldnames or ()) != _COLUMNS:
        raise InvalidInput(f"a table has the columns {', '.join(_COLUMNS)}; got {reader.fieldnames!r}")
    return [_read(line) for line in reader]


def _exact(value: object) -> object:
    return repr(value) if isinstance(value, (float, bool)) else value


def _read(line: dict[str, str]) -> Measurement:
    try:
        return Measurement(
            claim=line["claim"],
            setting=line["setting"],
            paper=line["paper"],
            paper_value=float(line["paper_value"]),
            measured=float(line["measured"]),
            low=float(line["low"]) if line["low"] else None,
            high=float(line["high"]) if line["high"] else None,
            holds={"True": True, "False": False, "": None}[line["holds"]],
            note=line["note"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"this line is not one that to_csv wrote: {line!r}") from error
