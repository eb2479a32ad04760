"""How Alembic finds the database and the schema, from the repository and from an installed wheel.

The service passes the connection it already holds. By hand: `alembic -x database=<url> upgrade
head`, or the same with the address in DEALER_DATABASE.
"""

import importlib
import os

from alembic import context
from alembic.util import CommandError
from sqlalchemy import Connection, create_engine

from dealer.eventlog.schema import metadata

# The read models add their tables to the same metadata when their module is imported.
try:
    importlib.import_module("dealer.projector.schema")
except ModuleNotFoundError as missing:
    if not (missing.name or "").startswith("dealer.projector"):
        raise


def migrate(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, compare_type=True)
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    migrate(given)
else:
    url = context.get_x_argument(as_dictionary=True).get("database") or os.environ.get(
        "DEALER_DATABASE"
    )
    if not url:
        raise CommandError("Say which database: alembic -x database=sqlite:///dealer.db …")
    with create_engine(url.replace("+aiosqlite", "")).connect() as connection:
        migrate(connection)
        connection.commit()
