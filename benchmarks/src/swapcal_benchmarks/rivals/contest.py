"""The contest itself: plan, skip what is finished, play the rest, sum up."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from swapcal.errors import InvalidInput
from swapcal_benchmarks.cores import run_jobs
from swapcal_benchmarks.rivals.fixtures import Fixtures, Settings, make_plan
from swapcal_benchmarks.rivals.match import Match, Result
from swapcal_benchmarks.rivals.results import LOG, finished, identity
from swapcal_benchmarks.rivals.standings import Summary, summarize

__all__ = ["Contest", "prepare"]


@dataclass(frozen=True, slots=True)
class Contest:
    """A plan, and what of it has been finished before."""

    plan: Fixtures
    before: dict[str, Result]

    @property
    def remaining(self) -> list[Match]:
        """The runs that are still to be played."""
        return [match for match in self.plan.matches if identity(match.key) not in self.before]

    def play(
        self, *, workers: int | None = None, done: Callable[[float], None] | None = None
    ) -> tuple[Summary, list[Result]]:
        """Play what remains; the summary, and the results in the order of the plan."""
        remaining = self.remaining
        fresh = {identity(each["key"]): each for each in run_jobs(remaining, workers=workers, done=done)}
        everything = self.before | fresh
        results = [everything[identity(match.key)] for match in self.plan.matches]
        return summarize(self.plan, results), results


def prepare(settings: Settings, out: Path | None) -> Contest:
    """Plan a contest; with `out`, finished runs are read from there and new ones written there."""
    log = None
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"{out} cannot be made a folder: {error.strerror}; choose another --out") from error
        log = out / LOG
    plan = make_plan(settings, None if log is None else str(log))
    return Contest(plan, {} if log is None else finished(log))
