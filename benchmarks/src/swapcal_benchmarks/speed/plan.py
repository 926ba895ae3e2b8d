"""The questions in their order, each with the function that answers it."""

from collections.abc import Callable
from dataclasses import dataclass

from swapcal.errors import InvalidInput
from swapcal_benchmarks.speed import events, files, growth, instructions, memory, peers, run, startup, state, threads
from swapcal_benchmarks.speed.row import Row
from swapcal_benchmarks.speed.sizes import Sizes

__all__ = ["QUESTIONS", "Question", "chosen"]


@dataclass(frozen=True, slots=True)
class Question:
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
    measure: Callable[[Sizes], list[Row]]
    cost: float


QUESTIONS = (
    Question("run", "A recorded stream: run", run.measure, 10.0),
    Question("events", "One event at a time: predict + update from Python", events.measure, 4.0),
    Question("growth", "Longer streams", growth.measure, 50.0),
    Question("memory", "Peak memory of a long run", memory.measure, 35.0),
    Question("files", "A long file, from the command line", files.measure, 60.0),
    Question("state", "Bytes of state", state.measure, 0.1),
    Question("startup", "Starting", startup.measure, 15.0),
    Question("peers", "Beside other packages", peers.measure, 15.0),
    Question("threads", "Two forecasters, two threads", threads.measure, 5.0),
    Question("instructions", "Instructions of a round", instructions.measure, 12.0),
    Question("float32", "What float32 state would gain", instructions.float32, 7.0),
)


def chosen(only: str | None) -> tuple[Question, ...]:
    """The questions named in `only`, separated by commas; all of them if None.

    Examples
    --------
    >>> [question.name for question in chosen("state,run")]
    ['run', 'state']
    """
    if only is None:
        return QUESTIONS
    names = {name.strip() for name in only.split(",")}
    unknown = names - {question.name for question in QUESTIONS}
    if unknown:
        known = ", ".join(question.name for question in QUESTIONS)
        raise InvalidInput(f"there is no question {', '.join(sorted(unknown))!s}; choose from {known}")
    return tuple(question for question in QUESTIONS if question.name in names)
