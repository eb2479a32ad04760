"""SQL table `opener`: a keyed digest of the network from which a game table was opened.

It is neither part of the log nor of the read models: a rebuild leaves it alone, and a table's row
goes when the table is archived. Game tables that were opened by an older version have none.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Column, Connection, Integer, LargeBinary, MetaData, Table

from dealer.eventlog.schema import metadata, postgres

_ADD = (
    "INSERT INTO opener (stream, digest) SELECT id, ? FROM stream WHERE table_id = ?"
    " ON CONFLICT (stream) DO NOTHING"
)


def define_tables(schema: MetaData) -> None:
    """Add the table of this module to a schema."""
    key = LargeBinary(16).with_variant(Integer(), "sqlite")
    Table(
        "opener",
        schema,
        Column("stream", key, primary_key=True, autoincrement=False),
        Column("digest", LargeBinary(16), nullable=False),
        sqlite_with_rowid=False,
    )


define_tables(metadata)
define_tables(postgres)
opener = metadata.tables["opener"]


def add(connection: Connection, digests: Mapping[bytes, bytes]) -> bool:
    """Add digests of 16 bytes by table ids; returns False: the work is complete."""
    for table, digest in digests.items():
        connection.exec_driver_sql(_ADD, (digest, table))
    return False
