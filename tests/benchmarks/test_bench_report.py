"""Tables, pages and reports: what every benchmark shows and writes goes through them."""

import json
from pathlib import Path

import pytest

from swapcal.errors import InvalidInput
from swapcal_benchmarks.report import Report, Table, Target, document, table_number, targets_table

WIDE = Table(
    "Sizes", ("what", "bytes", "who"), (("a state | " + "long " * 30, "12", "us"), ("b", "3", "you")), "A note."
)


def test_a_table_as_markdown_and_in_the_terminal() -> None:
    head, rule, first, _ = WIDE.markdown().splitlines()
    assert head == "| what | bytes | who |"
    assert rule == "| --- | ---: | ---: |"
    assert first.startswith("| a state \\| long")
    assert Table("", ("a", "b"), (), align="rl").markdown().splitlines()[1] == "| ---: | --- |"
    lines = WIDE.text().splitlines()
    assert (lines[0], lines[-1]) == ("Sizes", "A note.")
    assert max(map(len, lines)) <= 100
    assert " ".join(" ".join(lines).split()).count("long") == 30
    numbers = [table_number(value) for value in (None, 0.0, 0.12345, 123.4, 2e6, 1.5e12)]
    assert numbers == ["-", "0", "0.123", "123", "2e6", "2e12"]


def test_a_page_has_its_tables_as_sections() -> None:
    table = targets_table(
        [Target("fast", "2 s", True), Target("small", "9 MB", False, ("adult",)), Target("x", "", None)]
    )
    assert [row[2] for row in table.rows] == ["met", "MISSED", ""]
    text = document("Title", "Words.", table, "")
    assert text.startswith("# Title\n\nWords.\n\n## Targets\n\n| target | measured | verdict |\n")
    assert text.endswith("| x |  |  |\n")


def test_a_report_is_shown_written_and_judged(tmp_path: Path) -> None:
    report = Report("text", {"a": 1}, {"page.md": "# P\n"}, {"deep/raw.bin": b"\x00"}, met=False)
    shown: list[str] = []
    assert report.publish(shown.append, docs=tmp_path / "docs", out=tmp_path / "out") == 1
    assert shown[0] == f"text\n\nWritten to {tmp_path / 'out'}: deep/raw.bin"
    assert (tmp_path / "docs" / "page.md").read_text() == "# P\n"
    assert (tmp_path / "out" / "deep" / "raw.bin").read_bytes() == b"\x00"
    assert Report("text", {"a": 1}).publish(shown.append, json=True) == 0
    assert json.loads(shown[1]) == {"a": 1}
    with pytest.raises(InvalidInput, match="cannot be written"):
        report.publish(shown.append, docs=tmp_path / "docs" / "page.md")
