"""The contests: a property, a class, and the streams on which methods meet."""

from dataclasses import dataclass

from swapcal.hypotheses import Finite, Linear
from swapcal.properties import Expectile, Probability, Quantile
from swapcal.protocols import Elicitable, Hypotheses
from swapcal_benchmarks.rivals.board_streams import BINARY, REAL
from swapcal_benchmarks.rivals.duels import ADVERSARIES

__all__ = ["BOARDS", "Board"]


@dataclass(frozen=True, slots=True)
class Board:
    """One table of the results.

    Parameters
    ----------
    name : str
        For commands and files.
    title : str
        For readers.
    property : Elicitable
        What is forecast.
    linear : bool
        Whether the class is all linear functions of the context, and not its entries.
    streams : tuple of str
        Recorded streams and adversaries, in the order of the columns.
    """

    name: str
    title: str
    property: Elicitable
    linear: bool
    streams: tuple[str, ...]

    def hypotheses(self, n: int) -> Hypotheses:
        """The class over contexts of length `n`."""
        return Linear(n) if self.linear else Finite(n)


BOARDS = {
    board.name: board
    for board in (
        Board("probability", "Probability of a binary label, groups", Probability(), False, (*BINARY, *ADVERSARIES)),
        Board("quantile", "0.9 quantile of a real label, groups", Quantile(0.9), False, (*REAL, *ADVERSARIES)),
        Board("expectile", "0.8 expectile of a real label, groups", Expectile(0.8), False, (*REAL, *ADVERSARIES)),
        Board(
            "linear",
            "Probability of a binary label, linear class",
            Probability(),
            True,
            ("iid", "drifting", "abrupt", "greedy", "targeted"),
        ),
    )
}
