"""What went wrong in the archive, in one sentence that an operator can act on."""

from __future__ import annotations

import socket
import sqlite3
import ssl

from sqlalchemy.exc import DBAPIError

from dealer.errors import (
    DatabaseAway,
    DatabaseDamaged,
    DatabaseError,
    DatabaseFull,
    DatabaseLocked,
    DatabaseOld,
    DatabaseReadOnly,
    OutcomeUnknown,
    RaceLost,
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

_AWAY = (
    "The database {name} cannot be reached just now: %s. See to the address and the server, then "
    "try again; a house that is open goes on by itself, and nothing that was acknowledged is lost."
)
_NO_RIGHTS = (
    DatabaseReadOnly,
    "The database {name} may not be read or written by this user; give the user its rights, or "
    "name another one.",
)
_RACE = (RaceLost, "Another process wrote to {name} at the same time; nothing was written.")

_LOCK_TIMEOUT = "55P03"

# PostgreSQL's codes, the longest beginning that fits first.
_STATES: dict[str, tuple[type[DatabaseError], str]] = {
    "08": (DatabaseAway, _AWAY % "the connection broke"),
    "57P": (DatabaseAway, _AWAY % "the server is stopping or starting"),
    "53300": (DatabaseAway, _AWAY % "the server has no connection free"),
    "53100": (
        DatabaseFull,
        "The disk of the database {name} is full, and nothing was written; free some space, then "
        "try again.",
    ),
    "25006": (
        DatabaseReadOnly,
        "The database {name} takes no writes; name the primary server and not a standby.",
    ),
    "28": (
        DatabaseReadOnly,
        "The database {name} does not let this user in; see to the user, the password and the "
        "server's pg_hba.conf.",
    ),
    "3D000": (DatabaseError, "There is no database {name}; make it with createdb."),
    "40": _RACE,
    "42501": _NO_RIGHTS,
    "42P01": (DatabaseOld, "The database {name} lacks tables; run `dealer migrate` on it."),
    "42703": (DatabaseOld, "The database {name} lacks columns; run `dealer migrate` on it."),
    _LOCK_TIMEOUT: _LOCKED,
    "57014": _LOCKED,
    "XX": (
        DatabaseDamaged,
        "The database {name} is damaged; restore it from a backup.",
    ),
}
_LENGTHS = (5, 3, 2)


def state(error: BaseException) -> str | None:
    """PostgreSQL's five characters for what went wrong, if it was PostgreSQL that said so."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    found = getattr(cause, "sqlstate", None)
    return found if isinstance(found, str) else None


def is_bad_value(error: BaseException) -> bool:
    """Whether the fault lies in the values of one request, and not in the database or its disk."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        error = error.orig
    code = state(error)
    if code is not None:
        return code[:2] in ("22", "23")
    return isinstance(error, BAD_VALUES)


def is_lock_timeout(error: BaseException) -> bool:
    """Whether a statement was ended because another transaction's lock was not released in time."""
    return state(error) == _LOCK_TIMEOUT


def held(name: str) -> DatabaseLocked:
    """The error of a request whose table another transaction has held for too long."""
    kind, sentence = _LOCKED
    return kind(sentence.format(name=name))


def _explain_state(code: str, name: str) -> DatabaseError:
    for length in _LENGTHS:
        if code[:length] in _STATES:
            kind, sentence = _STATES[code[:length]]
            return kind(sentence.format(name=name))
    return DatabaseError(f"The log in {name} failed (PostgreSQL error {code}).")


def explain(error: BaseException, *, name: str, committing: bool = False) -> DatabaseError:
    """The error of this package for what the driver raised; `name` is the file or the server.

    `committing` says that COMMIT had been sent: a disk that fails there leaves open whether the
    batch will be found after a crash.
    """
    if isinstance(error, DatabaseError):
        return error
    cause: BaseException = error
    if isinstance(error, DBAPIError) and error.orig is not None:
        cause = error.orig
    if is_bad_value(cause):
        return DatabaseError(
            f"The rows do not fit the log of {name} ({type(cause).__name__}); nothing of this "
            "request was written."
        )
    found = state(cause)
    if found is not None:
        return _explain_state(found, name)
    if name.startswith("postgresql:") and _is_away(cause):
        return DatabaseAway((_AWAY % _why(cause)).format(name=name))
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


def _is_away(cause: BaseException) -> bool:
    """What a driver without an answer raises: the network's errors, and its own of a dead line."""
    if isinstance(cause, (OSError, TimeoutError)):
        return True
    return "InterfaceError" in (each.__name__ for each in type(cause).__mro__) and (
        "closed" in str(cause) or "lost" in str(cause)
    )


def _why(cause: BaseException) -> str:
    """Why a server is not reached; the network's texts are not shown, for they quote addresses."""
    text = str(cause)
    if isinstance(cause, socket.gaierror):
        return "there is no such host"
    if isinstance(cause, TimeoutError):
        return "it does not answer"
    if isinstance(cause, (ConnectionRefusedError, FileNotFoundError)) or "refused" in text:
        return "the connection was refused, no server listens there"
    if "rejected SSL upgrade" in text:
        return "the server offers no TLS"
    if isinstance(cause, ssl.SSLError):
        return "its TLS certificate does not hold"
    return "the connection broke"
