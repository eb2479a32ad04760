"""Alembic environment: finds the database and the schema, in the repository and in a wheel.

`dealer.eventlog.schema` passes its open connection. By hand: `alembic -x database=<url> upgrade
head`, or with the address in DEALER_DATABASE_URL. No other program
may use an SQLite file meanwhile: `dealer migrate` checks that, this does not.
"""

import asyncio
import os
from functools import partial

from alembic import context
from alembic.util import CommandError
from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

from dealer.eventlog.address import database_file, is_postgres
from dealer.eventlog.postgres.database import PostgresDatabase
from dealer.eventlog.sqlite.wal import open_file
from dealer.projector.declared import metadata, postgres


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
        file = database_file(url.replace("+aiosqlite", ""))
        driver = partial(open_file, file, busy_seconds=5.0, mode="rwc")
        engine = create_engine("sqlite://", creator=driver, poolclass=NullPool)
        with engine.connect() as connection:
            migrate(connection)
            connection.commit()
