"""SQL table `opener`: a keyed digest of the network from which a game table was opened.

It is neither part of the log nor of the read models: a rebuild leaves it alone, and a table's row
goes when the table is archived. Game tables that were opened by an older version have none.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Column, Connection, LargeBinary

from dealer.eventlog.queries import TABLE_ID
from dealer.eventlog.schema import Key, define_table

_ADD = (
    "INSERT INTO opener (stream, digest) SELECT id, ? FROM stream WHERE {} = ?"
    " ON CONFLICT (stream) DO NOTHING"
)

opener = define_table(
    "opener",
    Column("stream", Key, primary_key=True, autoincrement=False),
    Column("digest", LargeBinary(16), nullable=False),
    sqlite_with_rowid=False,
)


def add(connection: Connection, digests: Mapping[bytes, bytes]) -> bool:
    """Add digests of 16 bytes by table ids; returns False: the work is complete."""
    statement = _ADD.format(TABLE_ID[connection.dialect.name])
    for table, digest in digests.items():
        connection.exec_driver_sql(statement, (digest, table))
    return False
