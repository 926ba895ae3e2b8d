"""The claims as tables, JSON and CSV."""

import csv
import io
import json
from collections.abc import Sequence

from swapcal.errors import InvalidInput
from swapcal_benchmarks.measurement import Measurement
from swapcal_benchmarks.paper.rates import RATE
from swapcal_benchmarks.report import Table

__all__ = ["from_csv", "from_json", "tables", "to_csv", "to_json"]

_WORDS = {True: "yes", False: "NO", None: "open"}
_CELLS = {True: "", False: "!", None: "~"}
_COLUMNS = tuple(Measurement.__dataclass_fields__)


def tables(rows: Sequence[Measurement]) -> list[Table]:
    """The rates as a grid of exponents, and the other claims row by row with their notes."""
    rates = [row for row in rows if row.claim == RATE]
    notes: dict[str, int] = {}
    lines, last = [], ""
    for row in rows:
        if row.claim == RATE:
            continue
        if row.claim != last:
            lines.append((row.claim, "", "", ""))
        last = row.claim
        mark = f" [{notes.setdefault(row.note, len(notes) + 1)}]" if row.note else ""
        measured = _number(row.measured) + _spread(row)
        lines.append((f" {row.setting}", row.paper, measured, _WORDS[row.holds] + mark))
    note = "\n".join(f"[{k}] {note}" for note, k in notes.items())
    others = Table("The other claims", ("", "paper", "measured", "holds"), tuple(lines), note, "lrrl")
    return [_grid(rates), others] if rates else [others]


def _grid(rows: Sequence[Measurement]) -> Table:
    """Algorithms and properties down, r across."""
    cells: dict[str, dict[str, Measurement]] = {}
    for row in rows:
        place, r = row.setting.rsplit(", r = ", 1)
        cells.setdefault(place, {})[r] = row
    powers = list(next(iter(cells.values())))
    claims = ("paper", *(rows[powers.index(r)].paper for r in powers))
    lines = [(place, *(_cell(by_power[r]) for r in powers)) for place, by_power in cells.items()]
    marked = {
        "~": "above the bare power at these T, within the logarithms that O~ hides",
        "!": "above the claim at these T, logarithms included",
    }
    used = {_CELLS[row.holds] for row in rows}
    legend = [f"{mark} {meaning}" for mark, meaning in marked.items() if mark in used]
    note = "\n".join(["The claims are upper bounds: smaller exponents agree with them.", *legend])
    header = ("", *(f"r = {r}" for r in powers))
    return Table("1 Exponent of SMCal_r against T, and its 95 % interval", header, (claims, *lines), note)


def _cell(row: Measurement) -> str:
    return f"{_CELLS[row.holds]}{row.measured:.2f}{_spread(row)}"


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
