"""The sections in their order, each with the function that answers it."""

from collections.abc import Callable
from dataclasses import dataclass

from swapcal.errors import InvalidInput
from swapcal_benchmarks.speed import (
    events,
    instructions,
    long_file,
    long_streams,
    memory,
    peers,
    sizes_of_state,
    startup,
    threads,
    whole_streams,
)
from swapcal_benchmarks.speed.speed_sizes import SpeedSizes
from swapcal_benchmarks.speed.target_row import TargetRow

__all__ = ["SECTIONS", "Section", "chosen"]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the benchmark.

    Parameters
    ----------
    name : str
        For --only.
    title : str
        Over its table.
    measure : callable
        From sizes to rows.
    cost : float
        About how many seconds it takes; for the progress bar.
    """

    name: str
    title: str
    measure: Callable[[SpeedSizes], list[TargetRow]]
    cost: float


SECTIONS = (
    Section("run", "A recorded stream: run", whole_streams.measure, 10.0),
    Section("events", "One event at a time: predict + update from Python", events.measure, 4.0),
    Section("growth", "Longer streams", long_streams.measure, 50.0),
    Section("memory", "Peak memory of a long run", memory.measure, 35.0),
    Section("files", "A long file, from the command line", long_file.measure, 60.0),
    Section("state", "Bytes of state", sizes_of_state.measure, 0.1),
    Section("startup", "Starting", startup.measure, 15.0),
    Section("peers", "Beside other packages", peers.measure, 15.0),
    Section("threads", "Two forecasters, two threads", threads.measure, 5.0),
    Section("instructions", "Instructions of a round", instructions.measure, 12.0),
    Section("float32", "What float32 state would gain", instructions.float32, 7.0),
)


def chosen(only: str | None) -> tuple[Section, ...]:
    """The sections named in `only`, separated by commas; all of them if None.

    Examples
    --------
    >>> [section.name for section in chosen("state,run")]
    ['run', 'state']
    """
    if only is None:
        return SECTIONS
    names = {name.strip() for name in only.split(",")}
    unknown = names - {section.name for section in SECTIONS}
    if unknown:
        known = ", ".join(section.name for section in SECTIONS)
        raise InvalidInput(f"there is no section {', '.join(sorted(unknown))!s}; choose from {known}")
    return tuple(section for section in SECTIONS if section.name in names)
