"""The line to the house, against a house that only plays its part of the wire."""

from __future__ import annotations

import asyncio
import json

import pytest
from websockets.asyncio.server import serve as listen
from websockets.exceptions import ConnectionClosed

from dealer.client.connection import Connection
from dealer.client.line import SUBPROTOCOL
from dealer.client.questions import Patience, refusal
from dealer.errors import (
    BadRequest,
    CardNotInHand,
    Conflicted,
    HouseUnreachable,
    RateLimited,
    Refused,
    SessionEnded,
    Unavailable,
)

QUICK = Patience(
    open=2.0, backoff=0.01, backoff_max=0.02, away=0.3, silence=0.05, answer=0.2, attempts=3
)


class FakeHouse:
    """Answers `session.hello`; each other request goes to `script(frame, socket)`."""

    def __init__(self):
        self.heard = []
        self.script = None
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
                self.heard.append(frame)
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
async def line(house):
    line = Connection(house.url, patience=QUICK)
    await line.start()
    yield line
    await line.close()


@pytest.mark.parametrize("code", [4401, 4403, 4408, 4409, 1009])
async def test_final_codes_end_it_with_a_sentence(house, line, code):
    async def script(frame, socket):
        await socket.close(code, "")

    house.script = script
    with pytest.raises(SessionEnded) as ended:
        await line.ask("ping", {}, table=None)
    assert ended.value.code == code
    assert line.sockets == 1
    with pytest.raises(SessionEnded):
        await line.ask("ping", {}, table=None)


@pytest.mark.parametrize("code", [1012, 1013, 4508, 4529, None])
async def test_other_codes_are_a_reason_to_come_back(house, line, code):
    async def script(frame, socket):
        if len(house.heard) < 3:
            await (socket.close(code, "") if code else tear(socket))
        else:
            await answer(socket, frame, {"version": 7})

    async def tear(socket):
        socket.transport.abort()

    house.script = script
    asked = {"table": "t"}
    assert await line.ask("deck.draw", asked, table=None, changes=True) == {"version": 7}
    assert line.sockets == 3
    assert len({frame["params"]["cmd"] for frame in house.heard}) == 1


async def test_a_house_that_stopped_reading_is_given_up(house, line):
    stopped = []

    async def script(frame, socket):
        if not stopped:
            stopped.append(socket)
            socket.transport.pause_reading()
        else:
            await answer(socket, frame, {"at": 1})

    house.script = script
    assert await line.ask("ping", {}, table=None) == {"at": 1}
    assert line.sockets == 2
    stopped[0].transport.abort()


async def test_silence_alone_is_no_reason(house, line):
    waited = asyncio.Event()

    async def script(frame, socket):
        socket.ping_count = 0
        asyncio.get_running_loop().call_later(4 * QUICK.silence, waited.set)
        await waited.wait()
        await answer(socket, frame, {})

    house.script = script
    await line.ask("ping", {}, table=None)
    assert line.sockets == 1


async def test_it_comes_back_when_a_draining_house_says(house, line):
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
    await line.ask("ping", {}, table=None)
    assert times[1] - times[0] >= 0.09


async def test_a_house_that_stays_away_is_given_up(house, line):
    async def script(frame, socket):
        house.server.close()
        socket.transport.abort()

    house.script = script
    with pytest.raises(HouseUnreachable, match="away for too long"):
        await line.ask("ping", {}, table=None)


async def test_what_is_refused_for_the_moment_is_asked_again_with_the_same_cmd(house, line):
    async def script(frame, socket):
        if len(house.heard) == 1:
            await refuse(socket, frame, 52, "rate_limited", retry_after_ms=5)
        elif len(house.heard) == 2:
            await refuse(socket, frame, 50, "conflict")
        else:
            await answer(socket, frame, {})

    house.script = script
    await line.ask("deck.draw", {}, table=None, changes=True)
    assert len(house.heard) == 3
    assert len({frame["params"]["cmd"] for frame in house.heard}) == 1


async def test_not_for_ever_and_not_what_must_fail_again(house, line):
    async def script(frame, socket):
        await refuse(socket, frame, 50, "conflict")

    house.script = script
    with pytest.raises(Conflicted):
        await line.ask("deck.draw", {}, table=None, changes=True)
    assert len(house.heard) == QUICK.attempts
    with pytest.raises(Conflicted):
        await line.ask("deck.draw", {"expect": 3}, table=None, changes=True)
    assert len(house.heard) == QUICK.attempts + 1


async def test_who_does_not_speak_as_a_house(house):
    house.greets = False
    with pytest.raises(HouseUnreachable, match="as a house would"):
        await Connection(house.url, patience=Patience(open=0.1)).start()


async def test_noise_is_passed_over(house, line):
    async def script(frame, socket):
        for noise in ("", "[]", '{"method":"event","params":3}', '{"id":99,"result":{}}', "{"):
            await socket.send(noise)
        await answer(socket, frame, {"at": 2})

    house.script = script
    assert await line.ask("ping", {}, table=None) == {"at": 2}
    assert line.sockets == 1


async def test_hanging_up_tells_who_still_waits(house, line):
    asked = asyncio.Event()

    async def script(frame, socket):
        asked.set()

    house.script = script
    future = line.ask("ping", {}, table=None)
    await asked.wait()
    await line.close()
    with pytest.raises(HouseUnreachable, match="hung up"):
        await future


async def test_a_caller_who_gives_up_asks_no_more(house, line):
    asked = asyncio.Event()

    async def script(frame, socket):
        if frame["method"] == "deck.draw":
            asked.set()
        else:
            await answer(socket, frame, {})

    house.script = script
    future = line.ask("deck.draw", {}, table=None, changes=True)
    await asked.wait()
    future.cancel()
    line.break_line()
    await line.ask("ping", {}, table=None)
    assert [frame["method"] for frame in house.heard] == ["deck.draw", "ping"]


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
