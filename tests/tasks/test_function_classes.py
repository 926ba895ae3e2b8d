"""`--class` and `--learner`: boxes of columns or a learner instead of groups or beside them, in audits and runs."""

import json
from pathlib import Path

import numpy as np
import pytest

from commands import refused, swapcal
from swapcal.tables.grouping import parse_class
from swapcal.tasks import audit, runner
from swapcal.tasks.config import TaskConfig

BOXES = "trees(a,b,depth=2,bins=4)"


def corners(path: Path, n: int = 4000) -> Path:
    """A bias in opposite corners of two columns, which neither shows by itself."""
    rng = np.random.default_rng(0)
    a, b, s = rng.random(n), rng.random(n), rng.integers(0, 2, n)
    y = rng.random(n) < 0.5 + np.where((a > 0.5) ^ (b > 0.5), 0.25, -0.25)
    lines = [f"{i:d},0.5,{u:.4f},{v:.4f},{'mf'[w]}" for i, u, v, w in zip(y, a, b, s, strict=True)]
    path.write_text("\n".join(["y,p,a,b,s", *lines]) + "\n")
    return path


def test_what_a_class_is_called() -> None:
    assert parse_class("groups(sex, sex*race) | trees('a,b', c, bins=4)") == [
        ("groups", "sex, sex*race", {}),
        ("trees", "'a,b', c", {"bins": 4}),
    ]
    config = TaskConfig.from_mapping({"y": "y", "p": "p", "class": BOXES})
    assert config.columns == ("y", "p", "a", "b")
    assert config.learns
    assert repr(config.grouping()) == "Trees(['a', 'b'], depth=2, bins=4): no boxes yet"
    named = TaskConfig("y", hypotheses="trees(a,b)", categories=("b",))
    assert named.grouping().categories == ("b",)


def test_audits_name_the_boxes_that_are_off(tmp_path: Path) -> None:
    path = corners(tmp_path / "xor.csv")
    found = audit.audit(path, TaskConfig("y", "p", hypotheses=BOXES)).sections[0].leading.groups
    off = {found.name[j] for j in np.flatnonzero(found.biased)}
    assert len(off) == 4
    assert all(" & " in name and "a " in name and "b " in name for name in off)
    plain = audit.audit(path, TaskConfig("y", "p", ["a", "b"])).sections[0].leading.groups
    assert not plain.biased.any()


def test_runs_mend_them_and_go_on_where_they_stopped(tmp_path: Path) -> None:
    path, state, half = corners(tmp_path / "xor.csv"), tmp_path / "state", tmp_path / "half.csv"
    config = TaskConfig("y", "p", hypotheses=BOXES, seed=1, prefix=2000)
    whole = runner.run(path, config, out=tmp_path / "whole.csv")
    section = whole.sections[0]
    assert section.before is not None and section.after is not None  # noqa: PT018
    before, after = (np.nanmax(np.abs(side.groups.mean)) for side in (section.before, section.after))
    assert after < 0.3 * before
    lines = path.read_text().splitlines(keepends=True)
    half.write_text("".join(lines[:2501]))
    for _ in range(2):
        runner.run(half, config, out=tmp_path / "parts.csv", state=state)
        half.write_text("".join(lines))
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_file_of_options_and_the_command_say_it_too(tmp_path: Path) -> None:
    path, toml = corners(tmp_path / "xor.csv", 1500), tmp_path / "audit.toml"
    toml.write_text(f'y = "y"\np = "p"\nclass = "{BOXES}"\n')
    said = swapcal("audit", path, "--config", toml).stdout
    assert said == swapcal("audit", path, "--y", "y", "--p", "p", "--class", BOXES).stdout
    assert "BIASED" in said or "RETRAIN" in said


WORDS = """
class Words:
    odd = True

    def row(self, x):
        assert set(x) == {"p", "g", "text"}, x
        return sorted(x["text"].split())

    def start(self):
        return {"n": 0, "sums": {}}

    def predict(self, state, row):
        length = max(self.supremum(state), state["n"] ** 0.5, 1.0)
        return sum(state["sums"].get(w, 0.0) for w in row) / len(row) ** 0.5 / length

    def update(self, state, row, kappa):
        state["n"] += 1
        for w in row:
            state["sums"][w] = state["sums"].get(w, 0.0) + kappa / len(row) ** 0.5

    def regret(self, n):
        return 1.5 * n**0.5

    def supremum(self, state):
        return sum(s * s for s in state["sums"].values()) ** 0.5

    def spec(self):
        return {"kind": "Words"}


words = Words()
"""


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Texts whose words tell the outcome, which groups do not; and a module beside them that reads words."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words_of_a_test.py").write_text(WORDS)
    rng, rates = np.random.default_rng(0), {"refund": 0.9, "thanks": 0.1, "late": 0.6}
    words = rng.choice([*rates], 800)
    lines = [f"{rng.random() < rates[w]:d},0.5,{'mf'[t % 2]},please {w} now" for t, w in enumerate(words)]
    path = tmp_path / "texts.csv"
    path.write_text("\n".join(["y,p,g,text", *lines]) + "\n")
    return path


def test_a_learner_of_ones_own_beside_groups(texts: Path) -> None:
    """It sees the whole row but the outcome, learns what groups cannot, and goes on where it stopped."""
    asked = ("--y", "y", "--p", "p", "--groups", "g", "--no-learn", "--seed", "1", "--horizon", "800")
    learner, half = ("--learner", "words_of_a_test:Words"), texts.parent / "half.csv"
    alone = json.loads(swapcal("run", texts, *asked, "--json").stdout)["result"]
    both = json.loads(swapcal("run", texts, *asked, *learner, "--out", texts.parent / "whole.csv", "--json").stdout)
    losses = [each["paired"]["Brier score"]["after"] for each in (alone, both["result"])]
    assert losses[1] < 0.85 * losses[0]
    assert both["result"]["config"]["learner"] == {"kind": "Words"}
    assert both["result"]["guarantee"]["bound"] > 0.0
    lines = texts.read_text().splitlines(keepends=True)
    half.write_text("".join(lines[:401]))
    going_on = (*asked, "--out", texts.parent / "parts.csv", "--state", texts.parent / "state")
    for name in ("Words", "words"):
        done = swapcal("run", half, *going_on, "--learner", f"words_of_a_test:{name}")
        assert done.exit_code == 0, done.output
        half.write_text("".join(lines))
    assert (texts.parent / "parts.csv").read_bytes() == (texts.parent / "whole.csv").read_bytes()
    assert "learner" in refused("run", half, *going_on)


def test_learners_that_cannot_be_had(texts: Path) -> None:
    (texts.parent / "run.toml").write_text('y = "y"\np = "p"\nlearner = "words_of_a_test:Words"\n')
    assert "load no code" in refused("run", texts, "--config", texts.parent / "run.toml")
    asked = ("run", texts, "--y", "y", "--p", "p", "--learner")
    for named, why in (
        ("words_of_a_test:Letters", "no attribute 'Letters'"), ("nowhere:Words", "No module named 'nowhere'"),
        ("words_of_a_test", "module:Class"), ("os:getcwd", "it has no start"),
    ):  # fmt: skip
        assert why in refused(*asked, named)
    for option in (("--interval", "0.9"), ("--by", "g"), ("--weight", "p"), ("--linear", "p")):
        assert "cannot be combined with" in refused(*asked, "words_of_a_test:Words", *option)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--class", "tree(a)"), "a class is 'groups'"),
        (("--class", "trees()"), "a class is 'groups'"),
        (("--class", "trees(a,a)"), "each once"),
        (("--class", "groups(s)|tree(a)"), "a class is 'groups'"),
        (("--class", "trees(a)", "--groups", "s"), "--class leaves --groups out"),
        (("--class", "trees(a)", "--by", "s"), "--by cannot be combined with --class"),
    ],
)
def test_what_is_refused(tmp_path: Path, options: tuple[str, ...], sentence: str) -> None:
    assert sentence in refused("run", corners(tmp_path / "xor.csv", 300), "--y", "y", "--p", "p", *options)
