"""Migration of an SQLite file from a release that must not have it open beside this one.

A release before schema 0005 checkpoints the WAL automatically and could lose events (see
`dealer.eventlog.sqlite.wal`), one before 0007 cannot read events in their short form. So these
schemas are migrated only while no other connection to the file is open; from then on such a release
refuses the schema when it starts.
"""

from __future__ import annotations

from contextlib import suppress

from sqlalchemy import Connection

from dealer.errors import DatabaseLocked
from dealer.eventlog import migrate
from dealer.eventlog.db_errors import FAULTS, translate

FIRST_SCHEMA = "0007"
"""The schema of the first release whose programs can share a file with this one."""


def needs_exclusive_access(revision: str | None) -> bool:
    """Whether a program of this schema may be a release that must not share the file."""
    return revision is not None and revision < FIRST_SCHEMA


def upgrade(connection: Connection, *, name: str) -> bool:
    """Bring the schema to the newest revision; False, and no change, if that is not possible yet.

    The connection is in WAL mode, outside of a transaction. After True it may be in DELETE mode.
    """
    if not needs_exclusive_access(migrate.current(connection)):
        return _migrate(connection, begin="BEGIN IMMEDIATE", exclusive=False)
    try:
        # SQLite leaves WAL mode only if no other connection to the file is open.
        mode = connection.exec_driver_sql("PRAGMA journal_mode=DELETE").scalar()
        return mode == "delete" and _migrate(connection, begin="BEGIN EXCLUSIVE", exclusive=True)
    except FAULTS as error:
        if isinstance(translate(error, name=name), DatabaseLocked):
            return False
        raise


def _migrate(connection: Connection, *, begin: str, exclusive: bool) -> bool:
    """Migrate in one transaction; checks again, inside it, that the migration is allowed."""
    execute = connection.exec_driver_sql
    execute(begin)
    try:
        if exclusive:
            # Another process may have set WAL mode before this transaction began.
            allowed = execute("PRAGMA journal_mode").scalar() == "delete"
        else:
            allowed = not needs_exclusive_access(migrate.current(connection))
        if allowed:
            migrate.upgrade(connection)
        execute("COMMIT")
    except BaseException:
        with suppress(Exception):  # on a full disk SQLite has rolled back itself
            execute("ROLLBACK")
        raise
    return allowed


def in_use(name: str, revision: str | None) -> DatabaseLocked:
    """The error if another program keeps the file open."""
    return DatabaseLocked(
        f"The database {name} is open in another program, and its schema {revision} is of a "
        "release of dealer that cannot read what this release writes (and before schema 0005 "
        "checkpoints SQLite's write-ahead log without the write lock: with SQLite before 3.51.3, "
        "but for 3.50.7 and 3.44.6, it and this release together could lose events). "
        f"Stop every program that has the file open (`lsof {name}` names them), then start "
        "this one again."
    )
