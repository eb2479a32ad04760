"""The events of one table as an asynchronous iterator, with any number of readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from dealer.client.event_verifier import TableEvent
from dealer.errors import DealerError


class EventStream(AsyncIterator[TableEvent]):
    """An asynchronous iterator over events; `branch` returns another that starts now."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[TableEvent | DealerError | None] = asyncio.Queue()
        self._branches: list[EventStream] = []
        self._over = False
        self._error: DealerError | None = None

    def branch(self) -> EventStream:
        """A new reader of the events from now on."""
        branch = EventStream()
        if self._over:
            branch.end(self._error)
        else:
            self._branches = [*(other for other in self._branches if not other._over), branch]
        return branch

    def put(self, event: TableEvent) -> None:
        """Pass an event to every branch."""
        for branch in self._branches:
            if not branch._over:
                branch._queue.put_nowait(event)

    def unread(self) -> list[TableEvent]:
        """Take the events that came and were not read yet."""
        queue = self._queue
        return [item for _ in range(queue.qsize()) if isinstance(item := queue.get_nowait(), tuple)]

    def end(self, error: DealerError | None) -> None:
        """End the stream: readers get the events that are left, then stop or raise `error`."""
        if self._over:
            return
        self._over, self._error = True, error
        self._queue.put_nowait(error)
        for branch in self._branches:
            branch.end(error)

    def close(self) -> None:
        """Stop reading and drop the unread events."""
        self.end(None)
        self._queue = asyncio.Queue()
        self._queue.put_nowait(None)

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> TableEvent:
        item = await self._queue.get()
        if isinstance(item, TableEvent):
            return item
        self._queue.put_nowait(item)  # for the next call
        if item is None:
            raise StopAsyncIteration
        raise item
