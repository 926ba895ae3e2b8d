"""`swapcal bench service`: the table and the soak come out, and go into the page side by side."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("swapcal_benchmarks", reason="the benchmarks are not installed: pip install ./benchmarks")

from swapcal_benchmarks.commands import bench


@pytest.mark.slow
def test_the_page_is_written_section_by_section(tmp_path: Path) -> None:
    for arguments in (["--turns", "1"], ["--soak", "0.05", "--rate", "100"], ["--turns", "1"]):
        done = CliRunner().invoke(bench, ["service", *arguments, "--docs", str(tmp_path)])
        # 1: too slow, which is the machine's affair; anything else is ours.
        assert done.exit_code in (0, 1), done.output
        assert ", 0 refused" in done.output
    page = (tmp_path / "service-bench.md").read_text(encoding="utf-8")
    assert page.count("\n## SQLite\n") == page.count("\n## SQLite, soak\n") == 1
    assert "forecasts, 100 a request" in page
