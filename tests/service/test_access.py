"""Nobody in who does not belong: no token, no answer; a token for one stream or scope is no token for another."""

import base64
import sqlite3
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import msgspec
import pytest
from typer.testing import CliRunner

from service_running import Running, start, toml
from swapcal.cli.serve import serve as command
from swapcal.errors import InvalidInput
from swapcal.service.access import Bucket, create, digest_of, find
from swapcal.service.config import Config, checked
from swapcal.service.routes import OPERATIONS
from swapcal.service.store import TokenRow

OPEN = {"/v2/health/live", "/v2/health/ready", "/ping"}
SECRET_CASE = {"id": "secret-case-77", "context": {"carrier": "very-private-carrier"}, "hint": 0.3}


class Guarded(NamedTuple):
    """A server that wants tokens, and some of them."""

    running: Running
    tokens: dict[str, str]


def _create(config: Path, *arguments: str) -> str:
    made = CliRunner().invoke(command, ["token", "create", "--config", str(config), *arguments])
    assert made.exit_code == 0, made.output
    return made.stdout.strip()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("access")
    settings = {
        "store": str(folder / "swapcal.db"),
        "auth": True,
        "log": "debug",
        "log_requests": True,
        "config": {"streams": {"late": {}, "other": {}}, "limits": {"rate": 50.0, "batch": 200}},
    }
    config = folder / "first.toml"
    config.write_text(toml({"service": {"store": settings["store"]}, "streams": {"late": {}, "other": {}}}))
    tokens = {
        "predict": _create(config, "--scope", "predict", "--stream", "late"),
        "outcomes": _create(config, "--scope", "outcomes", "--stream", "late"),
        "read": _create(config, "--scope", "read", "--all-streams"),
        "admin": _create(config, "--scope", "admin", "--name", "boss", "--all-streams"),
        "one": _create(config, "--scope", "read", "--stream", "late"),
        "busy": _create(config, "--scope", "predict", "--all-streams"),
    }
    running = start(folder, 0, settings)
    yield Guarded(running, tokens)
    running.kill()


def _ask(guarded: Guarded, token: str | None, method: str, path: str, body: object = None) -> httpx.Response:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return guarded.running.http.request(method, path, json=body, headers=headers)


def _paths() -> list[tuple[str, str]]:
    filled = [(op.method, op.path.format(stream="late", id="x")) for op in OPERATIONS]
    return [*filled, ("GET", "/openapi.json"), ("GET", "/nothing/here"), ("POST", "/"), ("GET", "/v1/streams/unknown")]


def test_without_a_token_everything_but_health_is_401(guarded: Guarded) -> None:
    wrong = create("", ["admin"], None)[0]
    for method, path in _paths():
        for token in (None, "x", wrong, guarded.tokens["admin"][:-1], guarded.tokens["admin"] + "A"):
            answer = _ask(guarded, token, method, path, {} if method in ("POST", "PUT") else None)
            if path in OPEN:
                assert answer.status_code == 200
            else:
                assert answer.status_code == 401, (method, path)
                assert answer.json()["result"] == "refused"
                assert answer.headers["www-authenticate"].startswith("Basic" if path.endswith("/report") else "Bearer")


def test_each_scope_is_good_for_its_own(guarded: Guarded) -> None:
    for op in OPERATIONS:
        if op.scope is None:
            continue
        path = op.path.format(stream="late", id="x")
        for name in ("predict", "outcomes", "read", "admin"):
            body = op.example if op.method in ("POST", "PUT") else None
            refused = _ask(guarded, guarded.tokens[name], op.method, path, body).status_code == 403
            assert refused == (name != op.scope), (op.method, path, name)


def test_a_token_for_one_stream_says_nothing_of_others(guarded: Guarded) -> None:
    for stream in ("other", "unknown"):
        answer = _ask(guarded, guarded.tokens["predict"], "POST", f"/v1/streams/{stream}/forecasts", SECRET_CASE)
        assert answer.status_code == 403
        assert stream not in answer.text


def test_the_metrics_of_a_stream_are_for_those_who_may_read_it(guarded: Guarded) -> None:
    for stream in ("late", "other"):
        case = {"id": "counted", "hint": 0.5}
        assert _ask(guarded, guarded.tokens["busy"], "POST", f"/v1/streams/{stream}/forecasts", case).status_code == 200
    seen = {name: _ask(guarded, guarded.tokens[name], "GET", "/metrics").text for name in ("one", "read")}
    for name, text in seen.items():
        for metric in ('swapcal_cases_total{result="new"', "swapcal_stream_pending{"):
            streams = {stream for stream in ("late", "other") for line in text.splitlines()
                       if line.startswith(metric) and f'stream="{stream}"' in line}  # fmt: skip
            assert streams == ({"late"} if name == "one" else {"late", "other"}), (name, metric)


@pytest.mark.parametrize(
    ("host", "good"),
    [(one, True) for one in ("127.0.0.1", "localhost:8377", "[::1]:1", "127.9.9.9:80")]
    + [
        (one, False) for one in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example:1", "", "[::1", "a@")
    ],
)
def test_without_tokens_only_this_machine_is_answered(server: Running, host: str, good: bool) -> None:
    """A page of a stranger, whose name leads to the loopback by now, is told nothing (DNS rebinding)."""
    answer = server.http.get("/v1/streams", headers={"host": host})
    assert (answer.status_code, "late" in answer.text) == ((200, True) if good else (421, False))
    case = {"id": "from-elsewhere", "context": {"carrier": "UA", "origin": "EWR"}}
    written = server.http.post("/v1/streams/late/forecasts", json=case, headers={"host": host})
    assert written.status_code == (200 if good else 421)


def test_browsers_may_read_with_a_password_and_never_write(guarded: Guarded) -> None:
    def basic(token: str) -> dict[str, str]:
        return {"authorization": "Basic " + base64.b64encode(f"me:{token}".encode()).decode()}

    http = guarded.running.http
    page = "/v1/streams/late/report"
    assert http.get(page, headers=basic(guarded.tokens["read"])).status_code == 200
    assert http.get(page, headers={"authorization": "Basic ***"}).status_code == 401
    written = http.post("/v1/streams/late/forecasts", json=SECRET_CASE, headers=basic(guarded.tokens["predict"]))
    assert written.status_code == 401


def test_a_token_that_sends_too_much_must_wait(guarded: Guarded) -> None:
    cases = {"cases": [{"id": f"busy-{k}"} for k in range(90)]}
    path = "/v1/streams/other/forecasts"
    answers = [_ask(guarded, guarded.tokens["busy"], "POST", path, cases) for _ in range(6)]
    assert answers[0].status_code == 200
    refused = next(answer for answer in answers if answer.status_code != 200)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert (
        _ask(guarded, guarded.tokens["predict"], "POST", "/v1/streams/late/forecasts", SECRET_CASE).status_code == 200
    )


def test_no_token_and_no_case_is_kept_where_others_read(guarded: Guarded) -> None:
    answer = _ask(guarded, guarded.tokens["predict"], "POST", "/v1/streams/late/forecasts", SECRET_CASE)
    assert answer.status_code == 200
    _ask(guarded, guarded.tokens["read"], "GET", f"/v1/streams/late/cases/{SECRET_CASE['id']}")
    log = guarded.running.log.read_text()
    assert '"request"' in log
    store = guarded.running.config.parent / "swapcal.db"
    assert store.stat().st_mode & 0o077 == 0
    with sqlite3.connect(store) as db:
        kept = repr(db.execute("SELECT * FROM tokens").fetchall())
    db.close()
    for token in guarded.tokens.values():
        secret = token.split("_", 2)[2]
        assert secret not in log
        assert secret not in kept
        assert digest_of(secret) in kept
    for private in ("secret-case-77", "very-private-carrier"):
        assert private not in log
        assert private not in _ask(guarded, guarded.tokens["read"], "GET", "/metrics").text


def test_tokens_are_listed_and_revoked_while_it_runs(guarded: Guarded) -> None:
    config, runner = guarded.running.config, CliRunner()
    gone = _create(config, "--scope", "read", "--name", "short-lived", "--all-streams")
    until = time.monotonic() + 600.0
    while _ask(guarded, gone, "GET", "/v1/streams").status_code != 200:
        assert time.monotonic() < until
        time.sleep(0.1)
    listed = runner.invoke(command, ["token", "list", "--config", str(config)]).stdout
    assert "boss" in listed
    assert gone.split("_", 2)[2] not in listed
    key = gone.split("_")[1]
    assert runner.invoke(command, ["token", "revoke", key, "--config", str(config)]).exit_code == 0
    while _ask(guarded, gone, "GET", "/v1/streams").status_code != 401:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert runner.invoke(command, ["token", "revoke", key, "--config", str(config)]).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--stream", ""], "a stream's name is"),
        (["--stream", "late other"], "a stream's name is"),
        (["--stream", "late\n"], "a stream's name is"),
        (["--stream", "late", "--stream", "unknown"], "there is no stream 'unknown'"),
        (["--stream", "late", "--all-streams"], "say which streams"),
        ([], "say which streams"),
        (["--all-streams", "--scope", "all"], "scopes are"),
    ],
)
def test_a_token_for_one_stream_does_not_become_one_for_all(
    guarded: Guarded, arguments: list[str], sentence: str
) -> None:
    config = guarded.running.config
    for more in ([], ["--print-only"]):
        runner = CliRunner().invoke(
            command, ["token", "create", "--config", str(config), "--scope", "read", *arguments, *more]
        )
        assert (runner.exit_code, runner.stdout) == (2, "")
        assert sentence in runner.stderr


@pytest.mark.parametrize(("auth", "said"), [("false", "auth = false"), ("true", "no token yet")])
def test_other_machines_are_not_served_without_tokens(tmp_path: Path, auth: str, said: str) -> None:
    config = tmp_path / "open.toml"
    config.write_text(f'[service]\nhost = "0.0.0.0"\nauth = {auth}\nstore = "{tmp_path / "x.db"}"\n')
    ended = CliRunner().invoke(command, ["--config", str(config)])
    assert ended.exit_code == 2
    assert said in ended.output


def test_tokens_of_the_configuration(tmp_path: Path) -> None:
    text, row = create("ci", ["predict"], ["late"], ["late", "other"])
    token = TokenRow(row.key, "ci", row.digest, "predict", "late")
    assert find(text, {row.key: token}) is token
    assert find(text, {}) is None
    assert find(text.replace(row.key, "0" * 12), {row.key: token}) is None
    made = CliRunner().invoke(command, ["token", "create", "--scope", "read", "--all-streams", "--print-only"])
    assert made.exit_code == 0
    assert digest_of(made.stdout.strip().split("_", 2)[2]) in made.stderr
    entry = tomllib.loads(made.stderr)
    [read] = msgspec.convert(entry, Config).tokens
    assert read.streams == ["*"]
    for streams in ([], [""], ["late other"]):
        [entry["tokens"][0]["streams"]] = [streams]
        with pytest.raises((msgspec.ValidationError, InvalidInput)):
            checked(msgspec.convert(entry, Config))


def test_a_bucket_fills_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [7.0]
    monkeypatch.setattr("swapcal.service.access.time.monotonic", lambda: now[0])
    bucket = Bucket(1000.0, 2000.0)
    assert bucket.take(2000) == 0.0
    assert bucket.take(100) == pytest.approx(0.1)
    now[0] += 0.12
    assert bucket.take(100) == 0.0
