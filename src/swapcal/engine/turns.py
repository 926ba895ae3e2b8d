"""One call at a time: threads that share a forecaster wait for each other, and none sees a round half done."""

import threading
from types import TracebackType

from swapcal.engine.protocol import Engine
from swapcal.errors import SwapcalError

__all__ = ["Turns"]


class Turns:
    """Whoever is inside of `with turns:` has the state to itself.

    Compiled calls need no lock of their own: they hold the interpreter from their first look at the state to their last
    change, and while somebody has the turn they leave every call to Python, which waits here. So an event costs what it
    would cost without threads, and a round, a cut of the grid or a copy for `save` is never seen from within.

    A call from within the same thread, by a signal handler or by a part of the user's own that calls the forecaster it
    is part of, cannot wait for itself: it is an error.
    """

    __slots__ = ("_engine", "_lock", "_owner")

    def __init__(self, engine: Engine) -> None:
        self._engine, self._lock, self._owner = engine, threading.Lock(), 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._owner == me:
            raise SwapcalError(
                "a forecaster was called while one of its own calls was under way in the same thread, by a signal "
                "handler or by a part of yours; make that call after the first one has returned"
            )
        self._lock.acquire()
        self._owner = me
        self._engine.hold(True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.hold(False)
        self._owner = 0
        self._lock.release()
