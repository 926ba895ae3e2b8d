"""A forecaster that is logged, loaded and served by MLflow, with its audit page beside it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import swapcal as sc
from swapcal.compat import mlflow as flavor

mlflow = pytest.importorskip("mlflow")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the small MLflow has no database
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())  # a folder that is there already gets no experiment
    yield tmp_path
    mlflow.set_tracking_uri(before)


def trained() -> tuple[sc.Forecaster, pd.DataFrame]:
    rng = np.random.default_rng(0)
    paid = rng.random(1500) < 0.4
    frame = pd.DataFrame({"plan": np.where(paid, "paid", "free"), "score": rng.uniform(0.2, 0.6, 1500)})
    frame["left"] = (rng.random(1500) < frame["score"] + np.where(paid, 0.3, -0.1)).astype(float)
    return sc.forecaster_for(frame, y="left", hint="score", groups=["plan"], seed=1), frame


def served_as_it_should(served: Any, forecaster: sc.Forecaster, rows: pd.DataFrame) -> None:
    numbers = served.predict(rows)
    wanted = [forecaster.distribution({"plan": plan}, hint=score) for plan, score in rows.itertuples(index=False)]
    assert numbers.tolist() == pytest.approx([sum(v * p for v, p in odds.items()) for odds in wanted])
    assert np.array_equal(numbers, served.predict(rows))  # nothing is learned


def test_saved_models_are_loaded_as_forecasters_and_as_functions_and_served(tmp_path: Path) -> None:
    forecaster, frame = trained()
    home = tmp_path / "model"
    result = sc.audit(frame, y="left", p="score", groups=["plan"])
    flavor.save_model(forecaster, home, hint="score", audit=result, input_example=frame[["plan", "score"]][:3])
    assert "plan" in (home / "audit.html").read_text(encoding="utf-8")
    assert not list(home.glob("*.pkl"))
    rows = frame[["plan", "score"]][:20]
    served = mlflow.pyfunc.load_model(str(home))
    served_as_it_should(served, forecaster, rows)
    # The application behind `mlflow models serve`, called without a network.
    scoring = pytest.importorskip("mlflow.pyfunc.scoring_server")
    client = pytest.importorskip("starlette.testclient").TestClient(scoring.init(served))
    answer = client.post("/invocations", json={"dataframe_split": json.loads(rows.to_json(orient="split"))})
    assert answer.status_code == 200, answer.text
    assert answer.json()["predictions"] == pytest.approx(served.predict(rows).tolist())
    loaded = flavor.load_model(str(home))
    again, there = (f.run(frame[["plan"]], frame["left"], frame["score"]) for f in (loaded, forecaster))
    assert np.array_equal(again, there)  # it goes on bit for bit
    with pytest.raises(sc.InvalidInput, match="already"):
        flavor.save_model(forecaster, home)


def test_logged_models_come_back_with_their_page(store: Path) -> None:
    forecaster, frame = trained()
    result = sc.audit(frame, y="left", p="score", groups=["plan"])
    with mlflow.start_run():
        info = flavor.log_model(forecaster, "model", hint="score", audit=result)
    served_as_it_should(mlflow.pyfunc.load_model(info.model_uri), forecaster, frame[["plan", "score"]][:20])
    assert flavor.load_model(info.model_uri).n_rounds == forecaster.n_rounds
    pages = list(store.rglob("audit.html"))
    assert pages
    assert pages[0].stat().st_size > 10_000


def test_a_class_of_numbers_takes_the_columns_in_their_order(tmp_path: Path) -> None:
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(2), seed=1)
    forecaster.run([[1.0, 0.0], [1.0, 1.0]] * 50, [0.2, 0.8] * 50)
    flavor.save_model(forecaster, tmp_path / "model")
    served = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    low, high = served.predict(pd.DataFrame({"all": [1.0, 1.0], "odd": [0.0, 1.0]}))
    assert low < 0.5 < high
