"""Rebuilds the read models from the log alone, and reports differences from the old rows.

The new rows are written to SQL tables named `rebuilt_…`, in slices, while readers and the projector
continue; then one transaction swaps the tables. Each game table's old rows are compared with the
new ones at the version of the old ones. If a rebuild is interrupted, the next one starts again from
the first event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from dealer.errors import ConcurrentUpdate
from dealer.eventlog.protocols import Connection
from dealer.projector.changes import Changes, ReadModelWriter, StreamKey, on_postgres
from dealer.projector.models import MODELS, VIEWS, Model, StreamId
from dealer.projector.stream_projector import COLUMNS, Stopped, StreamProjector, records

PREFIX = "rebuilt_"

_NUMBERS = (
    "SELECT string_agg(CAST(oid AS text), ' ' ORDER BY oid) FROM pg_class"
    " WHERE relname = ANY(?) AND relnamespace = CAST(current_schema() AS regnamespace)"
)
_INDEXES = (
    "SELECT CAST(indexname AS text) FROM pg_indexes"
    " WHERE tablename = ? AND schemaname = current_schema()"
)

NAMED = 100
"""How many differences are listed; all are counted."""

_RANGE = "stream BETWEEN ? AND ?"
_COUNTS = (
    f"SELECT (SELECT count(*) FROM {{}} WHERE {_RANGE}), (SELECT count(*) FROM {{}} WHERE {_RANGE})"
)
# On PostgreSQL a join could be planned without statistics of the new rows.
_ONLY_ON_POSTGRES = f"SELECT * FROM {{}} WHERE {_RANGE} EXCEPT SELECT * FROM {{}} WHERE {_RANGE}"
_ORPHANS = "SELECT * FROM {} m WHERE NOT EXISTS (SELECT 1 FROM stream s WHERE s.id = m.stream)"

EVENTS = 1024
"""Events per slice: some ten milliseconds, for which appends wait."""

STREAMS = 512
"""Streams without events to project, per slice."""

LOCK_SECONDS = 10
"""How long a slice waits for a lock on PostgreSQL: after an error the rebuild is over."""

_ROWS = (
    f"SELECT {COLUMNS} FROM event"
    " WHERE stream = ? AND version > ? AND version <= ? ORDER BY version LIMIT ?"
)
# The events of an archived table are deleted, and its rows with them. No position after the last
# event is trusted: a rebuild would miss events there that never were.
_HERE = "NOT EXISTS (SELECT 1 FROM archived a WHERE a.stream = stream.id)"
_STREAMS = (
    "SELECT id, table_id, version, CASE WHEN projected > version THEN version ELSE projected END"
    " AS projected FROM stream"
    f" WHERE id > ? AND {_HERE} ORDER BY id LIMIT ?"
)
_PAGE = 16
_TOTAL = f"SELECT coalesce(sum(version), 0) FROM stream WHERE {_HERE}"


class Rebuild:
    """One rebuild: pass its `slice` to `Log.run_when_idle`; the results are set when that is done.

    `progress(done, total)` is called after each slice, on the writer thread, with the number of
    events. Afterwards `differences` lists up to 100 of the `different` rows, and `stopped` the
    tables that could not be projected to their end. A slice projects at most `events`.
    """

    def __init__(
        self, *, progress: Callable[[int, int], None] | None = None, events: int = EVENTS
    ) -> None:
        self.done = 0
        self.total = 0
        self.stopped: dict[StreamId, Stopped] = {}
        self._progress = progress
        self._events = events
        self._left = 0
        self._schema: str | None = None
        # The last stream that the first pass, and the pass after it, are done with.
        self._passed: StreamId | None = None
        self._caught_up: StreamId | None = None
        self._reached: dict[StreamId, int] = {}
        self._pending = Changes()
        self._streams = StreamProjector(tables=1, events=events)
        self._writer = ReadModelWriter(PREFIX)
        self._comparison = Comparison(PREFIX)
        self.differences = self._comparison.differences

    @property
    def different(self) -> int:
        """The number of rows that only the old or only the new read models have."""
        return self._comparison.different

    def slice(self, connection: Connection) -> bool:
        """Run the next slice, inside the caller's transaction; True if more is left.

        Raises ConcurrentUpdate if another rebuild or a migration changed the schema. After any
        error this rebuild is over, and readers see the old rows.
        """
        if on_postgres(connection):
            from dealer.eventlog.postgres.cluster import begin_ddl  # not where the log is SQLite's

            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
            begin_ddl(connection)
        if self._schema is None:
            self._prepare(connection)
        elif self._schema != schema_version(connection):
            raise ConcurrentUpdate(
                "The schema was changed while the read models were rebuilt; try again."
            )
        self._left = self._events
        self._streams.begin_slice()
        finished = self._first_pass(connection) and self._catch_up(connection)
        self._flush(connection)
        if finished:
            self._swap(connection)
        if self._progress is not None:
            self._progress(self.done + self._streams.folded_events, self.total)
        return not finished

    def _prepare(self, connection: Connection) -> None:
        create_tables(connection)
        self._schema = schema_version(connection)
        self.total = int(connection.exec_driver_sql(_TOTAL).scalar_one())

    def _first_pass(self, connection: Connection) -> bool:
        """Project each stream to the version of its old rows, and compare; True after the last."""
        complete: list[StreamId] = []
        finished = False
        while self._left > 0 and len(complete) < STREAMS and not finished:
            page = self._page(connection, self._passed, _PAGE)
            finished = len(page) < _PAGE
            for stream_id, table, _, projected in page:
                self._write(connection, StreamKey(stream_id, table), upto=projected)
                if self._reached[stream_id] >= projected:
                    complete.append(stream_id)
                elif stream_id not in self.stopped:
                    finished = False
                    break
                self._passed = stream_id
        self._flush(connection)
        self._comparison.compare(connection, complete)
        return finished

    def _catch_up(self, connection: Connection) -> bool:
        """Project what follows the old rows, and what was appended since; True when none is left.

        A pass over all streams, in one slice or several: what is appended meanwhile takes another.
        """
        in_one_slice = self._caught_up is None
        while True:
            page = self._page(connection, self._caught_up, STREAMS)
            for stream_id, table, version, _ in page:
                self._write(connection, StreamKey(stream_id, table), upto=version)
                if self._reached[stream_id] < version and stream_id not in self.stopped:
                    return False
                self._caught_up = stream_id
            if len(page) < STREAMS:
                self._caught_up = None
                return in_one_slice

    def _page(self, connection: Connection, after: StreamId | None, count: int) -> Sequence[Any]:
        """The next streams after this one: (id, table_id, version, projected)."""
        first: StreamId = b"" if on_postgres(connection) else 0
        return connection.exec_driver_sql(_STREAMS, (after or first, count)).fetchall()

    def _write(self, connection: Connection, stream: StreamKey, *, upto: int) -> None:
        """Project a stream up to this version, or as far as the slice goes."""
        stream_id = stream.id
        after = self._reached.setdefault(stream_id, 0)
        while after < upto and self._left > 0 and stream_id not in self.stopped:
            # If a round is folded in part, its first row is enough to go on with it.
            limit = 1 if self._streams.folding == stream_id else self._left
            rows = records(
                connection.exec_driver_sql(_ROWS, (stream_id, after, upto, limit)).fetchall()
            )
            reached = self._streams.project(
                connection, stream, after=after, rows=rows, upto=upto, into=self._pending
            )
            if reached.stopped is not None:
                self.stopped[stream_id] = reached.stopped
            self._left = 0 if self._streams.slice_full else self._left - (reached.version - after)
            self.done += reached.version - after
            after = self._reached[stream_id] = reached.version

    def _flush(self, connection: Connection) -> None:
        self._writer.write(connection, self._pending)
        self._pending = Changes()

    def _swap(self, connection: Connection) -> None:
        """Replace the old tables by the new ones, and set each stream's position, atomically."""
        last = max(
            (stream_id for stream_id in self._reached if isinstance(stream_id, int)), default=0
        )
        self._comparison.add_orphans(connection, last)
        swap_tables(connection)
        reached = sorted(self._reached.items(), key=itemgetter(0))
        positions = [(version, stream_id, version) for stream_id, version in reached]
        if positions:
            connection.exec_driver_sql(
                "UPDATE stream SET projected = ? WHERE id = ? AND projected <> ?", positions
            )


def create_tables(connection: Connection) -> None:
    """Create empty tables; those that an interrupted rebuild left are dropped."""
    from sqlalchemy.dialects import sqlite
    from sqlalchemy.schema import CreateTable

    from dealer.projector.declared import metadata

    for model in MODELS:
        made = str(CreateTable(metadata.tables[model.name]).compile(dialect=sqlite.dialect()))
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {PREFIX}{model.name}")
        if on_postgres(connection):
            made = f"CREATE TABLE {model.name} (LIKE {model.name} INCLUDING ALL)"
        connection.exec_driver_sql(
            made.replace(f"CREATE TABLE {model.name} ", f"CREATE TABLE {PREFIX}{model.name} ")
        )
    if not on_postgres(connection):
        return
    from dealer.eventlog.postgres.cluster import begin_ddl, distribute_beside

    if begin_ddl(connection):
        distribute_beside(connection, [PREFIX + model.name for model in MODELS])


def swap_tables(connection: Connection) -> None:
    """Replace the tables that queries read, inside the caller's transaction."""
    from sqlalchemy.dialects import sqlite
    from sqlalchemy.schema import CreateIndex

    from dealer.projector.declared import metadata

    execute = connection.exec_driver_sql
    # RENAME fails while a view refers to a dropped table.
    views = _views(connection)
    for name in views:
        execute(f"DROP VIEW {name}")
    for model in MODELS:
        execute(f"DROP TABLE {model.name}")
        execute(f"ALTER TABLE {PREFIX}{model.name} RENAME TO {model.name}")
        if on_postgres(connection):
            _name_indexes(connection, model.name)
            continue
        for index in metadata.tables[model.name].indexes:  # SQLite cannot rename an index
            execute(str(CreateIndex(index).compile(dialect=sqlite.dialect())))
    for definition in views.values():
        execute(definition)


def _views(connection: Connection) -> dict[str, str]:
    """Name and definition of the views over the read models."""
    names = ", ".join(f"'{name}'" for name in VIEWS)
    if on_postgres(connection):
        select = (
            "SELECT CAST(viewname AS text) AS name,"
            " concat('CREATE VIEW ', viewname, ' AS ', definition) AS sql"
            f" FROM pg_views WHERE schemaname = current_schema() AND viewname IN ({names})"
        )
    else:
        select = f"SELECT name, sql FROM sqlite_master WHERE type = 'view' AND name IN ({names})"
    return {row.name: row.sql for row in connection.exec_driver_sql(select)}


def schema_version(connection: Connection) -> str:
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
        model: Model,
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


def _only(model: Model, these: str, those: str) -> str:
    """Rows in a range of `these` without an equal row of `those`, which is looked up by its key."""
    equal = " AND ".join(f"b.{column} IS a.{column}" for column in model.columns)
    return (
        f"SELECT a.* FROM {these} a WHERE a.{_RANGE}"
        f" AND NOT EXISTS (SELECT 1 FROM {those} b WHERE {equal})"
    )
