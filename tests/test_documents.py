"""Pages name things that are there: modules of the vocabulary, files of this repository."""

import ast
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
ENTRY = re.compile(
    r"^\| (?P<words>[^|]+) \| (?P<sentence>[^|]+) \| (?P<letter>[^|]*)\| `(?P<module>[^`]+)` \|$", re.MULTILINE
)


def entries() -> list[re.Match[str]]:
    return list(ENTRY.finditer((ROOT / "docs" / "vocabulary.md").read_text(encoding="utf-8")))


def test_every_word_has_a_sentence_and_a_module_that_exists() -> None:
    text = (ROOT / "docs" / "vocabulary.md").read_text(encoding="utf-8")
    found = entries()
    assert len(found) == sum(line.startswith("| ") for line in text.splitlines()) - 2 * text.count("| word |")
    words = [word.strip() for entry in found for word in entry["words"].split(",")]
    assert len(words) == len(set(words)) > 50
    for entry in found:
        assert entry["sentence"].endswith("."), entry["words"]
        assert (ROOT / "src" / "swapcal" / entry["module"]).is_file(), f"{entry['words']}: no module {entry['module']}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:tests|cpp|docs|benchmarks|src)/[\w/]+\.\w+)`", text))
    named |= {f"src/{path}" for path in re.findall(r"`(swapcal/[\w/]+\.py)`", text)}
    linked = set(re.findall(r"\]\(([^)#:]+)\)", text))
    missing = [path for path in named if not (ROOT / path).exists()]
    there = [page.parent / path for path in linked]
    # A notebook is a Python file here, and a page of the site.
    missing += [str(path) for path in there if not (path.exists() or path.with_suffix(".py").exists())]
    assert not missing, f"{page.name} names {', '.join(sorted(missing))}"


def test_every_line_about_security_has_a_test() -> None:
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith(("| ---", "| line"))]
    assert len(lines) > 30
    for line in lines:
        named = re.search(r"\| `(tests/[\w/]+\.py):(test_\w+)` \|$", line)
        assert named is not None, line
        assert named[2] in defined(ROOT / named[1]), line


def named_places(text: str) -> set[tuple[str, str]]:
    """Files of the package that a page names, each with the function or class behind it, or none."""
    return {(path, name) for path, name in re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)(?::([\w.]+))?`", text)}


def defined(path: Path) -> set[str]:
    """Functions and classes of a file, and methods as `Class.method`."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, FUNCTIONS)}
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def test_the_architecture_names_files_and_functions_that_are_there() -> None:
    places = named_places((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert len(places) > 40
    package = ROOT / "src" / "swapcal"
    missing = [f"{path}:{name}" for path, name in sorted(places) if not (package / path).is_file()]
    missing += [f"{path}:{name}" for path, name in sorted(places) if name and name not in defined(package / path)]
    assert missing == []


def test_counts_replace_the_row_of_their_name(tmp_path: Path) -> None:
    page, counts = tmp_path / "page.md", runpy.run_path(str(ROOT / "tools" / "counts.py"))
    page.write_text(
        f"# A\n\n{counts['HEAD']}\n| what | command | counted |\n|---|---|---|\n| old | `a` | 1 |\n\n## B\n\n| x |\n"
    )
    for name, counted in (("new", "2"), ("old", "3"), ("new", "4")):
        counts["record"](name, "b", counted, page)
    rows = [line for line in page.read_text().splitlines() if line.startswith("|")]
    assert rows[2:] == ["| old | `b` | 3 |", "| new | `b` | 4 |", "| x |"]
    assert page.read_text().count("\n\n## B\n") == 1
