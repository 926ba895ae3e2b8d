"""Pages name things that are there: modules of the vocabulary, files of this repository."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
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
    missing += [path for path in linked if not (page.parent / path).exists()]
    assert not missing, f"{page.name} names {', '.join(sorted(missing))}"
