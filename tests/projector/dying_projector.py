"""A projector in its own process that kills itself before a statement with a pattern in it."""

from __future__ import annotations

import os
import re
import signal
import sys

from sqlalchemy import Engine, create_engine, event

from dealer.eventlog.address import is_postgres
from dealer.projector.runner import Projector
from tests.harness.postgres import Blocking
from tests.projector.databases import AnyConnection, on

url, before = sys.argv[1:]


@event.listens_for(Engine, "before_cursor_execute")
def die(conn: object, cursor: object, sql: str, *_: object) -> None:
    if re.search(before, sql):
        os.kill(os.getpid(), signal.SIGKILL)


if is_postgres(url):
    connection: AnyConnection = Blocking(url, {})
else:
    connection = create_engine(url).connect().execution_options(isolation_level="AUTOCOMMIT")
connection.exec_driver_sql("BEGIN IMMEDIATE")
on(connection, Projector().slice)
connection.exec_driver_sql("COMMIT")
