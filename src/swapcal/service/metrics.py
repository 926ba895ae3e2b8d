"""What the service counts, as plain numbers on the way and in Prometheus' format when it asks."""

import json
import logging
import sys
import warnings
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from swapcal.service.schemas import Forecasted, Forgotten, Learned, Refused, StreamStatus

# --------
# Logs: one JSON object a line on standard error; no token and no case is ever in them.

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


class JsonLines(logging.Formatter):
    """A record as one line of JSON, with whatever was passed as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=repr)


def configure(level: str) -> None:
    """Send everything, warnings too, to standard error as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    # httpx tells every address it asks, at level info.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("httpcore").setLevel(logging.WARNING)
    warnings.simplefilter("default")
    logging.captureWarnings(True)


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


HISTOGRAMS = {
    "commit_seconds": "Time of a transaction",
    "round_seconds": "Time of a round of the writer",
    "commit_cases": "New cases that shared a transaction",
}
COUNTERS = {
    "snapshots": "Snapshots written",
    "store_losses": "Times that the store failed",
    "failures": "Requests that failed for a reason nobody foresaw",
    "pruned": "Old cases deleted",
    "queue_full": "Requests refused as the queue was full",
    "rate_limited": "Requests refused as their token sent too many",
    "denied": "Requests without a token that may",
    "forwarded": "Requests passed on to the stream's owner",
    "raw_hints": "Answers with the raw hint, as the store was down",
}
GAUGES = (
    *("pending", "room", "held", "expired", "forgotten", "late", "share", "mean_share", "groups", "alarms"),
    *("groups_alarmed", "model_alarms", "loss_before", "loss_after"),
)
_ABOUT = msgspec.json.schema(StreamStatus)["$defs"]["StreamStatus"]["properties"]


class Histogram:
    """Counts of numbers up to each border, and their sum."""

    __slots__ = ("borders", "counts", "total")

    def __init__(self, borders: Sequence[float]) -> None:
        self.borders, self.counts, self.total = borders, [0] * (len(borders) + 1), 0.0

    def add(self, number: float) -> None:
        """One more."""
        self.counts[bisect_left(self.borders, number)] += 1
        self.total += number

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulated counts, as Prometheus wants them."""
        borders = [*map(str, self.borders), "+Inf"]
        return list(zip(borders, map(float, accumulate(self.counts)), strict=True))


class Metrics:
    """Everything that is counted. Each number is written by one thread alone."""

    def __init__(self) -> None:
        # Written by the writer's thread.
        self.cases: Counter[tuple[str, str, str]] = Counter()
        self.commit_seconds, self.round_seconds = Histogram(SECONDS), Histogram(SECONDS)
        self.commit_cases = Histogram(SIZES)
        self.snapshots = self.store_losses = self.failures = self.pruned = 0
        # Written by the event loop.
        self.requests: Counter[tuple[str, int]] = Counter()
        self.request_seconds = defaultdict[str, Histogram](lambda: Histogram(SECONDS))
        self.queue_full = self.rate_limited = self.forwarded = self.raw_hints = self.denied = 0

    def answered(self, stream: str, what: str, answers: Sequence[Forecasted | Learned | Forgotten | Refused]) -> None:
        """Count the entries of an answer by what became of them."""
        for answer in answers:
            if isinstance(answer, Refused):
                result = {404: "unknown", 409: "contradiction", 410: "expired"}.get(answer.status, "invalid")
            else:
                result = "replayed" if answer.replayed else "forgotten" if isinstance(answer, Forgotten) else "new"
            self.cases[stream, what, result] += 1

    def served(self, route: str, status: int, seconds: float) -> None:
        """A request."""
        self.requests[route, status] += 1
        self.request_seconds[route].add(seconds)

    def text(
        self, statuses: Iterable[StreamStatus], may: Callable[[str, str], bool], *, queued: int, ready: bool
    ) -> bytes:
        """Everything that somebody `may` read in Prometheus' text format."""
        cases = {kind: count for kind, count in self.cases.copy().items() if may("read", kind[0])}
        return generate_latest(_Snapshot(self, cases, list(statuses), queued, ready))


class _Snapshot(Collector):
    """One scrape."""

    def __init__(
        self,
        metrics: Metrics,
        cases: dict[tuple[str, str, str], int],
        statuses: list[StreamStatus],
        queued: int,
        ready: bool,
    ) -> None:
        self.metrics, self.cases, self.statuses, self.queued, self.ready = metrics, cases, statuses, queued, ready

    def collect(self) -> Iterator[Metric]:
        """The families, one after the other."""
        metrics = self.metrics
        labels = ["stream", "what", "result"]
        cases = CounterMetricFamily("swapcal_cases", "Forecasts and outcomes by what became of them", labels=labels)
        for kind, count in sorted(self.cases.items()):
            cases.add_metric(kind, count)
        requests = CounterMetricFamily("swapcal_requests", "Requests answered", labels=["route", "status"])
        for (route, status), count in sorted(metrics.requests.items()):
            requests.add_metric([route, str(status)], count)
        latency = HistogramMetricFamily("swapcal_request_seconds", "Time to answer", labels=["route"])
        for route, histogram in sorted(metrics.request_seconds.items()):
            latency.add_metric([route], histogram.buckets(), histogram.total)
        yield from (cases, requests, latency)
        for name, text in HISTOGRAMS.items():
            histogram = getattr(metrics, name)
            family = HistogramMetricFamily(f"swapcal_{name}", text)
            family.add_metric([], histogram.buckets(), histogram.total)
            yield family
        for name, text in COUNTERS.items():
            yield CounterMetricFamily(f"swapcal_{name}", text, value=getattr(metrics, name))
        yield GaugeMetricFamily("swapcal_queued", "Cases that wait to be stored", value=self.queued)
        yield GaugeMetricFamily("swapcal_ready", "Whether the store works", value=float(self.ready))
        for field in GAUGES:
            gauge = GaugeMetricFamily(f"swapcal_stream_{field}", _ABOUT[field]["description"], labels=["stream"])
            for stream in self.statuses:
                number = getattr(stream, field)
                if number is not None:
                    gauge.add_metric([stream.name], float(number))
            yield gauge
