"""Without memory at any step of a request it is answered, or its connection closed, and the next
one works.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

import pytest

from dealer.eventlog.recent import RecentEvents
from dealer.eventlog.writer import Writer
from dealer.gateway import Gateway
from dealer.gateway.decks import endpoint
from dealer.gateway.net.http import HttpExchange
from dealer.gateway.pages import streams
from dealer.gateway.rate_limit.budgets import Bucket
from dealer.gateway.session import request_queue
from dealer.gateway.wire import protocol as wire
from dealer.service import Service
from dealer.service.operations.probe import MEMORY
from tests.gateway.conftest import Connect
from tests.gateway.rpc_client import Refusal, RpcClient

pytestmark = pytest.mark.usefixtures("gateway")

PATIENT = 30.0


class Failing:
    """Raises MemoryError in the next `times` calls of a function."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.left = 0

    def make(self, owner: Any, name: str, *, times: int = 1) -> None:
        works: Callable[..., Any] = getattr(owner, name)
        self.left += times

        def fails(*given: Any, **named: Any) -> Any:
            if self.left:
                self.left -= 1
                raise MemoryError
            return works(*given, **named)

        self._monkeypatch.setattr(owner, name, fails)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Failing:
    return Failing(monkeypatch)


async def outcome(client: RpcClient, method: str, **params: Any) -> str | None:
    """The reason or code of a refusal, `closed`, or None for a result."""
    try:
        async with asyncio.timeout(PATIENT):
            await client.call(method, **params)
    except Refusal as refusal:
        return str(refusal.reason or refusal.code)
    except asyncio.CancelledError:
        return "closed"
    return None


async def at_a_table(connect: Connect) -> RpcClient:
    client = await connect()
    await client.call("table.open")
    await client.call("table.join", name="Ada")
    await client.call("round.open", entropy="house")
    return client


def broken_listener(service: Service) -> tuple[Any, str]:
    def listener(live_table: object, notice: object) -> None: ...

    holder = type("Holder", (), {"listener": staticmethod(listener)})
    service.notices.listen(lambda live_table, notice: holder.listener(live_table, notice))  # type: ignore[attr-defined]
    return holder, "listener"


@pytest.mark.parametrize(
    ("owner", "name", "answers"),
    [
        (None, "a listener", {None}),
        (RecentEvents, "add", {"unavailable"}),
        (Writer, "submit", {"unavailable"}),
        (wire, "result_frame", {"-32603"}),
    ],
)
async def test_a_command(
    connect: Connect,
    service: Service,
    failing: Failing,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    answers: set[str | None],
) -> None:
    client = await at_a_table(connect)
    reported: list[dict[str, Any]] = []
    monkeypatch.setattr(asyncio.get_running_loop(), "call_exception_handler", reported.append)
    if owner is Writer:
        owner = service.log.writer
    owner, name = broken_listener(service) if owner is None else (owner, name)
    failing.make(owner, name)
    assert await outcome(client, "deck.shuffle") in answers
    assert await outcome(client, "deck.shuffle") is None
    if name != "result_frame":
        assert [type(context["exception"]) for context in reported] == [MemoryError]


async def test_neither_the_answer_nor_the_error_can_be_made(
    connect: Connect, failing: Failing
) -> None:
    client, other = await at_a_table(connect), await connect()
    failing.make(wire, "result_frame")
    failing.make(wire, "fault")
    assert await outcome(client, "deck.shuffle") == "closed"
    assert await outcome(other, "ping") is None


async def test_a_request_that_reads_fails_outside_of_its_handler(
    connect: Connect, failing: Failing, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, other = await at_a_table(connect), await connect()
    before = MEMORY.errors

    async def fails(work: Any, cpu: Bucket) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(request_queue, "metered", fails)
        assert await outcome(client, "table.state") == "closed"
    assert MEMORY.errors == before + 1
    assert await outcome(other, "ping") is None


async def test_a_post_whose_answer_cannot_be_written(gateway: Gateway, failing: Failing) -> None:
    failing.make(HttpExchange, "answer")
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}).encode()
    head = (
        b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body)
    )
    assert await first_bytes(gateway, head + body) == b""
    assert await first_bytes(gateway, head + body) == b"HTTP/1.1 200"


async def first_bytes(gateway: Gateway, request: bytes) -> bytes:
    """Everything that is answered until the connection ends, or 12 bytes of an answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(request)
    async with asyncio.timeout(PATIENT):
        try:
            return await reader.read(12)
        except ConnectionResetError:
            return b""
        finally:
            writer.close()


async def test_a_deck_whose_answer_cannot_be_made(gateway: Gateway, failing: Failing) -> None:
    request = b"GET /api/deck/new/ HTTP/1.1\r\nHost: localhost\r\n\r\n"
    failing.make(endpoint, "_json", times=2)
    assert await first_bytes(gateway, request) == b""
    assert await first_bytes(gateway, request) == b"HTTP/1.1 200"


async def test_a_download_breaks_off(
    gateway: Gateway, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await connect()
    table = (await client.call("table.open"))["table"]

    async def blocks(lines: Any, turn: asyncio.Lock) -> AsyncGenerator[bytes]:
        yield b"the first block\n"
        raise MemoryError

    request = b"GET /tables/%b/bundle.jsonl HTTP/1.1\r\nHost: localhost\r\n\r\n" % table.encode()
    with monkeypatch.context() as broken:
        broken.setattr(streams, "blocks_of", blocks)
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(request)
        async with asyncio.timeout(PATIENT):
            with suppress(ConnectionResetError):
                answer = await reader.read()
                assert answer.count(b"HTTP/1.1") <= 1
                assert not answer.endswith(b"0\r\n\r\n")
        writer.close()
    assert await first_bytes(gateway, request) == b"HTTP/1.1 200"
