"""Rebuilds the read models from the log alone, and reports differences from the old rows.

The new rows are written to SQL tables named `rebuilt_…`, in slices, while readers and the projector
continue; then one transaction swaps the tables. Each game table's old rows are compared with the
new ones at the version of the old ones. If a rebuild is interrupted, the next one starts again from
the first event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection

from dealer.errors import ConcurrentUpdate
from dealer.projector.changes import Changes
from dealer.projector.comparison import Comparison
from dealer.projector.rebuilt_tables import (
    PREFIX,
    create_tables,
    schema_version,
    swap_tables,
)
from dealer.projector.stream_projector import COLUMNS, Stopped, StreamProjector, records
from dealer.projector.types import StreamId, StreamKey
from dealer.projector.writer import ReadModelWriter, on_postgres

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
# The events of an archived table are deleted, and its rows with them.
_HERE = "NOT EXISTS (SELECT 1 FROM archived a WHERE a.stream = stream.id)"
_STREAMS = (
    "SELECT id, table_id, version, projected FROM stream"
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
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
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
            self._progress(self.done + self._streams.ahead, self.total)
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
            # Of a round that is folded in part, its first row says that.
            limit = 1 if self._streams.folding == stream_id else self._left
            rows = records(
                connection.exec_driver_sql(_ROWS, (stream_id, after, upto, limit)).fetchall()
            )
            if not rows:
                reason = f"Version {after + 1} is missing in the log."
                self.stopped[stream_id] = Stopped(stream.table.hex(), after, reason)
                break
            reached = self._streams.project(
                connection, stream, after=after, rows=rows, upto=upto, into=self._pending
            )
            if reached.stopped is not None:
                self.stopped[stream_id] = reached.stopped
            self._left = 0 if self._streams.postponed else self._left - (reached.version - after)
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
