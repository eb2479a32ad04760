"""The operator's port while a server starts, which closes the tables of a restored database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dealer.eventlog.high_water_mark import MarkRecord
from dealer.gateway import serve
from dealer.gateway.ops import OperatorPort, operator_hosts
from dealer.service.build import open_service
from dealer.service.operations import restore_check
from dealer.service.operations.close_tables import close_tables
from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.http_client import get
from tests.service.tables import new_table

TABLES = 40


async def test_the_port_answers_while_tables_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"sqlite:///{tmp_path / 'restored.db'}"
    async with open_service(url) as service:
        for _ in range(TABLES):
            await new_table(service)

    async def lost(*_: Any) -> MarkRecord:
        return MarkRecord(bytes(8), bytes(16), bytes(16), 9, bytes(32))

    paused, go_on = asyncio.Event(), asyncio.Event()

    async def pause(*given: Any, **settings: Any) -> AsyncIterator[Any]:
        count = 0
        async for closed in close_tables(*given, **settings):
            if count == 30:
                paused.set()
                await go_on.wait()
            count += 1
            yield closed

    monkeypatch.setattr(restore_check, "find_lost", lost)
    monkeypatch.setattr(restore_check, "close_tables", pause)
    monkeypatch.setattr(restore_check, "REPORT_SECONDS", 0.0)
    caplog.set_level("INFO")
    operator = OperatorPort(operator_hosts((), "127.0.0.1"))
    await operator.open("127.0.0.1", 0, TEST_LIMITS)
    assert operator.listener is not None
    port = operator.listener.port
    with closing(operator):
        before = await get(port, "/readyz")
        assert (before.status, before.text) == (503, "The server starts.\n")

        async def start() -> None:
            async with (
                open_service(url, progress=operator.progress) as service,
                serve(service, port=0, operator=operator, limits=TEST_LIMITS) as gateway,
            ):
                assert gateway.ops_port == port
                ready = await get(port, "/readyz?for=new-tables")
                assert (ready.status, ready.text.splitlines()[0]) == (200, "ready")
                assert (await get(port, "/metrics")).status == 200

        starting = asyncio.create_task(start())
        await asyncio.wait(
            (starting, asyncio.create_task(paused.wait())), return_when=asyncio.FIRST_COMPLETED
        )
        answers = {path: await get(port, path) for path in ("/healthz", "/readyz", "/metrics", "/")}
        go_on.set()
        await starting
    says = f"The server starts: 30 of {TABLES} tables of the restored database are closed.\n"
    assert {path: answer.status for path, answer in answers.items()} == {
        "/healthz": 200, "/readyz": 503, "/metrics": 503, "/": 404,
    }  # fmt: skip
    assert answers["/readyz"].text == says
    lines = [vars(each)["fields"] for each in caplog.records if each.message == "closing tables"]
    assert [each["closed"] for each in lines] == list(range(TABLES))


async def test_a_port_that_is_taken_is_replaced_only_if_it_may_be() -> None:
    hosts = operator_hosts((), "127.0.0.1")
    one, other = OperatorPort(hosts), OperatorPort(hosts)
    with closing(one), closing(other):
        await one.open("127.0.0.1", 0, TEST_LIMITS)
        assert one.listener is not None
        taken = one.listener.port
        with pytest.raises(Exception, match="--ops-port"):
            await other.open("127.0.0.1", taken, TEST_LIMITS)
        await other.open("127.0.0.1", taken, TEST_LIMITS, any_port=True)
        assert other.listener is not None
        assert other.listener.port != taken
        none = OperatorPort(hosts)
        await none.open("127.0.0.1", None, TEST_LIMITS)
        assert none.listener is None
