"""Run slices as the log's writer does, each in its own transaction, and read rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from sqlalchemy import Connection

from dealer.eventlog import EventRecord
from dealer.projector.models import MODELS
from dealer.projector.rebuild import Rebuild
from dealer.projector.runner import Projector
from tests.harness.postgres import Blocking

AnyConnection = Connection | Blocking
Slice = Callable[[Connection], bool]


def once(connection: AnyConnection, work: Slice) -> bool:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    try:
        more = on(connection, work)
    except BaseException:
        connection.exec_driver_sql("ROLLBACK")
        raise
    connection.exec_driver_sql("COMMIT")
    return more


def on(connection: AnyConnection, work: Callable[[Connection], Any]) -> Any:
    """What `work` returns for the SQLAlchemy connection."""
    return connection.run(work) if isinstance(connection, Blocking) else work(connection)


def drain(connection: AnyConnection, work: Slice) -> None:
    while once(connection, work):
        pass


def roll_back(connection: AnyConnection, projector: Projector) -> None:
    """A slice after whose work the transaction fails."""

    def fails(connection: Connection) -> bool:
        projector.slice(connection)
        raise OSError("the disk")

    with pytest.raises(OSError, match="the disk"):
        once(connection, fails)


def rebuilt(connection: AnyConnection, rebuild: Rebuild | None = None) -> Rebuild:
    rebuild = rebuild or Rebuild()
    drain(connection, rebuild.slice)
    return rebuild


def catch_up(connection: AnyConnection, projector: Projector | None = None) -> Projector:
    projector = projector or Projector()
    drain(connection, projector.slice)
    return projector


def models(connection: AnyConnection, prefix: str = "") -> dict[str, set[tuple[Any, ...]]]:
    found = {
        model.name: set(
            map(tuple, connection.exec_driver_sql(f"SELECT * FROM {prefix}{model.name}").fetchall())
        )
        for model in MODELS
    }
    if isinstance(connection, Blocking):
        names = connection.numbers
        found = {
            model: {(names.get(stream, 0), *rest) for stream, *rest in rows}
            for model, rows in found.items()
        }
    return found


def projected(connection: AnyConnection) -> list[tuple[int, int]]:
    """(version, projected) of every stream, in the order in which they were added."""
    rows = connection.exec_driver_sql("SELECT id, version, projected FROM stream ORDER BY id")
    found = list(map(tuple, rows.fetchall()))
    if isinstance(connection, Blocking):
        found.sort(key=lambda row: connection.numbers[row[0]])
    return [(version, done) for _, version, done in found]


def reported(row: Iterable[Any]) -> tuple[Any, ...]:
    """A row as a rebuild reports it."""
    return tuple(each.hex() if isinstance(each, bytes) else each for each in row)


def stream_of(connection: AnyConnection, number: int) -> int | bytes:
    """The stream key of the table that was added as the nth."""
    if isinstance(connection, Blocking):
        return next(table for table, nth in connection.numbers.items() if nth == number)
    return number


def add_raw(connection: AnyConnection, stream: int, row: EventRecord) -> None:
    """Append a row to the stream that was added as the nth, whatever it contains."""
    connection.exec_driver_sql(
        "INSERT INTO event (stream, version, type, schema, at, public, commitment, hidden, command,"
        " digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (stream_of(connection, stream), *row.columns_as_read()),
    )
    connection.exec_driver_sql(
        "UPDATE stream SET version = ? WHERE id = ?", (row.version, stream_of(connection, stream))
    )


def url_of(connection: AnyConnection) -> str:
    return connection.url if isinstance(connection, Blocking) else str(connection.engine.url)
