"""Writes to the heads of many tables, and their rows, in one statement that is its own transaction.

A head that is at the version its requests expect is moved, and the rows of that table are inserted;
any other head is left as it is. A head whose row another transaction has locked is skipped, so a
process that stopped in the middle of a transaction delays no table but those that it has locked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncpg

COPIED = 200
"""From so many rows on they go in by COPY: three more ways to the server, and each row cheaper."""

COLUMNS = (
    "stream", "version", "type", "schema", "at", "public", "commitment", "hidden", "command",
    "digest",
)  # fmt: skip

_TAKE = """
WITH wish AS MATERIALIZED (
    SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS w (id, expected, version)
), held AS MATERIALIZED (
    SELECT s.id FROM stream s JOIN wish w ON s.id = w.id WHERE w.expected > 0
    ORDER BY s.id FOR NO KEY UPDATE OF s SKIP LOCKED
), moved AS (
    UPDATE stream s SET version = w.version FROM held h JOIN wish w ON w.id = h.id
    WHERE s.id = h.id AND s.version = w.expected RETURNING s.id
), founded AS (
    INSERT INTO stream (id, version, projected)
    SELECT id, version, 0 FROM wish WHERE expected = 0 ORDER BY id
    ON CONFLICT (id) DO NOTHING RETURNING id
), taken AS MATERIALIZED (
    SELECT id FROM founded UNION ALL SELECT id FROM moved
)"""
_HEADS = f"{_TAKE} SELECT id FROM taken"
_ALL = f"""{_TAKE}, noted AS (
    INSERT INTO checkpoint (stream, size, note)
    SELECT c.stream, c.size, c.note
    FROM unnest($14::bytea[], $15::bigint[], $16::text[]) AS c (stream, size, note)
    JOIN taken t ON t.id = c.stream
), added AS (
    INSERT INTO event ({", ".join(COLUMNS)})
    SELECT r.* FROM unnest(
        $4::bytea[], $5::bigint[], $6::text[], $7::integer[], $8::bigint[], $9::text[],
        $10::bytea[], $11::bytea[], $12::text[], $13::bytea[]
    ) AS r ({", ".join(COLUMNS)}) JOIN taken t ON t.id = r.stream
) SELECT id FROM taken"""
_NOTES = (
    "INSERT INTO checkpoint (stream, size, note)"
    " SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::text[])"
)


async def write(
    raw: asyncpg.Connection[Any],
    heads: tuple[list[bytes], list[int], list[int]],
    rows: list[tuple[Any, ...]],
    notes: list[tuple[Any, ...]],
) -> set[bytes]:
    """The tables that were written; of the others nothing was.

    `heads` are three columns: a table's id, the version that it must have, and the new one. `rows`
    are those of `event`, `notes` those of `checkpoint`. Raises what the driver raises.
    """
    if len(rows) <= COPIED:
        found = await raw.fetch(_ALL, *heads, *columns(rows, len(COLUMNS)), *columns(notes, 3))
        return {table for (table,) in found}
    return await _copy(raw, heads, rows, notes)


async def _copy(
    raw: asyncpg.Connection[Any],
    heads: tuple[list[bytes], list[int], list[int]],
    rows: list[tuple[Any, ...]],
    notes: list[tuple[Any, ...]],
) -> set[bytes]:
    await raw.execute("BEGIN")
    try:
        tables = {table for (table,) in await raw.fetch(_HEADS, *heads)}
        if len(tables) < len(heads[0]):
            rows = [row for row in rows if row[0] in tables]
            notes = [note for note in notes if note[0] in tables]
        if notes:
            await raw.execute(_NOTES, *columns(notes, 3))
        await raw.copy_records_to_table("event", records=rows, columns=COLUMNS)
        await raw.execute("COMMIT")
    except BaseException:
        if not raw.is_closed():
            await raw.execute("ROLLBACK")
        raise
    return tables


def columns(rows: Iterable[tuple[Any, ...]], width: int) -> list[list[Any]]:
    """The columns of these rows as lists; `width` empty ones if there are no rows."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]
