"""What pages show runs: the README as pasted, commands and Python of the how-to pages, notebooks, and the site."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import swapcal as sc
from commands import swapcal as command

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FENCE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
HOW_TO = sorted(path.stem for path in (DOCS / "how-to").glob("*.md"))
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.py"))
# What waits for ever or needs a process beside it; tests/service, tests/compat and tests/tasks play these.
ELSEWHERE = (
    "swapcal serve",
    "--follow",
    "from swapcal.compat import spark",
    "swapcal.client",
    "models:/",
    "pip install",
)


def table(n: int = 1500) -> pd.DataFrame:
    """Rows with every column that a page names."""
    rng = np.random.default_rng(3)
    score = rng.beta(2, 5, n).round(3)
    start = pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(n), unit="h")
    carrier = rng.choice(["UA", "DL"], n)
    late = (rng.random(n) < np.clip(score + 0.2 * (carrier == "UA"), 0.0, 1.0)).astype(int)
    sold = rng.normal(100.0, 10.0, n).round(2)
    frame = pd.DataFrame({"late": late, "score": score, "carrier": carrier, "origin": rng.choice(["EWR", "JFK"], n)})
    frame = frame.assign(age=rng.integers(18, 90, n), booking=np.arange(n), old=score, new=np.clip(score + 0.1, 0, 1))
    frame = frame.assign(booked=start, paid=start + pd.Timedelta(days=2), day=start.strftime("%Y-%m-%d"))
    frame = frame.assign(
        scheduled=start, landed=start + pd.Timedelta(hours=3), sold=sold, forecast=sold.mean().round(2)
    )
    frame["paid_at"] = frame["paid"].where(late == 1)
    frame["outcome"] = rng.choice(["early", "late", "cancelled"], n, p=[0.6, 0.3, 0.1])
    return frame.assign(p_early=0.6, p_late=0.3, p_cancelled=0.1, store=rng.choice(["a", "b"], n))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    frame = table()
    for name in ("file.csv", "sales.csv", "flights.csv"):
        frame.to_csv(tmp_path / name, index=False)
    frame[["booking", "late", "paid"]].to_csv(tmp_path / "known.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands(text: str) -> list[list[str]]:
    """The calls of `swapcal` in a shell block, each with what goes on behind a backslash."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.startswith("swapcal ")]


def played(page: Path) -> int:
    """Every block of a page, in order, in one place; how many there were."""
    space: dict[str, object] = {"sc": sc, "pd": pd, "np": np, "df": table()}
    count = 0
    for language, text in FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "python" and ">>>" not in text and not any(word in text for word in ELSEWHERE):
            exec(compile(text, page.name, "exec"), space)
            count += 1
        elif language == "toml" and "y = " in text:
            Path("run.toml").write_text(text, encoding="utf-8")
        for words in commands(text) if language == "sh" else ():
            if not any(each in " ".join(words) for each in ELSEWHERE):
                outcome = command(*words[1:])
                # A test that fails is an answer of --fail-above.
                assert outcome.exit_code in ((0, 1) if "--fail-above" in words else (0,)), outcome.output
                count += 1
    return count


@pytest.mark.parametrize("name", HOW_TO)
@pytest.mark.filterwarnings("default::swapcal.errors.OutcomesWarning")
def test_what_a_page_shows_runs(name: str, place: Path) -> None:
    page = DOCS / "how-to" / f"{name}.md"
    shown = FENCE.findall(page.read_text(encoding="utf-8"))
    assert played(page) or not shown or any(">>>" in text or any(w in text for w in ELSEWHERE) for _, text in shown)


def test_the_readme_runs_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a month in place of three, as nothing else depends on how many there are."""
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "README.md"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "flights(months=5)" in text
    page.write_text(text.replace("flights(months=5)", "flights(months=3)"), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert played(page) >= 3
    assert len(pd.read_csv("better.csv")) == len(pd.read_csv("flights.csv")) > 20_000
    assert "<html" in Path("page.html").read_text(encoding="utf-8")


def test_the_first_audit_runs_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sc.datasets.flights(months=3).to_csv("flights.csv", index=False)
    assert played(DOCS / "tutorials" / "first-audit.md") >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_without_a_warning(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "default::DeprecationWarning", str(path)],
        capture_output=True, text=True, check=False, cwd=tmp_path, env={**os.environ, "MPLBACKEND": "Agg"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr


def test_the_site_is_built_strictly_and_asks_nobody_else(tmp_path: Path) -> None:
    """Links, anchors, docstrings; where no address can be reached."""
    for name in ("docs", "src", "tools"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("mkdocs.yml", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    done = subprocess.run(
        [sys.executable, "tools/build_site.py", "--notebooks", "skip"],
        capture_output=True, text=True, check=False, cwd=tmp_path, env={**os.environ, **nowhere},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pages = sorted((tmp_path / "build" / "site").rglob("*.html"))
    assert len(pages) > 70
    asked = re.compile(
        r'<(?:script|img|iframe|source)[^>]*\ssrc="(?:https?:)?//|<link[^>]*stylesheet[^>]*href="(?:https?:)?//'
    )
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not asked.search(text), page.name
