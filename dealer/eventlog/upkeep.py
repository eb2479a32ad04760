"""New shelves for an archive that several nodes share: made by one hand, and only when told to."""

from __future__ import annotations

from dealer.errors import DealerError
from dealer.eventlog import migrate
from dealer.eventlog.faults import explain
from dealer.eventlog.log import Log
from dealer.eventlog.server import Server, is_postgres


async def migrate_database(url: str) -> None:
    """Brings the schema at `url` to the newest; makes it if there is none.

    Of several processes at once one does it. Raises DatabaseError, after which the schema is the
    one that was there, or SetupError.
    """
    if not is_postgres(url):
        async with await Log.open(url):
            return
    server = Server(url)
    engine = server.engine({})
    try:
        async with engine.connect() as connection:
            await connection.exec_driver_sql("BEGIN")
            await connection.run_sync(migrate.upgrade)
            await connection.exec_driver_sql("COMMIT")
    except DealerError:
        raise
    except Exception as error:
        raise explain(error, name=server.name) from error
    finally:
        await engine.dispose()
