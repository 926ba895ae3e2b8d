"""Tables, pages and reports: what every benchmark shows and writes goes through them."""

import json
from pathlib import Path

import pytest

from swapcal.errors import InvalidInput
from swapcal_benchmarks.report import Report, Table, Target, document, table_number, targets_table

WIDE = Table(
    "Sizes", ("what", "bytes", "who"), (("a state | " + "long " * 30, "12", "us"), ("b", "3", "you")), "A note."
)


def test_a_table_fits_the_terminal_and_keeps_its_first_column() -> None:
    lines = WIDE.text().splitlines()
    assert lines[0] == "Sizes"
    assert lines[-1] == "A note."
    assert max(map(len, lines)) <= 100
    assert " ".join(" ".join(lines).split()).count("long") == 30
    assert "…" in Table("t", ("a", "b"), (("x", "y" * 200),)).text()


def test_markdown_has_alignment_and_escapes() -> None:
    head, rule, first, _ = WIDE.markdown().splitlines()
    assert head == "| what | bytes | who |"
    assert rule == "| --- | ---: | ---: |"
    assert first.startswith("| a state \\| long")
    assert Table("", ("a", "b"), (), align="rl").markdown().splitlines()[1] == "| ---: | --- |"


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


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (0.0, "0"), (0.12345, "0.123"), (123.4, "123"), (2e6, "2e6"), (1.5e12, "2e12")]
)
def test_numbers_have_three_digits(value: float | None, text: str) -> None:
    assert table_number(value) == text
