"""Every public name can be seen by a type checker and an editor, and its docstring says how it is used."""

import ast
import importlib
import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import swapcal

SOURCE = Path(swapcal.__file__).parent
ROOMS = (
    "swapcal",
    "swapcal.audits",
    "swapcal.checks",
    "swapcal.hints",
    "swapcal.hypotheses",
    "swapcal.learners",
    "swapcal.monitor",
    "swapcal.paper",
    "swapcal.potentials",
    "swapcal.properties",
    "swapcal.rivals",
    "swapcal.simulate",
    "swapcal.simulate.adversaries",
    "swapcal.tables",
)
STUBS = ("swapcal", "swapcal.rivals", "swapcal.tables")


def names(room: str) -> list[str]:
    listed: list[str] = getattr(importlib.import_module(room), "__all__", [])
    return listed


def described() -> dict[str, Any]:
    """Public classes and functions by where they are defined; what an exception is for, its raiser shows."""
    found = {}
    for room in ROOMS:
        for name in names(room):
            thing = getattr(importlib.import_module(room), name)
            if inspect.isclass(thing) and (issubclass(thing, BaseException) or getattr(thing, "_is_protocol", False)):
                continue
            if inspect.isclass(thing) or inspect.isfunction(thing):
                found[f"{thing.__module__}.{thing.__qualname__}"] = thing
    return found


def sections(thing: Any) -> set[str]:
    return set(re.findall(r"^(\w+)\n-{3,}$", inspect.getdoc(thing) or "", re.MULTILINE))


@pytest.mark.parametrize("where", sorted(described()))
def test_a_public_docstring_says_what_goes_in_what_comes_out_and_shows_it(where: str) -> None:
    thing = described()[where]
    signature = inspect.signature(thing)
    wanted = {"Examples"}
    if signature.parameters:
        wanted.add("Parameters")
    if inspect.isfunction(thing) and signature.return_annotation not in (None, "None"):
        wanted.add("Returns")
    found = sections(thing)
    assert wanted <= found, f"{where} has no {', '.join(sorted(wanted - found))}"
    text = inspect.getdoc(thing) or ""
    assert ">>>" in text
    if signature.parameters:
        part = re.split(r"^\w+\n-{3,}$", text.partition("Parameters\n---")[2], maxsplit=1, flags=re.MULTILINE)[0]
        missing = [name for name in signature.parameters if not re.search(rf"\b{re.escape(name)}\b", part)]
        assert not missing, f"{where} does not describe {', '.join(missing)}"


@pytest.mark.parametrize("room", STUBS)
def test_a_stub_lists_what_is_there_and_one_name_a_line(room: str) -> None:
    package = importlib.import_module(room)
    stub = Path(str(package.__file__) + "i").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    listed = [(str(node.module), node.names[0].name, node.names[0].asname) for node in imports]
    assert len(listed) == len(ast.parse(stub).body) - 1 == len({name for _, name, _ in listed})
    for module, name, alias in listed:
        assert name == alias
        thing = getattr(package, name)
        assert thing is getattr(importlib.import_module(module), name)
        if inspect.isclass(thing):
            assert pickle.loads(pickle.dumps(thing)) is thing
    assert dir(package) == package.__all__ == sorted(name for _, name, _ in listed)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        package.nonsense  # noqa: B018


def test_importing_the_package_imports_nothing_else() -> None:
    code = (
        "import sys; import swapcal; print(*[m for m in sys.modules if m.startswith(('swapcal', 'numpy', 'typing'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"swapcal", "swapcal._exports"}


def test_a_star_brings_every_name() -> None:
    space: dict[str, Any] = {}
    exec("from swapcal import *", space)
    assert set(swapcal.__dir__()) <= set(space)


def test_types_reach_the_caller(tmp_path: Path) -> None:
    """Strict mypy knows what the lazily loaded names are, and that others are not there."""
    user = tmp_path / "user.py"
    user.write_text(
        "import swapcal as sc\n"
        "from swapcal.rivals import MVP\n"
        "reveal_type(sc.Forecaster)\n"
        "reveal_type(MVP)\n"
        "from swapcal.rivals import Nobody\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(user)],
        capture_output=True,
        text=True,
        check=False,
        env={"MYPYPATH": str(SOURCE.parent), "PATH": ""},
    )
    assert "swapcal.forecaster.Forecaster" in done.stdout
    assert "swapcal.rivals.conformal.MVP" in done.stdout
    assert 'has no attribute "Nobody"' in done.stdout
    assert done.stdout.count("error:") == 1, done.stdout


HELD = ("Audit", "Forecast", "Forecaster", "Grid", "Groups", "Monitor")
"""What people hold in their hands; methods of roles (properties, learners, rivals, ...) are described in `roles`."""


def test_methods_of_what_people_hold_say_what_goes_in_and_what_comes_out() -> None:
    lacking = []
    for name in HELD:
        for method, found in vars(getattr(swapcal, name)).items():
            function = found.__func__ if isinstance(found, (classmethod, staticmethod)) else found
            if method.startswith("_") or not inspect.isfunction(function):
                continue
            signature = inspect.signature(function)
            given = [each for each in signature.parameters if each not in ("self", "cls")]
            returns = signature.return_annotation not in (None, "None")
            wanted = {"Parameters"} | ({"Returns"} if returns else set()) if given else set()
            if not inspect.getdoc(function) or not wanted <= sections(function) or method in vars(object):
                lacking.append(f"{name}.{method}")
    roles = {"supremum", "extended", "start", "restore", "resumed", "from_spec"}
    assert [each for each in lacking if each.partition(".")[2] not in roles] == []
