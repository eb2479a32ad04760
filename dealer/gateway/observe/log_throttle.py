"""Rate limit for log lines that clients can cause: one line of each kind in some seconds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from dealer.errors import DatabaseDamaged
from dealer.service.operations.probe import MEMORY

MAX_KINDS = 1000
"""Kinds whose last line is remembered; lines of further kinds meanwhile are dropped."""

_NONE: Mapping[str, object] = {}


class LogThrottle:
    """Logs at most one line of each kind in so many `seconds`; `clock` gives seconds.

    The kind of a line is its event, the type of its exception and the values of its fields, except
    those in `example`: fields of one of the lines of a kind, such as the connection.
    """

    def __init__(
        self, log: logging.Logger, *, clock: Callable[[], float], seconds: float = 1.0
    ) -> None:
        self._log = log
        self._clock = clock
        self._seconds = seconds
        self._kinds: dict[tuple[object, ...], tuple[float, int]] = {}  # least recent line first

    def log(
        self,
        level: int,
        event: str,
        example: Mapping[str, object] = _NONE,
        error: BaseException | None = None,
        /,
        **fields: object,
    ) -> None:
        """Log `event`; the field `times` counts the lines suppressed before this one.

        Damage of the database that has a line already is left out.
        """
        MEMORY.note(error)
        if isinstance(error, DatabaseDamaged) and error.logged:
            return
        kind, now = (event, type(error), *fields.values()), self._clock()
        logged_at, suppressed = self._kinds.get(kind, (now - self._seconds, 0))
        if now - logged_at < self._seconds:
            self._kinds[kind] = (logged_at, suppressed + 1)
            return
        self._kinds.pop(kind, None)
        if len(self._kinds) >= MAX_KINDS:
            oldest = next(iter(self._kinds))
            if now - self._kinds[oldest][0] < self._seconds:
                return
            del self._kinds[oldest]
        self._kinds[kind] = (now, 0)
        extra = {**fields, **example, **({"times": suppressed + 1} if suppressed else {})}
        self._log.log(level, event, exc_info=error, extra={"fields": extra})

    def say_error(
        self,
        error: BaseException | None,
        event: str,
        example: Mapping[str, object] = _NONE,
        /,
        **fields: object,
    ) -> None:
        """Log `event` at level ERROR with the traceback of `error`."""
        self.log(logging.ERROR, event, example, error, **fields)
