"""Opens a log for reading only, next to servers that write it or without one, and copies a file.

An SQLite file is opened read-only, a PostgreSQL database in read-only transactions.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from dealer.errors import DatabaseDamaged
from dealer.eventlog.address import database_file
from dealer.eventlog.backends import open_reader
from dealer.eventlog.db_errors import FAULTS, translate
from dealer.eventlog.read_only_log import ReadOnlyLog


async def open_readonly(url: str) -> ReadOnlyLog:
    """The log at `url`.

    Raises ConfigurationError if there is no database, SchemaOutdated or SchemaTooNew if its schema
    is not the one of this program, or another DatabaseError.
    """
    return ReadOnlyLog(await open_reader(url))


def copy_file(url: str, to: Path) -> None:
    """Copy the SQLite database at `url`, as of one moment, to a new file that only its owner reads.

    Servers may write meanwhile. Raises DatabaseError, or OSError for the new file.
    """
    file = database_file(url)
    os.close(os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        # By one step, which reads one snapshot: several steps start again after each commit.
        with (
            closing(
                sqlite3.connect(f"file:{quote(os.fsencode(file.absolute()))}?mode=ro", uri=True)
            ) as live,
            closing(sqlite3.connect(to)) as copy,
        ):
            live.backup(copy)
            ((says,),) = copy.execute("PRAGMA quick_check(1)")
    except FAULTS as error:
        raise translate(error, name=str(file)) from error
    if says != "ok":
        raise DatabaseDamaged(f"The database {file} is damaged ({says}); restore it from a backup.")
