"""Faults of the log and of its key. No player causes them, and none reaches a player."""

from __future__ import annotations

from dealer.errors.base import DealerError


class DatabaseError(DealerError):
    """The log cannot be written or read; the sentence says why and what to do."""


class DatabaseLocked(DatabaseError):
    """Another process has held the lock on the database for too long."""


class DatabaseReadOnly(DatabaseError):
    """The database, its file or its folder cannot be written."""


class DatabaseFull(DatabaseError):
    """The disk or the database has no space left."""


class SchemaOutdated(DatabaseError):
    """The database has the tables of an earlier release; run `dealer migrate`."""


class SchemaTooNew(DatabaseError):
    """The database has the tables of a later release than this one."""


class DatabaseDamaged(DatabaseError):
    """The database, or a row of it, is damaged; `logged` says whether a log line names the row."""

    logged = False


class DatabaseUnavailable(DatabaseError):
    """The database server cannot be reached at present; the operation may be retried."""


class DatabaseReplaced(DatabaseError):
    """The database file was deleted or replaced while it was open; restart the process."""


class ConcurrentUpdate(DatabaseError):
    """Another process changed the log first; nothing was written."""


class OutcomeUnknown(DatabaseError):
    """The connection was lost during COMMIT; retry with the same command id, it executes once."""


class HouseKeyError(DealerError):
    """The key that encrypts the log is missing, unreadable or belongs to another house."""
