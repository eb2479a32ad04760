"""Changes of a log in the database, as an administrator without the house key can make them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from dealer.service import LiveTable, Service


async def change(
    service: Service, live_table: LiveTable, sql: str, parameters: Sequence[Any] = ()
) -> None:
    """Execute SQL around the triggers; `TABLE` stands for the table's number."""
    of = "hex(table_id)" if service.log.dialect == "sqlite" else "upper(encode(table_id, 'hex'))"
    number = f"(SELECT id FROM stream WHERE {of} = '{live_table.table_id.upper()}')"

    def work(connection: Connection) -> None:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("DROP TRIGGER IF EXISTS event_refuses_update")
        else:
            connection.exec_driver_sql("ALTER TABLE event DISABLE TRIGGER USER")
        done = connection.exec_driver_sql(sql.replace("TABLE", number), tuple(parameters))
        assert done.rowcount

    await service.log.run_in_transaction(work)


async def version_of(service: Service, live_table: LiveTable, type_: str) -> int:
    """The version of the newest event of a type."""
    rows = [row async for part in service.log.stream(live_table.id) for row in part]
    return max(row.version for row in rows if row.type == type_)
