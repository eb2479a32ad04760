"""What happens at a table, one event after the other, for as many readers as there are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from dealer.client.witness import Happened
from dealer.errors import DealerError


class Happenings(AsyncIterator[Happened]):
    """An asynchronous iterator over events; `branch` gives another that begins now."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Happened | DealerError | None] = asyncio.Queue()
        self._branches: list[Happenings] = []
        self._over = False
        self._error: DealerError | None = None

    def branch(self) -> Happenings:
        """A reader of what comes from now on."""
        branch = Happenings()
        if self._over:
            branch.end(self._error)
        else:
            self._branches.append(branch)
        return branch

    def put(self, happened: Happened) -> None:
        for branch in self._branches:
            branch._queue.put_nowait(happened)

    def end(self, error: DealerError | None) -> None:
        """No more comes; readers stop when they have read the rest, or raise `error`."""
        if self._over:
            return
        self._over, self._error = True, error
        self._queue.put_nowait(error)
        for branch in self._branches:
            branch.end(error)

    def close(self) -> None:
        """Stop reading; what was not read is dropped."""
        self.end(None)
        self._queue = asyncio.Queue()
        self._queue.put_nowait(None)

    def __aiter__(self) -> Happenings:
        return self

    async def __anext__(self) -> Happened:
        item = await self._queue.get()
        if isinstance(item, Happened):
            return item
        self._queue.put_nowait(item)  # for whoever asks once more
        if item is None:
            raise StopAsyncIteration
        raise item
