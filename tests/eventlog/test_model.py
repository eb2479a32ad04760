"""The log compared with a model, for random appends, batches, retries and restarts."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from dealer.eventlog import Append, Appended, Conflict, Duplicate, EventRecord, Log, Result
from tests.eventlog.conftest import TemporarySqlite
from tests.eventlog.requests import A, B, C
from tests.harness.depth import amount

pytestmark = pytest.mark.slow


class Model:
    """The rows of each table in a list, and the results that a log must give."""

    def __init__(self) -> None:
        self.rows: dict[bytes, list[EventRecord]] = {}

    def append(self, request: Append) -> Result:
        rows = self.rows.get(request.table, [])
        command = request.rows[0].command
        for row in rows:
            if command is not None and row.command == command:
                return Duplicate(row.version, row.digest)
        if len(rows) != request.expected:
            return Conflict(len(rows))
        self.rows[request.table] = [*rows, *request.rows]
        return Appended(len(rows) + len(request.rows))


tables = st.sampled_from([A, B, C])
requests = st.tuples(
    tables,
    st.integers(-1, 1),
    st.integers(1, 4),
    st.none() | st.sampled_from("uvwxyz"),
    st.binary(max_size=3),
)


class Machine(RuleBasedStateMachine):
    """Two logs on one file: the writer thread of the one and the event loop of the other commit."""

    template: Path

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        shutil.copy(self.template, self.folder / "log.db")
        self.database = TemporarySqlite(self.folder / "log.db")
        self.loop = asyncio.new_event_loop()
        self.model = Model()
        self.logs = [self.open(which) for which in range(2)]

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def open(self, which: int) -> Log:
        log: Log = self.run(self.database.open(wal_pages=10, commit=("thread", "loop")[which]))
        return log

    def build(self, request: tuple[bytes, int, int, str | None, bytes]) -> Append:
        table, offset, count, command, body = request
        expected = max(0, len(self.model.rows.get(table, ())) + offset)
        rows = [
            EventRecord(expected + 1 + n, "Said", 1, n, "{}", hidden=body or None)
            for n in range(count)
        ]
        if command:
            rows[0] = replace(rows[0], command=command, digest=body)
        return Append(table, expected, rows)

    @rule(batch=st.lists(requests, min_size=1, max_size=6), which=st.integers(0, 1))
    def append(self, batch: list[tuple[bytes, int, int, str | None, bytes]], which: int) -> None:
        async def append_all(log: Log) -> list[Result]:
            return await asyncio.gather(*map(log.append, appends))

        appends, results = [], []
        for request in batch:
            # The expected version includes the appends before it in the batch.
            appends.append(self.build(request))
            results.append(self.model.append(appends[-1]))
        assert self.run(append_all(self.logs[which])) == results

    @rule(which=st.integers(0, 1))
    def restart(self, which: int) -> None:
        self.run(self.logs[which].close())
        self.logs[which] = self.open(which)

    @precondition(lambda self: self.model.rows)
    @rule(data=st.data(), after=st.integers(0, 8), limit=st.integers(1, 5))
    def read(self, data: st.DataObject, after: int, limit: int) -> None:
        table = data.draw(st.sampled_from(sorted(self.model.rows)))
        rows = self.run(self.logs[0].read(table, after=after, limit=limit))
        assert rows == self.model.rows[table][after : after + limit]

    @invariant()
    def heads_agree(self) -> None:
        heads = {table: len(rows) for table, rows in self.model.rows.items()}
        assert self.run(self.logs[1].heads([A, B, C])) == heads

    def teardown(self) -> None:
        for log in self.logs:
            for table, rows in self.model.rows.items():
                assert self.run(log.read(table)) == rows
            self.run(log.close())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()
        shutil.rmtree(self.folder)


def test_the_log_agrees_with_the_model(migrated: Path) -> None:
    Machine.template = migrated
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=amount(15, many=60),
            stateful_step_count=15,
            suppress_health_check=list(HealthCheck),
        ),
    )
