"""Results of committed batches on their way to the event loop's listeners and callers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from dealer.errors import DatabaseError
from dealer.eventlog.locked_requests import Pending
from dealer.eventlog.rows import Append, Result

Committed = Callable[[list[tuple[Append, Result]]], None]


class Deliveries:
    """A queue of batches and their results, in the order of their commits.

    The order holds when a batch of the writer thread is followed by one of the loop: the callback
    that delivers the first one may not have been called when the second one is committed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.listeners: list[Committed] = []
        self._loop = loop
        self._batches: deque[tuple[Sequence[Pending], Sequence[Result]]] = deque()

    def add(self, batch: Sequence[Pending], results: Sequence[Result]) -> None:
        """Queue a batch and its results, one for each request; called on any thread."""
        self._batches.append((batch, results))

    def deliver(self) -> None:
        """Deliver all queued batches; called on the loop, and never inside of `submit`."""
        while self._batches:
            self._deliver(*self._batches.popleft())

    def _deliver(self, batch: Sequence[Pending], results: Sequence[Result]) -> None:
        pairs = [(pending[0], result) for pending, result in zip(batch, results, strict=True)]
        for listener in tuple(self.listeners):
            try:
                listener(pairs)
            except Exception as error:
                self._loop.call_exception_handler(
                    {"message": "commit callback failed", "exception": error}
                )
        for (_, future), result in zip(batch, results, strict=True):
            if future is not None:
                if isinstance(result, DatabaseError):
                    reject(future, result)
                else:
                    resolve(future, result)


def resolve(future: asyncio.Future[Any], result: object) -> None:
    """Set the result unless the caller has cancelled the future."""
    if not future.done():
        future.set_result(result)


def reject(future: asyncio.Future[Any], error: Exception) -> None:
    """Set the exception unless the caller has cancelled the future."""
    if not future.done():
        future.set_exception(error)
