"""The pen of the read models: carries changes out in a few statements, however many they are.

`prefix` stands in front of every read model's name: "" for those that people read, another one
for those that a rebuild prepares beside them. Rows take the place of those with the same key: so a
stack is written over, and what somebody put there by hand cannot stop the projector.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Dialect, Table
from sqlalchemy.dialects import postgresql

from dealer.projector.changes import Changes, Row
from dealer.projector.schema import MODELS

_COLUMNS = {model.name: [column.name for column in model.columns] for model in MODELS}

_KEYS = {
    model.name: [place for place, column in enumerate(model.columns) if column.primary_key]
    for model in MODELS
}

_CUT = {
    "deck": "DELETE FROM {}deck WHERE stream = ? AND round = ? AND place >= ?",
    "hands": "DELETE FROM {}hands WHERE stream = ? AND round = ? AND seat = ? AND place >= ?",
    "piles": "DELETE FROM {}piles WHERE stream = ? AND round = ? AND pile = ? AND place >= ?",
}

_SET = {
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
    "face told": "UPDATE {}moves SET card = ?"
    " WHERE stream = ? AND version > ? AND version < ? AND slot = ?",
    "face opened": "UPDATE {}moves SET card = ? WHERE stream = ? AND version = ?",
}


class Pen:
    """Writes to the read models whose names begin with `prefix`."""

    def __init__(self, prefix: str = "") -> None:
        self._cut = {model: sql.format(prefix) for model, sql in _CUT.items()}
        self._set = {name: sql.format(prefix) for name, sql in _SET.items()}
        self._add = {
            model: f"INSERT OR REPLACE INTO {prefix}{model} ({', '.join(columns)})"
            f" VALUES ({', '.join('?' * len(columns))})"
            for model, columns in _COLUMNS.items()
        }
        self._put = {model.name: _upsert(model, prefix + model.name) for model in MODELS}

    def write(self, connection: Connection, changes: Changes) -> None:
        """Inside the caller's transaction: first what goes, then what comes, then what differs."""
        execute = connection.exec_driver_sql
        for model, rows in changes.cut.items():
            execute(self._cut[model], rows)
        for model, rows in changes.added.items():
            if on_postgres(connection):
                execute(self._put[model], _newest(model, rows))
            else:
                execute(self._add[model], rows)
        for name, rows in changes.set.items():
            execute(self._set[name], rows)


def on_postgres(connection: Connection) -> bool:
    return connection.dialect.name == "postgresql"


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
    """The columns of the rows, of several with one key the last: a statement writes each once."""
    keys = _KEYS[model]
    kept = {tuple(row[place] for place in keys): row for row in rows}
    return tuple(map(list, zip(*kept.values(), strict=True)))
