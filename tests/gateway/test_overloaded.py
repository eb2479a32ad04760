"""More writes or reads than the server accepts: requests are refused, and no error is lost."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dealer.eventlog.protocols import Connection
from dealer.gateway import Gateway
from tests.gateway.conftest import serving
from tests.gateway.rpc_client import Refusal, RpcClient, eventually
from tests.gateway.tables import seat_and_shuffle
from tests.service.bare_service import bare_service

QUEUE = 4


@pytest.fixture
async def small(tmp_path: Path) -> AsyncIterator[Gateway]:
    """A server with a short queue of appends, one reader and a short timeout."""
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    async with serving(bare_service(url, queue=QUEUE, readers=1, busy_seconds=0.2)) as gateway:
        yield gateway


@pytest.fixture
async def unretrieved() -> AsyncIterator[list[dict[str, Any]]]:
    """The event loop's reports of exceptions that were never retrieved; there must be none."""
    reports: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reports.append(context))
    yield reports
    gc.collect()
    await asyncio.sleep(0)
    assert reports == []


async def outcome(answer: asyncio.Future[Any]) -> str:
    try:
        await answer
    except Refusal as refusal:
        return str(refusal.reason)
    return "ok"


async def test_appends_beyond_the_queue_are_refused(small, connect, unretrieved) -> None:
    table = await seat_and_shuffle(connect, small, players=1)
    log, writing, written = small.context.service.log, threading.Event(), threading.Event()

    def block(connection: Connection) -> None:
        writing.set()
        written.wait(60)

    blocked = asyncio.ensure_future(log.run_in_transaction(block))
    await eventually(writing.is_set)
    requests = [table.host.send("deck.cut", at=1) for _ in range(30)]
    requests += [table.host.send("deck.shuffle") for _ in range(10)]
    requests += [(await connect(small)).send("table.open") for _ in range(5)]
    await eventually(lambda: log.writer.full)
    await eventually(lambda: sum(one.done() for one in requests) >= len(requests) - 2 * QUEUE)
    written.set()
    await blocked
    counts = Counter([await outcome(request) for request in requests])
    assert set(counts) == {"ok", "overloaded"}
    assert counts["ok"] <= 2 * QUEUE, "those in the queue, and those in the writer's batch"
    await table.host.call("deck.cut", at=1)


async def test_a_failed_read_for_a_closed_connection_is_no_unretrieved_error(
    small, connect, unretrieved
) -> None:
    service = small.context.service
    opened = [(await (await connect(small)).call("table.open"))["table"] for _ in range(3)]
    service.tables._tables.clear()
    async with service.log.reader._unused:  # the only one: no other read is served
        for table in opened:
            client = await RpcClient.connect(small.port)
            params = {"table": table}
            request = {"jsonrpc": "2.0", "id": 1, "method": "table.state", "params": params}
            await client.send_raw(json.dumps(request))
            await eventually(lambda: service.tables._loading)
            client.socket.transport.abort()
            await client.close()
        await eventually(lambda: not service.tables._loading)
    await eventually(lambda: not service.log.reader._reads)
    await (await connect(small)).call("table.state", table=opened[0])
