"""Event reader: a table's committed events, and stored commands."""

from __future__ import annotations

from dealer.eventlog import EventRecord, Log
from dealer.eventlog.health import DamagedTables
from dealer.eventlog.recent import RecentEvents
from dealer.eventlog.rows import leaf_of
from dealer.game.commands import Draw
from dealer.game.decide import NoRoundSecrets
from dealer.game.events import HIDDEN_TYPES, PRIVATE_FACE_TYPES, CardDrawn, Event
from dealer.game.state import SeatHolder
from dealer.service.tables.archive import require_here
from dealer.service.tables.execution import CommandResult, StoredCommand
from dealer.service.tables.live_table import LiveTable
from dealer.service.tables.round_secret import RoundSecret, event_of, private_part, tampered
from dealer.service.tables.round_secret_cache import RoundSecretCache

CHUNK = 1000
"""Events that are read from the log at a time."""


class EventReader:
    """Reads events, from `recent` or from `log`; `secrets` decrypts their hidden parts."""

    def __init__(
        self, log: Log, recent: RecentEvents, secrets: RoundSecretCache, damaged: DamagedTables
    ) -> None:
        self._damaged = damaged
        self._log = log
        self._recent = recent
        self._secrets = secrets

    async def entries(
        self, live_table: LiveTable, after: int, limit: int | None = None
    ) -> list[EventRecord]:
        """At most `limit` events after version `after`, from memory if all of them are there.

        Raises TableArchived or DatabaseDamaged if the log does not have each of them.
        """
        upto = live_table.committed if limit is None else min(live_table.committed, after + limit)
        if upto <= after:
            return []
        found = self._recent.between(live_table.id, after + 1, upto)
        if found is not None:
            return found
        found = []
        with self._damaged.noticed(live_table.table_id):
            async for rows in self._log.stream(live_table.id, after=after, upto=upto, chunk=CHUNK):
                for row in rows:
                    row.leaf = leaf_of(live_table.id, row)
                    row.seat, row.private = row.beside()
                    if row.hidden is not None and row.type in PRIVATE_FACE_TYPES:
                        secret = await self._secrets.secret(live_table, row.members()["round"])
                        row.seat, row.private = private_part(event_of(row, secret), secret)
                found += rows
            await self._require_all(live_table, [each.version for each in found], after, upto)
        return found

    async def events(self, live_table: LiveTable, *, after: int, count: int) -> list[Event]:
        """`count` events after version `after`, with their hidden parts.

        Raises TableArchived or DatabaseDamaged if the log does not have each of them.
        """
        events = []
        with self._damaged.noticed(live_table.table_id):
            rows = await self._log.read(live_table.id, after=after, limit=count)
            versions = [row.version for row in rows]
            await self._require_all(live_table, versions, after, after + count)
            for row in rows:
                secret: RoundSecret | NoRoundSecrets = NoRoundSecrets()
                if row.type in HIDDEN_TYPES and row.hidden is not None:
                    secret = await self._secrets.secret(live_table, row.members()["round"])
                events.append(event_of(row, secret))
        return events

    async def _require_all(
        self, live_table: LiveTable, versions: list[int], after: int, upto: int
    ) -> None:
        """Raise TableArchived or DatabaseDamaged unless these are the versions after+1 … upto."""
        if versions != list(range(after + 1, upto + 1)):
            await require_here(self._log, live_table.id)
            raise tampered(live_table.table_id)

    async def find_command(self, live_table: LiveTable, name: str) -> StoredCommand | None:
        """A stored command of any age; None if the log has none of this name."""
        row = await self._log.find_command(live_table.id, name)
        if row is None or row.digest is None:
            return None
        return StoredCommand.read(row.version, row.digest)

    async def seal_after(self, live_table: LiveTable, version: int) -> int | None:
        """The version of the first DeckSealed after `version`; None if there is none yet."""
        async for rows in self._log.stream(live_table.id, after=version, chunk=CHUNK):
            for row in rows:
                if row.type == "DeckSealed":
                    return row.version
        return None

    async def drawn_at_seal(
        self, live_table: LiveTable, draw: Draw, *, sealed: int
    ) -> CommandResult | None:
        """The cards that `draw` got in the append with the DeckSealed at `sealed`; None if none."""
        drawn = await self._log.read(live_table.id, after=sealed, limit=draw.count)
        if len(drawn) < draw.count or any(row.type != "CardDrawn" or row.command for row in drawn):
            return None
        seat, taken_at = draw.actor.seat, draw.actor.taken_at
        if seat is not None and taken_at is not None:  # the player may have had another seat then
            seat = live_table.table.seat_at(SeatHolder(seat, taken_at), drawn[0].version)
        events = await self.events(live_table, after=drawn[0].version - 1, count=draw.count)
        if any(event.seat != seat for event in events if isinstance(event, CardDrawn)):
            return None
        return CommandResult(drawn[-1].version, events)
