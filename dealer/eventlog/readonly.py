"""Opens a log for reading only, next to servers that write it or without one.

An SQLite file is opened read-only, a PostgreSQL database in read-only transactions.
"""

from __future__ import annotations

from dealer.eventlog.backends import open_reader
from dealer.eventlog.read_only_log import ReadOnlyLog


async def open_readonly(url: str) -> ReadOnlyLog:
    """The log at `url`.

    Raises ConfigurationError if there is no database, SchemaOutdated or SchemaTooNew if its schema
    is not the one of this program, or another DatabaseError.
    """
    return ReadOnlyLog(await open_reader(url))
