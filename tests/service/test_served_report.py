"""The report of a stream: the package's own audits of what was forecast at the time, on the package's own page."""

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from service_running import GROUPS, Running, Starter
from swapcal.service.idempotency import ForecastJob, OutcomeJob, play
from swapcal.service.registry import Registry
from swapcal.service.report import learned_cases, recorded_result
from swapcal.service.schemas import Case, Outcome
from swapcal.service.spec import StreamSpec
from swapcal.service.sqlite import Sqlite


@pytest.fixture
def registry(tmp_path: Path) -> Any:
    store = Sqlite(str(tmp_path / "swapcal.db"))
    store.open()
    yield Registry(store, 10)
    store.close()


def _biased(registry: Registry, name: str, n: int) -> None:
    """A model that says 0.5 to everybody, where it is 0.8 for A and 0.2 for B; of 50 outcomes one will not come."""
    rng = np.random.default_rng(1)
    for k in range(0, n, 50):
        cases = [Case(f"c{j}", {"carrier": "AB"[j % 2], "origin": j % 3}, 0.5) for j in range(k, k + 50)]
        outcomes = [Outcome(f"c{j}", float(rng.random() < (0.2 if j % 2 else 0.8))) for j in range(k, k + 48)]
        outcomes.append(Outcome(f"c{k + 48}", None))
        played = play([ForecastJob(name, cases), OutcomeJob(name, outcomes)], registry, float(k), 10**9)
        registry.store.commit(played.commits)


def test_the_result_is_that_of_the_cases(registry: Registry) -> None:
    registry.create("late", StreamSpec(groups=["carrier", "origin"], seed=1))
    _biased(registry, "late", 2000)
    stream = registry.get("late")
    events = list(registry.store.events("late", 0))
    cases = learned_cases(events, stream.groups.n, stream.identity)
    assert cases is not None
    status = stream.status()
    result = recorded_result("late", stream.spec, stream.groups, cases, msgspec.structs.asdict(status))
    assert (status.outcomes, status.pending, status.forgotten) == (1920, 40, 40)
    assert (result.counts.scored, result.counts.without_outcome) == (1920, 80)
    assert result.details["forgotten of the stream"] == 40
    assert result.before.loss == pytest.approx(status.loss_before)
    assert result.after.loss == pytest.approx(status.loss_after)
    assert result.verdict.kind == "IMPROVED"
    off = {name for name, one in zip(result.first.groups, result.before.groups.biased, strict=False) if one}
    assert {"carrier=A", "carrier=B"} <= off
    assert result.before.groups.mean[result.first.groups.index("carrier=A")] == pytest.approx(-0.3, abs=0.05)
    assert result.after.swap_error < 0.5 * result.before.swap_error
    half = learned_cases(events[len(events) // 2 :], stream.groups.n, stream.identity)
    assert len(half.y) < len(cases.y)
    assert learned_cases([one for one in events if not one.is_outcome], 3, stream.identity) is None


@pytest.mark.slow
def test_the_page(serve: Starter) -> None:
    server: Running = serve(config={"streams": {"late": {"groups": GROUPS}}})
    nothing = server.http.get("/v1/streams/late/report")
    assert "nothing to report" in nothing.text
    for k in range(60):
        server.forecast(f"read-{k}", hint=0.9, carrier="<script>&", origin="EWR")
        server.outcome(f"read-{k}", 0.0)
    report = server.http.get("/v1/streams/late/report", timeout=600.0)
    assert report.status_code == 200, report.text
    assert "carrier=&lt;script&gt;&amp;" in report.text
    assert "<script>&" not in report.text
    assert "60 rows" in report.text
    policy = report.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    [allowed] = re.findall(r"script-src 'sha256-([^']+)'", policy)
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", report.text, re.DOTALL)
    assert allowed in [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    assert server.http.get("/v1/streams/late/report").text == report.text
