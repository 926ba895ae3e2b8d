"""What one `swapcal run` meets of the package, and how large and how sliced the package is.

python tools/trace.py
python tools/trace.py --list

The command runs in this process over a small CSV, with `--out` and `--report`, under a profiler. Counted are functions
of the package that are called; bodies of modules and classes are not, as they belong to importing: a first run, which
is not counted, imports everything, and what it left in caches is dropped. The rest is read from the source:

- Code is what is neither blank, nor comment, nor docstring.
- A module has one importer if one module, besides the package it is in, imports it.
- A check on a property is an `isinstance`, a `type(...) is` or a class pattern, outside `properties/`, that names a
  class of `properties/`.
- A format has a version of its own if a reader compares one: counted are the constants `...VERSION`, and literals, that
  are compared with a version, once in each file. What is only written (the JSON of a comparison) is not a state.
"""

import argparse
import ast
import contextlib
import functools
import gc
import inspect
import io
import random
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
N_ROWS = 400
BODIES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Function(NamedTuple):
    """A function of the package: its file, from the package's folder, and its name in it."""

    file: str
    name: str


class Source(NamedTuple):
    """A module: its path, text and syntax tree."""

    path: Path
    text: str
    tree: ast.Module


def write_rows(path: Path) -> None:
    """A CSV of events y, with probabilities p that are too low for one group."""
    draw = random.Random(0)
    lines = ["y,p,region,device"]
    for _ in range(N_ROWS):
        region, device, p = draw.choice("abc"), draw.choice(("phone", "desk")), round(draw.uniform(0.05, 0.7), 3)
        lines.append(f"{int(draw.random() < p + 0.2 * (region == 'a'))},{p},{region},{device}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(folder: Path) -> None:
    """One call of the command, which reads and writes in a folder; RuntimeError with what it said if it fails."""
    from swapcal.cli import main

    columns = ["--y", "y", "--p", "p", "--groups", "region,device", "--seed", "1"]
    files = ["--out", str(folder / "out.csv"), "--report", str(folder / "page.html"), "--overwrite"]
    output = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["swapcal", "run", str(folder / "rows.csv"), *columns, *files]),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
    ):
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(output.getvalue()) from end


def calls(package: Path) -> Counter[Function]:
    """How often each function of the package is called in one run."""
    codes: Counter[CodeType] = Counter()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        # Bodies of modules and classes have no fast locals.
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            codes[frame.f_code] += 1

    with tempfile.TemporaryDirectory() as name:
        write_rows(Path(name) / "rows.csv")
        run(Path(name))
        forget_caches(package.name)
        threading.setprofile(profile)
        sys.setprofile(profile)
        try:
            run(Path(name))
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    counts: Counter[Function] = Counter()
    for code, count in codes.items():
        path = Path(code.co_filename)
        if path.is_relative_to(package) and not code.co_name.endswith(("comp>", "genexpr>")):
            counts[Function(path.relative_to(package).as_posix(), code.co_qualname)] += count
    if not counts:
        raise RuntimeError(f"the package that ran is not the one in {package}: install this one, with -e")
    return counts


def forget_caches(package: str) -> None:
    """Drop what functions of the package remember, so that a second run calls all that the first one did."""
    for thing in gc.get_objects():
        if isinstance(thing, functools._lru_cache_wrapper) and thing.__module__.split(".")[0] == package:
            thing.cache_clear()


def sources(folder: Path) -> dict[str, Source]:
    """The modules below a folder, by their names."""
    modules = {}
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        name = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        modules[name] = Source(path, text, ast.parse(text))
    return modules


def code_lines(text: str) -> int:
    r'''The lines that are neither blank, nor comment, nor docstring.

    Examples
    --------
    >>> code_lines('"""A module."""\n\n# A comment.\nx = 1\ny = 2  # another\n')
    2
    '''
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, BODIES) and node.body and ast.get_docstring(node, clean=False) is not None:
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(1 for number, line in lines if line and not line.startswith("#") and number not in docstrings)


def single_importers(modules: dict[str, Source]) -> dict[str, str]:
    """The modules that one other imports, and which one it is."""
    importers: defaultdict[str, set[str]] = defaultdict(set)
    for name, source in modules.items():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    importers[full if full in modules else node.module].add(name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    importers[alias.name].add(name)
    singles = {}
    for name, source in modules.items():
        others = importers[name] - {name.rpartition(".")[0] or name}
        if len(others) == 1 and not source.path.name.startswith("__"):
            singles[name] = others.pop()
    return singles


def property_checks(tree: ast.AST, classes: set[str]) -> Iterator[int]:
    """The lines where a value is operands whether it is of one of some classes.

    Examples
    --------
    >>> text = "isinstance(x, (Mean, int)); type(x) is sc.Mean; isinstance(x, int); Mean()"
    >>> len(list(property_checks(ast.parse(text), {"Mean"})))
    2
    """
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]):
                operands: list[ast.AST] = [kinds]
            case ast.Compare(left=ast.Call(func=ast.Name(id="type")), comparators=kinds):
                operands = list(kinds)
            case ast.MatchClass(cls=kind):
                operands = [kind]
            case _:
                continue
        if classes & set().union(*map(names, operands)):
            yield node.lineno


def names(node: ast.AST) -> set[str]:
    """The names and attributes in an expression."""
    inner = list(ast.walk(node))
    attributes = {each.attr for each in inner if isinstance(each, ast.Attribute)}
    return attributes | {each.id for each in inner if isinstance(each, ast.Name)}


def versions(tree: ast.AST) -> set[str]:
    """The versions that are compared with one that was read: names of constants, and literals.

    Examples
    --------
    >>> sorted(versions(ast.parse("data['version'] != VERSION or version == 2 or VERSION < 3 or n == 4")))
    ['2', '3', 'VERSION']
    """
    constants: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            constants.update(name for name in names(node) if name.endswith("VERSION"))
            sides = [node.left, *node.comparators]
            literals = {str(side.value) for side in sides if isinstance(side, ast.Constant) and type(side.value) is int}
            texts = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)} | names(node)
            if any(isinstance(text, str) and text.lower().endswith("version") for text in texts):
                constants.update(literals)
    return constants


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="the files and functions, too, most called first")
    details = parser.parse_args().list

    package = ROOT / "src" / "swapcal"
    counts = calls(package)
    files: Counter[str] = Counter()
    for function, count in counts.items():
        files[function.file] += count
    modules = sources(package.parent)
    own = {name for name in modules if name.startswith("swapcal.properties")}
    trees = [node for name in own for node in ast.walk(modules[name].tree)]
    classes = {node.name for node in trees if isinstance(node, ast.ClassDef) and not node.name.startswith("_")}
    checks = [
        f"{modules[name].path.relative_to(package).as_posix()}:{line}"
        for name in modules.keys() - own
        for line in property_checks(modules[name].tree, classes)
    ]
    formats = [
        f"{source.path.relative_to(package).as_posix()} {version}"
        for source in modules.values()
        for version in versions(source.tree)
    ]
    singles = single_importers(modules)
    tests = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / "tests").rglob("*.py"))

    tables = []
    if details:
        tables += [
            table("calls of a file", files.most_common()),
            table("calls of a function", [(f"{each.file} {each.name}", count) for each, count in counts.most_common()]),
            table("isinstance on a property", sorted(Counter(checks).items())),
            table("a version of its own", sorted(Counter(formats).items())),
            table(
                "imported by one", [(f"{name} <- {by}", code_lines(modules[name].text)) for name, by in singles.items()]
            ),
        ]
    meets = {
        "package files": len(files),
        "functions": len(counts),
        "folders": len({Path(file).parent for file in files}),
    }
    has = {
        "files in src": len(modules),
        "code lines in src": sum(code_lines(source.text) for source in modules.values()),
        "modules with one importer": len(singles),
        "isinstance on properties outside properties/": len(checks),
        "state formats with a version of their own": len(formats),
        "lines of tests": tests,
    }
    tables += [table("swapcal run --out --report meets", meets.items()), table("the source has", has.items())]
    sys.stdout.write("\n".join(tables))


def table(title: str, rows: Iterable[tuple[str, int]]) -> str:
    """Names and numbers below a title.

    Examples
    --------
    >>> print(table("calls", [("predict", 1200)]), end="")
    calls
    ----------------
    predict    1,200
    """
    rows = list(rows)
    width = max([len(title), *(len(name) for name, _ in rows)])
    lines = [title, "-" * (width + 9), *(f"{name:<{width}} {number:>8,}" for name, number in rows)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
