"""A FastAPI endpoint whose outcomes come a day later.

The client gets a number and a receipt; with the receipt it reports the outcome when it is known. The service keeps
nothing about single forecasts. `uvicorn service:app` serves it; run as a script it plays a month with itself.
"""

import numpy as np
from fastapi import FastAPI, HTTPException
from fastapi.testclient import TestClient
from pydantic import BaseModel

import swapcal as sc
from shared import figure, saved

app = FastAPI()
forecaster = sc.Forecaster(sc.Probability(), sc.Groups(["region"], limit=50), seed=1)


class Case(BaseModel):
    """What is known before: the region, and the model's own probability."""

    region: str
    score: float


class Answer(BaseModel):
    """The number to act on, and a receipt for the outcome."""

    p: float
    receipt: sc.Forecast


class Outcome(BaseModel):
    """What happened."""

    receipt: sc.Forecast
    y: float


@app.post("/forecasts")
def forecast(case: Case) -> Answer:
    """Forecast a case."""
    made = forecaster.predict({"region": case.region}, hint=case.score)
    return Answer(p=made, receipt=made)


@app.post("/outcomes", status_code=204)
def outcome(told: Outcome) -> None:
    """Learn an outcome, once."""
    try:
        forecaster.update(told.receipt, told.y)
    except sc.AlreadyUpdated as error:
        raise HTTPException(409, str(error)) from error
    except sc.SwapcalError as error:
        raise HTTPException(422, str(error)) from error


def month(days: int = 30, cases: int = 30) -> None:
    """Every day: yesterday's outcomes come in, today's cases are forecast."""
    rng, log = np.random.default_rng(0), []
    waiting: list[dict[str, object]] = []
    with TestClient(app) as client:  # one event loop for all requests
        for day in range(days):
            for told in waiting:
                assert client.post("/outcomes", json=told).status_code == 204
            waiting = []
            for _ in range(cases):
                region, score = str(rng.choice(["coast", "hills"])), float(rng.uniform(0.2, 0.6))
                answer = client.post("/forecasts", json={"region": region, "score": score}).json()
                y = float(rng.random() < score + (0.3 if region == "coast" else -0.15))
                waiting.append({"receipt": answer["receipt"], "y": y})
                log.append((day, region == "coast", score, answer["p"], y))
        assert client.post("/outcomes", json=waiting[0]).status_code == 204
        assert client.post("/outcomes", json=waiting[0]).status_code == 409  # a second report is refused
    day, coast, score, p, y = np.array(log, dtype=float).T
    late = day >= days // 2
    for name, made in (("before", score), ("after", p)):
        bias = [float(np.mean((made - y)[late & (coast == k)])) for k in (1, 0)]
        print(f"{name:>6}: mean error on the coast {bias[0]:+.3f}, in the hills {bias[1]:+.3f}, in the second half")
    drawn, axes = figure(width=6.5)
    for k, place, color in ((1, "coast", "tab:blue"), (0, "hills", "tab:green")):
        for made, line, name in ((score, ":", "model"), (p, "-", "service")):
            error = [np.mean((made - y)[(day == d) & (coast == k)]) for d in range(days)]
            axes.plot(np.cumsum(error) / (np.arange(days) + 1), line, color=color, label=f"{name}, {place}", lw=1)
    axes.axhline(0, color="black", lw=0.5)
    axes.set(title="mean error so far; outcomes come a day late", xlabel="day")
    axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    saved(drawn, "service")


if __name__ == "__main__":
    month()
