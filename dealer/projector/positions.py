"""Numbers and projected versions of streams, as this process knows them.

They may be out of date: the update of `projected` is a compare-and-set.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from sqlalchemy import Connection

from dealer.eventlog.queries import TABLE_ID, select_in
from dealer.projector.types import Number


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
        dialect = connection.dialect.name
        select = f"SELECT {TABLE_ID[dialect]}, id, projected FROM stream"
        for sql, part in select_in(dialect, select, TABLE_ID[dialect], unknown):
            for table, number, projected in connection.exec_driver_sql(sql, part):
                self._known[table] = number, projected
        return {table: self._known[table] for table in tables if table in self._known}

    def put(self, table: bytes, number: Number, projected: int) -> None:
        """Remember a position; the oldest ones are forgotten."""
        self._known[table] = number, projected
        self._known.move_to_end(table)
        while len(self._known) > self._bound:
            self._known.popitem(last=False)

    def clear(self) -> None:
        """Forget all positions: a transaction was rolled back."""
        self._known.clear()
