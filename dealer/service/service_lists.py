"""The tables of a service, page by page: those that its key opened, with `admin` all."""

from __future__ import annotations

from typing import Any, NamedTuple

from dealer.eventlog import ReadOnlyLog
from dealer.projector.queries import every_table, tables_of_key
from dealer.service.service_keys import ServiceKey

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
