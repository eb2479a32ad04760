"""Translates errors of the database drivers into this package's errors.

Each text says what happened and what the operator can do.
"""

from __future__ import annotations

import socket
import sqlite3
import ssl
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from pathlib import Path
from shutil import disk_usage

from dealer import errors

FAULTS = (sqlite3.Error, OSError)
"""What SQLite's driver and disks raise; any other exception is a bug of this program."""

BAD_VALUES = (
    sqlite3.IntegrityError,
    sqlite3.ProgrammingError,
    sqlite3.InterfaceError,
    sqlite3.DataError,
    ValueError,
    TypeError,
    OverflowError,
    errors.DatabaseDamaged,  # a stored checkpoint has another root; `translate` keeps it
)
"""Errors that the values of one request cause; the other requests of the batch are valid."""

_LOCKED = (
    errors.DatabaseLocked,
    "Another program holds a lock on the database {name}; "
    "end that program or its open transaction, then try again.",
)
_READ_ONLY = (
    errors.DatabaseReadOnly,
    "The database {name} cannot be written; make the file and its folder writable for the user "
    "that the server runs as.",
)
_DAMAGED = (
    errors.DatabaseDamaged,
    "The file {name} is damaged or is not an SQLite database; restore it from a backup, or name "
    "another file.",
)
_FULL = (
    errors.DatabaseFull,
    "The disk that holds {name} is full, and nothing was written; free some space, then try again.",
)
_BY_SQLITE_CODE: dict[int, tuple[type[errors.DatabaseError], str]] = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_AUTH: _READ_ONLY,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_CANTOPEN: (
        errors.DatabaseReadOnly,
        "The database {name} cannot be opened; its folder must exist and be writable for the "
        "user that the server runs as.",
    ),
    sqlite3.SQLITE_IOERR: (
        errors.DatabaseError,
        "The disk that holds {name} failed to read or write; check the disk, then start again.",
    ),
}

_UNREACHABLE = (
    "The database {name} cannot be reached: %s. Check the address and the database server, then "
    "try again. A running server reconnects automatically, and no acknowledged event is lost."
)
_RECOVERING = (
    errors.DatabaseUnavailable,
    "The server of the database {name} recovers, or is a standby; wait until its recovery has "
    "ended, then try again, or name the primary server. A running server goes on automatically.",
)

_LOCK_TIMEOUT = "55P03"
_NOT_YET = ("57P03", "55000")
"""It accepts no connections yet; its functions of the write-ahead log do not work yet."""

PAGE_BYTES = 4096

# Prefixes of SQLSTATE codes; the longest one that matches applies.
_BY_SQLSTATE: dict[str, tuple[type[errors.DatabaseError], str]] = {
    "08": (errors.DatabaseUnavailable, _UNREACHABLE % "the connection was lost"),
    # A server of a cluster reports it of another one.
    "08006": (
        errors.WorkerUnavailable,
        "A worker of the database {name} cannot be reached: its tables are unavailable until it "
        "is back, and no acknowledged event is lost.",
    ),
    "57P": (errors.DatabaseUnavailable, _UNREACHABLE % "the server is stopping"),
    **dict.fromkeys(_NOT_YET, _RECOVERING),
    "53300": (errors.DatabaseUnavailable, _UNREACHABLE % "the server has no free connection"),
    "53100": (
        errors.DatabaseFull,
        "The disk of the database {name} is full, and nothing was written; free some space, then "
        "try again.",
    ),
    "25006": (
        errors.DatabaseReadOnly,
        "The database {name} is read-only; name the primary server, not a standby.",
    ),
    "28": (
        errors.DatabaseReadOnly,
        "The database {name} rejects this user; check the user, the password and the "
        "server's pg_hba.conf.",
    ),
    "3D000": (errors.DatabaseError, "There is no database {name}; create it with createdb."),
    "40": (
        errors.ConcurrentUpdate,
        "Another process wrote to {name} at the same time; nothing was written.",
    ),
    "42501": (
        errors.DatabaseReadOnly,
        "This user lacks privileges on the database {name}; grant them, or name another user.",
    ),
    "42P01": (
        errors.SchemaOutdated,
        "The database {name} lacks tables; run `dealer migrate` on it.",
    ),
    "42703": (
        errors.SchemaOutdated,
        "The database {name} lacks columns; run `dealer migrate` on it.",
    ),
    _LOCK_TIMEOUT: _LOCKED,
    "57014": _LOCKED,
    "0A000": (
        errors.DatabaseError,
        "The database {name} refused a statement of this program, and no data is damaged; check "
        "that the server, and Citus if the log is distributed, are of a supported version.",
    ),
    **dict.fromkeys(
        ("XX001", "XX002"),
        (errors.DatabaseDamaged, "The database {name} is damaged; restore it from a backup."),
    ),
}
_PREFIX_LENGTHS = (5, 3, 2)


def _cause(error: BaseException) -> BaseException:
    """The driver's error in SQLAlchemy's; any other error as it is."""
    cause = getattr(error, "orig", None) if _is_of(error, "sqlalchemy") else None
    return cause if isinstance(cause, BaseException) else error


def _is_of(error: BaseException, package: str) -> bool:
    return type(error).__module__.partition(".")[0] == package


def is_database_error(error: BaseException) -> bool:
    """Whether the driver, SQLAlchemy or the network raised the error, and not the work itself."""
    known = isinstance(error, (sqlite3.Error, OSError, TimeoutError))
    return known or _is_of(error, "sqlalchemy") or _is_of(error, "asyncpg")


def sqlstate(error: BaseException) -> str | None:
    """The SQLSTATE of a PostgreSQL error, five characters; None for any other error."""
    found = getattr(_cause(error), "sqlstate", None)
    return found if isinstance(found, str) else None


def is_bad_value(error: BaseException) -> bool:
    """Whether the values of one request caused the error, and not the database or its disk."""
    code = sqlstate(error)
    if code is not None:
        return code[:2] in ("22", "23")
    return isinstance(_cause(error), BAD_VALUES)


def is_lock_timeout(error: BaseException) -> bool:
    """Whether a statement waited too long for another transaction's lock."""
    return sqlstate(error) == _LOCK_TIMEOUT


def is_recovering(error: BaseException) -> bool:
    """Whether a server recovers after a failure, or just starts: that ends automatically."""
    return sqlstate(error) in _NOT_YET


def lock_timeout_error(name: str) -> errors.DatabaseLocked:
    """The error for a request whose table another transaction has locked for too long."""
    kind, sentence = _LOCKED
    return kind(sentence.format(name=name))


_TRY_AGAIN = "Try again; if it fails again, look at the database's own log and at the disk."


def _translate_sqlstate(code: str, name: str) -> errors.DatabaseError:
    for length in _PREFIX_LENGTHS:
        if code[:length] in _BY_SQLSTATE:
            kind, sentence = _BY_SQLSTATE[code[:length]]
            return kind(sentence.format(name=name))
    return errors.DatabaseError(f"The log in {name} failed (PostgreSQL error {code}). {_TRY_AGAIN}")


def translate(error: BaseException, *, name: str, committing: bool = False) -> errors.DatabaseError:
    """This package's error for one of a driver; `name` is the file or the server's address.

    `committing`: COMMIT had been sent. A disk failure then leaves it unknown whether the batch is
    in the database. An error of this package that is no DatabaseError is raised.
    """
    if isinstance(error, errors.DatabaseError):
        return error
    if isinstance(error, errors.DealerError):
        raise error  # it says what happened
    cause = _cause(error)
    if is_bad_value(cause):
        return errors.DatabaseError(
            f"The log of {name} rejects the values of a row; nothing of this request was written."
        )
    found = sqlstate(cause)
    if found is not None:
        return _translate_sqlstate(found, name)
    if name.startswith("postgresql:") and _is_unreachable(cause):
        return errors.DatabaseUnavailable((_UNREACHABLE % reason(cause)).format(name=name))
    if isinstance(cause, PermissionError):
        return _READ_ONLY[0](_READ_ONLY[1].format(name=name))
    if isinstance(cause, OSError):
        if cause.errno in (ENOSPC, EDQUOT):
            return _FULL[0](_FULL[1].format(name=name))
        why = cause.strerror or "no reason is known"
        return errors.DatabaseError(f"The log in {name} failed: {why}. {_TRY_AGAIN}")
    code = getattr(cause, "sqlite_errorcode", None)
    if code is None:
        fault = f"its driver reported a fault ({type(cause).__name__})"
        return errors.DatabaseError(f"The log in {name} failed: {fault}. {_TRY_AGAIN}")
    primary = code & 0xFF
    if committing and primary == sqlite3.SQLITE_IOERR:
        return errors.OutcomeUnknown(
            f"The disk that holds {name} failed during COMMIT: it is not known whether the events "
            "were written. Send the same command id again to find out."
        )
    kind, sentence = _BY_SQLITE_CODE.get(
        primary,
        (errors.DatabaseError, f"The log in {{name}} failed (SQLite error {code}). {_TRY_AGAIN}"),
    )
    if primary == sqlite3.SQLITE_IOERR and _is_full(name):
        kind, sentence = _FULL  # not SQLITE_FULL if its shared memory has no room
    return kind(sentence.format(name=name))


def _is_unreachable(cause: BaseException) -> bool:
    """Whether it is a network error, or asyncpg's error for a lost connection."""
    if isinstance(cause, (OSError, TimeoutError)):
        return True
    kinds, said = {kind.__name__ for kind in type(cause).__mro__}, str(cause)
    if "InternalClientError" in kinds:
        return "cannot switch to state" in said  # the server had said, while idle, that it ends
    return "InterfaceError" in kinds and ("closed" in said or "lost" in said)


def _is_full(file: str) -> bool:
    """Whether the disk with this file has no room for a page."""
    with suppress(OSError):
        return disk_usage(Path(file).parent).free < PAGE_BYTES
    return False


def reason(cause: BaseException) -> str:
    """Why the server is unreachable; the system's text is left out because it has addresses."""
    text = str(cause)
    if isinstance(cause, socket.gaierror):
        return "the host name is unknown"
    if isinstance(cause, TimeoutError):
        return "it does not answer"
    if isinstance(cause, (ConnectionRefusedError, FileNotFoundError)) or "refused" in text:
        return "the connection was refused; no server listens there"
    if "rejected SSL upgrade" in text:
        return "the server offers no TLS"
    if isinstance(cause, ssl.SSLError):
        return "its TLS certificate is invalid"
    return "the connection was lost"
