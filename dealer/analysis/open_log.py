"""`dealer.open_log`: read-only access to an event log, with and without `asyncio`.

The secrets of a table's rounds are published with RoundClosed, or decrypted with the house key.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from threading import Thread
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from dealer import errors
from dealer.analysis.open_bundle import PastTable, Viewer, past_table
from dealer.analysis.records import LoggedEvent, LoggedRound, LoggedShuffle, LoggedTable
from dealer.eventlog import EventRecord, HouseKeys, ReadOnlyLog
from dealer.eventlog.address import sqlite_address
from dealer.eventlog.backends import open_readonly
from dealer.eventlog.keys import key_checks, read_keys
from dealer.game import events
from dealer.game.decide import NoRoundSecrets
from dealer.game.events import HIDDEN_TYPES
from dealer.history.replay import Game
from dealer.projector.queries import ALL_TABLES
from dealer.proof.verify import Report, Swap, verify
from dealer.service.reading.bundle import BundleRange, bundle_lines, bundle_range
from dealer.service.reading.past_states import AnySecret, require_version, table_at
from dealer.service.tables.archive import require_here
from dealer.service.tables.round_secret import RoundSecret, event_of, tampered
from dealer.service.tables.table_ids import table_with_prefix


async def house_keys(log: ReadOnlyLog, file: Path) -> tuple[HouseKeys, ...]:
    """The keys in `file` and beside it; HouseKeyError if they are not this log's."""
    checks = set((await key_checks(log)).values())
    keys = await asyncio.to_thread(read_keys, file)
    ours = tuple(key for key in keys if key.check in checks)
    if not ours:
        raise errors.HouseKeyError(f"The key in {file} is not the key of {log.name}.")
    return ours


@contextmanager
def taken_apart(table: str) -> Iterator[None]:
    """Raise DatabaseDamaged if the block cannot take the rows of this table apart."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError):
        raise tampered(table) from None


class RoundSecrets:
    """The secrets of one table's rounds, as far as they are known; `open` reads them.

    A closed round has published its secret. The open round's secret needs one of `keys`.
    """

    def __init__(
        self, table: bytes, keys: Sequence[HouseKeys], published: dict[int, bytes]
    ) -> None:
        self._table = table
        self._keys = keys
        self._published = published
        self._known: dict[int, AnySecret] = {}

    @classmethod
    async def open(cls, log: ReadOnlyLog, table: bytes, keys: Sequence[HouseKeys]) -> RoundSecrets:
        """Raises DatabaseError."""
        published = {}
        async for rows in log.stream_types(table, ("RoundClosed",)):
            for row in rows:
                with taken_apart(table.hex()):
                    members = row.members()
                    published[members["round"]] = bytes.fromhex(members["secret"])
        return cls(table, keys, published)

    def known(self, number: int) -> bool:
        """Whether `of` has the secret of this round."""
        return isinstance(self.of(number), RoundSecret)

    def of(self, number: int) -> AnySecret:
        """The secret of a round; of an open one only after `opened` has got its RoundOpened."""
        if number not in self._known and number in self._published:
            self._known[number] = RoundSecret(
                table=self._table, round=number, secret=self._published[number], wrapped=b""
            )
        return self._known.get(number, NoRoundSecrets())

    async def opened(self, row: EventRecord) -> AnySecret:
        """The secret of the round that this RoundOpened began."""
        with taken_apart(self._table.hex()):
            number = row.members()["round"]
            if number not in self._published and self._keys:
                self._known[number] = self._unwrap(number, row.hidden or b"")
            return self.of(number)

    def _unwrap(self, number: int, wrapped: bytes) -> RoundSecret:
        for key in self._keys:
            with suppress(errors.DatabaseDamaged):  # it may be wrapped under an earlier key
                secret = key.unwrap(wrapped, table=self._table, round=number)
                return RoundSecret(table=self._table, round=number, secret=secret, wrapped=wrapped)
        raise errors.HouseKeyError(
            f"The secret of round {number} cannot be decrypted with this house key, nor with the "
            "earlier ones beside it."
        )


CHUNK = 1000
"""Events that are read at a time."""

_SELECT = re.compile(r"\s*(--[^\n]*\n\s*)*(SELECT|WITH)\b", re.IGNORECASE)


class AsyncLog:
    """An open log; `close` it, or use it with `async with`. `dealer.open_log` makes it.

    `table` is a table's id in hex, or a prefix of it that no other table has. Every method may
    raise UnknownTable, TableArchived (its bundle is in the archive) and DatabaseError.
    """

    def __init__(
        self, log: ReadOnlyLog, url: str, key_file: Path | None, keys: Sequence[HouseKeys]
    ) -> None:
        self._log = log
        self._url = url
        self._key_file = key_file
        self._keys = keys

    @classmethod
    async def open(cls, url: str, house_key: Path | None) -> AsyncLog:
        """Raises ConfigurationError, HouseKeyError or DatabaseError."""
        log = await open_readonly(url)
        try:
            keys = () if house_key is None else await house_keys(log, house_key)
        except BaseException:
            await log.close()
            raise
        return cls(log, url, house_key, keys)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections to the database."""
        await self._log.close()

    async def tables(self) -> list[LoggedTable]:
        """All tables whose events are in the log, the oldest first."""
        found = []
        for table, version, at, public, last in await self._log.fetch(ALL_TABLES):
            id_ = bytes(table).hex()
            with taken_apart(id_):
                name = json.loads(public).get("name")
                if not isinstance(at, int):
                    raise TypeError("a time is a number")
            name = name if isinstance(name, str) else None
            found.append(LoggedTable(id_, name, at, version, last == "TableClosed"))
        return found

    async def events(
        self, table: str, *, after: int = 0, upto: int | None = None
    ) -> AsyncIterator[LoggedEvent]:
        """The events with versions after+1 … upto, in order, each of its own class."""
        async for chunk in self.event_chunks(table, after=after, upto=upto):
            for event in chunk:
                yield event

    async def event_chunks(
        self, table: str, *, after: int = 0, upto: int | None = None
    ) -> AsyncIterator[list[LoggedEvent]]:
        """The events in lists of up to `CHUNK`."""
        id_ = await self._find(table)
        secrets = await RoundSecrets.open(self._log, id_, self._keys)
        opened = await self._log.round_versions(id_, upto=after)
        if opened:
            (row,) = await self._log.read(id_, after=opened[-1] - 1, limit=1)
            await secrets.opened(row)
        async for rows in self._log.stream(id_, after=after, upto=upto, chunk=CHUNK):
            yield [await _logged(id_.hex(), row, secrets) for row in rows]

    async def rounds(self, table: str) -> list[LoggedRound]:
        """The rounds in order; the last one may be open."""
        id_ = await self._find(table)
        found: list[LoggedRound] = []
        async for rows in self._log.stream_types(id_, ("RoundOpened", "RoundClosed")):
            with taken_apart(id_.hex()):
                for row in rows:
                    members = row.members()
                    if row.type == "RoundOpened":
                        found.append(
                            LoggedRound(
                                id_.hex(), members["round"], row.version, row.at, None, None,
                                len(members["deck"]), members["entropy"], members["commitment"],
                                None,
                            )
                        )  # fmt: skip
                    else:
                        found[-1] = found[-1]._replace(
                            closed=row.version, closed_at=row.at, secret=members["secret"]
                        )
        return found

    async def shuffles(self, table: str, *, round: int | None = None) -> list[LoggedShuffle]:
        """The shuffles in order, of one round or of all, with their swaps and the words of each.

        The swaps of closed rounds are recomputed from a verified bundle: raises ProofFault if the
        log was forged.
        """
        logged = [event async for event in self.events(table)]
        swaps: Sequence[Swap] = ()
        if any(event.type == "RoundClosed" for event in logged):
            swaps = (await self.game(table)).swaps
        found = _shuffles_of(logged, swaps)
        return [shuffle for shuffle in found if round in (None, shuffle.round)]

    async def state(self, table: str, at: int | None = None, *, viewer: Viewer = None) -> PastTable:
        """The table at a version, by default the newest, as a viewer saw it then.

        `viewer` is a seat, `public` or None for what everyone saw, or `house` for every card.
        Raises BadRequest if there is no such version, or if that seat was free.
        """
        id_ = await self._find(table)
        head = await self._log.head(id_) or 0
        version = head if at is None else at
        require_version(version, head=head)
        secrets = await RoundSecrets.open(self._log, id_, self._keys)
        opened = await self._log.round_versions(id_, upto=version)
        state = await table_at(self._log, id_, version, opened=opened, secret_of=secrets.opened)
        known = state.round is not None and secrets.known(state.round.number)
        return past_table(id_.hex(), state, viewer, secret_known=known)

    async def bundle(self, table: str) -> list[str]:
        """The lines of the table's bundle, without newlines.

        With the house key it ends at the newest version, else at the newest signed one. Raises
        UnknownTable if the house has signed nothing yet and the key is not given.
        """
        id_ = await self._find(table)
        extent = await self._range(id_)
        return [line async for line in bundle_lines(self._log, extent)]

    async def verify(self, table: str, *, saved: Sequence[str] = ()) -> Report:
        """The verifier's report on that bundle; `saved` are checkpoints that you kept."""
        lines = await self.bundle(table)
        return await asyncio.to_thread(verify, lines, saved=saved)

    async def game(self, table: str) -> Game:
        """The verified game, with `moments()`; raises the ProofFault of a forged log."""
        lines = await self.bundle(table)
        return await asyncio.to_thread(Game.read, lines)

    async def query(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        """The rows of one SELECT with `?` for its parameters, each by the names of its columns.

        Raises BadRequest for other statements.
        """
        if not _SELECT.match(sql):
            raise errors.BadRequest("`query` runs a statement that begins with SELECT or WITH.")
        try:
            rows = await self._log.fetch(sql, parameters)
        except errors.DatabaseReadOnly:
            raise errors.BadRequest("A log that is opened for reading is never written.") from None
        return [dict(row._mapping) for row in rows]

    async def _range(self, table: bytes) -> BundleRange:
        if self._key_file is not None:
            return await bundle_range(self._log, self._url, table, house_key=self._key_file)
        head = await self._log.head(table) or 0
        newest = await self._log.newest_checkpoint(table, upto=head)
        if newest is None:
            raise errors.UnknownTable(
                "The house has signed nothing of this table yet; with the house key it is signed."
            )
        return BundleRange(table, newest[0], head, newest)

    async def _find(self, text: str) -> bytes:
        """The id of the one table whose id starts with `text`."""
        try:
            found = await table_with_prefix(self._log, text)
        except errors.BadRequest as error:
            raise errors.UnknownTable(str(error)) from None
        await require_here(self._log, found)
        return found


async def _logged(table: str, row: EventRecord, secrets: RoundSecrets) -> LoggedEvent:
    round_ = row.members().get("round", 0)
    secret: AnySecret = NoRoundSecrets()
    with taken_apart(table):
        if row.type == "RoundOpened":
            await secrets.opened(row)
        elif row.type in HIDDEN_TYPES and row.hidden is not None:
            secret = secrets.of(round_)
        event = event_of(row, secret)
    return LoggedEvent(table, row.version, row.at, round_, row.type, row.command, event)


def _shuffles_of(logged: Iterable[LoggedEvent], swaps: Iterable[Swap]) -> list[LoggedShuffle]:
    """All shuffles of a table in order, from all of its events and the recomputed swaps."""
    found: dict[tuple[int, int], LoggedShuffle] = {}
    committed: dict[tuple[int, int], list[int]] = defaultdict(list)
    revealed: dict[tuple[int, int], list[int]] = defaultdict(list)
    steps: dict[tuple[int, int], list[Swap]] = defaultdict(list)
    for swap in swaps:
        steps[swap.round, swap.shuffle_index].append(swap)
    for entry in logged:
        match entry.event:
            case events.EntropyCommitted(round=round_, k=k, seat=seat):
                committed[round_, k].append(seat)
            case events.EntropyRevealed(round=round_, k=k, seat=seat):
                revealed[round_, k].append(seat)
            case events.ShuffleStarted() as event:
                found[event.round, event.k] = _started(entry, event)
            case events.DeckSealed(round=round_, k=k):
                found[round_, k] = _ended(found[round_, k], entry, "sealed")
            case events.ShuffleVoided(round=round_, k=k):
                found[round_, k] = _ended(found[round_, k], entry, "voided")
    return [
        shuffle._replace(
            committed=tuple(sorted(committed[id_])),
            revealed=tuple(sorted(revealed[id_])),
            swaps=tuple(steps[id_]),
        )
        for id_, shuffle in found.items()
    ]


def _started(entry: LoggedEvent, event: events.ShuffleStarted) -> LoggedShuffle:
    return LoggedShuffle(
        table=entry.table,
        round=event.round,
        k=event.k,
        stack=event.stack,
        n=event.n,
        algorithm=event.algorithm,
        steps=event.steps,
        started=entry.version,
        started_at=entry.at,
    )


def _ended(shuffle: LoggedShuffle, entry: LoggedEvent, outcome: str) -> LoggedShuffle:
    return shuffle._replace(ended=entry.version, ended_at=entry.at, outcome=outcome)


T = TypeVar("T")
P = ParamSpec("P")
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


def _blocking(
    method: Callable[Concatenate[AsyncLog, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[OpenLog, P], T]:
    @wraps(method)
    def run(self: OpenLog, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(method(self._open(), *args, **kwargs))

    return run


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
            raise errors.DealerError("This log is open already; call dealer.open_log again.")
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

    def events(
        self, table: str, *, after: int = 0, upto: int | None = None
    ) -> Iterator[LoggedEvent]:
        """See `AsyncLog.events`."""
        chunks = self._open().event_chunks(table, after=after, upto=upto)

        async def following() -> list[LoggedEvent]:
            return await anext(chunks, [])

        while chunk := self._run(following()):
            yield from chunk

    tables = _blocking(AsyncLog.tables)
    rounds = _blocking(AsyncLog.rounds)
    shuffles = _blocking(AsyncLog.shuffles)
    state = _blocking(AsyncLog.state)
    bundle = _blocking(AsyncLog.bundle)
    verify = _blocking(AsyncLog.verify)
    game = _blocking(AsyncLog.game)
    query = _blocking(AsyncLog.query)

    def _open(self) -> AsyncLog:
        if self._loop is None and self._log is not None:
            raise errors.DealerError("This log is open with `async with`: use what that gave.")
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
            raise errors.DealerError("This log is closed.")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
