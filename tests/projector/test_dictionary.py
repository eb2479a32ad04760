"""DICTIONARY.md has a line for every column of both databases, with its type, and no other line."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, create_engine, inspect, types
from sqlalchemy.ext.asyncio import create_async_engine

from dealer.projector.models import VIEWS
from tests.harness.postgres import Postgres

DOCUMENT = Path(__file__).parents[2] / "dealer" / "projector" / "DICTIONARY.md"
_TABLE = re.compile(r"^### `(\w+)`$", re.MULTILINE)
_VIEWS = ("events", *VIEWS)
_KINDS = {
    types.Integer: "number", types.Text: "text", types.String: "text",
    types.LargeBinary: "bytes", types.Boolean: "boolean",
}  # fmt: skip
_UNITS = {
    "", "ms", "UTC", "version", "place", "slot", "code", "seat", "round", "k", "stack", "hex",
    "count", "bytes",
}  # fmt: skip

Columns = dict[tuple[str, str], str]
"""The type of each column, by table and column."""


class Line(NamedTuple):
    table: str
    column: str
    type: str
    unit: str
    on: str
    meaning: str


def lines() -> list[Line]:
    _, *parts = _TABLE.split(DOCUMENT.read_text(encoding="utf-8"))
    found = []
    for table, body in zip(parts[::2], parts[1::2], strict=True):
        for row in body.splitlines():
            if row.startswith("| `"):
                name, *rest = (cell.strip() for cell in row.strip("|").split("|"))
                found.append(Line(table, name.strip("`"), *rest))
    return found


def documented(dialect: str) -> Columns:
    """As that database has them: what a stream is there, and no NULL of a view's columns."""
    stream = "number" if dialect == "SQLite" else "bytes"
    found: Columns = {}
    for line in lines():
        if line.on in ("", dialect):
            assert (line.table, line.column) not in found, line
            kind = line.type.replace("stream", stream)
            if line.table in _VIEWS:
                kind = kind.removesuffix(" or NULL")
            found[line.table, line.column] = kind
    return found


def live(connection: Connection) -> Columns:
    database, found = inspect(connection), {}
    views = [name for name in database.get_view_names() if not name.startswith("citus_")]
    for name in database.get_table_names() + views:
        for column in database.get_columns(name):
            kind = _kind(column["type"])
            if column["nullable"] and name not in _VIEWS:
                kind += " or NULL"
            found[name, column["name"]] = kind
    return found


def _kind(column: Any) -> str:
    return next((name for kind, name in _KINDS.items() if isinstance(column, kind)), "unknown")


async def live_on_postgres(url: str) -> Columns:
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(live)
    finally:
        await engine.dispose()


def test_sqlite(file: Path) -> None:
    engine = create_engine(f"sqlite:///{file}")
    with engine.connect() as connection:
        found = live(connection)
    engine.dispose()
    expected = documented("SQLite")
    # SQLite does not know the type of what a view computes.
    unknown = {column for column, kind in found.items() if kind == "unknown"}
    assert {table for table, _ in unknown} <= set(_VIEWS)
    assert found == {
        column: "unknown" if column in unknown else kind for column, kind in expected.items()
    }


def test_postgres(postgres: Postgres) -> None:
    database = postgres.database()
    found = asyncio.run(live_on_postgres(postgres.url(database)))
    postgres.drop(database)
    assert found == documented("PostgreSQL")


def test_each_column_has_a_unit_and_a_meaning() -> None:
    for line in lines():
        assert line.unit in _UNITS, line
        assert line.meaning, line
        assert line.on in ("", "SQLite", "PostgreSQL"), line
    times = [line for line in lines() if line.column == "at" or line.column.endswith("_at")]
    assert {line.unit for line in times} == {"ms"}
