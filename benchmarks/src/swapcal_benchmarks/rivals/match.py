"""One run of one method on one stream: a job that any process can do, and that writes down its own result."""

import json
import os
import time
import warnings
from dataclasses import dataclass
from typing import Any

from swapcal.errors import InvalidInput
from swapcal.simulate.adversaries import play
from swapcal.version import __version__
from swapcal_benchmarks.rivals import board_streams, duels
from swapcal_benchmarks.rivals.boards import BOARDS, Board
from swapcal_benchmarks.rivals.contestants import Contestant, all_contestants
from swapcal_benchmarks.rivals.probe import probe
from swapcal_benchmarks.rivals.rounding import Rounded
from swapcal_benchmarks.rivals.scores import Scores, score
from swapcal_benchmarks.rivals.state_size import state_bytes
from swapcal_benchmarks.rivals.table_file import TableFile

__all__ = ["NO_TRUTH", "Match", "Result"]

NO_TRUTH = "the truth is not known before the forecast"

Result = dict[str, Any]
"""`key` with the settings, and `scores`, or `refused` or `failed` with a sentence; `notes` are warnings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """All settings of a run.

    Parameters
    ----------
    board, stream, method : str
        Their names.
    horizon, seed, n_groups : int
        T, the seed of the stream and of the draws, and the number of groups.
    file : TableFile, optional
        For the board "csv".
    weight : float
        Expected microseconds a round.
    log : str, optional
        File to which the result is appended.
    """

    board: str
    stream: str
    method: str
    horizon: int
    seed: int
    n_groups: int
    file: TableFile | None = None
    weight: float = 1.0
    log: str | None = None

    @property
    def cost(self) -> float:
        """Expected microseconds, with a share for making the stream and the scores."""
        return self.horizon * (self.weight + 15.0) + 5_000.0

    @property
    def key(self) -> dict[str, Any]:
        """What decides the result."""
        key: dict[str, Any] = {
            "version": __version__,
            "board": self.board,
            "stream": self.stream,
            "method": self.method,
            "horizon": self.horizon,
            "seed": self.seed,
            "groups": self.n_groups,
        }
        if self.file is not None:
            key["file"] = [self.file.digest, self.file.y, self.file.hint, list(self.file.groups)]
            key["property"] = repr(self.file.board().property)
        return key

    def __call__(self) -> Result:
        """Play, score, and write the result down unless the method failed."""
        result: Result = {"key": self.key, "scores": None, "refused": None, "failed": None, "notes": []}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result["scores"] = self.scores().to_dict()
            except InvalidInput as error:
                result["refused"] = str(error)
            except Exception as error:  # a method's own fault must not end the others' contest
                result["failed"] = f"{type(error).__name__}: {error}"
        result["notes"] = sorted({str(each.message) for each in caught})
        if self.log is not None and result["failed"] is None:
            _append(self.log, json.dumps(result) + "\n")
        return result

    def scores(self) -> Scores:
        """Play and score."""
        board = BOARDS[self.board] if self.file is None else self.file.board()
        contestant = all_contestants()[self.method]
        if self.stream in duels.ADVERSARIES and self.file is None:
            return self._duel(board, contestant)
        if self.file is None:
            stream = board_streams.record(self.stream, board.property, self.horizon, self.seed, self.n_groups)
        else:
            stream = self.file.read(board.property, self.horizon)
        n = stream.x.shape[1]
        x = stream.x / n**0.5 if board.linear else stream.x
        hints = stream.truth if contestant.hint == "truth" else stream.hint
        if contestant.hint == "truth" and hints is None:
            raise InvalidInput(NO_TRUTH)
        functions = board.hypotheses(n)
        entry = contestant.make(board.property, functions, len(stream.y), self.seed)
        start = time.process_time()
        p = entry.run(x, stream.y, hints)
        spent = (time.process_time() - start) / len(stream.y) * 1e6
        return score(
            board.property, functions, x, stream.y, p, truth=stream.truth, microseconds=spent, memory=state_bytes(entry)
        )

    def _duel(self, board: Board, contestant: Contestant) -> Scores:
        if contestant.hint == "truth":
            raise InvalidInput(NO_TRUTH)
        functions = board.hypotheses(self.n_groups)
        entry = contestant.make(board.property, functions, self.horizon, self.seed)
        if not probe(contestant, board, self.horizon).on_grid:
            entry = Rounded(entry, self.horizon)
        opponent = duels.adversary(self.stream, board.property, functions, self.horizon, self.seed)
        played = play(entry, opponent, self.horizon)
        return score(
            board.property,
            functions,
            played.x,
            played.y,
            played.p,
            truth=None,
            microseconds=None,
            memory=state_bytes(entry),
        )


def _append(path: str, line: str) -> None:
    # One write to a file opened for appending is not torn by those of other processes.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
