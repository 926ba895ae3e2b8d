"""The front door stays as it is: a short README, pages of one kind, every public name and option on a page."""

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import swapcal
from commands import swapcal as command

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
SHORT = [*sorted((DOCS / "how-to").glob("*.md")), *sorted((DOCS / "explanation").glob("*.md"))]
SHORT += [*sorted((DOCS / "tutorials").glob("*.md")), DOCS / "index.md", ROOT / "README.md"]
# Words that only we would understand, or that promise too much; the glossary has those that took their place.
PRIVATE = re.compile(
    r"\b(everybody|beyond (doubt|chance)|(hang|hangs|hanging) together|goes? without|is no matter|ever a false alarm"
    r"|(stands?|standing|steps?) back|teach(es)? nothing|points per row|would have been seen|nothing to correct"
    r"|(rounds|rows|outcomes) (that|which) are out|outcomes? (is|are) out|million to one)\b",
    re.IGNORECASE,
)


def prose(text: str) -> str:
    """What a page says, without code, tables, pictures and addresses."""
    text = FENCE.sub("", text)
    lines = [line for line in text.splitlines() if not line.startswith(("|", "![", "#"))]
    return re.sub(r"\]\([^)]*\)", "]", "\n".join(lines))


def test_the_readme_is_one_that_people_read() -> None:
    assert len(README.splitlines()) <= 130
    assert len(prose(README).split()) <= 750
    first = README.splitlines().index("```python")
    assert first < 25
    assert README.count("![") == 1
    picture = re.search(r"!\[(.+)\]\((.+)\)", README)
    assert picture is not None
    assert (ROOT / picture[2]).stat().st_size < 300_000
    for language, code in FENCE.findall(README):
        assert all(len(line) <= 78 for line in code.splitlines()), language
        assert language != "python" or len(code.splitlines()) <= 10
    for needed in ("make demo", "make test", "make docs"):
        assert needed in README


def nav(entries: object) -> list[str]:
    if isinstance(entries, str):
        return [entries]
    if isinstance(entries, dict):
        return [page for each in entries.values() for page in nav(each)]
    assert isinstance(entries, list)
    return [page for each in entries for page in nav(each)]


def test_every_page_is_in_the_navigation_once() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = nav(yaml.safe_load(text)["nav"])
    assert len(named) == len(set(named))
    made = {"project/changelog.md", "project/contributing.md", "reference/commands.md"}
    notebooks = {f"tutorials/{path.stem}.md" for path in (DOCS / "tutorials").glob("*.py")}
    written = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert set(named) == written | made | notebooks


def test_every_public_name_is_on_a_reference_page() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md"))
    listed = set(re.findall(r"^::: swapcal\.(?:\w+\.)*(\w+)$", pages, re.MULTILINE))
    rooms = {"tables", "tasks", "text", "datasets"}  # their parts are listed one by one, or are for this package itself
    missing = [name for name in swapcal.__dir__() if name not in listed | rooms and not name.startswith("_")]
    assert missing == []


def public() -> list[tuple[str, object]]:
    """What the reference pages show, by name: the parts of a module each by itself."""
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md"))
    shown = re.compile(r"^::: (swapcal[\w.]+)(?:\n    options:\n      members: \[(.*)\])?$", re.MULTILINE)
    found: list[tuple[str, object]] = []
    for name, members in shown.findall(pages):
        try:
            thing: object = importlib.import_module(name)
        except ModuleNotFoundError:
            room, _, last = name.rpartition(".")
            thing = getattr(importlib.import_module(room), last)
        if not inspect.ismodule(thing):
            found.append((name, thing))
            continue
        found += [(f"{name}.{each}", getattr(thing, each)) for each in members.split(", ") if members] or [
            (f"{name}.{each}", getattr(thing, each)) for each in thing.__all__
        ]
    return [
        (name, thing)
        for name, thing in found
        if (inspect.isclass(thing) or inspect.isfunction(thing))
        and not (inspect.isclass(thing) and (issubclass(thing, BaseException) or getattr(thing, "_is_protocol", False)))
    ]


@pytest.mark.parametrize(("name", "thing"), public(), ids=lambda each: each if isinstance(each, str) else "")
def test_every_public_name_tells_what_it_takes_and_gives_an_example(name: str, thing: Any) -> None:
    """Each parameter by its name; what a function returns; of what is made for the user, its attributes."""
    doc = inspect.getdoc(thing) or ""
    taken = [each for each in inspect.signature(thing).parameters.values() if each.name not in ("self", "cls")]
    assert "Examples\n---" in doc, name
    if inspect.isfunction(thing) and inspect.signature(thing).return_annotation not in (None, "None"):
        assert "Returns\n---" in doc or "Yields\n---" in doc, name
    if not taken:
        return
    section = re.search(r"(Parameters|Attributes)\n---+\n(.*?)(\n\n\w+\n---|\Z)", doc, re.DOTALL)
    assert section is not None, name
    told = set(re.findall(r"\w+", " ".join(re.findall(r"^(\S.*)$", section[2], re.MULTILINE))))
    assert {each.name for each in taken} <= told, name


def test_every_option_is_on_a_page_that_tells_how() -> None:
    pages = [
        path.read_text(encoding="utf-8")
        for path in [*(DOCS / "how-to").glob("*.md"), *(DOCS / "tutorials").glob("*.md")]
    ]
    told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", "\n".join(pages)))
    for name in ("audit", "run", "watch"):
        whole = command(name, "--help-all").output
        assert set(re.findall(r"^  (--[a-z][a-z-]*)", whole, re.MULTILINE)) <= told | {"--help"}, name


@pytest.mark.parametrize("page", SHORT, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_pages_are_short_and_so_are_their_sentences(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.split()) <= 900
    for language, code in FENCE.findall(text):
        assert all(len(line) <= 80 for line in code.splitlines()), (language, code)
    for paragraph in prose(text).split("\n\n"):
        for sentence in re.split(r"(?<=[.!?:])\s", " ".join(paragraph.split())):
            assert len(sentence.split()) <= 30, sentence


@pytest.mark.parametrize("name", ["audit", "run", "watch"])
def test_help_is_short_and_all_of_it_is_by_groups(name: str) -> None:
    short, whole = command(name, "--help").output, command(name, "--help-all").output
    assert len(short.rstrip().splitlines()) <= 24
    assert all(len(line) <= 80 for line in (*short.splitlines(), *whole.splitlines()))
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", whole))
    assert {"--y", "--groups", "--config"} <= options
    assert "Main options:" in short
    assert short.count("--") >= 10


def told() -> dict[str, str]:
    """What people read, by file: pages, docstrings, messages and help."""
    files = [path for folder in (ROOT, DOCS) for path in folder.glob("*.md")]
    files += [path for kind in ("*/*.md", "*/*.py") for path in DOCS.glob(kind)]
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}
    for path in (ROOT / "src").rglob("*.py*"):
        if path.suffix in (".py", ".pyi"):
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            words = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
            texts[str(path.relative_to(ROOT))] = "\n\n".join(words)
    return texts


def test_nothing_is_said_in_words_of_our_own() -> None:
    found = [
        f"{name}: {match[0]}" for name, text in told().items() for match in PRIVATE.finditer(" ".join(text.split()))
    ]
    assert found == []
