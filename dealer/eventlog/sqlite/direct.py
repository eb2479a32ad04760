"""The statements of every append, and most reads, on the driver's connection.

SQLAlchemy would add 10 µs to each statement, and to a read nine turns of the driver's thread.

Their errors are those of `sqlite3`, which `db_errors.translate` also takes. The connection is in
autocommit mode, so that nothing but these statements begins a transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, cast

import aiosqlite
from sqlalchemy import Connection


def driver_of(connection: Connection) -> sqlite3.Connection:
    """The driver's connection of an open one."""
    return cast("sqlite3.Connection", connection.connection.driver_connection)


def execute(driver: sqlite3.Connection, sql: str) -> None:
    """Execute a statement without parameters or rows."""
    driver.execute(sql)


def executemany(driver: sqlite3.Connection, sql: str, rows: Sequence[tuple[Any, ...]]) -> int:
    """Execute a statement for each row of parameters; the number of rows it changed."""
    return driver.executemany(sql, rows).rowcount


async def fetchall(
    driver: aiosqlite.Connection, sql: str, parameters: tuple[Any, ...]
) -> list[Any]:
    """All rows of a SELECT, in one turn of the driver's thread."""
    return list(await driver.execute_fetchall(sql, parameters))
