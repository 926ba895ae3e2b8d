"""Cases that count for a share: over the network as on this machine, bit for bit, and after a crash."""

from typing import Any

import numpy as np
import pytest

import swapcal as sc
from service_running import Starter
from swapcal.cases import Cases, Events
from swapcal.client import Client

N, LATE = 60, 7
SPEC = {"groups": ["carrier"], "seed": 4}


def _cases() -> list[tuple[str, dict[str, Any], float, float, float]]:
    """Id, context, hint, weight and outcome; every tenth case has no weight, others more or less of it."""
    rng = np.random.default_rng(11)
    return [
        (
            f"c{t}",
            {"carrier": "ABC"[t % 3]},
            round(float(rng.uniform(0.1, 0.9)), 2),
            (0.0, 0.25, 0.7, 1.0, 1.0)[t % 5] if t % 10 == 0 or t % 5 else 1.0,
            float(rng.random() < 0.3 + 0.2 * (t % 3)),
        )
        for t in range(N)
    ]


@pytest.mark.parametrize("order", ["arrival", "forecast"])
def test_the_bits_of_a_local_forecaster(serve: Starter, order: str) -> None:
    cases = _cases()
    groups = sc.Groups(["carrier"], limit=200)
    rows = groups.rows([context for _, context, *_ in cases], N)
    X = np.zeros((N, groups.n))
    X[np.repeat(np.arange(N), np.diff(rows.indptr)), rows.indices] = rows.values
    local = Cases(sc.Forecaster(sc.Probability(), sc.Finite(201), seed=4, max_pending=1_000_000), order=order)
    settings = {"config": {"streams": {"late": SPEC | {"outcome_order": order}}}}
    server = serve(**settings)
    audit = sc.Audit(sc.Probability(), groups, bins=33)
    for t, (name, context, hint, weight, _) in enumerate(cases):
        if t == N // 2:
            status = server.status()
            server.kill()
            server = serve(**settings)
            assert server.status() == status
        body = {"id": name, "context": context, "hint": hint, "weight": weight}
        answer = server.post("/v1/streams/late/forecasts", body).json()
        played = local.play(Events([name], [np.nan], X[t : t + 1], [hint], weights=[weight]))
        assert answer["forecast"] == played.forecast[0]
        if t >= LATE:
            old, _, _, share, y = cases[t - LATE]
            response = server.outcome(old, y)
            word = local.learn([old], [y]).status[0]
            assert response.status_code == (409 if share == 0.0 else 200)
            assert (word == "contradicted") == (share == 0.0)
            if share:
                forecast = server.http.get(f"/v1/streams/late/cases/{old}").json()
                assert forecast["weight"] == share
                audit.update(y, forecast["forecast"], cases[t - LATE][1], weight=share)
    assert server.status()["forgotten"] == sum(weight == 0.0 for *_, weight, _ in cases)
    view = server.http.get("/v1/streams/late/audit").json()
    assert view["after"]["rounds"] == audit.n_rounds
    if order == "arrival":
        assert view["after"]["swap_multicalibration"] == pytest.approx(audit.swap_multicalibration(), rel=1e-12)


def test_a_weight_is_part_of_what_was_asked(serve: Starter) -> None:
    server = serve(config={"streams": {"late": SPEC}})
    with Client(server.url) as client:
        first = client.forecast("late", "a", {"carrier": "A"}, hint=0.3, weight=0.5)
        assert client.forecast("late", "a", {"carrier": "A"}, hint=0.3, weight=0.5).replayed
        assert client.case("late", "a").weight == 0.5
        assert client.case("late", "a").forecast == first.forecast
        client.forecast("late", "b", {"carrier": "A"}, hint=0.3, weight=0.0)
        assert client.case("late", "b").state == "forgotten"
        assert client.forget("late", "b").replayed
    other = {"id": "a", "context": {"carrier": "A"}, "hint": 0.3}
    assert server.post("/v1/streams/late/forecasts", other).status_code == 409
    for weight in (-0.1, 1.5, "much"):
        assert server.post("/v1/streams/late/forecasts", other | {"id": "c", "weight": weight}).status_code == 422
    second = server.forecast("d", hint=0.6).json()["forecast"]
    server.outcome("a", 1.0)
    server.outcome("d", 0.0)
    loss = sc.Probability().loss
    mean = (0.5 * loss(first.forecast, 1.0) + loss(second, 0.0)) / 1.5
    assert server.status()["loss_after"] == pytest.approx(mean, rel=1e-12)
    assert "2 rows" in server.http.get("/v1/streams/late/report").text
