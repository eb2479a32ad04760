"""A guest who knocks a thousand times a second fills no book: of each kind one line a second."""

from __future__ import annotations

import logging
from collections.abc import Callable

KINDS = 1000
"""Of how many kinds the last line is remembered; more in a second are not told at all."""


class Seldom:
    """Logs what guests can cause as often as they like; `clock` gives seconds."""

    def __init__(
        self, log: logging.Logger, *, clock: Callable[[], float], seconds: float = 1.0
    ) -> None:
        self._log = log
        self._clock = clock
        self._seconds = seconds
        self._kinds: dict[tuple[object, ...], tuple[float, int]] = {}  # the oldest line first

    def say(self, level: int, event: str, **told: object) -> None:
        """One line of this event about these things; `times` counts those left out before it."""
        self._say(level, event, told, None)

    def say_error(self, error: BaseException | None, event: str, **told: object) -> None:
        """The same with an exception and its traceback; those of one type are one kind."""
        self._say(logging.ERROR, event, told, error)

    def _say(
        self, level: int, event: str, told: dict[str, object], error: BaseException | None
    ) -> None:
        kind, now = (event, type(error), *told.values()), self._clock()
        since, times = self._kinds.get(kind, (now - self._seconds, 0))
        if now - since < self._seconds:
            self._kinds[kind] = (since, times + 1)
            return
        self._kinds.pop(kind, None)
        if len(self._kinds) >= KINDS:
            oldest = next(iter(self._kinds))
            if now - self._kinds[oldest][0] < self._seconds:
                return
            del self._kinds[oldest]
        self._kinds[kind] = (now, 0)
        extra = told | ({"times": times + 1} if times else {})
        self._log.log(level, event, exc_info=error, extra={"told": extra})
