"""Fixtures of several files; one thread of linear algebra for each process of the tests, which listens to Ctrl-C."""

import os
import signal
from functools import partial

import pytest

# Two processes play the tests. With a thread for each core in both of them, products of small matrices wait for each
# other, and cost up to ten times as much. NumPy reads this when it is imported, and so do processes that tests start.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# A shell that starts the tests in the background has them ignore Ctrl-C, and all that they start; some tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

from hypothesis import HealthCheck, settings  # noqa: E402

from effort import QUICK, part  # noqa: E402
from swapcal.engine import state, values  # noqa: E402

# A busy machine is no fault: no example has a deadline, and none is too slow to be drawn.
settings.register_profile(
    "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=part(100, 100)
)
settings.load_profile("patient")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test with many parameters `make quick` plays eight, from the first to the last."""
    tests = dict[tuple[str, str], list[pytest.Item]]()
    for item in items:
        tests.setdefault((str(item.path), getattr(item, "originalname", item.name)), []).append(item)
    if QUICK:
        chosen = {id(each[k * len(each) // 8]) for each in tests.values() for k in range(8)}
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
        items[:] = [item for item in items if id(item) in chosen]


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forecasters have room for 12 values at first instead of 32, one more than a stream starts with: it grows soon."""
    for module in (state, values):
        monkeypatch.setattr(module, "ROOM", 12)


@pytest.fixture
def few_diagrams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages draw two groups instead of up to 32, for tests that ask where a page is and not what it shows."""
    from swapcal.report.page import chosen_groups

    monkeypatch.setattr("swapcal.report.page.chosen_groups", partial(chosen_groups, limit=2))
