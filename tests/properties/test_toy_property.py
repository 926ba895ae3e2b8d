"""A property of one file and one line is there in the command, on the page and in the service."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

import swapcal as sc
from swapcal import properties
from swapcal.cli import app
from swapcal.properties import base
from swapcal.service.registry import Registry
from swapcal.service.spec import StreamSpec
from swapcal.service.sqlite import Sqlite
from swapcal.tasks.result import from_json
from swapcal.typing import Float64Array, FloatLike


@dataclass(frozen=True, slots=True, repr=False)
class Toy(base.RangeProperty):
    """The mean of outcomes that are cut at `cap`."""

    cap: float = 0.7

    names: ClassVar[tuple[str, ...]] = ("toy", "toy_at:0.7")
    argument: ClassVar[str | None] = "level"

    def identification(self, p: FloatLike, y: FloatLike) -> FloatLike:
        return (p - np.minimum(y, self.cap)) / (self.high - self.low)

    def loss(self, p: FloatLike, y: FloatLike) -> FloatLike:
        return (p - np.minimum(y, self.cap)) ** 2

    def value(self, y: Float64Array) -> float:
        return float(np.minimum(y, self.cap).mean())

    @property
    def wording(self) -> base.Wording:
        return base.Wording("toy mean", "toy mean of the outcomes", **base.own_unit(self.domain), loss="toy loss")


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(properties, "KINDS", [*properties.KINDS, Toy])
    yield
    properties._from_json.cache_clear()


def test_in_python() -> None:
    assert properties.from_text("toy", 0.0, 2.0) == Toy(high=2.0)
    assert properties.from_text("toy_at:0.5", 0.0, 1.0) == Toy(0.5)
    assert properties.from_spec(Toy(0.4).spec()) == Toy(0.4)
    assert "moment:2, toy or toy_at:0.7" in properties.names()
    forecaster = sc.Forecaster(Toy(), sc.Finite(2), seed=1)
    forecasts = forecaster.run(np.ones((200, 2)), np.linspace(0.0, 1.0, 200), np.full(200, 0.5))
    assert sc.Forecaster.from_bytes(forecaster.to_bytes()).property == Toy()
    assert np.isfinite(forecasts).all()


def test_in_the_command_and_on_the_page(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    y, group = rng.random(2000), rng.choice(["a", "b"], 2000)
    p = np.where(group == "a", 0.9, Toy().value(y))
    with open(tmp_path / "rows.csv", "w", newline="") as file:
        csv.writer(file).writerows([("y", "p", "g"), *zip(y, p, group, strict=True)])
    asked = [str(tmp_path / "rows.csv"), "--y", "y", "--p", "p", "--groups", "g", "--property", "toy"]
    done = CliRunner().invoke(app, ["audit", *asked, "-v", "--report", str(tmp_path / "page.html")])
    assert done.exit_code == 0, done.output
    brief, behind = " ".join(done.stdout.split()).split("rows.csv: ", 1)
    assert "Toy loss 0.1" in brief
    assert behind.startswith("toy mean of y")
    assert "toy loss" in behind
    assert "forecast: toy mean" in (tmp_path / "page.html").read_text()
    result = from_json(CliRunner().invoke(app, ["run", *asked, "--seed", "1", "--json"]).stdout)
    assert result.wording.name == "toy mean"
    assert result.before is not None
    assert result.before.groups.biased[1]
    assert list(result.paired) == ["toy loss"]


def test_in_the_service(tmp_path: Path) -> None:
    store = Sqlite(str(tmp_path / "swapcal.db"))
    store.open()
    registry = Registry(store, 10)
    registry.create("toys", StreamSpec(property="toy_at", level=0.6, seed=1))
    assert registry.get("toys").property == Toy(0.6)
    with pytest.raises(sc.InvalidInput, match="needs a level"):
        registry.create("more", StreamSpec(property="toy_at", seed=1))
    with pytest.raises(sc.InvalidInput, match=r"the property must be mean, .* toy or toy_at:0.7; got 'doll'"):
        registry.create("more", StreamSpec(property="doll", seed=1))
    store.close()
