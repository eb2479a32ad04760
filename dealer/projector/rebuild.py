"""Makes the read models again from the log alone, and says where the old ones were wrong.

The new rows are prepared beside the old ones, in tables named `rebuilt_…`, while readers and the
projector go on; one transaction then puts them in the old ones' place. It is done in slices like
the projector's own work. Each table's old rows are compared with the new ones at the version that
the old ones stood at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from dealer.errors import RaceLost
from dealer.projector.changes import Changes
from dealer.projector.follow import Follower, Stopped
from dealer.projector.happened import Number, Stream
from dealer.projector.schema import DRAWS, MODELS
from dealer.projector.write import Pen, on_postgres

PREFIX = "rebuilt_"
EVENTS = 256
NAMED = 100
"""How many differences are named; all are counted."""

_ROWS = (
    "SELECT version, type, schema, at, public FROM event"
    " WHERE stream = ? AND version > ? AND version <= ? ORDER BY version LIMIT ?"
)
# The events of an archived table are gone, and its rows with them.
_HERE = "NOT EXISTS (SELECT 1 FROM archived a WHERE a.stream = stream.id)"
_STREAM = (
    "SELECT id, table_id, version, projected FROM stream"
    f" WHERE id > ? AND {_HERE} ORDER BY id LIMIT 1"
)
_NOBODYS = "SELECT * FROM {} m WHERE NOT EXISTS (SELECT 1 FROM stream s WHERE s.id = m.stream)"
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
    """A row that stood in a read model and does not follow from the log, or the other way round."""

    model: str
    row: tuple[Any, ...]
    stood: bool


class Rebuild:
    """One rebuild: give its `slice` to `Log.schedule`, and look at it when that is done.

    `progress(done, total)` is called after each slice, where the slices run, with the number of
    events. Afterwards `differences` names up to 100 of the `different` rows, and `stopped` the
    tables that could not be followed to their end.
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
        self._gone_through: Number = 0
        self._reached: dict[Number, int] = {}
        self._compared: set[Number] = set()
        self._follower = Follower(tables=1)
        self._pen = Pen(PREFIX)

    def slice(self, connection: Connection) -> bool:
        """The next piece of work, inside the caller's transaction; whether more is left.

        Raises RaceLost if another rebuild or a migration changed the schema meanwhile. After any
        error this rebuild is over, and readers see what they saw before it.
        """
        if self._schema is None:
            self._prepare(connection)
        elif self._schema != _schema_version(connection):
            raise RaceLost("The schema was changed while the read models were rebuilt; try again.")
        self._left = self._events
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
                self._gone_through = b""
            connection.exec_driver_sql(
                made.replace(f"CREATE TABLE {model.name} ", f"CREATE TABLE {PREFIX}{model.name} ")
            )
        self._schema = _schema_version(connection)
        total = connection.exec_driver_sql(
            "SELECT coalesce(sum(version), 0) FROM stream WHERE " + _HERE
        )
        self.total = total.scalar_one()

    def _first_pass(self, connection: Connection) -> bool:
        """Streams in order of their numbers; True when the last one has been reached."""
        while self._left > 0:
            row = connection.exec_driver_sql(_STREAM, (self._gone_through,)).fetchone()
            if row is None:
                return True
            number, table, version, projected = row
            self._follow(connection, Stream(number, table), version=version, projected=projected)
            if self._reached[number] == version or number in self.stopped:
                self._gone_through = number
        return False

    def _catch_up(self, connection: Connection) -> bool:
        """What was appended to streams that had been gone through; True when nothing is left."""
        streams = connection.exec_driver_sql(
            f"SELECT id, table_id, version, projected FROM stream WHERE {_HERE}"
        )
        for number, table, version, projected in streams.fetchall():
            if self._left <= 0:
                return False
            if version > self._reached.get(number, 0) and number not in self.stopped:
                stream = Stream(number, table)
                self._follow(connection, stream, version=version, projected=projected)
        return self._left > 0

    def _follow(
        self, connection: Connection, stream: Stream, *, version: int, projected: int
    ) -> None:
        """Goes on in one stream; stops over at the version that the old rows stand at."""
        number = stream.number
        after = self._reached.setdefault(number, 0)
        if after <= projected and number not in self._compared:
            after = self._write(connection, stream, after, projected)
            if after == projected:
                self._compared.add(number)
                self._compare(connection, number)
        if number in self._compared:
            self._write(connection, stream, after, version)

    def _write(self, connection: Connection, stream: Stream, after: int, upto: int) -> int:
        while after < upto and self._left > 0 and stream.number not in self.stopped:
            found = connection.exec_driver_sql(_ROWS, (stream.number, after, upto, self._left))
            rows = [(row[0], row[1], row[2], row[3], row[4]) for row in found]
            if not rows:
                sentence = f"Version {after + 1} is missing in the log."
                self.stopped[stream.number] = Stopped(stream.table.hex(), after, sentence)
                break
            changes = Changes()
            reached = self._follower.follow(
                connection, stream, after=after, rows=rows, into=changes
            )
            self._pen.write(connection, changes)
            if reached.stopped is not None:
                self.stopped[stream.number] = reached.stopped
            self._left -= len(rows)
            self.done += reached.version - after
            after = self._reached[stream.number] = reached.version
        return after

    def _compare(self, connection: Connection, number: Number) -> None:
        for model in MODELS:
            old, new = model.name, PREFIX + model.name
            for stood, (these, those) in ((True, (old, new)), (False, (new, old))):
                only = _ONLY.format(these, those)
                found = connection.exec_driver_sql(only, (number, number))
                self._differ(model.name, found.fetchall(), stood=stood)

    def _differ(self, model: str, rows: Any, *, stood: bool) -> None:
        self.different += len(rows)
        for row in rows[: max(0, NAMED - len(self.differences))]:
            told = tuple(each.hex() if isinstance(each, bytes) else each for each in row)
            self.differences.append(Difference(model, told, stood))

    def _swap(self, connection: Connection) -> None:
        """The new rows for the old, and each stream's place with them: all or nothing."""
        execute = connection.exec_driver_sql
        for model in MODELS:
            self._differ(model.name, self._strange(connection, model.name), stood=True)
        # A view that names a table which is gone would make every renaming fail.
        execute("DROP VIEW IF EXISTS draws")
        for model in MODELS:
            execute(f"DROP TABLE {model.name}")
            execute(f"ALTER TABLE {PREFIX}{model.name} RENAME TO {model.name}")
            if on_postgres(connection):
                _name_indexes(connection, model.name)
                continue
            for index in model.indexes:  # SQLite can give an index no other name
                execute(str(CreateIndex(index).compile(dialect=sqlite.dialect())))
        execute(DRAWS)
        reached = sorted(self._reached.items(), key=itemgetter(0))
        places = [(version, number, version) for number, version in reached]
        if places:
            execute("UPDATE stream SET projected = ? WHERE id = ? AND projected <> ?", places)

    def _strange(self, connection: Connection, model: str) -> Sequence[Any]:
        """Rows of a read model that belong to no table at all."""
        if on_postgres(connection):
            return connection.exec_driver_sql(_NOBODYS.format(model)).fetchall()
        # Numbers of streams are given without a gap: no row in between has to be looked at.
        last = max((number for number in self._reached if isinstance(number, int)), default=0)
        strange = f"SELECT * FROM {model} WHERE stream < 1 OR stream > ?"
        return connection.exec_driver_sql(strange, (last,)).fetchall()


def _schema_version(connection: Connection) -> str:
    """What is another once somebody else makes or drops any of these tables."""
    if not on_postgres(connection):
        return str(connection.exec_driver_sql("PRAGMA schema_version").scalar_one())
    names = [prefix + model.name for model in MODELS for prefix in ("", PREFIX)]
    return str(connection.exec_driver_sql(_NUMBERS, (names,)).scalar_one())


def _name_indexes(connection: Connection, model: str) -> None:
    """An index keeps the name that it got beside the old one; the schema says what it is called."""
    execute = connection.exec_driver_sql
    for (name,) in execute(_INDEXES, (model,)).fetchall():
        columns = name.removeprefix(PREFIX + model).removesuffix("_idx").strip("_")
        wanted = f"pk_{model}" if name.endswith("_pkey") else f"ix_{model}_{columns}"
        execute(f"ALTER INDEX {name} RENAME TO {wanted}")
