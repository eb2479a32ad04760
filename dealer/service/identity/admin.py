"""Admin service: the operators' actions, each with its journal entry in the same transaction."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeVar, TypeVarTuple

from dealer.eventlog import Log, ReadOnlyLog, services
from dealer.eventlog import admin as admin_tables
from dealer.eventlog.admin import Archived, JournalEntry
from dealer.eventlog.keys import RETIRED
from dealer.service.clock import utc_ms
from dealer.service.identity.service_keys import RIGHTS, check_key, digest_of, new_key

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_JOURNAL = """
SELECT at, id, who, what, target, why, details FROM journal ORDER BY at DESC, id LIMIT ?"""


class Operator:
    """Operator `who` of `log`: makes the journal entries, and writes them with what was done."""

    def __init__(self, log: Log, *, who: str) -> None:
        self._log = log
        self._who = who

    def entry(
        self, what: str, target: str, why: str, details: Mapping[str, Any] | None = None
    ) -> JournalEntry:
        id = secrets.token_bytes(8)
        return JournalEntry(utc_ms(), id, self._who, what, target, why, dict(details or {}))

    async def _run(self, work: Callable[[Any, *Ts], T], *given: *Ts) -> T:
        return await self._log.run_in_transaction(work, *given)


class AdminService(Operator):
    """The actions of an operator. Every method may raise DatabaseError."""

    async def disable(self, target: str, *, why: str) -> bool:
        """Refuse new seats and rounds at a table, by its id in hex, or at all with target `house`.

        Returns False if it was disabled before.
        """
        return await self._run(admin_tables.disable, self.entry("disable", target, why))

    async def enable(self, target: str, *, why: str) -> bool:
        """Take back `disable`; False if it was not disabled."""
        return await self._run(admin_tables.enable, self.entry("enable", target, why))

    async def note(
        self, what: str, target: str, *, why: str = "", details: Mapping[str, Any] | None = None
    ) -> None:
        """Add a journal entry for what was done by other means."""
        await self._run(admin_tables.add_entry, self.entry(what, target, why, details))

    async def record_backup(self, folder: str) -> None:
        """Record that a backup was written to this folder, whose age is a metric of every node."""
        entry = self.entry("backup", "house", "", {"folder": folder})
        await self._run(admin_tables.record_backup, entry)

    async def archive(self, table: bytes, archived: Archived, *, why: str) -> None:
        """Allow the events of this table to be deleted; see `dealer.eventlog.admin.archive`."""
        details = {"file": archived.file, "sha256": archived.sha256.hex(), "size": archived.size}
        entry = self.entry("archive", table.hex(), why, details)
        await self._run(admin_tables.archive, table, archived, entry)

    async def replace_bundle(
        self, table: bytes, data: bytes, *, versions: Sequence[int], why: str
    ) -> None:
        """Record an archived table's new bundle, without the openings of these versions."""
        digest = sha256(data)
        details = {"versions": list(versions), "sha256": digest.hexdigest()}
        entry = self.entry("forget", table.hex(), why, details)
        await self._run(admin_tables.replace_bundle, table, len(data), digest.digest(), entry)

    async def add_key(self, name: str, check: bytes, *, why: str) -> None:
        """Store the check value of a new house key under a name of its own."""
        entry = self.entry("rotate-key", name, why, {"check": check.hex()[:8]})
        await self._run(admin_tables.add_key, name, check, entry)

    async def retire_key(self, name: str, *, why: str) -> None:
        """Record that the key of this name is no longer needed."""
        entry = self.entry("retire-key", name, why)
        await self._run(admin_tables.add_key, name + RETIRED, b"", entry)

    async def keep_key(self, name: str, *, why: str) -> None:
        """Take back `retire_key`."""
        entry = self.entry("keep-key", name, why)
        await self._run(admin_tables.keep_key, name, entry)

    async def add_service_key(self, name: str, rights: Sequence[str], *, why: str = "") -> str:
        """Add a key of another server and return it; it is stored nowhere.

        `rights` are some of `service_keys.RIGHTS`. Raises ConfigurationError for a name or a right
        that cannot be, ConcurrentUpdate if a key has or had this name.
        """
        check_key(name, rights)
        key, granted = new_key(), [right for right in RIGHTS if right in rights]
        entry = self.entry("add-service-key", name, why, {"rights": granted})
        row = {
            "name": name,
            "digest": digest_of(key),
            "rights": " ".join(granted),
            "created_at": entry.at,
        }
        await self._run(services.add_key, row, entry)
        return key

    async def revoke_service_key(self, name: str, *, why: str) -> bool:
        """Revoke a key; False if no valid key has this name."""
        entry = self.entry("revoke-service-key", name, why)
        return await self._run(services.revoke_key, name, entry)


async def read_journal(log: ReadOnlyLog, *, limit: int) -> list[JournalEntry]:
    """At most `limit` entries, the newest first; times in milliseconds since 1970, UTC."""
    found = await log.fetch(_JOURNAL, (limit,))
    return [JournalEntry._make((*row[:6], admin_tables.details_in(row[6]))) for row in found]


async def record_schema(log: Log, *, who: str = "dealer serve") -> tuple[str, str] | None:
    """Add a journal entry for the schema revision of the database, once for each revision.

    Returns (before, now) if it was added; `before` is empty the first time.
    """
    (now,) = await log.fetch_row("alembic_version", "SELECT version_num FROM alembic_version")
    entry = AdminService(log, who=who).entry("migrate", "schema", "", {"to": now})
    before = await log.run_in_transaction(admin_tables.record_schema, entry)
    return None if before is None else (before, now)
