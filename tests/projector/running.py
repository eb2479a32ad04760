"""Running slices as the log's writer does, each in its own transaction, and looking at rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection

from dealer.projector.runner import Projector
from dealer.projector.schema import MODELS

Slice = Callable[[Connection], bool]


def once(connection: Connection, work: Slice) -> bool:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    try:
        more = work(connection)
    except BaseException:
        connection.exec_driver_sql("ROLLBACK")
        raise
    connection.exec_driver_sql("COMMIT")
    return more


def drain(connection: Connection, work: Slice) -> None:
    while once(connection, work):
        pass


def catch_up(connection: Connection, projector: Projector | None = None) -> Projector:
    projector = projector or Projector()
    drain(connection, projector.slice)
    return projector


def models(connection: Connection, prefix: str = "") -> dict[str, set[tuple[Any, ...]]]:
    return {
        model.name: set(
            map(tuple, connection.exec_driver_sql(f"SELECT * FROM {prefix}{model.name}"))
        )
        for model in MODELS
    }


def projected(connection: Connection) -> list[tuple[int, int]]:
    """(version, projected) of every stream."""
    rows = connection.exec_driver_sql("SELECT version, projected FROM stream ORDER BY id")
    return list(map(tuple, rows))
