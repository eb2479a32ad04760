"""The JavaScript client's line, against a house that only plays its part of the wire."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.client.test_connection import FakeHouse, answer, refuse
from tests.web.client.players import JsError

QUICK = {
    "open": 2000,
    "backoff": 10,
    "backoffMax": 20,
    "away": 300,
    "answer": 200,
    "attempts": 3,
}
LIST = "return its.house.tables()"
OPEN = "return its.house.open()"


@pytest.fixture
async def fake(players):
    async with FakeHouse() as fake:
        await players.connect("house", fake.url, patience=QUICK)
        await players.run(
            """
            its.states = [];
            its.house.on("connection", ({ state }) => its.states.push(state));
            """
        )
        yield fake


@pytest.mark.parametrize("code", [4401, 4403, 4408, 4409, 1009])
async def test_final_codes_end_it_with_a_sentence(fake, players, code):
    async def act(frame, socket):
        await socket.close(code, "")

    fake.script = act
    for _ in range(2):
        with pytest.raises(JsError) as ended:
            await players.run(LIST)
        assert (ended.value.name, ended.value.code) == ("SessionEnded", code)
        assert ended.value.message.endswith(".")
    assert len(fake.heard) == 1
    status = await players.run("return [its.house.connection.state, its.states]")
    assert status == ["away", ["away"]]


@pytest.mark.parametrize("code", [1012, 1013, 4508, 4529, None])
async def test_other_codes_are_a_reason_to_come_back_with_the_same_cmd(fake, players, code):
    async def act(frame, socket):
        if len(fake.heard) == 3:
            await refuse(socket, frame, 34, "too_many_tables", temporary=False)
        elif code:
            await socket.close(code, "")
        else:
            socket.transport.abort()

    fake.script = act
    with pytest.raises(JsError) as refused:
        await players.run(OPEN)
    assert refused.value.reason == "too_many_tables"
    assert len({frame["params"]["cmd"] for frame in fake.heard}) == 1
    assert len(fake.heard[0]["params"]["cmd"]) >= 22  # nobody guesses it
    states = await players.run("return its.states")
    assert (states[0], states[-1]) == ("resuming", "connected")


async def test_a_house_that_stopped_reading_is_given_up(fake, players):
    stopped = []

    async def act(frame, socket):
        if frame["method"] == "ping":
            await answer(socket, frame, {})
        elif not stopped:
            stopped.append(socket)
            socket.transport.pause_reading()
        else:
            await answer(socket, frame, {"tables": [1]})

    fake.script = act
    await players.connect("house", fake.url, patience=QUICK | {"silence": 50})
    assert await players.run(LIST) == [1]
    stopped[0].transport.abort()


async def test_it_comes_back_when_a_draining_house_says(fake, players):
    times = []

    async def act(frame, socket):
        times.append(asyncio.get_running_loop().time())
        if len(times) == 1:
            params = {"reconnect_in_ms": 100}
            said = {"jsonrpc": "2.0", "method": "session.drain", "params": params}
            await socket.send(json.dumps(said))
            await socket.close(1012, "")
        else:
            await answer(socket, frame, {"tables": []})

    fake.script = act
    assert await players.run(LIST) == []
    assert times[1] - times[0] >= 0.09
    assert await players.run("return its.states") == ["draining", "connected"]


async def test_a_house_that_stays_away_is_given_up(fake, players):
    async def act(frame, socket):
        fake.server.close()
        socket.transport.abort()

    fake.script = act
    with pytest.raises(JsError, match=r"HouseUnreachable: .* away for too long"):
        await players.run(LIST)
    states = await players.run("return [its.states, String(its.house.connection.error)]")
    assert states[0][:2] == ["resuming", "away"]
    assert "away for too long" in states[1]


async def test_what_is_refused_for_the_moment_is_asked_again_with_the_same_cmd(fake, players):
    async def act(frame, socket):
        if len(fake.heard) == 1:
            await refuse(socket, frame, 52, "rate_limited", retry_after_ms=5)
        elif len(fake.heard) == 2:
            await refuse(socket, frame, 50, "conflict")
        else:
            await refuse(socket, frame, 34, "too_many_tables", temporary=False)

    fake.script = act
    with pytest.raises(JsError) as refused:
        await players.run(OPEN)
    assert refused.value.reason == "too_many_tables"
    assert len({frame["params"]["cmd"] for frame in fake.heard}) == 1


async def test_but_not_for_ever(fake, players):
    async def act(frame, socket):
        await refuse(socket, frame, 50, "conflict")

    fake.script = act
    with pytest.raises(JsError) as refused:
        await players.run(OPEN)
    assert (refused.value.name, refused.value.reason) == ("Refused", "conflict")
    assert len(fake.heard) == QUICK["attempts"]


async def test_who_does_not_speak_as_a_house(players):
    async with FakeHouse() as fake:
        fake.greets = False
        with pytest.raises(JsError, match=r"HouseUnreachable: .* as a house would"):
            await players.connect("house", fake.url, patience={"open": 100})


@pytest.mark.parametrize(
    ("url", "sentence"),
    [("ws://127.0.0.1:9/ws", "does not answer"), ("nowhere", "no address")],
)
async def test_a_house_that_is_not_there(players, url, sentence):
    with pytest.raises(JsError, match=f"HouseUnreachable: .* {sentence}"):
        await players.connect("house", url)


async def test_noise_is_passed_over(fake, players):
    async def act(frame, socket):
        noises = ("", "[]", "null", "7", '{"method":"event","params":3}', '{"id":99,"result":{}}')
        for noise in (*noises, '{"method":"events","params":{"list":[null]}}', "{"):
            await socket.send(noise)
        await answer(socket, frame, {"tables": [2]})

    fake.script = act
    assert await players.run(LIST) == [2]
    assert await players.run("return its.states") == []


async def test_hanging_up_tells_who_still_waits(fake, players):
    asked = asyncio.Event()

    async def act(frame, socket):
        asked.set()

    fake.script = act
    waiting = players.begin(LIST)
    await asked.wait()
    await players.run("await its.house.close()")
    with pytest.raises(JsError, match="hung up"):
        await waiting
