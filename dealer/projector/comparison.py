"""Compares the rows of the old read models with those that a rebuild has made of the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table

from dealer.projector.schema import MODELS
from dealer.projector.types import StreamId
from dealer.projector.writer import on_postgres

NAMED = 100
"""How many differences are listed; all are counted."""

_RANGE = "stream BETWEEN ? AND ?"
_COUNTS = (
    f"SELECT (SELECT count(*) FROM {{}} WHERE {_RANGE}), (SELECT count(*) FROM {{}} WHERE {_RANGE})"
)
# On PostgreSQL a join could be planned without statistics of the new rows.
_ONLY_ON_POSTGRES = f"SELECT * FROM {{}} WHERE {_RANGE} EXCEPT SELECT * FROM {{}} WHERE {_RANGE}"
_ORPHANS = "SELECT * FROM {} m WHERE NOT EXISTS (SELECT 1 FROM stream s WHERE s.id = m.stream)"


class Difference(NamedTuple):
    """A row that only the old read model has (`in_old`), or only the rebuilt one."""

    model: str
    row: tuple[Any, ...]
    in_old: bool


class Comparison:
    """Counts the `different` rows and lists the first of them as `differences`.

    The new read models have the names of the old ones after `prefix`.
    """

    def __init__(self, prefix: str) -> None:
        self.different = 0
        self.differences: list[Difference] = []
        self._prefix = prefix

    def compare(self, connection: Connection, streams: Sequence[StreamId]) -> None:
        """Compare the rows of `streams`, which are in ascending order.

        Most rows are equal, and found equal by few statements, whatever the number of streams.
        """
        if not streams:
            return
        compared, bounds = set(streams), (streams[0], streams[-1])
        for model in MODELS:
            old, new = model.name, self._prefix + model.name
            only_old = self._only(connection, model, old, new, bounds)
            counts = connection.exec_driver_sql(_COUNTS.format(old, new), bounds * 2).one()
            self._record(model.name, only_old, compared, in_old=True)
            # No row is only old, and there are as many new ones: then none is only new.
            if only_old or counts[0] != counts[1]:
                only_new = self._only(connection, model, new, old, bounds)
                self._record(model.name, only_new, compared, in_old=False)

    def _only(
        self,
        connection: Connection,
        model: Table,
        these: str,
        those: str,
        bounds: tuple[StreamId, StreamId],
    ) -> Sequence[Any]:
        """Rows of `these` that `those` do not have."""
        if on_postgres(connection):
            sql = _ONLY_ON_POSTGRES.format(these, those)
            return connection.exec_driver_sql(sql, bounds * 2).fetchall()
        return connection.exec_driver_sql(_only(model, these, those), bounds).fetchall()

    def add_orphans(self, connection: Connection, last: int) -> None:
        """Count the rows that belong to no table; `last` is the highest `stream` on SQLite."""
        for model in MODELS:
            if on_postgres(connection):
                found = connection.exec_driver_sql(_ORPHANS.format(model.name))
            else:  # SQLite numbers streams without gaps: rows in between belong to a table
                outside = f"SELECT * FROM {model.name} WHERE stream < 1 OR stream > ?"
                found = connection.exec_driver_sql(outside, (last,))
            rows = found.fetchall()
            self._record(model.name, rows, {row[0] for row in rows}, in_old=True)

    def _record(
        self, model: str, rows: Iterable[Any], streams: set[StreamId], *, in_old: bool
    ) -> None:
        for row in rows:
            if row[0] not in streams:
                continue
            self.different += 1
            if len(self.differences) < NAMED:
                printable = tuple(each.hex() if isinstance(each, bytes) else each for each in row)
                self.differences.append(Difference(model, printable, in_old))


def _only(model: Table, these: str, those: str) -> str:
    """Rows in a range of `these` without an equal row of `those`, which is looked up by its key."""
    equal = " AND ".join(f"b.{column.name} IS a.{column.name}" for column in model.columns)
    return (
        f"SELECT a.* FROM {these} a WHERE a.{_RANGE}"
        f" AND NOT EXISTS (SELECT 1 FROM {those} b WHERE {equal})"
    )
