"""Numbers and projected versions of streams, as this process knows them.

They may be out of date: the update of `projected` is a compare-and-set.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from dealer.projector.types import Number
from dealer.projector.writer import on_postgres

_FIND = "SELECT table_id, id, projected FROM stream WHERE table_id IN ({})"
_FIND_ON_POSTGRES = "SELECT id, id, projected FROM stream WHERE id = ANY(?)"
_MAX_PARAMETERS = 500


class StreamPositions:
    """Those of the `bound` tables that were projected last."""

    def __init__(self, *, bound: int) -> None:
        self._bound = bound
        self._known: OrderedDict[bytes, tuple[Number, int]] = OrderedDict()

    def of(
        self, connection: Connection, tables: Sequence[bytes]
    ) -> dict[bytes, tuple[Number, int]]:
        """(number, projected) of each of these tables that the log has."""
        unknown = [table for table in tables if table not in self._known]
        for start in range(0, len(unknown), _MAX_PARAMETERS):
            part = unknown[start : start + _MAX_PARAMETERS]
            for table, number, projected in self._find(connection, part):
                self._known[table] = number, projected
        return {table: self._known[table] for table in tables if table in self._known}

    @staticmethod
    def _find(connection: Connection, tables: list[bytes]) -> Sequence[Any]:
        if on_postgres(connection):
            return connection.exec_driver_sql(_FIND_ON_POSTGRES, (tables,)).fetchall()
        sql = _FIND.format(",".join("?" * len(tables)))
        return connection.exec_driver_sql(sql, tuple(tables)).fetchall()

    def put(self, table: bytes, number: Number, projected: int) -> None:
        """Remember a position; the oldest ones are forgotten."""
        self._known[table] = number, projected
        self._known.move_to_end(table)
        while len(self._known) > self._bound:
            self._known.popitem(last=False)

    def clear(self) -> None:
        """Forget all positions: a transaction was rolled back."""
        self._known.clear()
