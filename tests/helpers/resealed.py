"""Forged files with right checksums: what somebody makes who knows the format, not what a bad disk makes of one.

`python resealed.py N SEED` throws N of them and prints JSON: how many were taken, what went wrong, and the most memory
and time that one took.
"""

import io
import json
import resource
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import swapcal as sc
from commands import run
from fuzzing import MAKERS, good_context, good_label, in_domain, is_sound, options
from odd_files import ODD_JSON, archived, entries, header_of, packed
from swapcal.tables.records import read
from swapcal.tasks.config import TaskConfig
from swapcal.tasks.runner import Stopped

Rng = np.random.Generator

NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    31,
    255,
    2**31 - 1,
    2**31,
    2**53,
    2**62,
    2**63 - 1,
    2**63,
    -(2**63),
    0.5,
    -0.5,
    1e-300,
    1e300,
]
QUESTION = TaskConfig("y", "p", groups=["g", ("g", "h"), "x >= 0"], linear=["x"], low=0.0, high=1.0, prefix=60)
LIMIT_MB, LIMIT_SECONDS = 300, 2.0


def forged(rng: Rng, value: Any) -> Any:
    """A value of the same kind that is not the same, or now and then one of another kind."""
    if rng.random() < 0.15:
        return ODD_JSON[int(rng.integers(len(ODD_JSON)))]
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        near = value + int(rng.integers(-3, 4))
        return NUMBERS[int(rng.integers(len(NUMBERS)))] if rng.random() < 0.5 else near
    if isinstance(value, str):
        return rng.choice([value + "x", value[::-1], "", "all", value[: len(value) // 2], value.upper()]).item()
    if isinstance(value, list) and value:
        cut = int(rng.integers(len(value)))
        ways = [value[:cut], value[::-1], [*value, value[cut]], [value[cut]] * len(value), value[cut:] + value[:cut]]
        return ways[int(rng.integers(len(ways)))]
    return ODD_JSON[int(rng.integers(len(ODD_JSON)))]


def forge_json(rng: Rng, data: Any) -> None:
    """Change one place of plain data, at any depth."""
    at = data
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = keys[int(rng.integers(len(keys)))]
        inside = at[key]
        if isinstance(inside, (dict, list)) and inside and rng.random() < 0.85:
            at = inside
            continue
        if isinstance(at, dict) and rng.random() < 0.05:
            del at[key]
        else:
            at[key] = forged(rng, inside)
        return


def forge_array(rng: Rng, array: Any) -> Any:
    """An array of finite numbers, or nearly, with other entries or another shape."""
    array = array.copy()
    kind = int(rng.integers(9))
    if kind == 0:
        return np.resize(array, tuple(int(size * rng.integers(0, 3)) for size in array.shape))
    if kind == 1:
        return array[::-1].copy()
    if kind == 2:
        return -array
    if kind == 3:
        return array * float(rng.choice([0.0, 0.5, 2.0, 1e9, 1e300, 1e-300]))
    if kind == 4:
        return np.zeros((*array.shape, 1))
    if array.size:
        at = int(rng.integers(array.size))
        number = float(rng.choice([*map(float, NUMBERS), np.nan, np.inf]))
        # Whole numbers have no NaN, and none beyond 2^62 here, or beyond the 32 bits of a mark.
        if array.dtype.kind == "i":
            number = np.nan_to_num(np.clip(number, -(2.0**62), 2.0**62))
        elif array.dtype == np.uint32:
            number = np.nan_to_num(np.clip(number, 0.0, 2.0**32 - 1.0))
        array.flat[at] = number
    return array


def forge_forecaster(rng: Rng, file: bytes) -> bytes:
    """A state file of a forecaster with one to three changes, packed anew."""
    parts = entries(file)
    for _ in range(int(rng.integers(1, 4))):
        names = [name for name in parts if name != "header.npy"]
        if rng.random() < 0.6 or not names:
            header = header_of(parts)
            forge_json(rng, header)
            parts["header.npy"] = packed(np.frombuffer(json.dumps(header).encode(), dtype=np.uint8))
        else:
            name = names[int(rng.integers(len(names)))]
            parts[name] = packed(forge_array(rng, np.load(io.BytesIO(parts[name]))))
    return archived(parts, zipfile.ZIP_DEFLATED if rng.random() < 0.5 else zipfile.ZIP_STORED)


def forge_run(rng: Rng, file: bytes) -> bytes:
    """A state file of a run with a change."""
    parts = entries(file)
    kind = rng.random()
    if kind < 0.5:
        header = json.loads(parts["run.json"])
        forge_json(rng, header)
        parts["run.json"] = json.dumps(header).encode()
    elif kind < 0.7:
        parts["forecaster"] = forge_forecaster(rng, parts["forecaster"])
    else:
        names = [name for name in parts if name.endswith(".npy")]
        name = names[int(rng.integers(len(names)))]
        parts[name] = packed(forge_array(rng, np.load(io.BytesIO(parts[name]))))
    return archived(parts)


def originals() -> list[bytes]:
    """State files of forecasters of all kinds, with a round that waits."""
    files = []
    for make in MAKERS:
        forecaster, rng = make(), np.random.default_rng(0)
        for _ in range(50):
            forecast = forecaster.predict(good_context(rng), **options(forecaster, rng))
            forecaster.update(forecast, good_label(forecaster, rng))
        forecaster.predict(good_context(rng), **options(forecaster, rng))
        files.append(_saved(forecaster))
    groups = sc.Forecaster(sc.Mean(), sc.Groups(["g", ("g", "h"), "x > 1"], limit=12, rare=2), seed=1)
    oracle = sc.Forecaster(sc.Mean(), sc.Oracle(sc.learners.GradientDescent(2)), seed=1)
    for t in range(40):
        groups.update(groups.predict({"g": "abc"[t % 3], "h": t % 2 or None, "x": t}, 0.3), t % 2)
        oracle.update(oracle.predict([0.5, 0.1 * (t % 3)]), 0.5)
    return [*files, _saved(groups), _saved(oracle)]


def _saved(forecaster: sc.Forecaster) -> bytes:
    buffer = io.BytesIO()
    forecaster.save(buffer)
    return buffer.getvalue()


def use(forecaster: sc.Forecaster) -> bool:
    """Forecast, learn, ask and save: whether all of it is as it should be."""
    low, high = forecaster.property.low, forecaster.property.high
    groups = isinstance(forecaster.hypotheses, sc.Groups)
    features: dict[str, Any] = {} if forecaster.hint is None else {"features": np.zeros(forecaster.hint.n_features)}
    sound = True
    for k in range(3):
        x: Any = {"g": "abz"[k], "h": k, "x": k} if groups else np.full(forecaster.hypotheses.n, 0.1)
        forecast = forecaster.predict(x, **features)
        forecaster.update(forecast, low if k else high)
        sound = sound and in_domain(forecaster.property, float(forecast))
    X: Any = [x] * 4 if groups else np.full((4, forecaster.hypotheses.n), 0.1)
    features = {name: np.zeros((4, len(each))) for name, each in features.items()}
    values = forecaster.run(X, np.full(4, low), **features)
    sound = sound and all(in_domain(forecaster.property, value) for value in values.tolist()) and is_sound(forecaster)
    return (
        sound
        and bool(np.isfinite([forecaster.error(), float(forecaster.guarantee(0.05))]).all())
        and bool(_saved(forecaster))
    )


class Runs:
    """A run that was stopped half way, whose state is forged again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rng = np.random.default_rng(0)
        rows = zip(
            rng.random(200),
            rng.random(200),
            rng.integers(0, 3, 200),
            rng.integers(0, 2, 200),
            rng.normal(size=200),
            strict=True,
        )
        (folder / "in.csv").write_text("y,p,g,h,x\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
        left = [2]

        def stop() -> bool:
            left[0] -= 1
            return not left[0]

        with suppress(Stopped):
            self.go(stop)
        self.state, self.out = (folder / "s").read_bytes(), (folder / "out.csv").read_bytes()

    def go(self, stop: Callable[[], bool] | None = None) -> None:
        """From the beginning, or from where the state says."""
        records = read(self.folder / "in.csv", columns=QUESTION.columns, batch_rows=50)
        run(records, QUESTION, learn=True, out=self.folder / "out.csv", state=self.folder / "s", seed=1, stop=stop)

    def attempt(self, state: bytes) -> None:
        """Go on with this state; a named error must leave the output as it was."""
        (self.folder / "s").write_bytes(state)
        (self.folder / "out.csv").write_bytes(self.out)
        try:
            self.go()
        except sc.SwapcalError:
            if (self.folder / "out.csv").read_bytes()[: len(self.out)] != self.out:
                raise AssertionError("an error came after the output was changed") from None
            raise
        lines = (self.folder / "out.csv").read_text().splitlines()
        if [line.split(",")[0] for line in lines[1:]] != [str(k) for k in range(1, 201)]:
            raise AssertionError("the rows of the output are not those of the input")


def throw(n: int, seed: int, folder: Path) -> dict[str, Any]:
    """`n` forged files, one in four of a run."""
    files, runs = originals(), Runs(folder)
    for file in files:
        assert use(sc.Forecaster.load(io.BytesIO(file)))
    runs.attempt(runs.state)
    report: dict[str, Any] = {"thrown": n, "taken": 0, "refused": 0, "wrong": [], "seconds": 0.0}
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for k in range(n):
        rng = np.random.default_rng((seed, k))
        began = time.process_time()
        try:
            if k % 4 == 3:
                runs.attempt(forge_run(rng, runs.state))
            else:
                file = forge_forecaster(rng, files[k % len(files)])
                if not use(sc.Forecaster.load(io.BytesIO(file))):
                    raise AssertionError("a forged forecaster was taken and is not sound")
            report["taken"] += 1
        except sc.SwapcalError:
            report["refused"] += 1
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            report["wrong"].append(f"{seed}, {k}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})")
        report["seconds"] = max(report["seconds"], time.process_time() - began)
    report["megabytes"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) / 1024
    return report


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as made:
        sys.stdout.write(json.dumps(throw(int(sys.argv[1]), int(sys.argv[2]), Path(made))))
