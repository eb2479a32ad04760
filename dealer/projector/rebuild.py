"""Rebuilds the read models from the log alone, and reports differences from the old rows.

The new rows are written to SQL tables named `rebuilt_…`, in slices, while readers and the projector
continue; then one transaction swaps the tables. Each game table's old rows are compared with the
new ones at the version of the old ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from dealer.errors import ConcurrentUpdate
from dealer.projector.changes import Changes
from dealer.projector.schema import DRAWS, MODELS
from dealer.projector.stream_projector import Stopped, StreamProjector
from dealer.projector.types import Number, StreamKey
from dealer.projector.writer import ReadModelWriter, on_postgres

PREFIX = "rebuilt_"
EVENTS = 256
NAMED = 100
"""How many differences are listed; all are counted."""

_ROWS = (
    "SELECT version, type, schema, at, public, hidden FROM event"
    " WHERE stream = ? AND version > ? AND version <= ? ORDER BY version LIMIT ?"
)
# The events of an archived table are deleted, and its rows with them.
_HERE = "NOT EXISTS (SELECT 1 FROM archived a WHERE a.stream = stream.id)"
_STREAM = (
    "SELECT id, table_id, version, projected FROM stream"
    f" WHERE id > ? AND {_HERE} ORDER BY id LIMIT 1"
)
_ORPHANS = "SELECT * FROM {} m WHERE NOT EXISTS (SELECT 1 FROM stream s WHERE s.id = m.stream)"
_ONLY = "SELECT * FROM {} WHERE stream = ? EXCEPT SELECT * FROM {} WHERE stream = ?"
_NUMBERS = (
    "SELECT string_agg(CAST(oid AS text), ' ' ORDER BY oid) FROM pg_class"
    " WHERE relname = ANY(?) AND relnamespace = CAST(current_schema() AS regnamespace)"
)
_INDEXES = (
    "SELECT CAST(indexname AS text) FROM pg_indexes"
    " WHERE tablename = ? AND schemaname = current_schema()"
)


class Difference(NamedTuple):
    """A row that only the old read model has (`in_old`), or only the rebuilt one."""

    model: str
    row: tuple[Any, ...]
    in_old: bool


class Rebuild:
    """One rebuild: pass its `slice` to `Log.run_when_idle`; the results are set when that is done.

    `progress(done, total)` is called after each slice, on the writer thread, with the number of
    events. Afterwards `differences` lists up to 100 of the `different` rows, and `stopped` the
    tables that could not be projected to their end.
    """

    def __init__(
        self, *, progress: Callable[[int, int], None] | None = None, events: int = EVENTS
    ) -> None:
        self.done = 0
        self.total = 0
        self.different = 0
        self.differences: list[Difference] = []
        self.stopped: dict[Number, Stopped] = {}
        self._progress = progress
        self._events = events
        self._left = 0
        self._schema: str | None = None
        self._passed: Number = 0
        self._reached: dict[Number, int] = {}
        self._compared: set[Number] = set()
        self._streams = StreamProjector(tables=1)
        self._writer = ReadModelWriter(PREFIX)

    def slice(self, connection: Connection) -> bool:
        """Run the next slice, inside the caller's transaction; True if more is left.

        Raises ConcurrentUpdate if another rebuild or a migration changed the schema. After any
        error this rebuild is over, and readers see the old rows.
        """
        if self._schema is None:
            self._prepare(connection)
        elif self._schema != _schema_version(connection):
            raise ConcurrentUpdate(
                "The schema was changed while the read models were rebuilt; try again."
            )
        self._left = self._events
        self._streams.begin_slice()
        finished = self._first_pass(connection) and self._catch_up(connection)
        if finished:
            self._swap(connection)
        if self._progress is not None:
            self._progress(self.done, self.total)
        return not finished

    def _prepare(self, connection: Connection) -> None:
        for model in MODELS:
            made = str(CreateTable(model).compile(dialect=sqlite.dialect()))
            connection.exec_driver_sql(f"DROP TABLE IF EXISTS {PREFIX}{model.name}")
            if on_postgres(connection):
                made = f"CREATE TABLE {model.name} (LIKE {model.name} INCLUDING ALL)"
                self._passed = b""
            connection.exec_driver_sql(
                made.replace(f"CREATE TABLE {model.name} ", f"CREATE TABLE {PREFIX}{model.name} ")
            )
        self._schema = _schema_version(connection)
        total = connection.exec_driver_sql(
            "SELECT coalesce(sum(version), 0) FROM stream WHERE " + _HERE
        )
        self.total = total.scalar_one()

    def _first_pass(self, connection: Connection) -> bool:
        """Project streams in the order of their numbers; True after the last one."""
        while self._left > 0:
            row = connection.exec_driver_sql(_STREAM, (self._passed,)).fetchone()
            if row is None:
                return True
            number, table, version, projected = row
            self._follow(connection, StreamKey(number, table), version=version, projected=projected)
            if self._reached[number] == version or number in self.stopped:
                self._passed = number
        return False

    def _catch_up(self, connection: Connection) -> bool:
        """Project what was appended since the first pass; True when nothing is left."""
        streams = connection.exec_driver_sql(
            f"SELECT id, table_id, version, projected FROM stream WHERE {_HERE}"
        )
        for number, table, version, projected in streams.fetchall():
            if self._left <= 0:
                return False
            if version > self._reached.get(number, 0) and number not in self.stopped:
                stream = StreamKey(number, table)
                self._follow(connection, stream, version=version, projected=projected)
        return self._left > 0

    def _follow(
        self, connection: Connection, stream: StreamKey, *, version: int, projected: int
    ) -> None:
        """Project one stream; compares with the old rows at their version on the way."""
        number = stream.number
        after = self._reached.setdefault(number, 0)
        if after <= projected and number not in self._compared:
            after = self._write(connection, stream, after, projected)
            if after == projected:
                self._compared.add(number)
                self._compare(connection, number)
        if number in self._compared:
            self._write(connection, stream, after, version)

    def _write(self, connection: Connection, stream: StreamKey, after: int, upto: int) -> int:
        while after < upto and self._left > 0 and stream.number not in self.stopped:
            found = connection.exec_driver_sql(_ROWS, (stream.number, after, upto, self._left))
            rows = [tuple(row) for row in found]
            if not rows:
                reason = f"Version {after + 1} is missing in the log."
                self.stopped[stream.number] = Stopped(stream.table.hex(), after, reason)
                break
            changes = Changes()
            reached = self._streams.project(
                connection, stream, after=after, rows=rows, into=changes
            )
            self._writer.write(connection, changes)
            if reached.stopped is not None:
                self.stopped[stream.number] = reached.stopped
            self._left -= len(rows)
            self.done += reached.version - after
            after = self._reached[stream.number] = reached.version
            if self._streams.postponed:
                self._left = 0  # the rest of the round that closes is for the next slice
        return after

    def _compare(self, connection: Connection, number: Number) -> None:
        for model in MODELS:
            old, new = model.name, PREFIX + model.name
            for in_old, (these, those) in ((True, (old, new)), (False, (new, old))):
                only = _ONLY.format(these, those)
                found = connection.exec_driver_sql(only, (number, number))
                self._record_difference(model.name, found.fetchall(), in_old=in_old)

    def _record_difference(self, model: str, rows: Any, *, in_old: bool) -> None:
        self.different += len(rows)
        for row in rows[: max(0, NAMED - len(self.differences))]:
            printable = tuple(each.hex() if isinstance(each, bytes) else each for each in row)
            self.differences.append(Difference(model, printable, in_old))

    def _swap(self, connection: Connection) -> None:
        """Replace the old tables by the new ones, and set each stream's position, atomically."""
        execute = connection.exec_driver_sql
        for model in MODELS:
            self._record_difference(
                model.name, self._orphan_rows(connection, model.name), in_old=True
            )
        # RENAME fails while a view refers to a dropped table.
        execute("DROP VIEW IF EXISTS draws")
        for model in MODELS:
            execute(f"DROP TABLE {model.name}")
            execute(f"ALTER TABLE {PREFIX}{model.name} RENAME TO {model.name}")
            if on_postgres(connection):
                _name_indexes(connection, model.name)
                continue
            for index in model.indexes:  # SQLite cannot rename an index
                execute(str(CreateIndex(index).compile(dialect=sqlite.dialect())))
        execute(DRAWS)
        reached = sorted(self._reached.items(), key=itemgetter(0))
        positions = [(version, number, version) for number, version in reached]
        if positions:
            execute("UPDATE stream SET projected = ? WHERE id = ? AND projected <> ?", positions)

    def _orphan_rows(self, connection: Connection, model: str) -> Sequence[Any]:
        """Rows of a read model that belong to no table."""
        if on_postgres(connection):
            return connection.exec_driver_sql(_ORPHANS.format(model)).fetchall()
        # SQLite numbers streams without gaps: rows in between belong to a table.
        last = max((number for number in self._reached if isinstance(number, int)), default=0)
        orphans = f"SELECT * FROM {model} WHERE stream < 1 OR stream > ?"
        return connection.exec_driver_sql(orphans, (last,)).fetchall()


def _schema_version(connection: Connection) -> str:
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
