"""The files in `deploy/` fit the service: every metric that they name exists, and the configurations can be read."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from swapcal.errors import InvalidInput
from swapcal.service.config import Config, read
from swapcal.service.metrics import Metrics
from swapcal.service.routes import OPERATIONS, document
from swapcal.service.spec import StreamSpec
from swapcal.service.stream import Stream

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def _metrics() -> set[str]:
    status = Stream("late", StreamSpec(seed=1)).status()
    status = msgspec.structs.replace(status, loss_before=0.1, loss_after=0.1)
    metrics = Metrics()
    metrics.served("/", 200, 0.1)
    metrics.cases["late", "forecast", "new"] += 1
    text = metrics.text([status], lambda scope, stream: True, queued=0, ready=True).decode()
    return {line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")}


def _named(text: str) -> set[str]:
    return set(re.findall(r"\bswapcal_[a-z_]+", text)) - {"swapcal_token"}


def test_the_dashboard_and_the_alerts_name_metrics_that_exist() -> None:
    dashboard = json.loads((DEPLOY / "grafana/dashboards/swapcal.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    rules = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0]["rules"]
    named = _named(" ".join([*expressions, *(rule["expr"] for rule in rules)]))
    assert len(named) > 10
    assert named <= _metrics()
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    assert len({(place["x"], place["y"]) for place in places}) == len(places)


def test_the_configurations_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(read(DEPLOY / "swapcal.toml").streams) == {"late"}
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes/swapcal.yaml").read_text()))
    [held] = [one["data"]["swapcal.toml"] for one in documents if one["kind"] == "ConfigMap"]
    path = tmp_path / "swapcal.toml"
    path.write_text(held)
    with pytest.raises(InvalidInput, match="POD_IP"):
        read(path)
    monkeypatch.setenv("POD_IP", "10.0.0.7")
    assert read(path).service.advertise == "http://10.0.0.7:8377"


def test_what_runs_is_not_root_and_listens_where_it_is_asked() -> None:
    compose: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert set(compose["services"]) == {"swapcal", "postgres", "prometheus", "grafana"}
    for name, service in compose["services"].items():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
        assert ":" in service["image"], name
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("./") and not source.endswith(".token"):
                assert (DEPLOY / source).exists(), volume
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    assert dockerfile.index("USER 10001") < dockerfile.index("ENTRYPOINT")
    assert all("==" in line for line in (DEPLOY / "requirements.txt").read_text().split())
    deployment = next(
        one
        for one in yaml.safe_load_all((DEPLOY / "kubernetes/swapcal.yaml").read_text())
        if one["kind"] == "Deployment"
    )
    pod = deployment["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    paths = {op.path for op in OPERATIONS if op.scope is None}
    for probe in ("livenessProbe", "readinessProbe"):
        assert pod["containers"][0][probe]["httpGet"]["path"] in paths


def test_the_document_describes_every_route_and_its_examples_are_right() -> None:
    described = document(OPERATIONS)
    assert sum(map(len, described["paths"].values())) == len(OPERATIONS)
    names = [op.name for op in OPERATIONS]
    assert len(set(names)) == len(names)
    for op in OPERATIONS:
        if op.example is not None:
            assert any(_fits(op.example, body) for body in op.bodies), op.path
        if op.answer_example is not None:
            assert any(_fits(op.answer_example, answer) for answer in op.answer), op.path
    refs = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(described)))
    assert refs <= set(described["components"]["schemas"])


def _fits(example: Any, kind: type) -> bool:
    try:
        msgspec.convert(example, kind)
    except msgspec.ValidationError:
        return False
    return True


def test_the_example_in_the_documentation_is_a_configuration() -> None:
    import tomllib

    text = (ROOT / "docs/service.md").read_text()
    examples = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    assert examples
    for example in examples:
        msgspec.convert(tomllib.loads(example), Config)
    for name in _named(text):
        assert name in _metrics(), name
