"""Writes changes to the read models with a few statements for any number of rows.

A prefix of the SQL names selects the tables that queries read (""), or those that a rebuild
prepares. Rows replace rows with the same key: stacks are overwritten, and rows that were inserted
by hand cannot make the projector fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sqlalchemy import Connection, Dialect, Table
from sqlalchemy.dialects import postgresql

from dealer.projector.changes import Changes, Row
from dealer.projector.schema import MODELS

_COLUMNS = {model.name: [column.name for column in model.columns] for model in MODELS}

_KEYS = {
    model.name: [place for place, column in enumerate(model.columns) if column.primary_key]
    for model in MODELS
}

_TRUNCATE = {
    "deck": "DELETE FROM {}deck WHERE stream = ? AND round = ? AND place >= ?",
    "hands": "DELETE FROM {}hands WHERE stream = ? AND round = ? AND seat = ? AND place >= ?",
    "piles": "DELETE FROM {}piles WHERE stream = ? AND round = ? AND pile = ? AND place >= ?",
}

_UPDATE = {
    "table": "UPDATE {}tables SET events = ?, rounds = coalesce(?, rounds),"
    " closed_at = coalesce(?, closed_at) WHERE stream = ?",
    "seat left": "UPDATE {}seats SET until = ?, until_at = ?"
    " WHERE stream = ? AND seat = ? AND since < ? AND until IS NULL",
    "round closed": "UPDATE {}rounds SET until = ?, until_at = ?, secret = ?"
    " WHERE stream = ? AND round = ?",
    "entropy gathered": "UPDATE {}shuffles SET gathered = ?, committed = ?"
    " WHERE stream = ? AND round = ? AND k = ?",
    "shuffle ended": "UPDATE {}shuffles SET outcome = ?, ended = ?, ended_at = ?, revealed = ?,"
    " first_slot = ? WHERE stream = ? AND round = ? AND k = ?",
    "face shown": "UPDATE {}moves SET card = ?"
    " WHERE stream = ? AND version > ? AND version < ? AND slot = ?",
    "face opened": "UPDATE {}moves SET card = ? WHERE stream = ? AND version = ?",
}


class ReadModelWriter:
    """Writes to the read models whose names begin with `prefix`."""

    def __init__(self, prefix: str = "") -> None:
        self._truncate_sql = {model: sql.format(prefix) for model, sql in _TRUNCATE.items()}
        self._update_sql = {name: sql.format(prefix) for name, sql in _UPDATE.items()}
        self._insert_sql = {
            model: f"INSERT OR REPLACE INTO {prefix}{model} ({', '.join(columns)})"
            f" VALUES ({', '.join('?' * len(columns))})"
            for model, columns in _COLUMNS.items()
        }
        self._upsert_sql = {model.name: _upsert(model, prefix + model.name) for model in MODELS}

    def write(self, connection: Connection, changes: Changes) -> None:
        """Inside the caller's transaction: truncate stacks, then add rows, then update rows."""
        execute = connection.exec_driver_sql
        for model, rows in changes.truncated.items():
            execute(self._truncate_sql[model], rows)
        for model, rows in changes.added.items():
            if on_postgres(connection):
                execute(self._upsert_sql[model], _newest(model, rows))
            else:
                execute(self._insert_sql[model], rows)
        for name, rows in changes.updated.items():
            execute(self._update_sql[name], rows)


def on_postgres(connection: Connection) -> bool:
    return connection.dialect.name == "postgresql"


@cache
def _upsert(model: Table, name: str) -> str:
    """One statement for any number of rows; its parameters are their columns."""
    columns = [column.name for column in model.columns]
    keys = [column.name for column in model.primary_key]
    dialect: Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    types = (column.type.compile(dialect) for column in model.columns)
    arrays = ", ".join(f"CAST(? AS {kind}[])" for kind in types)
    rest = ", ".join(f"{each} = excluded.{each}" for each in columns if each not in keys)
    return (
        f"INSERT INTO {name} ({', '.join(columns)}) SELECT * FROM unnest({arrays})"
        f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {rest}"
    )


def _newest(model: str, rows: Sequence[Row]) -> tuple[list[object], ...]:
    """The columns of the rows, without all but the last of rows with the same key.

    ON CONFLICT DO UPDATE may update each row only once per statement.
    """
    keys = _KEYS[model]
    kept = {tuple(row[place] for place in keys): row for row in rows}
    return tuple(map(list, zip(*kept.values(), strict=True)))
