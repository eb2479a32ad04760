"""Moves the archive into newer shelves, and says when it stands in shelves we do not know.

Alembic takes a third of a second to import, so it is asked only when there is something to do:
the revision in the database is one row, and the revisions that this program knows are the names
of its migration files, `<revision>_<what>.py`.
"""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from dealer.errors import DatabaseError, DatabaseNew
from dealer.eventlog.schema import postgres

if TYPE_CHECKING:
    from alembic.config import Config


_LOCK = int.from_bytes(b"dealer/m")
"""The advisory lock under which a PostgreSQL schema is migrated."""


def scripts() -> Path:
    """The folder of the migrations: inside the package in a wheel, else at the repository's top."""
    here = Path(__file__).resolve().parent
    packed = here / "migrations"
    return packed if packed.is_dir() else here.parents[1] / "migrations"


def revisions() -> list[str]:
    """Every revision that this program knows, oldest first."""
    return sorted(file.name.split("_", 1)[0] for file in scripts().glob("versions/[0-9]*.py"))


def current(connection: Connection) -> str | None:
    """The revision that the database stands at; None if it is empty.

    Raises DatabaseError if the file holds another program's tables.
    """
    names = {name for (name,) in connection.exec_driver_sql(_there(connection)).fetchall()}
    if "alembic_version" in names:
        found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
        if found is not None:
            return str(found)
    if names - {"alembic_version"}:
        raise DatabaseError(
            "The database holds tables of another program; name a file of its own for the log."
        )
    return None


def _there(connection: Connection) -> str:
    if connection.dialect.name == "sqlite":
        return "SELECT name FROM sqlite_master"
    # A server's database may well have another's tables in it: extensions bring some.
    ours = ", ".join(f"'{name}'" for name in ("alembic_version", *postgres.tables))
    return (
        "SELECT CAST(tablename AS text) FROM pg_tables WHERE schemaname = current_schema()"
        f" AND tablename IN ({ours})"
    )


def is_current(connection: Connection) -> bool:
    """Whether nothing is left to migrate; raises DatabaseNew on a revision from a newer program."""
    found, known = current(connection), revisions()
    if found is not None and found not in known:
        raise DatabaseNew(
            f"The database was made by a newer version of this program (its schema is {found}, "
            f"the newest known here is {known[-1]}); install that version or a later one."
        )
    return found == known[-1]


def upgrade(connection: Connection) -> None:
    """Brings the schema to the newest revision, inside the caller's transaction.

    On PostgreSQL one process does it, and who comes at the same time finds it done.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
    if is_current(connection):
        return
    from alembic import command

    command.upgrade(_config(connection), "head")


def check(connection: Connection) -> None:
    """Raises alembic's CommandError if the migrations and the declared schema differ."""
    from alembic import command

    command.check(_config(connection))


def _config(connection: Connection) -> Config:
    from alembic.config import Config

    config = Config(stdout=StringIO(), attributes={"connection": connection})
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    return config
