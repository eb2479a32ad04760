"""How Alembic finds the database and the schema, from the repository and from an installed wheel.

The service passes the connection it already holds. By hand: `alembic -x database=<url> upgrade
head`, or the same with the address in DEALER_DATABASE. On an SQLite file, with no program running
on it: `dealer migrate` makes sure of that where it matters, this does not.
"""

import asyncio
import importlib
import os

from alembic import context
from alembic.util import CommandError
from sqlalchemy import Connection, create_engine

import dealer.eventlog.office  # adds its tables to the same metadata
import dealer.eventlog.presence  # noqa: F401  so does this
from dealer.eventlog.schema import metadata, postgres
from dealer.eventlog.server import Server, is_postgres
from dealer.eventlog.wal import without_automatic_checkpoints

# The read models add their tables to the same metadata when their module is imported.
try:
    importlib.import_module("dealer.projector.schema")
except ModuleNotFoundError as missing:
    if not (missing.name or "").startswith("dealer.projector"):
        raise


def migrate(connection: Connection) -> None:
    declared = postgres if connection.dialect.name == "postgresql" else metadata
    context.configure(connection=connection, target_metadata=declared, compare_type=True)
    with context.begin_transaction():
        context.run_migrations()


async def migrate_server(url: str) -> None:
    engine = Server(url).engine({})
    try:
        async with engine.connect() as connection:
            await connection.exec_driver_sql("BEGIN")
            await connection.run_sync(migrate)
            await connection.exec_driver_sql("COMMIT")
    finally:
        await engine.dispose()


given = context.config.attributes.get("connection")
if given is not None:
    migrate(given)
else:
    url = context.get_x_argument(as_dictionary=True).get("database") or os.environ.get(
        "DEALER_DATABASE"
    )
    if not url:
        raise CommandError("Say which database: alembic -x database=sqlite:///dealer.db …")
    if is_postgres(url):
        asyncio.run(migrate_server(url))
    else:
        engine = without_automatic_checkpoints(create_engine(url.replace("+aiosqlite", "")))
        with engine.connect() as connection:
            migrate(connection)
            connection.commit()
