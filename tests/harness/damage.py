"""Damage of a log, as an administrator of the database can do it who drops the triggers."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from dealer.eventlog import Log
from dealer.eventlog.protocols import Connection
from dealer.service import LiveTable

_TRIGGERS = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
_NUMBER = "(SELECT id FROM stream WHERE table_id = X'{table}')"
_NEWEST = (
    f"stream = {_NUMBER} AND version = (SELECT max(version) FROM event WHERE stream = {_NUMBER})"
)

DAMAGE = {
    "the newest row is missing": [f"DELETE FROM event WHERE {_NEWEST}"],
    "a row in the middle is missing": [
        f"DELETE FROM event WHERE stream = {_NUMBER} AND version = 2"
    ],
    "the version is one too high": [
        "UPDATE stream SET version = version + 1 WHERE table_id = X'{table}'"
    ],
    "the version is far too high": [
        "UPDATE stream SET version = 1000000000000000 WHERE table_id = X'{table}'"
    ],
    "the version is one too low": [
        "UPDATE stream SET version = version - 1 WHERE table_id = X'{table}'"
    ],
    "the newest row was moved to another table": [
        "UPDATE event SET stream = (SELECT id FROM stream WHERE table_id = X'{other}'),"
        f" version = 900 WHERE {_NEWEST}"
    ],
    "the newest row and its version are missing, and not its signed head": [
        f"DELETE FROM event WHERE {_NEWEST}",
        "UPDATE stream SET version = version - 1 WHERE table_id = X'{table}'",
    ],
    "a row is no JSON": [f"UPDATE event SET public = '[' WHERE stream = {_NUMBER} AND version = 2"],
}
"""Statements for SQLite by what they do to `table`; `other` is one that may be damaged, too."""


def damage_file(database: Path, kind: str, *, table: str, other: str) -> None:
    """Damage a table of an SQLite file; both are ids in hex."""
    with closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        for (name,) in connection.execute(_TRIGGERS).fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement in DAMAGE[kind]:
            changed = connection.execute(statement.format(table=table, other=other)).rowcount
            assert changed == 1, kind


async def change_log(log: Log, statement: str, parameters: Sequence[Any] = ()) -> None:
    """Run a statement on either database that its triggers would refuse; it must change rows."""

    def change(connection: Connection) -> None:
        if log.dialect == "sqlite":
            for (name,) in connection.exec_driver_sql(_TRIGGERS).fetchall():
                connection.exec_driver_sql(f"DROP TRIGGER {name}")
        else:
            for table in ("event", "archived"):
                connection.exec_driver_sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        assert connection.exec_driver_sql(statement, tuple(parameters)).rowcount, statement

    await log.run_in_transaction(change)


async def change_table(
    log: Log, live_table: LiveTable, statement: str, parameters: Sequence[Any] = ()
) -> None:
    """`change_log`, where `TABLE` stands for the table's number."""
    of = "hex(table_id)" if log.dialect == "sqlite" else "upper(encode(table_id, 'hex'))"
    number = f"(SELECT id FROM stream WHERE {of} = '{live_table.table_id.upper()}')"
    await change_log(log, statement.replace("TABLE", number), parameters)


async def version_of(log: Log, live_table: LiveTable, type_: str) -> int:
    """The version of the newest event of a type."""
    rows = [row async for part in log.stream(live_table.id) for row in part]
    return max(row.version for row in rows if row.type == type_)
