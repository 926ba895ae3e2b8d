"""A stream's audit as a page: one file, no scripts, fit to be kept or printed."""

import re
from html import escape
from importlib.resources import files

from swapcal.service.reading import AuditReading, GroupReading
from swapcal.service.schemas import StreamStatus

__all__ = ["report_page"]


def report_page(reading: AuditReading, status: StreamStatus) -> str:
    """The page: what changed in a sentence, the errors side by side, and every group."""
    parts = {
        "stream": escape(reading.stream),
        "property": escape(reading.property),
        "sentence": escape(_sentence(reading)),
        "facts": escape(
            f"{status.forecasts:,} forecasts, {status.outcomes:,} outcomes learned, {status.pending:,} still awaited, "
            f"{status.groups:,} groups."
        ),
        "errors": "".join(_error_row(*row) for row in _errors(reading, status)),
        "witnesses": "".join(
            f"<li><b>{who}:</b> {escape(side.witness or 'no round yet')}</li>"
            for who, side in (("model", reading.before), ("swapcal", reading.after))
        ),
        "groups": "".join(_group_row(group) for group in reading.groups),
    }
    page = files("swapcal.service").joinpath("report.html").read_text(encoding="utf-8")
    # In one pass, so that nothing that came from outside is taken for a place of the page.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], page)


def _sentence(reading: AuditReading) -> str:
    before, after = reading.before, reading.after
    if not before.rounds:
        return "No outcome of a case with a hint has come yet, so there is nothing to compare."
    return (
        f"Over {before.rounds:,} outcomes the model's swap error is {before.swap_multicalibration:.4g} and that of the "
        f"forecasts {after.swap_multicalibration:.4g}; groups off beyond chance: {before.groups_off} and "
        f"{after.groups_off}."
    )


def _errors(reading: AuditReading, status: StreamStatus) -> list[tuple[str, str, str]]:
    def row(name: str, field: str) -> tuple[str, str, str]:
        return name, *(_number(getattr(side, field)) for side in (reading.before, reading.after))  # type: ignore[return-value]

    losses = ("mean loss", _number(status.loss_before), _number(status.loss_after))
    return [
        row("rounds", "rounds"),
        losses,
        row("calibration error", "calibration"),
        row("multicalibration error", "multicalibration"),
        row("swap multicalibration error", "swap_multicalibration"),
        row("groups off beyond chance", "groups_off"),
    ]


def _error_row(name: str, before: str, after: str) -> str:
    return f"<tr><th scope=row>{name}</th><td>{before}</td><td>{after}</td></tr>"


def _group_row(group: GroupReading) -> str:
    cells = "".join(
        f"<td{' class=off' if off else ''}>{'' if mean is None else f'{mean:+.4f}'}</td>"
        for mean, off in ((group.before, group.off_before), (group.after, group.off_after))
    )
    return f"<tr><th scope=row>{escape(group.name)}</th><td>{group.rounds:,}</td>{cells}</tr>"


def _number(value: float | int | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
