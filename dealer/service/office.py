"""The operators' desk: what they do to the house stands in its journal, in the same transaction."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from dealer.eventlog import Log, Reading, office
from dealer.eventlog.office import Archived, Deed
from dealer.service.clock import utc_ms

T = TypeVar("T")

_JOURNAL = "SELECT at, who, what, target, why, details FROM journal ORDER BY at DESC, id LIMIT ?"


class Line(NamedTuple):
    """A line of the journal, as `Deed` has it."""

    at: int
    who: str
    what: str
    target: str
    why: str
    details: dict[str, Any]


class Office:
    """What `who` does to the house whose log is `log`. Every method may raise DatabaseError."""

    def __init__(self, log: Log, *, who: str) -> None:
        self._log = log
        self._who = who

    def now(self) -> int:
        """Milliseconds since 1970, UTC."""
        return utc_ms()

    async def disable(self, target: str, *, why: str) -> bool:
        """Nothing new at a table, by its id in hex, or in the whole `house`; False if so before."""
        return await self._do(office.disable, self._deed("disable", target, why))

    async def enable(self, target: str, *, why: str) -> bool:
        return await self._do(office.enable, self._deed("enable", target, why))

    async def note(
        self, what: str, target: str, *, why: str = "", details: Mapping[str, Any] | None = None
    ) -> None:
        """Write down what was done by other means."""
        await self._do(office.enter, self._deed(what, target, why, details))

    async def archive(self, table: bytes, archived: Archived, *, why: str) -> None:
        """Let the events of this table be deleted; see `dealer.eventlog.office.archive`."""
        details = {"file": archived.file, "sha256": archived.sha256.hex(), "size": archived.size}
        deed = self._deed("archive", table.hex(), why, details)
        await self._log.carry_out(
            lambda connection: office.archive(connection, table, archived, deed)
        )

    async def add_key(self, name: str, check: bytes, *, why: str) -> None:
        """Make a new house key known, by its check value under a name of its own."""
        deed = self._deed("rotate-key", name, why, {"check": check.hex()[:8]})
        await self._log.carry_out(lambda connection: office.add_key(connection, name, check, deed))

    async def retire_key(self, name: str, *, why: str) -> None:
        """Write down that the key of this name is missed no more."""
        deed = self._deed("retire-key", name, why)
        await self._log.carry_out(
            lambda connection: office.add_key(connection, name + office.RETIRED, b"", deed)
        )

    async def keep_key(self, name: str, *, why: str) -> None:
        """Take back `retire_key`."""
        deed = self._deed("keep-key", name, why)
        await self._log.carry_out(lambda connection: office.keep_key(connection, name, deed))

    def random(self, length: int) -> bytes:
        """So many bytes from the operating system."""
        return secrets.token_bytes(length)

    async def journal(self, *, limit: int) -> list[Line]:
        """The newest lines, the newest first."""
        return await read_journal(self._log, limit=limit)

    def _deed(
        self, what: str, target: str, why: str, details: Mapping[str, Any] | None = None
    ) -> Deed:
        return Deed(
            at=self.now(),
            id=secrets.token_bytes(8),
            who=self._who,
            what=what,
            target=target,
            why=why,
            details=dict(details or {}),
        )

    async def _do(self, work: Callable[[Any, Deed], T], deed: Deed) -> T:
        return await self._log.carry_out(lambda connection: work(connection, deed))


async def read_journal(log: Reading, *, limit: int) -> list[Line]:
    """The newest lines of the journal, the newest first."""
    found = await log.fetch(_JOURNAL, (limit,))
    return [Line._make((*row[:5], json.loads(row[5]))) for row in found]


async def record_schema(log: Log, *, who: str = "dealer serve") -> tuple[str, str] | None:
    """Note in the journal, once, the schema that the database stands at.

    Returns (before, now) if the journal did not have it, `before` being empty at the first time.
    """
    ((now,),) = await log.fetch("SELECT version_num FROM alembic_version")
    known = await log.fetch(
        "SELECT details FROM journal WHERE what = ? ORDER BY at DESC LIMIT 1", ("migrate",)
    )
    before = json.loads(known[0][0])["to"] if known else ""
    if before == now:
        return None
    office_ = Office(log, who=who)
    await office_.note("migrate", "schema", details={"from": before, "to": now})
    return before, now
