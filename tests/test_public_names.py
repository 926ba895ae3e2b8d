"""The stubs list what is there, importing the package imports nothing else, and its types reach the caller."""

import ast
import importlib
import inspect
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import swapcal

SOURCE = Path(swapcal.__file__).parent
STUBS = ("swapcal", "swapcal.rivals", "swapcal.tables")


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


@pytest.mark.slow
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
