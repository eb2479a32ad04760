"""More to write or to read than the server takes: each request is refused, and no error is lost."""

from __future__ import annotations

import asyncio
import gc
import json
import secrets
import threading
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dealer.eventlog import Log
from dealer.eventlog.house import key_file, open_house
from dealer.gateway import Gateway, serve
from dealer.service import Service
from tests.gateway.conftest import EAGER
from tests.gateway.guest import Guest, Refusal, eventually
from tests.gateway.tables import shuffled

QUEUE = 4


@pytest.fixture
async def small(tmp_path: Path) -> AsyncIterator[Gateway]:
    """A server of which few appends may wait, and few readers, for a short time."""
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    async with await Log.open(url, queue=QUEUE, readers=1, busy_seconds=0.2) as log:
        service = Service(log, await open_house(log, key_file(url), fresh=secrets.token_bytes(32)))
        async with serve(service, host="127.0.0.1", port=0, limits=EAGER) as gateway:
            yield gateway
        await service.close()


@pytest.fixture
async def unretrieved() -> AsyncIterator[list[dict[str, Any]]]:
    """What the event loop reports: exceptions of tasks and futures that were never retrieved."""
    found: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: found.append(context))
    yield found
    gc.collect()
    await asyncio.sleep(0)
    assert found == []


async def outcome(answer: asyncio.Future[Any]) -> str:
    try:
        await answer
    except Refusal as refusal:
        return str(refusal.reason)
    return "ok"


async def test_a_full_queue_refuses_what_it_cannot_take(small, arrive, unretrieved) -> None:
    table = await shuffled(arrive, small, players=1)
    log, written = small.floor.service.log, threading.Event()
    blocked = asyncio.ensure_future(log.carry_out(lambda connection: written.wait(10)))
    asked = [table.host.send("deck.cut", at=1) for _ in range(30)]
    asked += [table.host.send("deck.shuffle") for _ in range(10)]
    asked += [(await arrive(small)).send("table.open") for _ in range(5)]
    await eventually(lambda: log.full)
    await eventually(lambda: sum(answer.done() for answer in asked) >= len(asked) - 2 * QUEUE)
    written.set()
    await blocked
    counts = Counter([await outcome(answer) for answer in asked])
    assert set(counts) == {"ok", "overloaded"}
    assert counts["ok"] <= 2 * QUEUE, "those that wait, and those that were taken before"
    await table.host.ask("deck.cut", at=1)


async def test_what_fails_for_a_client_that_has_gone_is_no_error(
    small, arrive, unretrieved
) -> None:
    service = small.floor.service
    opened = [(await (await arrive(small)).ask("table.open"))["table"] for _ in range(3)]
    service.memory._residents.clear()
    async with service.log._readers.connect():  # the only one, so that no read gets its turn
        for table in opened:
            guest = await Guest.arrive(small.port)
            params = {"table": table}
            request = {"jsonrpc": "2.0", "id": 1, "method": "table.state", "params": params}
            await guest.say(json.dumps(request))
            await eventually(lambda: service.memory._loading)
            guest.socket.transport.abort()
            await guest.leave()
        await eventually(lambda: not service.memory._loading)
    await eventually(lambda: not service.log._under_way)
    await (await arrive(small)).ask("table.state", table=opened[0])
