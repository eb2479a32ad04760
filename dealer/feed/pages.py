"""Pages of the feed from a place on, from memory or from the database.

    page = await reader.read(place, filter)
    ... send page.entries ...
    place = page.place

An object of the feed is one line of JSON (`one_line`). Its `event` is the leaf of the log and of
bundles: the same text, but for the characters that are escaped because readers split lines there.
Beside it is `opened`, the opening of what people wrote, if there is any.
For versions of an archived table, whose events have left the database, and for those of which some
are damaged, there is an object with the first and the last of them: one damaged table does not keep
a follower from the others.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Sequence
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from dealer.errors import DatabaseDamaged
from dealer.eventlog import EventRecord
from dealer.eventlog.health import DamagedTables
from dealer.eventlog.read_only_log import ReadOnlyLog
from dealer.eventlog.recent import RecentEvents
from dealer.eventlog.rows import EVERYONE, leaf_of
from dealer.eventlog.schema import TABLE_ID
from dealer.eventlog.seat_subjects import Subjects
from dealer.eventlog.stored_form import decode
from dealer.feed.positions import Generations, Place
from dealer.feed.sequencer import FeedHead, FeedRow
from dealer.game.events import SeatTaken
from dealer.proof.canonical import one_line

EVENTS = 512
"""Events of a page, about."""

SEAT_TAKEN = SeatTaken.__name__
_ROWS = 256
_REFS = 20_000
_SELECT = (
    "SELECT f.seq, s.table_id, f.first, f.last, f.key FROM feed f"
    " JOIN stream s ON s.id = f.of_stream WHERE f.seq >= ?{} ORDER BY f.seq LIMIT ?"
)
_EVENTS = (
    "SELECT f.seq, e.version, e.type, e.schema, e.at, e.public, e.commitment, e.hidden, e.command,"
    " e.digest FROM feed f JOIN event e ON e.stream = f.of_stream AND e.version >= f.first"
    " AND e.version <= f.last WHERE f.seq >= ? AND f.seq <= ?{} ORDER BY f.seq, e.version"
)
_ARCHIVED = "SELECT 1 FROM archived a JOIN stream s ON s.id = a.stream WHERE s.{} = ?"
_REF = "SELECT ref FROM service_table WHERE table_id = ?"


class FeedFilter(NamedTuple):
    """What a follower gets: tables of this service key, one table, events of these types.

    None, and an empty set of types, stand for all.
    """

    key: int | None = None
    table: bytes | None = None
    types: frozenset[str] = frozenset()

    def passes(self, row: FeedRow) -> bool:
        return (self.key is None or row.key == self.key) and (
            self.table is None or row.table == self.table
        )


class Entry(NamedTuple):
    """One object of the feed as JSON, with what it says; `position` is the one after it.

    `version` is the last version that it stands for. `type` is empty for versions that were
    archived, or are damaged.
    """

    position: str
    text: str
    table: bytes
    version: int
    type: str
    at: int


class Missing(StrEnum):
    """Why the events of a row of the feed cannot be sent; the member of its object that says so."""

    ARCHIVED = "archived"
    DAMAGED = "damaged"


class Page(NamedTuple):
    """Objects of the feed, the place after them, and whether there may be more at present."""

    entries: list[Entry]
    place: Place
    more: bool


class FeedReader:
    """Reads the feed of `log`."""

    def __init__(
        self,
        log: ReadOnlyLog,
        head: FeedHead,
        recent: RecentEvents,
        generations: Generations,
        subjects: Subjects,
        damaged: DamagedTables,
    ) -> None:
        self._log = log
        self._damaged = damaged
        self._head = head
        self._recent = recent
        self._generations = generations
        self._subjects = subjects
        self._refs: OrderedDict[bytes, str] = OrderedDict()

    async def read(self, place: Place, filter: FeedFilter, *, limit: int = EVENTS) -> Page:
        """The next objects from a place on, for about `limit` versions.

        Raises DatabaseError; then nothing was read.
        """
        await asyncio.sleep(0)  # what is in memory is read without a pause for others
        head = self._head.seq
        rows = self._head.rows_from(place, limit=_ROWS)
        if rows is None:
            rows = await self._rows(place, filter)
        whole = len(rows) < _ROWS
        if whole:
            place_after = Place(max(head, rows[-1].seq if rows else 0, place.seq - 1) + 1)
        else:
            place_after = Place(rows[-1].seq + 1)
        rows = [row for row in rows if filter.passes(row)]
        rows, cut = _first(rows, place, limit)
        if cut is not None:
            whole, place_after = False, cut
        entries = await self._entries(rows, place, filter)
        return Page(entries, place_after, not whole)

    async def _rows(self, place: Place, filter: FeedFilter) -> list[FeedRow]:
        where, parameters = self._where(filter)
        sql = _SELECT.format(where)
        found = await self._log.fetch(sql, (place.seq, *parameters, _ROWS))
        return [FeedRow(seq, bytes(table), *rest) for seq, table, *rest in found]

    def _where(self, filter: FeedFilter) -> tuple[str, tuple[Any, ...]]:
        """Conditions for rows of `feed`, which have indexes by key and by stream."""
        conditions = ""
        parameters: list[Any] = []
        if filter.table is not None:
            number = (
                "?"
                if self._log.dialect == "postgresql"
                else "(SELECT id FROM stream WHERE table_id = ?)"
            )
            conditions += f" AND f.of_stream = {number}"
            parameters.append(filter.table)
        if filter.key is not None:
            conditions += " AND f.key = ?"
            parameters.append(filter.key)
        return conditions, tuple(parameters)

    async def _entries(
        self, rows: Sequence[FeedRow], place: Place, filter: FeedFilter
    ) -> list[Entry]:
        found: dict[int, Sequence[EventRecord] | Missing | None] = {
            row.seq: self._recent.between(row.table, row.first, row.last) for row in rows
        }
        missing = [row for row in rows if found[row.seq] is None]
        if missing:
            found |= await self._from_log(missing, filter)
        entries: list[Entry] = []
        for row in rows:
            events = found[row.seq]
            ref = self._refs.get(row.table) or await self._ref(row.table)
            start = max(row.first, place.version + 1) if row.seq == place.seq else row.first
            if events is None or isinstance(events, Missing):
                why = Missing.DAMAGED if events is None else events
                entries.append(self._skipped(row, start, ref, why))
                continue
            head = f'","table":"{row.table.hex()}","ref":{ref},"version":'
            for event in events[start - row.first :]:
                version, leaf, type = event.version, event.leaf, event.type
                if filter.types and type not in filter.types:
                    continue
                position = self._generations.text(_after(row, version))
                # A leaf begins with its time, `{"at":`, the first of its members by name.
                at = leaf[6 : leaf.index(",")]
                subject = await self._subject(row, version, filter) if type == SEAT_TAKEN else ""
                # Before the leaf, which stays the last member: its bytes can be cut out and hashed.
                opened = f',"opened":{event.private}' if event.seat == EVERYONE else ""
                text = one_line(
                    f'{{"position":"{position}{head}{version},"type":"{type}","at":{at}'
                    f'{subject}{opened},"event":{leaf}}}'
                )
                entries.append(Entry(position, text, row.table, version, type, int(at)))
        return entries

    async def _from_log(
        self, rows: Sequence[FeedRow], filter: FeedFilter
    ) -> dict[int, list[EventRecord] | Missing]:
        """The events of these rows by their numbers, or why they are missing."""
        where, parameters = self._where(filter)
        sql = _EVENTS.format(where)
        events = await self._log.fetch(sql, (rows[0].seq, rows[-1].seq, *parameters))
        stored = {seq: list(group) for seq, group in groupby(events, key=itemgetter(0))}
        found: dict[int, list[EventRecord] | Missing] = {}
        for row in rows:
            try:
                found[row.seq] = _read(row, stored.get(row.seq, []))
            except (DatabaseDamaged, LookupError, TypeError, ValueError):
                found[row.seq] = await self._why_missing(row)
        return found

    async def _why_missing(self, row: FeedRow) -> Missing:
        if await self._log.fetch(_ARCHIVED.format(TABLE_ID[self._log.dialect]), (row.table,)):
            return Missing.ARCHIVED
        self._damaged.note(
            row.table.hex(),
            f"Of versions {row.first} to {row.last} some are missing or altered in the log; "
            "restore the database from a backup.",
            version=row.last,
        )
        return Missing.DAMAGED

    def _skipped(self, row: FeedRow, first: int, ref: str, why: Missing) -> Entry:
        """The object for versions that are not in the database, or not as they were written."""
        position = self._generations.text(Place(row.seq + 1))
        text = one_line(
            f'{{"position":"{position}","table":"{row.table.hex()}","ref":{ref},'
            f'"skipped":{{"from":{first},"to":{row.last}}},"{why}":true}}'
        )
        return Entry(position, text, row.table, row.last, "", 0)

    async def _subject(self, row: FeedRow, version: int, filter: FeedFilter) -> str:
        """The member with the key's own id of the user who took a seat, if it gave one."""
        found = await self._subjects.of(row.table, version)
        if found is None or filter.key not in (None, found.key):
            return ""
        return f',"subject":{json.dumps(found.text, ensure_ascii=False)}'

    async def _ref(self, table: bytes) -> str:
        """The service's own id of a table as JSON; it never changes."""
        found = await self._log.fetch(_REF, (table,))
        ref = json.dumps(found[0][0], ensure_ascii=False) if found else "null"
        self._refs[table] = ref
        if len(self._refs) > _REFS:
            self._refs.popitem(last=False)
        return ref


def _read(row: FeedRow, found: Sequence[Any]) -> list[EventRecord]:
    """The events of a row, as the database has them after the row's number.

    Raises DatabaseDamaged, LookupError, TypeError or ValueError unless each of them is there and
    can be read.
    """
    events = [EventRecord(*decode(each[1:])) for each in found]
    if [each.version for each in events] != list(range(row.first, row.last + 1)):
        raise DatabaseDamaged("a version is missing")
    for each in events:
        each.members()
        if not isinstance(each.at, int):
            raise TypeError("a time is a number")
        each.leaf = leaf_of(row.table, each)
        each.seat, each.private = each.beside()
    return events


def _first(rows: list[FeedRow], place: Place, limit: int) -> tuple[list[FeedRow], Place | None]:
    """The first rows, with about `limit` versions, and the place after them if some are left."""
    count = 0
    for number, row in enumerate(rows):
        if row.seq == place.seq and row.last <= place.version:
            continue
        count += row.last - row.first + 1
        if count >= limit and number + 1 < len(rows):
            return rows[: number + 1], Place(row.seq + 1)
    return rows, None


def _after(row: FeedRow, version: int) -> Place:
    return Place(row.seq + 1) if version == row.last else Place(row.seq, version)
