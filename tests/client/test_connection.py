"""The connection of a client, against a server that only implements the wire protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as listen
from websockets.exceptions import ConnectionClosed

from dealer.client.connection import SUBPROTOCOL, Connection
from dealer.client.requests import RetryPolicy, refusal
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


class FakeServer:
    """Answers `session.hello`; passes every other request to `script(frame, socket)`."""

    script: Callable[[Frame, ServerConnection], Awaitable[None]]

    def __init__(self):
        self.requests = []
        self.paths = []
        self.answers_hello = True
        self.hello = {}
        self.statuses = []  # of HTTP, for the next handshakes

    async def __aenter__(self):
        self.listener = await listen(
            self.serve, "127.0.0.1", 0, subprotocols=[SUBPROTOCOL], process_request=self.admit
        )
        self.url = f"ws://127.0.0.1:{self.listener.sockets[0].getsockname()[1]}/ws"
        return self

    async def __aexit__(self, *_):
        self.listener.close()
        await self.listener.wait_closed()

    def admit(self, socket, request):
        return socket.respond(self.statuses.pop(), "not here") if self.statuses else None

    async def serve(self, socket):
        self.paths.append(socket.request.path)
        try:
            async for text in socket:
                frame = json.loads(text)
                if frame["method"] == "session.hello":
                    if self.answers_hello:
                        await answer(socket, frame, self.hello)
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
async def server():
    async with FakeServer() as server:
        yield server


@pytest.fixture
async def connection(server):
    connection = Connection(server.url, patience=QUICK)
    await connection.start()
    yield connection
    await connection.close()


@pytest.mark.parametrize("code", [4401, 4403, 4408, 4409, 1009])
async def test_final_close_codes_end_the_connection(server, connection, code):
    async def script(frame, socket):
        await socket.close(code, "")

    server.script = script
    with pytest.raises(SessionEnded) as ended:
        await connection.ask("ping", {}, table=None)
    assert ended.value.code == code
    assert connection.sockets == 1
    with pytest.raises(SessionEnded):
        await connection.ask("ping", {}, table=None)


@pytest.mark.parametrize("code", [1012, 1013, 4508, 4529, None])
async def test_other_close_codes_reconnect(server, connection, code):
    async def script(frame, socket):
        if len(server.requests) < 3:
            await (socket.close(code, "") if code else abort(socket))
        else:
            await answer(socket, frame, {"version": 7})

    async def abort(socket):
        socket.transport.abort()

    server.script = script
    params = {"table": "t"}
    assert await connection.ask("deck.draw", params, table=None, changes=True) == {"version": 7}
    assert connection.sockets == 3
    assert len({frame["params"]["cmd"] for frame in server.requests}) == 1


async def test_a_server_that_stopped_reading_is_disconnected(server, connection):
    stopped: list[ServerConnection] = []

    async def script(frame, socket):
        if not stopped:
            stopped.append(socket)
            socket.transport.pause_reading()
        else:
            await answer(socket, frame, {"at": 1})

    server.script = script
    assert await connection.ask("ping", {}, table=None) == {"at": 1}
    assert connection.sockets == 2
    stopped[0].transport.abort()


async def test_silence_alone_does_not_disconnect(server, connection):
    waited = asyncio.Event()

    async def script(frame, socket):
        socket.ping_count = 0
        asyncio.get_running_loop().call_later(4 * QUICK.silence, waited.set)
        await waited.wait()
        await answer(socket, frame, {})

    server.script = script
    await connection.ask("ping", {}, table=None)
    assert connection.sockets == 1


async def test_a_client_reconnects_when_a_draining_server_announced(server):
    """Not earlier, and without a pause of its own."""
    loop = asyncio.get_running_loop()
    times = []

    async def script(frame, socket):
        times.append(loop.time())
        if len(times) == 1:
            params = {"reconnect_in_ms": 100}
            notification = {"jsonrpc": "2.0", "method": "session.drain", "params": params}
            await socket.send(json.dumps(notification))
            await socket.close(1012, "")
        else:
            await answer(socket, frame, {})

    server.script = script
    connection = Connection(server.url, patience=RetryPolicy(backoff=1e6, backoff_max=1e6))
    await connection.start()
    await connection.ask("ping", {}, table=None)
    await connection.close()
    assert times[1] - times[0] >= 0.09


async def test_an_unreachable_server_ends_the_connection(server, connection):
    async def script(frame, socket):
        server.listener.close()
        socket.transport.abort()

    server.script = script
    with pytest.raises(HouseUnreachable, match="could not be reached"):
        await connection.ask("ping", {}, table=None)


async def test_an_address_that_had_a_websocket_is_tried_again_after_404(server, connection):
    """As from a proxy whose server starts again."""

    async def script(frame, socket):
        if len(server.requests) == 1:
            server.statuses = [404]
            socket.transport.abort()
        else:
            await answer(socket, frame, {"k": 1})

    server.script = script
    assert await connection.ask("ping", {}, table=None) == {"k": 1}
    assert server.statuses == []


async def test_temporary_refusals_are_retried_with_the_same_cmd(server, connection, caplog):
    async def script(frame, socket):
        if len(server.requests) == 1:
            await refuse(socket, frame, 50, "conflict")
        elif len(server.requests) in (2, 4):
            await refuse(socket, frame, 52, "rate_limited", retry_after_ms=5)
        else:
            await answer(socket, frame, {})

    server.script = script
    await connection.ask("deck.draw", {}, table=None, changes=True)
    assert len(server.requests) == 3
    assert len({frame["params"]["cmd"] for frame in server.requests}) == 1
    await connection.ask("deck.draw", {}, table=None, changes=True)
    assert len(server.requests) == 5
    assert sum("rate limit" in message for message in caplog.messages) == 1


async def test_retries_are_limited_and_final_refusals_are_not_retried(server, connection):
    async def script(frame, socket):
        await refuse(socket, frame, 50, "conflict")

    server.script = script
    with pytest.raises(VersionConflict):
        await connection.ask("deck.draw", {}, table=None, changes=True)
    assert len(server.requests) == QUICK.attempts
    with pytest.raises(VersionConflict):
        await connection.ask("deck.draw", {"expect": 3}, table=None, changes=True)
    assert len(server.requests) == QUICK.attempts + 1


async def test_a_server_with_another_protocol_is_reported(server):
    server.answers_hello = False
    with pytest.raises(HouseUnreachable, match="like a dealer server"):
        await Connection(server.url, patience=RetryPolicy(open=0.1)).start()


async def test_malformed_frames_are_ignored(server, connection):
    async def script(frame, socket):
        for noise in (
            "",
            "[]",
            "[" * 9999,
            '{"method":"event","params":3}',
            '{"id":99,"result":{}}',
            "{",
        ):
            await socket.send(noise)
        await answer(socket, frame, {"at": 2})

    server.script = script
    assert await connection.ask("ping", {}, table=None) == {"at": 2}
    assert connection.sockets == 1


async def test_closing_fails_pending_requests(server, connection):
    received = asyncio.Event()

    async def script(frame, socket):
        received.set()

    server.script = script
    future = connection.ask("ping", {}, table=None)
    await received.wait()
    await connection.close()
    with pytest.raises(HouseUnreachable, match="closed its connection"):
        await future


async def test_a_cancelled_request_is_not_sent(server, connection):
    received = asyncio.Event()

    async def script(frame, socket):
        if frame["method"] == "deck.draw":
            received.set()
        else:
            await answer(socket, frame, {})

    server.script = script
    future = connection.ask("deck.draw", {}, table=None, changes=True)
    await received.wait()
    future.cancel()
    connection.drop_socket()
    await connection.ask("ping", {}, table=None)
    assert [frame["method"] for frame in server.requests] == ["deck.draw", "ping"]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 21, "message": "x", "data": {"reason": "card_not_in_hand"}}, CardNotInHand),
        ({"code": 52, "message": "x", "data": {"reason": "rate_limited"}}, RateLimited),
        ({"code": -32602, "message": "x"}, BadRequest),
        ({"code": -32603, "message": "x"}, Unavailable),
        ({"code": 999, "message": "x", "data": {"reason": "unknown"}}, Refused),
    ],
)
def test_errors_become_exceptions(error, kind):
    raised = refusal(error)
    assert type(raised) is kind
    assert str(raised) == "x"
    assert kind is not Refused or (raised.reason, raised.code) == ("unknown", 999)
