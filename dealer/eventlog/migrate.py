"""Schema migrations: the revision of a database, and Alembic's upgrade to the newest.

Alembic takes a third of a second to import, so it is imported only to migrate. The revision of a
database is one row; the revisions of this program are the names of its migration files,
`<revision>_<name>.py`.
"""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from dealer.errors import DatabaseError, SchemaOutdated, SchemaTooNew
from dealer.eventlog.schema import postgres

if TYPE_CHECKING:
    from alembic.config import Config


_LOCK = int.from_bytes(b"dealer/m")
"""The advisory lock under which a PostgreSQL schema is migrated."""


def scripts() -> Path:
    """The folder of the migrations: inside the package in a wheel, else at the repository's top."""
    package = Path(__file__).resolve().parent
    in_wheel = package / "migrations"
    return in_wheel if in_wheel.is_dir() else package.parents[1] / "migrations"


def revisions() -> list[str]:
    """Every revision of this program, oldest first."""
    return sorted(file.name.split("_", 1)[0] for file in scripts().glob("versions/[0-9]*.py"))


def current(connection: Connection) -> str | None:
    """The revision of the database; None if it is empty.

    Raises DatabaseError if it holds another program's tables, or those of a program from before
    the first version.
    """
    names = {name for (name,) in connection.exec_driver_sql(_select_tables(connection)).fetchall()}
    if "alembic_version" in names:
        found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
        if found is not None:
            if "event" in names and not _has_views(connection):
                raise DatabaseError(
                    "The database was made by a program from before the first version of dealer, "
                    "and no version can read its tables. Keep its games with that program: "
                    "`dealer export` writes each table's bundle, which stays valid permanently. "
                    "Then name another file or database for the log."
                )
            return str(found)
    if names - {"alembic_version"}:
        raise DatabaseError(
            "The database holds tables of another program; name another file for the log."
        )
    return None


def _select_tables(connection: Connection) -> str:
    if connection.dialect.name == "sqlite":
        return "SELECT name FROM sqlite_master"
    # A PostgreSQL database may hold other tables too, for example of extensions.
    ours = ", ".join(f"'{name}'" for name in ("alembic_version", *postgres.tables))
    return (
        "SELECT CAST(tablename AS text) FROM pg_tables WHERE schemaname = current_schema()"
        f" AND tablename IN ({ours})"
    )


def _has_views(connection: Connection) -> bool:
    """Whether the database has the views of the first migration."""
    if connection.dialect.name == "sqlite":
        found = connection.exec_driver_sql(
            "SELECT 1 FROM sqlite_master WHERE type = 'view' AND name = 'hand_changes'"
        )
    else:
        found = connection.exec_driver_sql("SELECT to_regclass('hand_changes')")
    return found.scalar() is not None


def is_current(connection: Connection) -> bool:
    """Whether the schema is the newest; raises SchemaTooNew on a revision of a newer program."""
    found, known = current(connection), revisions()
    if found is not None and found not in known:
        raise SchemaTooNew(
            f"The database was made by a newer version of this program (its schema is {found}, "
            f"the newest known here is {known[-1]}); install that version or a later one."
        )
    return found == known[-1]


def outdated(name: str, found: str | None) -> SchemaOutdated:
    """The error for the database `name` whose revision is `found`, not the newest."""
    schema = "is empty" if found is None else f"has the schema {found} of an older version"
    return SchemaOutdated(f"The database {name} {schema}; run `dealer migrate --database …` on it.")


def lock(connection: Connection) -> None:
    """Wait for other processes that migrate; SQLite's transactions do that themselves."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(?)", (_LOCK,))


def upgrade(connection: Connection) -> None:
    """Bring the schema to the newest revision, inside the caller's transaction.

    On PostgreSQL a second process waits for the first one's transaction.
    """
    lock(connection)
    if is_current(connection):
        return
    from alembic import command

    command.upgrade(_config(connection), "head")


def check(connection: Connection) -> None:
    """Raise Alembic's CommandError if the migrations and the declared schema differ."""
    from alembic import command

    command.check(_config(connection))


def _config(connection: Connection) -> Config:
    from alembic.config import Config

    config = Config(stdout=StringIO(), attributes={"connection": connection})
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    return config
