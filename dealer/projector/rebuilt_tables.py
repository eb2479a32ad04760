"""The SQL tables of a rebuild: created next to those that queries read, and put in their place."""

from __future__ import annotations

from sqlalchemy import Connection
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from dealer.projector.schema import MODELS, VIEWS
from dealer.projector.writer import on_postgres

PREFIX = "rebuilt_"

_NUMBERS = (
    "SELECT string_agg(CAST(oid AS text), ' ' ORDER BY oid) FROM pg_class"
    " WHERE relname = ANY(?) AND relnamespace = CAST(current_schema() AS regnamespace)"
)
_INDEXES = (
    "SELECT CAST(indexname AS text) FROM pg_indexes"
    " WHERE tablename = ? AND schemaname = current_schema()"
)


def create_tables(connection: Connection) -> None:
    """Create empty tables; those that an interrupted rebuild left are dropped."""
    for model in MODELS:
        made = str(CreateTable(model).compile(dialect=sqlite.dialect()))
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {PREFIX}{model.name}")
        if on_postgres(connection):
            made = f"CREATE TABLE {model.name} (LIKE {model.name} INCLUDING ALL)"
        connection.exec_driver_sql(
            made.replace(f"CREATE TABLE {model.name} ", f"CREATE TABLE {PREFIX}{model.name} ")
        )


def swap_tables(connection: Connection) -> None:
    """Replace the tables that queries read, inside the caller's transaction."""
    execute = connection.exec_driver_sql
    # RENAME fails while a view refers to a dropped table.
    views = _views(connection)
    for name in views:
        execute(f"DROP VIEW {name}")
    for model in MODELS:
        execute(f"DROP TABLE {model.name}")
        execute(f"ALTER TABLE {PREFIX}{model.name} RENAME TO {model.name}")
        if on_postgres(connection):
            _name_indexes(connection, model.name)
            continue
        for index in model.indexes:  # SQLite cannot rename an index
            execute(str(CreateIndex(index).compile(dialect=sqlite.dialect())))
    for definition in views.values():
        execute(definition)


def _views(connection: Connection) -> dict[str, str]:
    """Name and definition of the views over the read models."""
    names = ", ".join(f"'{name}'" for name in VIEWS)
    if on_postgres(connection):
        select = (
            "SELECT CAST(viewname AS text) AS name,"
            " concat('CREATE VIEW ', viewname, ' AS ', definition) AS sql"
            f" FROM pg_views WHERE schemaname = current_schema() AND viewname IN ({names})"
        )
    else:
        select = f"SELECT name, sql FROM sqlite_master WHERE type = 'view' AND name IN ({names})"
    return {row.name: row.sql for row in connection.exec_driver_sql(select)}


def schema_version(connection: Connection) -> str:
    """A value that changes when another process creates or drops any of these tables."""
    if not on_postgres(connection):
        return str(connection.exec_driver_sql("PRAGMA schema_version").scalar_one())
    names = [prefix + model.name for model in MODELS for prefix in ("", PREFIX)]
    return str(connection.exec_driver_sql(_NUMBERS, (names,)).scalar_one())


def _name_indexes(connection: Connection, model: str) -> None:
    """Rename the indexes of a swapped table to the names of the schema."""
    execute = connection.exec_driver_sql
    for (name,) in execute(_INDEXES, (model,)).fetchall():
        columns = name.removeprefix(PREFIX + model).removesuffix("_idx").strip("_")
        wanted = f"pk_{model}" if name.endswith("_pkey") else f"ix_{model}_{columns}"
        execute(f"ALTER INDEX {name} RENAME TO {wanted}")
