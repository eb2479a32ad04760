"""Calls back before or after the SQL statements of this process, with SQLAlchemy or without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from sqlalchemy import Engine, event

from dealer.eventlog.sqlite import reader, store, wal


def watch(when: Literal["before", "after"], callback: Callable[[str], None]) -> None:
    """Call back with the text of each statement, until the process ends."""

    @event.listens_for(Engine, f"{when}_cursor_execute")
    def _(sql_connection: object, cursor: object, sql: str, *_: object) -> None:
        callback(sql)

    watch_direct(when, callback, patch=setattr)


def watch_direct(
    when: Literal["before", "after"],
    callback: Callable[[str], None],
    *,
    patch: Callable[[Any, str, Any], None],
) -> None:
    """The same for statements to SQLite without SQLAlchemy; `patch` replaces their functions."""

    def watched(plain: Callable[..., Any]) -> Callable[..., Any]:
        def execute(driver: object, sql: str, *rows: object) -> Any:
            if when == "before":
                callback(sql)
            result = plain(driver, sql, *rows)
            if when == "after":
                callback(sql)
            return result

        return execute

    for place, name in (
        (store, "direct_execute"),
        (store, "direct_executemany"),
        (reader, "direct_fetchall"),
        (wal.SqliteConnection, "exec_driver_sql"),
    ):
        patch(place, name, watched(getattr(place, name)))
