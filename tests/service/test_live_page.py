"""The live page in a real browser: it moves, at the widths of a phone and a desk, by day and by night."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import browsers
from service_running import GROUPS, Running, start

WIDTHS = {"phone": (390, 844), "desk": (1280, 900)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder: Path = tmp_path_factory.mktemp("live")
    config = {"streams": {"late": {"groups": GROUPS}, "second": {}}}
    running = start(folder, 0, {"store": str(folder / "swapcal.db"), "config": config})
    yield running
    running.kill()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.browser() as driver:
        yield driver


def _send(server: Running, first: int, n: int) -> None:
    cases = [
        {"id": f"p-{k}", "context": {"carrier": "<i>B6" if k % 2 else "UA", "origin": "JFK"}, "hint": 0.8}
        for k in range(first, first + n)
    ]
    assert server.post("/v1/streams/late/forecasts", {"cases": cases}).status_code == 200
    outcomes = [{"id": f"p-{k}", "y": float(k % 4 == 0)} for k in range(first, first + n - 10)]
    assert server.post("/v1/streams/late/outcomes", {"outcomes": outcomes}).status_code == 200


def _text(browser: Any, id: str) -> str:
    return str(browser.execute_script("return document.getElementById(arguments[0]).textContent", id))


def _until(browser: Any, condition: Any, seconds: float = 20.0) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, seconds, poll_frequency=0.1).until(lambda _: condition())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_moves(server: Running, browser: Any, width: str, scheme: str) -> None:
    browsers.look(browser, WIDTHS[width], scheme)
    start_at = server.status()["forecasts"]
    browser.get(server.url + "/#late")
    _until(browser, lambda: _text(browser, "link") == "live")
    _send(server, start_at, 200)
    expected = f"{start_at + 200:,} so far"
    _until(browser, lambda: expected in _text(browser, "rate-note"))
    _until(browser, lambda: browser.execute_script("return document.querySelectorAll('#groups tr').length") >= 3)
    _until(browser, lambda: browser.execute_script("return document.querySelectorAll('#rate-chart path').length") == 2)
    assert "model" in _text(browser, "loss-note")
    assert "carrier=<i>B6" in _text(browser, "groups")
    assert browser.execute_script("return document.querySelectorAll('#groups i').length") == 0
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background[4:-1].split(","))) > 384) == (scheme == "light")
    assert [
        line for line in browser.get_log("browser") if line["level"] == "SEVERE" and "favicon" not in line["message"]
    ] == []


def test_another_stream_is_chosen_and_the_report_opens(server: Running, browser: Any) -> None:
    browser.get(server.url + "/")
    _until(browser, lambda: _text(browser, "link") == "live")
    browser.execute_script(
        "const list = document.getElementById('stream'); list.value = 'second'; list.dispatchEvent(new Event('change'))"
    )
    _until(browser, lambda: "0 so far" in _text(browser, "rate-note"))
    assert browser.current_url.endswith("#second")
    browser.execute_script("document.getElementById('report').click()")
    _until(browser, lambda: browser.current_url.endswith("/v1/streams/second/report"))
    assert "second" in browser.title


def test_an_open_page_does_not_keep_the_server_from_stopping(server: Running, browser: Any) -> None:
    browser.get(server.url + "/#late")
    _until(browser, lambda: _text(browser, "link") == "live")
    assert server.stop(15.0) == 0
    _until(browser, lambda: "no connection" in _text(browser, "link"))
