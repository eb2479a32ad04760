"""Tables of services: which key opened a table, the table of a service's own id, lists of them; and
the operators' journal of what services do to others.

An entry of the journal is written right after its command was committed, in a transaction of its
own, so that no command waits for it. The event itself is in the log in any case; a crash in between
loses the entry.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from dealer.errors import BadRequest, DealerError, NotEntitled, UnknownTable
from dealer.eventlog import Log, ReadOnlyLog
from dealer.eventlog.services import claim_table, owner_of, table_of_ref
from dealer.feed.pages import FeedFilter
from dealer.game.events import TYPES
from dealer.projector.queries import every_table, tables_of_key
from dealer.service.identity.admin import AdminService
from dealer.service.identity.service_keys import ServiceKey
from dealer.service.tables.execution import IdempotencyKey

CACHED = 16_384
"""Tables whose owner is kept in memory, at most."""


class Owner(NamedTuple):
    """The key, by its id, that opens a table, and the table's `ref`, unique for the key."""

    key: int
    ref: str | None = None


def scope_of(key: ServiceKey) -> str:
    """The scope of a key's command ids, see `IdempotencyKey`."""
    return f"service:{key.id}"


def opening_key(
    key: ServiceKey, *, ref: str | None, cmd: str | None, content: bytes
) -> IdempotencyKey | None:
    """The idempotency key of `table.open`: from `ref` if there is one, otherwise from `cmd`."""
    if ref is not None:
        # Longer than any `cmd` may be, so that the two never meet.
        cmd = "ref:" + sha256(ref.encode()).hexdigest()
    return None if cmd is None else IdempotencyKey(scope_of(key), cmd, content)


class ServiceTables:
    """The owners of tables, from the database or from memory: an owner never changes."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._owners: OrderedDict[bytes, int | None] = OrderedDict()

    async def owner(self, table: bytes) -> int | None:
        """The id of the key that opened an existing table; None if no service did.

        Raises DatabaseError.
        """
        if table not in self._owners:
            self._keep(table, await owner_of(self._log, table))
        self._owners.move_to_end(table)
        return self._owners[table]

    async def claim(self, table: bytes, owner: Owner) -> bytes:
        """Record the owner of a table to be opened; returns the id under which it is to be opened.

        That is the id of the earlier table if the owner's `ref` has one. Raises DatabaseError.
        """
        key, ref = owner
        found = None if ref is None else await table_of_ref(self._log, key, ref)
        if found is None:
            found = await self._log.run_in_transaction(claim_table, table, key=key, ref=ref)
        self._keep(found, key)
        return found

    async def authority(self, table: bytes, key: ServiceKey) -> ServiceKey | None:
        """The key, if it acts at this table as a service: it opened it, or has the right `admin`.

        Raises DatabaseError.
        """
        if "admin" in key.rights or await self.owner(table) == key.id:
            return key
        return None

    def _keep(self, table: bytes, key: int | None) -> None:
        self._owners[table] = key
        if len(self._owners) > CACHED:
            self._owners.popitem(last=False)


log_ = logging.getLogger(__name__)


class ServiceJournal:
    """Adds entries to the journal of `log`, each in a task of its own; `close` waits for them.

    They are written after what they record, in transactions for which no command waits.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Wait until the entries so far are written."""
        await asyncio.gather(*self._tasks)

    def note(
        self, key: ServiceKey, what: str, table: str, *, why: str, details: Mapping[str, Any]
    ) -> None:
        """Add an entry: the service of `key` did `what` (a method) at the table, for a reason."""
        work = self._write(key, what, table, why, details)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write(
        self, key: ServiceKey, what: str, table: str, why: str, details: Mapping[str, Any]
    ) -> None:
        admin = AdminService(self._log, who=f"key:{key.name}")
        try:
            await admin.note(what, table, why=why, details=details)
        except DealerError as error:
            fields = {"key": key.name, "what": what, "table": table, "says": str(error)}
            log_.error("journal not written", extra={"fields": fields})


SCANNED = 1000
"""Tables that one page reads at most to find those of a state."""


class Page(NamedTuple):
    """Tables as JSON values, and the id after which the next page begins; None for the last."""

    tables: list[dict[str, Any]]
    next: str | None


async def list_tables(
    log: ReadOnlyLog,
    key: ServiceKey,
    *,
    ref: str | None,
    state: str | None,
    after: str | None,
    limit: int,
) -> Page:
    """At most `limit` tables in the order of their ids; a `ref` is one of the key itself.

    With a `state` a page may have fewer although another follows. Raises DatabaseError.
    """
    start = bytes.fromhex(after or "")
    read = limit if state is None else SCANNED
    if ref is None and "admin" in key.rights:
        query = every_table(log.dialect, after=start, limit=read)
    else:
        query = tables_of_key(log.dialect, key.id, ref=ref, after=start, limit=read)
    rows = await log.fetch(*query)
    found: list[dict[str, Any]] = []
    for number, row in enumerate(rows, start=1):
        if state is not None and row.state != state:
            continue
        found.append(_listed(row))
        if len(found) == limit:
            more = number < len(rows) or len(rows) == read
            return Page(found, row.table_id.hex() if more else None)
    return Page(found, rows[-1].table_id.hex() if len(rows) == read else None)


def _listed(row: Any) -> dict[str, Any]:
    members = dict(row._mapping)
    members["table"] = members.pop("table_id").hex()
    return {name: value for name, value in members.items() if value is not None or name in _ALWAYS}


_ALWAYS = frozenset(("name", "opened_at"))

_TABLE = re.compile(r"[0-9a-f]{32}")


async def feed_filter(
    log: ReadOnlyLog, key: ServiceKey, *, table: str | None, types: Sequence[str]
) -> FeedFilter:
    """What a key may follow of a table, or of all its tables.

    Raises NotEntitled without the right `read`, BadRequest for an unknown type, UnknownTable for a
    table that is none of the key's.
    """
    if not key.may("read"):
        raise NotEntitled("This key has not the right `read`.")
    unknown = sorted(set(types) - TYPES.keys())
    if unknown:
        raise BadRequest(
            f"There is no event type {unknown[0]!r}; there are {', '.join(sorted(TYPES))}."
        )
    everything = "admin" in key.rights
    wanted: bytes | None = None
    if table is not None:
        wanted = bytes.fromhex(table) if _TABLE.fullmatch(table) else b""
        known = len(wanted) == 16 and (
            await log.head(wanted) is not None
            if everything
            else await owner_of(log, wanted) == key.id
        )
        if not known:
            raise UnknownTable("This key has no such table.")
    return FeedFilter(None if everything else key.id, wanted, frozenset(types))
