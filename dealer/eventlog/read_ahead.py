"""Reads of many tables at once: what loading each of them asks of the log, by three statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from dealer.errors import DatabaseError
from dealer.eventlog.read_only_log import LogEnd, ReadOnlyLog


class ReadAhead(ReadOnlyLog):
    """A log that knows the ends and events of these tables; all else it reads.

    It knows each for one read: what is read again is up to date.
    """

    def __init__(self, log: ReadOnlyLog) -> None:
        super().__init__(log.reader)
        self._known: dict[tuple[str, tuple[Any, ...]], list[Any]] = {}

    @classmethod
    async def of(cls, log: ReadOnlyLog, tables: Sequence[bytes], *, chunk: int) -> Self:
        """Read the tables; of the events as many as `stream` reads at once with this `chunk`.

        If a statement fails, as for one damaged table, each table is read alone.
        """
        ahead, queries = cls(log), log._queries
        try:
            ends = await ahead._read(queries.end, [(table,) for table in tables])
            await ahead._read(queries.signed, [(table, 0) for table in tables])
            upto = {each[0]: LogEnd(*row).version for each, rows in ends.items() for row in rows}
            await ahead._read(queries.read, [(table, 0, upto[table], chunk) for table in upto])
        except DatabaseError:
            ahead._known.clear()
        return ahead

    async def _read(
        self, sql: str, parameters: Iterable[tuple[Any, ...]]
    ) -> dict[tuple[Any, ...], list[Any]]:
        found: dict[tuple[Any, ...], list[Any]] = {each: [] for each in parameters}
        each = list(found)
        parts = (f"SELECT {number} AS part, q.* FROM ({sql}) q" for number in range(len(each)))
        values = tuple(value for parameters in each for value in parameters)
        if each:
            for number, *row in await super()._fetch(" UNION ALL ".join(parts), values):
                found[each[number]].append(row)
        self._known |= {(sql, parameters): rows for parameters, rows in found.items()}
        return found

    async def _fetch(
        self, sql: str, parameters: tuple[Any, ...] = (), *, named: bool = False
    ) -> list[Any]:
        known = self._known.pop((sql, parameters), None)
        return await super()._fetch(sql, parameters, named=named) if known is None else known
