"""Writes changes to the read models with a few statements for any number of rows.

A prefix of the SQL names selects the tables that queries read (""), or those that a rebuild
prepares. Rows replace rows with the same key: stacks are overwritten, and rows that were inserted
by hand cannot make the projector fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from msgspec.structs import astuple
from sqlalchemy import Connection, Dialect, Table
from sqlalchemy.dialects import postgresql

from dealer.projector import changes as of
from dealer.projector import schema
from dealer.projector.changes import Changes, Length, Row, Update

MODEL_OF: dict[type[Row], Table] = {
    of.TableRow: schema.tables,
    of.SeatRow: schema.seats,
    of.RoundRow: schema.rounds,
    of.ShuffleRow: schema.shuffles,
    of.SwapRow: schema.swaps,
    of.MoveRow: schema.moves,
    of.DeckRow: schema.deck,
    of.HandRow: schema.hands,
    of.PileRow: schema.piles,
}
"""The read model of each type of row; its columns are the members, in their order (a test)."""

_SHORTEN: dict[type[Length], str] = {
    of.DeckLength: "DELETE FROM {}deck WHERE stream = ? AND round = ? AND place >= ?",
    of.HandLength: "DELETE FROM {}hands WHERE stream = ? AND round = ? AND seat = ? AND place >= ?",
    of.PileLength: "DELETE FROM {}piles WHERE stream = ? AND round = ? AND pile = ? AND place >= ?",
}

_UPDATE: dict[type[Update], str] = {
    of.TableReached: "UPDATE {}tables SET events = ?, rounds = coalesce(?, rounds),"
    " closed_at = coalesce(?, closed_at) WHERE stream = ?",
    of.SeatFreed: "UPDATE {}seats SET until = ?, until_at = ?"
    " WHERE stream = ? AND seat = ? AND since < ? AND until IS NULL",
    of.RoundEnded: "UPDATE {}rounds SET until = ?, until_at = ?, secret = ?"
    " WHERE stream = ? AND round = ?",
    of.EntropyGathered: "UPDATE {}shuffles SET gathered = ?, committed = ?"
    " WHERE stream = ? AND round = ? AND k = ?",
    of.ShuffleEnded: "UPDATE {}shuffles SET outcome = ?, ended = ?, ended_at = ?, revealed = ?,"
    " first_slot = ? WHERE stream = ? AND round = ? AND k = ?",
    of.FaceShown: "UPDATE {}moves SET card = ?"
    " WHERE stream = ? AND version > ? AND version < ? AND slot = ?",
}


class ReadModelWriter:
    """Writes to the read models whose names begin with `prefix`."""

    def __init__(self, prefix: str = "") -> None:
        self._shorten_sql = {kind: sql.format(prefix) for kind, sql in _SHORTEN.items()}
        self._update_sql = {kind: sql.format(prefix) for kind, sql in _UPDATE.items()}
        self._insert_sql = {kind: _insert(model, prefix) for kind, model in MODEL_OF.items()}
        self._upsert_sql = {kind: _upsert(model, prefix) for kind, model in MODEL_OF.items()}

    def write(self, connection: Connection, changes: Changes) -> None:
        """Inside the caller's transaction: shorten stacks, then add rows, then update rows."""
        execute = connection.exec_driver_sql
        for length, stacks in changes.shortened.items():
            execute(self._shorten_sql[length], [*map(astuple, stacks)])
        for model, added in changes.added.items():
            rows = [*map(astuple, added)]
            if on_postgres(connection):
                execute(self._upsert_sql[model], _newest(model, rows))
            else:
                execute(self._insert_sql[model], rows)
        for update, values in changes.updated.items():
            execute(self._update_sql[update], [*map(astuple, values)])


def on_postgres(connection: Connection) -> bool:
    return connection.dialect.name == "postgresql"


def _insert(model: Table, prefix: str) -> str:
    columns = [column.name for column in model.columns]
    return (
        f"INSERT OR REPLACE INTO {prefix}{model.name} ({', '.join(columns)})"
        f" VALUES ({', '.join('?' * len(columns))})"
    )


@cache
def _upsert(model: Table, prefix: str) -> str:
    """One statement for any number of rows; its parameters are their columns."""
    columns = [column.name for column in model.columns]
    keys = [column.name for column in model.primary_key]
    dialect: Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    types = (column.type.compile(dialect) for column in model.columns)
    arrays = ", ".join(f"CAST(? AS {kind}[])" for kind in types)
    rest = ", ".join(f"{each} = excluded.{each}" for each in columns if each not in keys)
    return (
        f"INSERT INTO {prefix}{model.name} ({', '.join(columns)}) SELECT * FROM unnest({arrays})"
        f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {rest}"
    )


def _newest(kind: type[Row], rows: Sequence[tuple[Any, ...]]) -> tuple[list[object], ...]:
    """The columns of the rows, without all but the last of rows with the same key.

    ON CONFLICT DO UPDATE may update each row only once per statement.
    """
    keys = [place for place, column in enumerate(MODEL_OF[kind].columns) if column.primary_key]
    kept = {tuple(row[place] for place in keys): row for row in rows}
    return tuple(map(list, zip(*kept.values(), strict=True)))
