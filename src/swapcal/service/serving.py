"""`swapcal serve`: from a configuration to a running server."""

import gc
import signal
import sys
from collections.abc import Callable

import uvicorn

import swapcal as sc
from swapcal.service import logs
from swapcal.service.application import Application
from swapcal.service.config import Config, is_loopback
from swapcal.service.event_store import open_store, opened

__all__ = ["run"]

SWITCH_SECONDS = 0.001
"""How long one thread may keep the interpreter while the other waits: the writer must not wait 5 ms for its turn."""


def run(config: Config, *, started: Callable[[int], None] | None = None) -> int:
    """Serve until a signal; what was taken is finished. The exit code is 0, or 3 if it could not start."""
    service = config.service
    logs.configure(service.log)
    if not is_loopback(service.host):
        _needs_tokens(config)
    app = Application(config, open_store(service.store, owner=service.advertise))
    server = _Announcing(
        uvicorn.Config(
            app,
            host=service.host,
            port=service.port,
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=service.stop_seconds,
            timeout_keep_alive=75,
            lifespan="on",
        ),
        app,
        started,
    )
    sys.setswitchinterval(SWITCH_SECONDS)
    # A batch makes thousands of small objects and no cycles: the collector need not look after every 700 of them.
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    # uvicorn raises the signal again once it has stopped in good order; that is then the end, and no failure.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    server.run()
    return 0 if server.started else 3


class _Announcing(uvicorn.Server):
    """Tells which port it got, and tells the application when it is to stop."""

    def __init__(self, config: uvicorn.Config, app: Application, told: Callable[[int], None] | None) -> None:
        super().__init__(config)
        self._app, self._told = app, told

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started and self._told is not None:
            self._told(self.servers[0].sockets[0].getsockname()[1])

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        self._app.begin_stop()
        await super().shutdown(sockets)  # type: ignore[arg-type]


def _needs_tokens(config: Config) -> None:
    """Refuse to listen to other machines while nobody could be told from anybody."""
    if config.tokens:
        return
    with opened(config.service.store) as store:
        there = store.tokens()
    if not there:
        raise sc.InvalidInput(
            f"{config.service.host} can be reached from other machines, and there is no token yet: make one with  "
            "swapcal serve token create --config ... --scope admin"
        )
