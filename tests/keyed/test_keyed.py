"""Many streams: the same numbers wherever a key's state lives, and cold keys that start from the others."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from swapcal.keyed import Keyed, KeyedForecast


def template(**settings: Any) -> sc.Forecaster:
    return sc.Forecaster(sc.Probability(), sc.Finite(2), **{"horizon": 400, "seed": 1, "max_pending": 64, **settings})


def events(n: int = 400, n_keys: int = 12, seed: int = 0) -> list[tuple[str, list[float], float]]:
    rng = np.random.default_rng(seed)
    return [
        (f"key {rng.integers(n_keys)}", [1.0, float(rng.random() < 0.5)], float(rng.random() < 0.3)) for _ in range(n)
    ]


def played(keyed: Keyed, rows: list[tuple[str, list[float], float]]) -> list[float]:
    out = []
    for key, x, y in rows:
        forecast = keyed.predict(key, x)
        out.append(float(forecast))
        keyed.update(forecast, y)
    return out


def test_memory_and_disk_give_the_same_numbers(tmp_path: Path) -> None:
    rows = events()
    everything = played(Keyed(template(), resident=1000), rows)
    spilled = Keyed(template(), resident=2, spill=tmp_path / "states.db")
    assert played(spilled, rows) == everything
    assert len(spilled) == 12
    assert len(spilled.resident_keys) == 2
    assert played(Keyed(template(), resident=1), rows) == everything


def test_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    rows, path = events(), tmp_path / "states.db"
    whole = played(Keyed(template()), rows)
    with Keyed(template(), resident=3, spill=path) as first:
        begun = played(first, rows[:200])
        late = first.predict("key 3", [1.0, 0.0]).to_json()
    with Keyed(template(), resident=5, spill=path) as second:
        second.update(KeyedForecast.from_json(late), 1.0)
        assert second.audit.n_rounds == 201
        assert len(second) == 12
    assert begun == whole[:200]
    with Keyed(template(), spill=tmp_path / "other.db") as once:
        played(once, rows[:200])
    with Keyed(template(), spill=tmp_path / "other.db") as again:
        assert played(again, rows[200:]) == whole[200:]


def test_the_audit_is_that_of_all_rounds() -> None:
    rows, keyed = events(), Keyed(template(), resident=2)
    p = played(keyed, rows)
    whole = sc.Audit(sc.Probability(), sc.Finite(2))
    whole.update_many([y for _, _, y in rows], p, [x for _, x, _ in rows])
    assert keyed.audit.n_rounds == len(rows)
    assert keyed.audit.swap_multicalibration() == pytest.approx(whole.swap_multicalibration())
    part = Keyed(template(), resident=2)
    played(part, rows)
    part.audit.merge(keyed.audit)
    assert part.audit.n_rounds == 2 * len(rows)


@pytest.mark.parametrize("learns", [False, True])
def test_cold_keys_start_from_the_others(learns: bool) -> None:
    """From their outcomes, and from what a learning hint has learned."""

    def loss(cold: int) -> float:
        own = template(hint=sc.OnlineRegression(), horizon=None) if learns else template()
        keyed, rng, losses = Keyed(own, cold=cold), np.random.default_rng(1), []
        for key in range(50):
            for _ in range(25):
                x = [1.0, float(learns and rng.random() < 0.5)]
                y = float(rng.random() < (0.1 + 0.7 * x[1] if learns else 0.08))
                forecast = keyed.predict(key, x)
                if key >= 20:
                    losses.append((float(forecast) - y) ** 2)
                keyed.update(forecast, y)
            assert keyed.forecaster(key).n_rounds == 25
        return float(np.mean(losses))

    assert loss(100) < (loss(0) - 0.005 if learns else 0.85 * loss(0))


def test_every_key_keeps_its_own_guarantee() -> None:
    keyed, rng = Keyed(template(horizon=None)), np.random.default_rng(0)
    for _ in range(3000):
        key = int(rng.integers(5))
        forecast = keyed.predict(key, [1.0, 1.0])
        keyed.update(forecast, float(rng.random() < 0.1 + 0.2 * key))
    for key in range(5):
        own = keyed.forecaster(key)
        assert own.error() <= own.guarantee(0.05)
        assert abs(float(np.mean([float(keyed.predict(key, [1.0, 1.0])) for _ in range(20)])) - 0.1 - 0.2 * key) < 0.12


def test_seeds_differ_between_keys_and_not_between_orders() -> None:
    one, two = Keyed(template()), Keyed(template())
    one.forecaster("a"), one.forecaster("b")
    two.forecaster("b"), two.forecaster("a")
    seeds = [keyed.forecaster(key).rules.seed for key in ("a", "b", 1, "1") for keyed in (one, two)]
    assert seeds[::2] == seeds[1::2]
    assert len(set(seeds)) == 4


def test_time_to_live(tmp_path: Path) -> None:
    now = [0.0]
    keyed = Keyed(template(), resident=1, spill=tmp_path / "s.db", time_to_live=10.0, clock=lambda: now[0])
    waiting = keyed.predict("a", [1.0, 0.0])
    keyed.predict("b", [1.0, 0.0])
    now[0] = 8.0
    keyed.predict("b", [1.0, 0.0])
    now[0] = 12.0
    assert keyed.expire() == ["a"]
    assert ("a" in keyed, "b" in keyed, len(keyed)) == (False, True, 1)
    with pytest.raises(sc.UnknownForecast, match="expired"):
        keyed.update(waiting, 1.0)
    late = keyed.predict("b", [1.0, 0.0])
    now[0] = 100.0
    with pytest.raises(sc.UnknownForecast, match="expired"):
        keyed.update(late, 1.0)  # nobody has called expire()
    assert ("b" in keyed, len(keyed), keyed.resident_keys) == (False, 0, [])  # and it was not made anew
    assert keyed.forecaster("b").n_pending == 0  # it came back as a cold key
    assert Keyed(template()).expire() == []


def test_groups_are_found_once_for_all_keys(tmp_path: Path) -> None:
    made = sc.Forecaster(sc.Mean(), sc.Groups(["team"], limit=20), horizon=100, seed=1, max_pending=8)
    with Keyed(made, resident=1, spill=tmp_path / "s.db") as keyed:
        for t in range(40):
            forecast = keyed.predict(t % 3, {"team": "red" if t % 2 else "blue"})
            keyed.update(forecast, 0.2 + 0.6 * (t % 2))
        cells = keyed.audit.cells()
        assert keyed.audit.n_rounds == 40
        assert len(cells) > 0
    fresh = sc.Forecaster(sc.Mean(), sc.Groups(["team"], limit=20), horizon=100, seed=1, max_pending=8)
    with Keyed(fresh, resident=1, spill=tmp_path / "s.db") as again:
        assert len(again) == 3
        positions = [again.predict(key, {"team": "red"}).forecast.indices[:2] for key in range(3)]
        assert positions == [(0, 2)] * 3  # blue came first, so red is position 2, for every key


def test_wrong_use_is_named(tmp_path: Path) -> None:
    keyed = Keyed(template())
    for key in (1.5, None, True, ("a",)):
        with pytest.raises(sc.InvalidInput, match="string or a whole number"):
            keyed.predict(key, [1.0, 0.0])  # type: ignore[arg-type]
    forecast = keyed.predict("a", [1.0, 0.0])
    assert 0.0 < forecast < 1.0
    keyed.update(forecast, 1.0)
    with pytest.raises(sc.AlreadyUpdated):
        keyed.update(forecast, 1.0)
    with pytest.raises(sc.UnknownForecast):
        keyed.update(0.5, 1.0)  # type: ignore[arg-type]
    with pytest.raises(sc.UnknownForecast):
        KeyedForecast.from_json("{}")
    (tmp_path / "not.db").write_bytes(b"this is not a database, and long enough to be read as one" * 20)
    with pytest.raises(sc.StateFileError, match="not a store"):
        Keyed(template(), spill=tmp_path / "not.db")
    with Keyed(template(), spill=tmp_path / "s.db") as made:
        made.predict("a", [1.0, 0.0])
    with pytest.raises(sc.StateFileError, match="another class"):
        Keyed(
            sc.Forecaster(sc.Probability(), sc.Finite(3), horizon=400, seed=1, max_pending=64), spill=tmp_path / "s.db"
        )


def test_a_spill_that_fails_loses_no_key(tmp_path: Path) -> None:
    rows = events(n_keys=40)
    keyed, twin = Keyed(template(), resident=2, spill=tmp_path / "s.db"), Keyed(template())
    assert played(keyed, rows[:100]) == played(twin, rows[:100])
    (pages,) = keyed._store._file.execute("PRAGMA page_count").fetchone()
    keyed._store._file.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(sc.StateFileError, match="full"):
        list(map(keyed.forecaster, range(100)))
    assert len(keyed.resident_keys) == 3
    keyed._store._file.execute("PRAGMA max_page_count=1000000")
    assert played(keyed, rows[100:]) == played(twin, rows[100:])
    assert len(keyed.resident_keys) == 2


def test_a_file_belongs_to_one_at_a_time_and_to_one_template(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Keyed(template(), spill=path) as first:
        first.predict("a", [1.0, 0.0])
        with pytest.raises(sc.StateFileError, match="in use, here or in another process"):
            Keyed(template(), spill=path)
        code = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('SELECT * FROM states').fetchall()"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "locked" in other.stderr
        first.predict("b", [1.0, 0.0])
    changes: list[dict[str, Any]] = [{"seed": 2}, {"trust": 0.5}, {"hint": sc.OnlineRegression()}]
    for changed in changes:
        with pytest.raises(sc.StateFileError, match=f"made with {next(iter(changed))}=.*give the same template"):
            Keyed(template(**changed), spill=path)
    with Keyed(template(), spill=path) as again:
        assert list(again) == ["a", "b"]
