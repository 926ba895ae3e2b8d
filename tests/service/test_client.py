"""The client: typed answers, and requests that are sent again until they are answered."""

import asyncio
import threading
import time

import httpx
import pytest

from service_running import Running, Starter, start
from swapcal.client import AsyncClient, Client, Retries, ServiceError, Unreachable
from swapcal.service.schemas import Case, Forecasted, Learned, Outcome, Refused
from swapcal.service.spec import StreamSpec

QUICK = Retries(attempts=4, first=0.01, longest=0.02)


def test_every_call(server: Running) -> None:
    with Client(server.url) as client:
        client.create_stream("mine", StreamSpec(groups=["carrier"]))
        first = client.forecast("mine", "c-1", {"carrier": "UA"}, hint=0.3)
        assert isinstance(first, Forecasted)
        assert client.forecast("mine", "c-1", {"carrier": "UA"}, hint=0.3).replayed
        answers = client.forecasts("mine", [Case("c-2", {"carrier": None}, 0.2), Case("c-3", {"carrier": "UA"}, 7.0)])
        assert [type(one) for one in answers] == [Forecasted, Refused]
        assert client.outcome("mine", "c-1", 1) == Learned("c-1", 1.0)
        results = client.outcomes("mine", [Outcome("c-2", 0.0), Outcome("x", 1.0)])
        assert [type(one) for one in results] == [Learned, Refused]
        assert client.case("mine", "c-1").state == "learned"
        assert client.audit("mine").after.rounds == 2
        assert client.alarms("mine").alarms == []
        assert "mine" in client.streams()
        assert client.stream("mine").status.property == "Probability()"
        with pytest.raises(ServiceError, match="another context") as refused:
            client.forecast("mine", "c-1", {"carrier": "B6"})
        assert refused.value.status == 409

    async def again() -> None:
        async with AsyncClient(server.url) as client:
            assert (await client.forecast("mine", "c-1", {"carrier": "UA"}, hint=0.3)).forecast == first.forecast
            answers = await asyncio.gather(
                *(client.forecast("mine", f"a-{k}", {"carrier": "AB"[k % 2]}, 0.5) for k in range(20))
            )
            assert sorted(one.round for one in answers) == list(range(2, 22))
            assert len(await client.outcomes("mine", [Outcome(f"a-{k}", 1.0) for k in range(20)])) == 20
            assert (await client.outcome("mine", "a-1", 1.0)).replayed
            assert (await client.case("mine", "a-1")).y == 1.0
            assert (await client.audit("mine")).after.rounds == 22
            assert (await client.stream("mine")).status.outcomes == 22
            assert "mine" in await client.streams()
            with pytest.raises(ServiceError):
                await client.outcome("mine", "nobody", 1.0)
            await client.delete_stream("mine")
            assert "mine" not in await client.streams()

    asyncio.run(again())


def test_a_server_that_is_away_for_a_moment_is_waited_for(serve: Starter) -> None:
    server = serve()
    folder, port = server.config.parent, server.port
    with Client(server.url, retries=Retries(attempts=6000, first=0.05, longest=0.1)) as client:
        client.forecast("late", "w-1", {"carrier": "UA", "origin": None}, 0.4)
        server.kill()

        def back() -> None:
            time.sleep(0.3)
            settings = {"store": str(folder / "swapcal.db"), "port": port}
            started.append(start(folder, 9, settings))

        started: list[object] = []
        thread = threading.Thread(target=back)
        thread.start()
        try:
            assert client.outcome("late", "w-1", 1.0) == Learned("w-1", 1.0)
        finally:
            thread.join()
            started[0].kill()  # type: ignore[attr-defined]


def _client(handler: object) -> Client:
    client = Client("http://nowhere", retries=QUICK)
    client._http = httpx.Client(base_url="http://nowhere", transport=httpx.MockTransport(handler))  # type: ignore[arg-type]
    return client


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_what_can_be_sent_again_is(status: int) -> None:
    bodies: list[bytes] = []

    def handler(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        if len(bodies) < 3:
            return httpx.Response(status, json={})
        return httpx.Response(200, json={"result": "learned", "id": "a", "y": 1.0})

    assert _client(handler).outcome("late", "a", 1.0) == Learned("a", 1.0)
    assert len(bodies) == 3
    assert len(set(bodies)) == 1


def test_what_is_final_is_not_sent_again_and_nobody_there_is_told() -> None:
    seen: list[httpx.Request] = []

    def refusing(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(410, json={"result": "refused", "title": "Gone", "status": 410, "detail": "too late"})

    def absent(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(ServiceError, match="too late"):
        _client(refusing).outcome("late", "a", 1.0)
    assert len(seen) == 1
    with pytest.raises(Unreachable, match="send the same request again"):
        _client(absent).outcome("late", "a", 1.0)
