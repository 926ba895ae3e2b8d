"""One name, one thing: no two classes and no two modules of the package and its benchmarks share a name."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TREES = (ROOT / "src" / "swapcal", ROOT / "benchmarks" / "src" / "swapcal_benchmarks")
FILES = [path for tree in TREES for path in sorted(tree.rglob("*.py"))]
SERVING = ("checks", "cli", "swapcal_benchmarks")
"""A file of these rooms may have the name of the room that it checks, commands or measures."""
SAME_THING = {"spec"}
"""Rebuilds a part of its room from plain data: the same thing wherever it is."""
ECOSYSTEMS = ("river", "sklearn")
"""The same wrapper for two libraries: its name says what it does, the module for whom."""
WIRE = ROOT / "src" / "swapcal" / "service" / "schemas.py"
"""The words of the wire, which clients write in programs of their own: a case, its outcome, and what was learned."""


def test_no_two_classes_share_a_name() -> None:
    homes = defaultdict(list)
    for path in FILES:
        if path == WIRE:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(path.relative_to(ROOT))
    twins = [Path("src/swapcal/compat", name) for name in ECOSYSTEMS]
    shared = {name: where for name, where in homes.items() if len(where) > 1}
    assert {name: where for name, where in shared.items() if [path.parent for path in where] != twins} == {}


def test_no_two_modules_share_a_name() -> None:
    rooms = {path.parent.name for path in FILES if path.name == "__init__.py"}
    homes = defaultdict(list)
    for path in FILES:
        if path.stem == "__main__":
            continue
        package = path.stem == "__init__"
        name = path.parent.name if package else path.stem
        room = path.parent.parent.name if package else path.parent.name
        serves = name in rooms and room in SERVING
        # A room's own main file, such as audit/audit.py, is the room's thing.
        if not (serves or (not package and room == name) or name in SAME_THING):
            homes[name].append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}
