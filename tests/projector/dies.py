"""A projector in a process of its own, killed before the statement that it is told."""

from __future__ import annotations

import os
import signal
import sys

from sqlalchemy import create_engine, event

from dealer.projector.runner import Projector

file, before = sys.argv[1:]
engine = create_engine(f"sqlite:///{file}")
connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")


@event.listens_for(connection, "before_cursor_execute")
def die(conn: object, cursor: object, sql: str, *_: object) -> None:
    if sql.startswith(before):
        os.kill(os.getpid(), signal.SIGKILL)


connection.exec_driver_sql("BEGIN IMMEDIATE")
Projector().slice(connection)
connection.exec_driver_sql("COMMIT")
