"""Migration of an SQLite file from a release that checkpoints its WAL automatically.

Such a release beside this one could lose events (see `dealer.eventlog.wal`), so its schema is
migrated only while no other connection to the file is open; from then on such a release refuses
the schema when it starts.
"""

from __future__ import annotations

from sqlalchemy import Connection

from dealer.errors import DatabaseLocked
from dealer.eventlog import migrate
from dealer.eventlog.faults import FAULTS, explain
from dealer.eventlog.wal import FIRST_SCHEMA


def may_checkpoint_automatically(revision: str | None) -> bool:
    """Whether a program that works at this schema may be a release that does."""
    return revision is not None and revision < FIRST_SCHEMA


def upgrade(connection: Connection, *, name: str) -> bool:
    """Brings the schema to the newest; False, and nothing is changed, if that is not possible yet.

    The connection is in WAL mode, outside of a transaction. After True it may be in DELETE mode.
    """
    if not may_checkpoint_automatically(migrate.current(connection)):
        return _migrate(connection, begin="BEGIN IMMEDIATE", alone=False)
    try:
        # SQLite leaves WAL mode only if no other connection to the file is open.
        mode = connection.exec_driver_sql("PRAGMA journal_mode=DELETE").scalar()
        return mode == "delete" and _migrate(connection, begin="BEGIN EXCLUSIVE", alone=True)
    except FAULTS as error:
        fault = explain(error, name=name)
        if isinstance(fault, DatabaseLocked):
            return False
        raise


def _migrate(connection: Connection, *, begin: str, alone: bool) -> bool:
    """In one transaction; what was true before it began is looked at again within."""
    execute = connection.exec_driver_sql
    execute(begin)
    try:
        if alone:
            # A process that came in between has put the file back into WAL mode.
            possible = execute("PRAGMA journal_mode").scalar() == "delete"
        else:
            possible = not may_checkpoint_automatically(migrate.current(connection))
        if possible:
            migrate.upgrade(connection)
        execute("COMMIT")
    except BaseException:
        execute("ROLLBACK")
        raise
    return possible


def in_use(name: str, revision: str | None) -> DatabaseLocked:
    """The error where another program keeps the file open."""
    return DatabaseLocked(
        f"The database {name} is open in another program, and its schema {revision} is of a "
        "release of dealer that checkpoints SQLite's write-ahead log without the write lock: with "
        "SQLite before 3.51.3 (but for 3.50.7 and 3.44.6) it and this release together could lose "
        f"events. Stop every program that has the file open (`lsof {name}` names them), then start "
        "this one again."
    )
