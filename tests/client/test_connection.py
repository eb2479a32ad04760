"""The connection of a client, against a server that only implements the wire protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as listen
from websockets.exceptions import ConnectionClosed

from dealer.client.connection import Connection
from dealer.client.requests import RetryPolicy, refusal
from dealer.client.socket import SUBPROTOCOL
from dealer.errors import (
    BadRequest,
    CardNotInHand,
    HouseUnreachable,
    RateLimited,
    Refused,
    SessionEnded,
    Unavailable,
    VersionConflict,
)
from tests.client.conftest import Frame

QUICK = RetryPolicy(
    open=2.0, backoff=0.01, backoff_max=0.02, away=0.3, silence=0.05, answer=0.2, attempts=3
)


class FakeHouse:
    """Answers `session.hello`; passes every other request to `script(frame, socket)`."""

    script: Callable[[Frame, ServerConnection], Awaitable[None]]

    def __init__(self):
        self.requests = []
        self.greets = True

    async def __aenter__(self):
        self.server = await listen(self.serve, "127.0.0.1", 0, subprotocols=[SUBPROTOCOL])
        self.url = f"ws://127.0.0.1:{self.server.sockets[0].getsockname()[1]}/ws"
        return self

    async def __aexit__(self, *_):
        self.server.close()
        await self.server.wait_closed()

    async def serve(self, socket):
        try:
            async for text in socket:
                frame = json.loads(text)
                if frame["method"] == "session.hello":
                    if self.greets:
                        await answer(socket, frame, {})
                    continue
                self.requests.append(frame)
                await self.script(frame, socket)
        except ConnectionClosed:
            pass


async def answer(socket, frame, result):
    await socket.send(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": result}))


async def refuse(socket, frame, code, reason, temporary=True, **more):
    data = {"reason": reason, "temporary": temporary} | more
    error = {"code": code, "message": "No.", "data": data}
    await socket.send(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "error": error}))


@pytest.fixture
async def house():
    async with FakeHouse() as house:
        yield house


@pytest.fixture
async def connection(house):
    connection = Connection(house.url, patience=QUICK)
    await connection.start()
    yield connection
    await connection.close()


@pytest.mark.parametrize("code", [4401, 4403, 4408, 4409, 1009])
async def test_final_close_codes_end_the_connection(house, connection, code):
    async def script(frame, socket):
        await socket.close(code, "")

    house.script = script
    with pytest.raises(SessionEnded) as ended:
        await connection.ask("ping", {}, table=None)
    assert ended.value.code == code
    assert connection.sockets == 1
    with pytest.raises(SessionEnded):
        await connection.ask("ping", {}, table=None)


@pytest.mark.parametrize("code", [1012, 1013, 4508, 4529, None])
async def test_other_close_codes_reconnect(house, connection, code):
    async def script(frame, socket):
        if len(house.requests) < 3:
            await (socket.close(code, "") if code else tear(socket))
        else:
            await answer(socket, frame, {"version": 7})

    async def tear(socket):
        socket.transport.abort()

    house.script = script
    asked = {"table": "t"}
    assert await connection.ask("deck.draw", asked, table=None, changes=True) == {"version": 7}
    assert connection.sockets == 3
    assert len({frame["params"]["cmd"] for frame in house.requests}) == 1


async def test_a_server_that_stopped_reading_is_dropped(house, connection):
    stopped: list[ServerConnection] = []

    async def script(frame, socket):
        if not stopped:
            stopped.append(socket)
            socket.transport.pause_reading()
        else:
            await answer(socket, frame, {"at": 1})

    house.script = script
    assert await connection.ask("ping", {}, table=None) == {"at": 1}
    assert connection.sockets == 2
    stopped[0].transport.abort()


async def test_silence_alone_does_not_disconnect(house, connection):
    waited = asyncio.Event()

    async def script(frame, socket):
        socket.ping_count = 0
        asyncio.get_running_loop().call_later(4 * QUICK.silence, waited.set)
        await waited.wait()
        await answer(socket, frame, {})

    house.script = script
    await connection.ask("ping", {}, table=None)
    assert connection.sockets == 1


async def test_reconnect_after_the_time_a_draining_server_announced(house, connection):
    loop = asyncio.get_running_loop()
    times = []

    async def script(frame, socket):
        times.append(loop.time())
        if len(times) == 1:
            params = {"reconnect_in_ms": 100}
            said = {"jsonrpc": "2.0", "method": "session.drain", "params": params}
            await socket.send(json.dumps(said))
            await socket.close(1012, "")
        else:
            await answer(socket, frame, {})

    house.script = script
    await connection.ask("ping", {}, table=None)
    assert times[1] - times[0] >= 0.09


async def test_an_unreachable_server_ends_the_connection(house, connection):
    async def script(frame, socket):
        house.server.close()
        socket.transport.abort()

    house.script = script
    with pytest.raises(HouseUnreachable, match="could not be reached"):
        await connection.ask("ping", {}, table=None)


async def test_temporary_refusals_are_retried_with_the_same_cmd(house, connection):
    async def script(frame, socket):
        if len(house.requests) == 1:
            await refuse(socket, frame, 52, "rate_limited", retry_after_ms=5)
        elif len(house.requests) == 2:
            await refuse(socket, frame, 50, "conflict")
        else:
            await answer(socket, frame, {})

    house.script = script
    await connection.ask("deck.draw", {}, table=None, changes=True)
    assert len(house.requests) == 3
    assert len({frame["params"]["cmd"] for frame in house.requests}) == 1


async def test_retries_are_limited_and_final_refusals_are_not_retried(house, connection):
    async def script(frame, socket):
        await refuse(socket, frame, 50, "conflict")

    house.script = script
    with pytest.raises(VersionConflict):
        await connection.ask("deck.draw", {}, table=None, changes=True)
    assert len(house.requests) == QUICK.attempts
    with pytest.raises(VersionConflict):
        await connection.ask("deck.draw", {"expect": 3}, table=None, changes=True)
    assert len(house.requests) == QUICK.attempts + 1


async def test_a_server_with_another_protocol(house):
    house.greets = False
    with pytest.raises(HouseUnreachable, match="like a dealer server"):
        await Connection(house.url, patience=RetryPolicy(open=0.1)).start()


async def test_malformed_frames_are_ignored(house, connection):
    async def script(frame, socket):
        for noise in ("", "[]", '{"method":"event","params":3}', '{"id":99,"result":{}}', "{"):
            await socket.send(noise)
        await answer(socket, frame, {"at": 2})

    house.script = script
    assert await connection.ask("ping", {}, table=None) == {"at": 2}
    assert connection.sockets == 1


async def test_closing_fails_pending_requests(house, connection):
    asked = asyncio.Event()

    async def script(frame, socket):
        asked.set()

    house.script = script
    future = connection.ask("ping", {}, table=None)
    await asked.wait()
    await connection.close()
    with pytest.raises(HouseUnreachable, match="closed its connection"):
        await future


async def test_a_cancelled_request_is_not_sent(house, connection):
    asked = asyncio.Event()

    async def script(frame, socket):
        if frame["method"] == "deck.draw":
            asked.set()
        else:
            await answer(socket, frame, {})

    house.script = script
    future = connection.ask("deck.draw", {}, table=None, changes=True)
    await asked.wait()
    future.cancel()
    connection.drop_socket()
    await connection.ask("ping", {}, table=None)
    assert [frame["method"] for frame in house.requests] == ["deck.draw", "ping"]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 21, "message": "x", "data": {"reason": "card_not_in_hand"}}, CardNotInHand),
        ({"code": 52, "message": "x", "data": {"reason": "rate_limited"}}, RateLimited),
        ({"code": -32602, "message": "x"}, BadRequest),
        ({"code": -32603, "message": "x"}, Unavailable),
        ({"code": 999, "message": "x", "data": {"reason": "moonlight"}}, Refused),
    ],
)
def test_errors_become_exceptions(error, kind):
    raised = refusal(error)
    assert type(raised) is kind
    assert str(raised) == "x"
    assert kind is not Refused or (raised.reason, raised.code) == ("moonlight", 999)
