"""The lookup of a table by a prefix of its id."""

from __future__ import annotations

from dealer.errors import BadRequest, UnknownTable
from dealer.eventlog import ReadOnlyLog

TABLE_ID_BYTES = 16


async def table_with_prefix(log: ReadOnlyLog, text: str) -> bytes:
    """The id of the one table whose id starts with `text`, hex digits with or without hyphens.

    Raises BadRequest if `text` is no such prefix, and UnknownTable if no table or more than one
    starts with it. The table may be archived.
    """
    digits = text.lower().replace("-", "")
    try:
        low = bytes.fromhex(digits.ljust(2 * TABLE_ID_BYTES, "0"))
        high = bytes.fromhex(digits.ljust(2 * TABLE_ID_BYTES, "f"))
    except ValueError:
        low = high = b""
    if not digits or len(low) != TABLE_ID_BYTES:
        raise BadRequest(f"A table's id is {2 * TABLE_ID_BYTES} hex digits, not {text!r}.")
    found = await log.tables_between(low, high, limit=2)
    if not found:
        raise UnknownTable(f"This database has no table {text}; `dealer tables` lists its tables.")
    if len(found) > 1:
        raise UnknownTable(f"Several tables start with {text}; give more digits of the id.")
    return found[0]
