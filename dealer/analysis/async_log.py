"""Read-only access to an event log, for `asyncio`."""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from dealer.analysis.past_table import PastTable, Viewer, past_table
from dealer.analysis.records import LoggedEvent, LoggedRound, LoggedShuffle, LoggedTable
from dealer.analysis.round_secrets import RoundSecrets, house_keys, taken_apart
from dealer.errors import BadRequest, DatabaseReadOnly, UnknownTable
from dealer.eventlog import EventRecord, HouseKeys, ReadOnlyLog
from dealer.eventlog.backends import open_readonly
from dealer.game import events
from dealer.game.decide import NoRoundSecrets
from dealer.history.replay import Game
from dealer.projector.queries import ALL_TABLES
from dealer.proof.verify import Report, Swap, verify
from dealer.service.reading.bundle import BundleRange, bundle_lines, bundle_range
from dealer.service.reading.past_states import AnySecret, require_version, table_at
from dealer.service.tables.archive import require_here
from dealer.service.tables.decoding import event_of
from dealer.service.tables.table_ids import table_with_prefix

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
                name = json.loads(public)["rules"].get("name")
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
            raise BadRequest("`query` runs a statement that begins with SELECT or WITH.")
        try:
            rows = await self._log.fetch(sql, parameters)
        except DatabaseReadOnly:
            raise BadRequest("A log that is opened for reading is never written.") from None
        return [dict(row._mapping) for row in rows]

    async def _range(self, table: bytes) -> BundleRange:
        if self._key_file is not None:
            return await bundle_range(self._log, self._url, table, house_key=self._key_file)
        head = await self._log.head(table) or 0
        newest = await self._log.newest_checkpoint(table, upto=head)
        if newest is None:
            raise UnknownTable(
                "The house has signed nothing of this table yet; with the house key it is signed."
            )
        return BundleRange(table, newest[0], head, newest)

    async def _find(self, text: str) -> bytes:
        """The id of the one table whose id starts with `text`."""
        try:
            found = await table_with_prefix(self._log, text)
        except BadRequest as error:
            raise UnknownTable(str(error)) from None
        await require_here(self._log, found)
        return found


async def _logged(table: str, row: EventRecord, secrets: RoundSecrets) -> LoggedEvent:
    round_ = row.members().get("round", 0)
    secret: AnySecret = NoRoundSecrets()
    with taken_apart(table):
        if row.type == "RoundOpened":
            await secrets.opened(row)
        elif row.hidden is not None:
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
