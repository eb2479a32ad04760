"""What went wrong in the archive, in one sentence that an operator can act on."""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DBAPIError

from dealer.errors import (
    DatabaseDamaged,
    DatabaseError,
    DatabaseFull,
    DatabaseLocked,
    DatabaseReadOnly,
    OutcomeUnknown,
)

# What the database or its disk raises; anything else is a fault of the program and passes as it is.
FAULTS = (DBAPIError, sqlite3.Error, OSError)

# The fault lies in the values of one request; its neighbours in the batch are fine.
BAD_VALUES = (
    sqlite3.IntegrityError,
    sqlite3.ProgrammingError,
    sqlite3.InterfaceError,
    sqlite3.DataError,
    ValueError,
    TypeError,
    OverflowError,
)

_LOCKED = (
    DatabaseLocked,
    "Another program holds the database {name} and does not let go; "
    "end it (or its open transaction), then try again.",
)
_READ_ONLY = (
    DatabaseReadOnly,
    "The database {name} cannot be written; make the file and its folder writable for the user "
    "that the service runs as.",
)
_DAMAGED = (
    DatabaseDamaged,
    "The file {name} is damaged or is no SQLite database; restore it from a backup, or name "
    "another file.",
)
_SENTENCES: dict[int, tuple[type[DatabaseError], str]] = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_AUTH: _READ_ONLY,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_FULL: (
        DatabaseFull,
        "The disk that holds {name} is full, and nothing was written; free some space, then try "
        "again.",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        DatabaseReadOnly,
        "The database {name} cannot be opened; its folder must exist and be writable for the "
        "user that the service runs as.",
    ),
    sqlite3.SQLITE_IOERR: (
        DatabaseError,
        "The disk that holds {name} failed to read or write; see to the disk, then start again.",
    ),
}


def explain(error: BaseException, *, name: str, committing: bool = False) -> DatabaseError:
    """The error of this package for what the driver raised; `name` is the database's file.

    `committing` says that COMMIT had been sent: a disk that fails there leaves open whether the
    batch will be found after a crash.
    """
    if isinstance(error, DatabaseError):
        return error
    cause: BaseException = error
    if isinstance(error, DBAPIError) and error.orig is not None:
        cause = error.orig
    if isinstance(cause, BAD_VALUES):
        return DatabaseError(
            f"The rows do not fit the log of {name} ({type(cause).__name__}); nothing of this "
            "request was written."
        )
    if isinstance(cause, PermissionError):
        return _READ_ONLY[0](_READ_ONLY[1].format(name=name))
    code = getattr(cause, "sqlite_errorcode", None)
    if code is None:
        return DatabaseError(f"The log in {name} failed ({type(cause).__name__}).")
    primary = code & 0xFF
    if committing and primary == sqlite3.SQLITE_IOERR:
        return OutcomeUnknown(
            f"The disk that holds {name} failed at the commit: whether it was kept is not known; "
            "the same command id sent again settles it."
        )
    kind, sentence = _SENTENCES.get(
        primary, (DatabaseError, f"The log in {{name}} failed (SQLite error {code}).")
    )
    return kind(sentence.format(name=name))
