"""`dealer.open_log`: read-only access to an event log, with and without `asyncio`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import Any, Self, TypeVar

from dealer.analysis.async_log import AsyncLog
from dealer.analysis.past_table import PastTable, Viewer
from dealer.analysis.records import LoggedEvent, LoggedRound, LoggedShuffle, LoggedTable
from dealer.errors import DealerError
from dealer.eventlog.address import sqlite_address
from dealer.history.replay import Game
from dealer.proof.verify import Report

T = TypeVar("T")
AnyPath = str | os.PathLike[str]


def open_log(url: AnyPath, *, house_key: AnyPath | None = None) -> OpenLog:
    """The log at `url`, read-only: `sqlite:///FILE`, a file's path, or `postgresql://…`.

    A server may write the same log meanwhile. `house_key` is the file of the house key: with it
    hidden cards of open rounds are known, too; without it only what is public there, and all of the
    closed rounds, whose secrets are published.

        with dealer.open_log("dealer.db") as log:
            print(log.tables())

        async with dealer.open_log("dealer.db") as log:
            print(await log.tables())

    The log opens with the block, or with the first call without a block. Opening raises
    ConfigurationError, HouseKeyError or DatabaseError; without a block call `close` at the end.
    """
    text = os.fspath(url)
    return OpenLog(
        text if "://" in text else sqlite_address(Path(text)),
        # Not looked for next to the database: an analyst needs no open hands, and would see them.
        None if house_key is None else Path(house_key),
    )


class OpenLog:
    """The methods of `AsyncLog` as ordinary ones; its connections are used in a thread of its own.

    With `async with` it gives the `AsyncLog` instead.
    """

    def __init__(self, url: str, house_key: Path | None) -> None:
        self._url = url
        self._house_key = house_key
        self._log: AsyncLog | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> AsyncLog:
        if self._log is not None:
            raise DealerError("This log is open already; call dealer.open_log again.")
        self._log = await AsyncLog.open(self._url, self._house_key)
        return self._log

    async def __aexit__(self, *_: object) -> None:
        log, self._log = self._log, None
        if log is not None:
            await log.close()

    def close(self) -> None:
        """Close the connections and end the thread; the next call opens them again."""
        log, loop, thread = self._log, self._loop, self._thread
        if loop is None or thread is None:
            return
        try:
            if log is not None:
                self._run(log.close())
        finally:
            self._log = self._loop = self._thread = None
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def tables(self) -> list[LoggedTable]:
        """See `AsyncLog.tables`."""
        return self._run(self._open().tables())

    def events(
        self, table: str, *, after: int = 0, upto: int | None = None
    ) -> Iterator[LoggedEvent]:
        """See `AsyncLog.events`."""
        chunks = self._open().event_chunks(table, after=after, upto=upto)

        async def following() -> list[LoggedEvent]:
            return await anext(chunks, [])

        while chunk := self._run(following()):
            yield from chunk

    def rounds(self, table: str) -> list[LoggedRound]:
        """See `AsyncLog.rounds`."""
        return self._run(self._open().rounds(table))

    def shuffles(self, table: str, *, round: int | None = None) -> list[LoggedShuffle]:
        """See `AsyncLog.shuffles`."""
        return self._run(self._open().shuffles(table, round=round))

    def state(self, table: str, at: int | None = None, *, viewer: Viewer = None) -> PastTable:
        """See `AsyncLog.state`."""
        return self._run(self._open().state(table, at, viewer=viewer))

    def bundle(self, table: str) -> list[str]:
        """See `AsyncLog.bundle`."""
        return self._run(self._open().bundle(table))

    def verify(self, table: str, *, saved: Sequence[str] = ()) -> Report:
        """See `AsyncLog.verify`."""
        return self._run(self._open().verify(table, saved=saved))

    def game(self, table: str) -> Game:
        """See `AsyncLog.game`."""
        return self._run(self._open().game(table))

    def query(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        """See `AsyncLog.query`."""
        return self._run(self._open().query(sql, *parameters))

    def _open(self) -> AsyncLog:
        if self._loop is None and self._log is not None:
            raise DealerError("This log is open with `async with`: use what that gave.")
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = Thread(target=self._loop.run_forever, name="dealer log", daemon=True)
            self._thread.start()
        if self._log is None:
            try:
                self._log = self._run(AsyncLog.open(self._url, self._house_key))
            except BaseException:
                self.close()
                raise
        return self._log

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            raise DealerError("This log is closed.")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
