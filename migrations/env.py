"""Alembic environment: finds the database and the schema, in the repository and in a wheel.

`dealer.eventlog.schema` passes its open connection. By hand: `alembic -x database=<url> upgrade
head`, or with the address in DEALER_DATABASE_URL. No other program
may use an SQLite file meanwhile: `dealer migrate` checks that, this does not.
"""

import asyncio
import os

from alembic import context
from alembic.util import CommandError
from sqlalchemy import Connection, create_engine

import dealer.eventlog.admin
import dealer.eventlog.nodes
import dealer.eventlog.services
import dealer.projector.models  # noqa: F401  they add theirs
from dealer.eventlog.address import is_postgres
from dealer.eventlog.postgres.database import PostgresDatabase
from dealer.eventlog.schema import metadata, postgres
from dealer.eventlog.sqlite.wal import without_automatic_checkpoints


def migrate(connection: Connection) -> None:
    declared = postgres if connection.dialect.name == "postgresql" else metadata
    context.configure(connection=connection, target_metadata=declared, compare_type=True)
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    migrate(given)
else:
    url = context.get_x_argument(as_dictionary=True).get("database") or os.environ.get(
        "DEALER_DATABASE_URL"
    )
    if not url:
        raise CommandError("Name the database: alembic -x database=sqlite:///dealer.db …")
    if is_postgres(url):
        asyncio.run(PostgresDatabase(url).run(migrate))
    else:
        engine = without_automatic_checkpoints(create_engine(url.replace("+aiosqlite", "")))
        with engine.connect() as connection:
            migrate(connection)
            connection.commit()
