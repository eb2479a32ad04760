"""Who asks too much, too fast or in another way than the house takes it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode

from dealer.game.commands import Actor, Draw, DrawAtRandom, OpenRound, StartShuffle
from dealer.gateway import Limits
from dealer.gateway.costs import weight
from dealer.gateway.door import CROWD
from tests.gateway.asking import get
from tests.gateway.conftest import EAGER
from tests.gateway.guest import Guest, Refusal, eventually
from tests.gateway.tables import promise, reveal, seat_all
from tests.gateway.test_wire import UNREADABLE


async def test_what_seals_many_cards_weighs_more(gateway, arrive) -> None:
    table = await seat_all(arrive, gateway, players=1)
    await table.host.ask("round.open", entropy="house", deck={"decks": 10})
    state, actor = gateway.floor.service.resident(table.id).table, Actor(seat=1)
    assert weight(StartShuffle(actor), state) == 10
    assert weight(DrawAtRandom(actor), state) == 10
    assert weight(OpenRound(actor, ("As",) * 52, "house", 0, 0), state) == 1
    assert weight(Draw(actor), state) == 0


async def test_who_shuffles_many_cards_waits_longer(open_gateway, arrive) -> None:
    gateway = await open_gateway(limits=replace(EAGER, rate=1.0, burst=25.0))
    table = await seat_all(arrive, gateway, players=1)
    await table.host.ask("round.open", entropy="house", deck={"decks": 10})
    await table.host.ask("deck.shuffle")
    await table.host.ask("deck.shuffle")
    with pytest.raises(Refusal) as caught:
        await table.host.ask("deck.shuffle")
    assert caught.value.reason == "rate_limited"


async def test_too_many_requests_are_told_when_to_come_again(open_gateway, arrive) -> None:
    gateway = await open_gateway(limits=replace(EAGER, rate=0.01, burst=3.0))
    guest = await arrive(gateway)
    for _ in range(3):
        await guest.ask("ping")
    with pytest.raises(Refusal) as caught:
        await guest.ask("ping")
    assert caught.value.reason == "rate_limited"
    assert caught.value.error["data"]["temporary"] is True
    assert 90_000 < caught.value.error["data"]["retry_after_ms"] <= 100_001


async def test_who_goes_on_all_the_same_is_sent_away(open_gateway, arrive) -> None:
    gateway = await open_gateway(limits=replace(EAGER, rate=0.01, burst=1.0, patience=5.0))
    guest = await arrive(gateway)
    for _ in range(10):
        await guest.say("nonsense")
    assert await guest.gone() == 4529
    assert len(guest.frames) == 6


@pytest.mark.parametrize("opcode", [Opcode.PING, Opcode.PONG])
async def test_who_pings_without_end_is_sent_away(open_gateway, arrive, opcode) -> None:
    gateway = await open_gateway(limits=replace(EAGER, rate=0.01, burst=3.0, patience=5.0))
    guest = await arrive(gateway)
    await guest.ask("ping")
    frame = Frame(opcode, b"there?").serialize(mask=True)
    guest.socket.transport.write(4 * frame)
    with pytest.raises(Refusal):
        await guest.ask("ping")
    guest.socket.transport.write(3 * frame)
    assert await guest.gone() == 4529


async def test_what_clients_send_by_themselves_costs_no_commands(open_gateway, arrive) -> None:
    gateway = await open_gateway(limits=Limits(rate=0.001, burst=7.0, drain=6.0, closing=0.5))
    table = await seat_all(arrive, gateway, players=2)
    await table.host.ask("round.open")
    ann = table.players[0]
    for k in range(2):
        await promise(table, k=k)
        await table.host.ask("deck.shuffle")
        await reveal(table, k=k)
        await ann.until(lambda k=k: sealed(ann) == k + 1)
    await ann.ask("deck.draw")


def sealed(guest: Guest) -> int:
    return [event["type"] for event in guest.events].count("DeckSealed")


async def test_a_connection_is_on_so_many_tables_and_no_more(open_gateway, arrive) -> None:
    gateway = await open_gateway(limits=replace(EAGER, tables=2))
    guest = await arrive(gateway)
    first = await guest.ask("table.open")
    await guest.ask("table.open")
    other = await (await arrive(gateway)).ask("table.open")
    for method in ("table.open", "table.watch", "table.join"):
        more = {} if method == "table.open" else {"table": other["table"]}
        more |= {"name": "x"} if method == "table.join" else {}
        with pytest.raises(Refusal) as caught:
            await guest.ask(method, **more)
        assert caught.value.reason == "too_many_tables"
    await guest.ask("table.join", table=first["table"], name="x")


async def test_a_message_too_big_ends_the_connection(gateway, arrive) -> None:
    guest = await arrive(gateway)
    await guest.say(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x" * 16_300}))
    await guest.until(lambda: len(guest.told) == 1)
    await guest.say("x" * (16 * 1024 + 1))
    assert await guest.gone() == 1009


async def test_fragments_are_put_together_up_to_a_bound(gateway, arrive) -> None:
    guest = await arrive(gateway)
    text = '{"jsonrpc":"2.0","id":7,"method":"ping"}'
    await guest.say([text[:5], text[5:20], "", text[20:]])
    await guest.until(lambda: len(guest.told) == 1)
    assert guest.told[0]["params"]["id"] == 7
    await guest.say([""] * 100)
    assert await guest.gone() == 1009


async def test_binary_frames_are_refused(gateway, arrive) -> None:
    guest = await arrive(gateway)
    await guest.say(b"{}")
    assert await guest.gone() == 1003


async def test_who_asks_nothing_is_let_go(open_gateway, arrive) -> None:
    gateway = await open_gateway(limits=replace(EAGER, opening=0.05))
    silent, speaking = await arrive(gateway), None
    assert await silent.gone() == 4408
    speaking = await arrive(gateway)
    await speaking.ask("ping")
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    async with asyncio.timeout(10):
        assert await reader.read() == b""
    writer.close()
    assert not speaking.closed.done()


async def test_more_connections_than_the_house_takes(open_gateway, arrive) -> None:
    gateway = await open_gateway(limits=replace(EAGER, connections_per_address=2))
    first = await arrive(gateway)
    await arrive(gateway)
    with pytest.raises(InvalidStatus) as caught:
        await arrive(gateway)
    assert caught.value.response.status_code == 503
    assert caught.value.response.headers["Retry-After"]
    await first.leave()
    await eventually(lambda: len(gateway.door.connections) == 1)
    await arrive(gateway)
    assert gateway.metrics.turned_away.total() == 1


async def test_an_address_with_far_too_many_connections_gets_no_page(open_gateway) -> None:
    gateway = await open_gateway(limits=replace(EAGER, connections_per_address=1))
    idle = [await asyncio.open_connection("127.0.0.1", gateway.port) for _ in range(CROWD - 1)]
    assert (await get(gateway.port, "/")).status == 200
    idle.append(await asyncio.open_connection("127.0.0.1", gateway.port))
    await eventually(lambda: len(gateway.door.connections) == CROWD)
    refused = await get(gateway.port, "/")
    assert (refused.status, refused.headers["retry-after"]) == (503, "5")
    for _, writer in idle:
        writer.close()
    await eventually(lambda: not gateway.door.connections)
    assert (await get(gateway.port, "/")).status == 200


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        (None, True),
        ("http://localhost:3000", True),
        ("http://[::1]", True),
        ("https://cards.example", False),
        ("null", False),
        ("http://localhost.evil.example", False),
        ("http://[::1", False),
    ],
)
async def test_origins(gateway, arrive, origin, allowed) -> None:
    if allowed:
        await (await arrive(gateway, origin=origin)).ask("ping")
    else:
        with pytest.raises(InvalidStatus) as caught:
            await arrive(gateway, origin=origin)
        assert caught.value.response.status_code == 403


async def test_origins_that_the_operator_lists(open_gateway, arrive) -> None:
    gateway = await open_gateway(origins=["https://cards.example"])
    await (await arrive(gateway, origin="https://cards.example")).ask("ping")
    await (await arrive(gateway, origin=f"http://127.0.0.1:{gateway.port}")).ask("ping")
    with pytest.raises(InvalidStatus):
        await arrive(gateway, origin="http://localhost:3000")


async def test_subprotocols(gateway, arrive) -> None:
    plain = await arrive(gateway)
    assert plain.socket.subprotocol is None
    named = await arrive(gateway, subprotocols=["other.v9", "dealer.v1"])
    assert named.socket.subprotocol == "dealer.v1"
    with pytest.raises(InvalidStatus) as caught:
        await arrive(gateway, subprotocols=["other.v9"])
    assert caught.value.response.status_code == 400


async def test_nothing_is_compressed(gateway, arrive) -> None:
    guest = await arrive(gateway, compression="deflate")
    assert guest.socket.protocol.extensions == []


async def test_what_cannot_be_read_costs_nobody_the_connection(gateway, arrive) -> None:
    guest = await arrive(gateway)
    for count, (data, code, id) in enumerate(UNREADABLE, start=1):
        await guest.socket.send(data, text=True)
        await guest.until(lambda count=count: len(guest.told) == count)
        answer = guest.told[-1]["params"]
        assert (answer["error"]["code"], answer["id"]) == (code, json.loads(id))
    await guest.ask("ping")


TEXTS = st.text(max_size=40) | st.sampled_from(["deck.draw", "table.join", "ping", "52", "top"])
VALUES = st.none() | st.booleans() | st.integers() | TEXTS | st.lists(TEXTS, max_size=3)
PARAMS = st.sampled_from(["table", "token", "count", "from", "name", "cmd", "after", "deck", "to"])


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
async def test_every_request_is_answered_once(gateway, data) -> None:
    """Whatever its parameters are, with an id there is one answer, and the connection stays."""
    methods = sorted(gateway.floor.wishes | gateway.floor.questions)
    requests = st.tuples(st.sampled_from(methods), st.dictionaries(PARAMS, VALUES, max_size=4))
    frames = data.draw(st.lists(requests, min_size=1, max_size=6))
    guest = await Guest.arrive(gateway.port)
    for id, (method, params) in enumerate(frames):
        frame = {"jsonrpc": "2.0", "id": f"f{id}", "method": method, "params": params}
        await guest.say(json.dumps(frame))
    await guest.until(lambda: len(guest.notices("answer")) == len(frames))
    answers = sorted(answer["id"] for answer in guest.notices("answer"))
    assert answers == sorted(f"f{id}" for id in range(len(frames)))
    assert not [a for a in guest.notices("answer") if a.get("error", {}).get("code") == -32603]
    await guest.ask("ping")
    await guest.leave()


async def shaken_hands(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that is open, for those who write their frames themselves."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def read_text(reader: asyncio.StreamReader) -> bytes:
    """The next frame's payload."""
    _, length = await reader.readexactly(2)
    if length == 126:
        length = int.from_bytes(await reader.readexactly(2), "big")
    return await reader.readexactly(length)


def ping(id: int) -> bytes:
    text = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % id
    return Frame(Opcode.TEXT, text).serialize(mask=True)


async def send_in(pieces: list[bytes], writer: asyncio.StreamWriter) -> None:
    """Send pieces so far apart that each arrives by itself."""
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.01)


async def test_frames_may_come_in_any_pieces(gateway) -> None:
    """One by one, several at once, cut anywhere: each is read once."""
    reader, writer = await shaken_hands(gateway.port)
    frames = [ping(id) for id in range(8)]
    stream = b"".join(frames)
    one, three = len(frames[0]), len(frames[0]) * 3 + 7
    pieces = [stream[:one], stream[one:three], stream[three : three + 1], stream[three + 1 : -1]]
    await send_in([*pieces, stream[-1:]], writer)
    for id in range(8):
        assert b'"id":%d,' % id in await read_text(reader)
    writer.close()


async def test_a_frame_within_a_frame_is_no_frame(gateway) -> None:
    reader, writer = await shaken_hands(gateway.port)
    inner = ping(99)
    outer = bytes([0x81, 0x80 | len(inner)]) + bytes(4)
    await send_in([outer, inner, ping(7)], writer)
    assert b"-32700" in await read_text(reader)
    assert b'"id":7,' in await read_text(reader)
    writer.close()
