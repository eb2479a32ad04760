"""What statements on the log have in common on both databases, and revisions of its schema.

`dealer.projector.declared` declares the SQL tables. It and Alembic take half a second to import, so
they are imported only to migrate. The revision of a database is one row; the revisions of this
program are the names of its migration files, `<revision>_<name>.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dealer.errors import DatabaseError, SchemaOutdated, SchemaTooNew
from dealer.eventlog.protocols import Connection, Dialect
from dealer.game.events import LASTING_TYPES

if TYPE_CHECKING:
    from alembic.config import Config

LASTING = "(" + " OR ".join(f"type = '{name}'" for name in LASTING_TYPES) + ")"
"""The condition of the index of lasting events; a SELECT uses the index if it has the same text."""
# Not `type IN (…)`: SQLite builds a set from such a list for each row that is written.

TABLE_ID = {"sqlite": "table_id", "postgresql": "id"}
"""The column of `stream` with the table's id and an index on it."""

_MAX_VARIABLES = 500


def insert(connection: Connection, table: str, row: Mapping[str, Any]) -> None:
    """Add a row, given by columns, to an SQL table."""
    marks = ", ".join("?" * len(row))
    statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})"
    connection.exec_driver_sql(statement, tuple(row.values()))


def select_in(
    dialect: str, select: str, column: str, ids: Sequence[bytes | int]
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Statements, each with its parameters, that together select the rows with these ids."""
    if dialect == "postgresql":
        if ids:
            yield f"{select} WHERE {column} = ANY(?)", (list(ids),)
        return
    for start in range(0, len(ids), _MAX_VARIABLES):
        part = tuple(ids[start : start + _MAX_VARIABLES])
        yield f"{select} WHERE {column} IN ({','.join('?' * len(part))})", part


def lagging(dialect: str) -> str:
    """The condition that a row of `stream` has events to be projected, for which there is an index.

    On PostgreSQL the index has all rows that may have such events.
    """
    condition = "stream.version > stream.projected"
    return f"stream.behind AND {condition}" if dialect == "postgresql" else condition


NEAR = "near"
"""What `Connection.info` has of the log's part at the connection's server, if it is in shards."""


class Near(Protocol):
    """The part of a log in shards that is at one server; each has another `worker`."""

    worker: Hashable

    def tables(self, connection: Connection, tables: Collection[bytes]) -> set[bytes]: ...
    def part(self, name: str) -> str: ...


def near(connection: Connection) -> Near | None:
    """What of the log is at this connection's server; None if all of it is meant."""
    # A connection to an SQLite file has no such remarks.
    found: Near | None = getattr(connection, "info", {}).get(NEAR)
    return found


def part(connection: Connection, name: str) -> str:
    """A FROM item with the rows of an SQL table that are near, under its name."""
    here = near(connection)
    return name if here is None else here.part(name)


_MIGRATION_LOCK = int.from_bytes(b"dealer/m")
"""The advisory lock under which a PostgreSQL schema is migrated."""


def scripts() -> Path:
    """The folder of the migrations: inside the package in a wheel, else at the repository's top."""
    package = Path(__file__).resolve().parent
    in_wheel = package / "migrations"
    return in_wheel if in_wheel.is_dir() else package.parents[1] / "migrations"


def revisions() -> list[str]:
    """Every revision of this program, oldest first."""
    return sorted(file.name.split("_", 1)[0] for file in scripts().glob("versions/[0-9]*.py"))


TABLES = (
    "archived", "broadcast_link", "checkpoint", "deck", "disabled", "event", "feed",
    "feed_state", "hands", "house", "journal", "moves", "node", "opener", "piles", "presence",
    "rounds", "seat_subject", "seats", "service_key", "service_table", "shuffles", "stream",
    "swaps", "table_savepoint", "tables", "webhook",
)  # fmt: skip
"""The names of all SQL tables of this program."""

SELECT_REVISION = "SELECT version_num FROM alembic_version"


def current_revision(connection: Connection) -> str | None:
    """The revision of the database; None if it is empty.

    Raises DatabaseError if it holds another program's tables.
    """
    execute = connection.exec_driver_sql
    names = {name for (name,) in execute(select_tables(connection.dialect.name))}
    rows = execute(SELECT_REVISION).fetchall() if "alembic_version" in names else ()
    return revision_of(names, rows)


def revision_of(names: Collection[str], rows: Sequence[Any]) -> str | None:
    """The revision of a database of these tables, of which SELECT_REVISION has these rows."""
    if rows and rows[0][0] is not None:
        return str(rows[0][0])
    if set(names) - {"alembic_version"}:
        raise DatabaseError(
            "The database is another program's, or a worker's; name another, or the coordinator."
        )
    return None


def select_tables(dialect: Dialect) -> str:
    """The SELECT of the names of tables."""
    if dialect == "sqlite":
        return "SELECT name FROM sqlite_master"
    # A PostgreSQL database may hold other tables too, for example of extensions.
    ours = ", ".join(f"'{name}'" for name in ("alembic_version", *TABLES))
    return (
        "SELECT CAST(tablename AS text) FROM pg_tables WHERE schemaname = current_schema()"
        f" AND tablename IN ({ours})"
    )


def is_newest(found: str | None) -> bool:
    """Whether a revision is the newest; raises SchemaTooNew on one of a newer program."""
    known = revisions()
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


def lock_schema(connection: Connection) -> None:
    """Wait for other processes that migrate; SQLite's transactions do that themselves."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(?)", (_MIGRATION_LOCK,))


ALEMBIC = threading.Lock()
"""Held during `upgrade`: Alembic's context is one of the whole process, for all databases."""


def upgrade(connection: Connection) -> None:
    """Bring the schema to the newest revision, inside the caller's transaction.

    The caller holds ALEMBIC. On PostgreSQL a second process waits for the first one's transaction.
    """
    lock_schema(connection)
    if is_newest(current_revision(connection)):
        return
    from alembic import command

    command.upgrade(alembic_config(connection), "head")


def alembic_config(connection: Connection) -> Config:
    """Alembic's configuration for commands on this connection, which print nothing."""
    from alembic.config import Config

    config = Config(stdout=StringIO(), attributes={"connection": connection})
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    return config
