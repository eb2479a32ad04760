"""Writes the appends of many tables in one statement, or in one transaction with COPY.

If a table's head is at the expected version, the head is updated and the table's rows are
inserted; any other table is left unchanged. A head whose row another transaction has locked is
skipped, so a process that froze in a transaction delays only the tables that it has locked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dealer.eventlog.rows import ROW_COLUMNS, EventRecord
from dealer.eventlog.stored_form import encode, stored_text

if TYPE_CHECKING:
    import asyncpg

COPY_FROM = 200
"""More rows than this are written by COPY: three more round trips, and less time per row."""

COLUMNS = ("stream", *ROW_COLUMNS)

_COMMAND = ROW_COLUMNS.index("command")

_TAKE = """
WITH request AS MATERIALIZED (
    SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS r (id, expected, version)
), locked AS MATERIALIZED (
    SELECT s.id FROM stream s JOIN request r ON s.id = r.id WHERE r.expected > 0
    ORDER BY s.id FOR NO KEY UPDATE OF s SKIP LOCKED
), moved AS (
    UPDATE stream s SET version = r.version FROM locked l JOIN request r ON r.id = l.id
    WHERE s.id = l.id AND s.version = r.expected RETURNING s.id
), created AS (
    INSERT INTO stream (id, version, projected)
    SELECT id, version, 0 FROM request WHERE expected = 0 ORDER BY id
    ON CONFLICT (id) DO NOTHING RETURNING id
), taken AS MATERIALIZED (
    SELECT id FROM created UNION ALL SELECT id FROM moved
)"""
_HEADS = f"{_TAKE} SELECT id FROM taken"
_ALL = f"""{_TAKE}, noted AS (
    INSERT INTO checkpoint (stream, size, note)
    SELECT c.stream, c.size, c.note
    FROM unnest($14::bytea[], $15::bigint[], $16::text[]) AS c (stream, size, note)
    JOIN taken t ON t.id = c.stream
), added AS (
    INSERT INTO event ({", ".join(COLUMNS)})
    SELECT n.* FROM unnest(
        $4::bytea[], $5::bigint[], $6::text[], $7::integer[], $8::bigint[], $9::text[],
        $10::bytea[], $11::bytea[], $12::text[], $13::bytea[]
    ) AS n ({", ".join(COLUMNS)}) JOIN taken t ON t.id = n.stream
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
    """The ids of the tables that were written; of the others nothing was.

    `heads` are three columns: table id, expected version, new version. `rows` are those of `event`,
    `notes` those of `checkpoint`. Raises the driver's errors.
    """
    if len(rows) <= COPY_FROM:
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


def to_columns(row: EventRecord) -> Sequence[Any]:
    """The columns of a row as they are stored."""
    stored = encode(row)
    if row.command is None:
        return stored
    return (*stored[:_COMMAND], stored_text(row.command), *stored[_COMMAND + 1 :])


def columns(rows: Iterable[tuple[Any, ...]], width: int) -> list[list[Any]]:
    """The columns of these rows as lists; `width` empty ones if there are no rows."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]
