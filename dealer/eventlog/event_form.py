"""In which form a database's events are written: `house` has a row `event_form`.

    (no row)   canonical: nodes of the release before 0007, which cannot read short rows, may run
               on this PostgreSQL database
    mixed      short; earlier rows may be canonical
    short      short, and `dealer migrate --shorten` has shortened the earlier rows

Every form can be read at any time. On `mixed` a command that was stored in the canonical form is
looked for before it is written: the unique index knows the two forms as different ids.
"""

from __future__ import annotations

from enum import Enum

from sqlalchemy import Connection

from dealer.errors import DatabaseDamaged

NAME = "event_form"
SELECT = f"SELECT value FROM house WHERE name = '{NAME}'"
_DELETE = f"DELETE FROM house WHERE name = '{NAME}'"
_INSERT = f"INSERT INTO house (name, value) VALUES ('{NAME}', ?)"


class Form(Enum):
    """The value of the row, as text."""

    CANONICAL = ""
    MIXED = "mixed"
    SHORT = "short"


def parse(value: bytes | None) -> Form:
    """The form that the value of the row means; None if there is no row.

    Raises DatabaseDamaged for another value than this program writes.
    """
    known = {None: Form.CANONICAL, b"mixed": Form.MIXED, b"short": Form.SHORT}
    if value not in known:
        raise DatabaseDamaged(
            f"The row `{NAME}` of the SQL table `house` was altered; restore it from a backup of "
            "the database."
        )
    return known[value]


def read(connection: Connection) -> Form:
    """The form of a database whose schema has it."""
    return parse(connection.exec_driver_sql(SELECT).scalar())


def write(connection: Connection, form: Form) -> None:
    """Set the form; the caller's transaction makes it visible."""
    connection.exec_driver_sql(_DELETE)
    connection.exec_driver_sql(_INSERT, (form.value.encode(),))
