"""The columns of every SQL table and view, from the declared schema."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import ModuleType

from sqlalchemy import Column, Table, create_engine
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect

from dealer.docs.markdown import table
from dealer.eventlog import (
    admin,
    feed_tables,
    migrate,
    openers,
    presence,
    savepoints,
    schema,
    seat_subjects,
    service_keys,
    service_tables,
    webhooks,
)
from dealer.projector import schema as models

_MODULES: tuple[ModuleType, ...] = (
    models, schema, admin, openers, savepoints, presence, feed_tables, seat_subjects,
    service_keys, service_tables, webhooks,
)  # fmt: skip
_DIALECTS: dict[str, Dialect] = {
    "SQLite": sqlite.dialect(),
    "PostgreSQL": postgresql.dialect(),  # type: ignore[no-untyped-call]
}
_DECLARED = re.compile(
    r'((?:^ *# .*\n)*)^ *(?:\w+ = )?\w*(?:Table|_model)\(\s*"(\w+)"', re.MULTILINE
)


def with_columns(text: str) -> str:
    """The section of REFERENCE.md, and then every table with its columns."""
    comments = _comments()
    found = [
        text.rstrip() + "\n",
        *(f"## The view {name}\n\n```text\n{sql}\n```\n" for name, sql in _views()),
    ]
    for name in sorted(schema.metadata.tables, key=lambda name: (name not in _MODEL_NAMES, name)):
        found.append(f"## The table {name}\n\n{comments.get(name, '')}\n")
        found.append(table(("column", *_DIALECTS, "NULL", "key"), _columns(name)))
    return "\n".join(found)


def _views() -> Iterator[tuple[str, str]]:
    """Name and definition of each view for people, on SQLite."""
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        migrate.upgrade(connection)
        select = "SELECT name, sql FROM sqlite_master WHERE type = 'view'"
        found = connection.exec_driver_sql(select)
        definitions = {row.name: row.sql for row in found}
    engine.dispose()
    return ((name, definitions[name]) for name in models.VIEWS)


_MODEL_NAMES = {model.name for model in models.MODELS}


def _columns(name: str) -> Iterator[list[str]]:
    """A row for each column of a table on either database, first those of SQLite."""
    on_sqlite, on_postgres = schema.metadata.tables[name], schema.postgres.tables.get(name)
    both = [on_sqlite, on_sqlite if on_postgres is None else on_postgres]
    for title in dict.fromkeys(column.name for declared in both for column in declared.columns):
        there = [declared.columns.get(title) for declared in both]
        first = next(column for column in there if column is not None)
        types = [
            _type(column, dialect)
            for column, dialect in zip(there, _DIALECTS.values(), strict=True)
        ]
        null = "yes" if first.nullable else ""
        yield [f"`{title}`", *types, null, _key(on_sqlite, first)]


def _type(column: Column[object] | None, dialect: Dialect) -> str:
    return "" if column is None else f"`{column.type.compile(dialect=dialect)}`"


def _key(declared: Table, column: Column[object]) -> str:
    if column.primary_key:
        return "primary"
    return ", ".join(f"of {key.column.table.name}" for key in column.foreign_keys)


def _comments() -> dict[str, str]:
    """The comment above each declaration, by table.

    One without a comment has that of the declaration before it, or the first line of its module.
    """
    found: dict[str, str] = {}
    for module in _MODULES:
        comment = (inspect.getdoc(module) or "").partition("\n")[0]
        for lines, name in _DECLARED.findall(inspect.getsource(module)):
            comment = re.sub(r"^ *# ?", "", lines, flags=re.MULTILINE).strip() or comment
            found.setdefault(name, comment)
    return found
