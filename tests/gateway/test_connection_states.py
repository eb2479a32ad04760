"""The states of a connection: the table is complete and held to, and each answer is given once."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import pytest
from websockets.http11 import Request, Response

from dealer.gateway.limits import Limits
from dealer.gateway.net import connection as connections
from dealer.gateway.net.connection import Connection, State
from dealer.gateway.net.responses import response
from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.rpc_client import eventually
from tests.gateway.tables import seat_players

POST = b"POST /%d HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"


class Echo(Connection):
    """Answers each request with its path and `more` bytes, and then again."""

    def __init__(self, limits: Limits, more: int) -> None:
        super().__init__(limits)
        self._more = more

    def keeps(self, request: Request) -> bool:
        return True

    def check(self, request: Request) -> Response | None:
        return None

    def run(self, request: Request, body: bytes) -> None:
        self.answer(response(HTTPStatus.OK, request.path + "x" * self._more))
        self.answer(response(HTTPStatus.OK, "twice"))


@asynccontextmanager
async def echo(more: int = 0, **limits: Any) -> AsyncIterator[tuple[int, list[Echo]]]:
    """The port of a server of these connections, and all that were made."""
    made: list[Echo] = []

    def make() -> Echo:
        made.append(Echo(replace(TEST_LIMITS, **limits), more))
        return made[-1]

    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], made


async def test_a_second_answer_is_not_taken_for_that_of_a_pipelined_request() -> None:
    async with echo() as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"".join(POST % number for number in range(3)))
        for number in range(3):
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"Content-Length: 2\r\n" in head
            assert await reader.readexactly(2) == b"/%d" % number
        writer.close()


async def test_an_idle_connection_that_is_not_read_has_an_end() -> None:
    """What it was sent is less than a full buffer, so that no deadline of writing runs."""
    limits: dict[str, Any] = {"idle": 0.05, "closing": 0.05, "sending": 0.05, "buffer": 2**26}
    async with echo(2**24, **limits) as (port, made):
        # The reader's limit: after so many bytes the client reads no more.
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(POST % 1)
        async with asyncio.timeout(30):
            await eventually(lambda: bool(made))
            await made[0].wait_closed()
        writer.transport.abort()


@pytest.mark.parametrize("state", [each for each in State if each is not State.ACCEPTED])
def test_each_state_but_the_first_is_in_the_table(state: State) -> None:
    stage = connections._STAGES[state]
    assert stage.follows
    assert state not in stage.follows or state is State.GONE
    later = [each for each, other in connections._STAGES.items() if state in other.follows]
    assert State.GONE in later


async def test_a_state_follows_only_those_of_the_table() -> None:
    connection = Echo(TEST_LIMITS, 0)
    with pytest.raises(AssertionError, match=r"OPEN does not follow State\.ACCEPTED"):
        connection._enter(State.OPEN)


async def test_a_connection_that_ended_is_freed_without_a_collection(gateway, connect) -> None:
    """Else each that comes back leaves garbage, whose collection all players wait for."""
    table = await seat_players(connect, gateway, players=1)
    await table.players[0].call("table.state")
    ended = [
        weakref.ref(part)
        for one in gateway.registry.connections
        for part in (one, one.receiver, one.receiver.queue, one.receiver.session)
    ]
    assert len(ended) == 8
    gc.disable()
    try:
        for client in (table.host, *table.players):
            await client.close()
        await eventually(lambda: not any(part() for part in ended))
    finally:
        gc.enable()
