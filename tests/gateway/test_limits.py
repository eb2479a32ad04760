"""Limits of connections, rates, sizes and origins, and requests that cannot be read."""

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
from dealer.gateway.admission import PAGE_FACTOR
from dealer.gateway.rate_limit.costs import weight
from dealer.gateway.session.methods import METHODS
from dealer.gateway.wire.protocol import is_utf8
from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.http_client import get
from tests.gateway.rpc_client import (
    Refusal,
    RpcClient,
    eventually,
    open_websocket,
    reason_of,
    refused_status,
)
from tests.gateway.tables import commit_entropy, reveal_entropy, seat_players
from tests.gateway.test_wire import UNREADABLE


async def test_commands_that_seal_many_cards_cost_more(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=1)
    await table.host.call("round.open", entropy="house", deck={"decks": 10})
    state, actor = gateway.context.service.tables.get(table.id).table, Actor(seat=1)
    assert weight(StartShuffle(actor), state) == 10
    assert weight(DrawAtRandom(actor), state) == 10
    assert weight(OpenRound(actor, ("As",) * 52, "house", 0, 0), state) == 1
    assert weight(Draw(actor), state) == 0


async def test_shuffles_of_many_cards_are_rate_limited_sooner(open_gateway, connect) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, rate=1.0, burst=25.0))
    table = await seat_players(connect, gateway, players=1)
    await table.host.call("round.open", entropy="house", deck={"decks": 10})
    await table.host.call("deck.shuffle")
    await table.host.call("deck.shuffle")
    assert await reason_of(table.host.call("deck.shuffle")) == "rate_limited"


async def test_a_rate_limited_request_is_answered_with_the_time_to_wait(
    open_gateway, connect
) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, rate=0.01, burst=3.0))
    client = await connect(gateway)
    for _ in range(3):
        await client.call("ping")
    with pytest.raises(Refusal) as caught:
        await client.call("ping")
    assert caught.value.reason == "rate_limited"
    assert caught.value.error["data"]["temporary"] is True
    assert 90_000 < caught.value.error["data"]["retry_after_ms"] <= 100_001


async def test_a_client_that_ignores_refusals_is_disconnected(open_gateway, connect) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, rate=0.01, burst=1.0, patience=5.0))
    client = await connect(gateway)
    for _ in range(10):
        await client.send_raw("nonsense")
    assert await client.wait_closed() == 4529
    assert len(client.frames) == 6


@pytest.mark.parametrize("opcode", [Opcode.PING, Opcode.PONG])
async def test_a_client_that_floods_with_pings_is_disconnected(
    open_gateway, connect, opcode
) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, rate=0.01, burst=3.0, patience=5.0))
    client = await connect(gateway)
    await client.call("ping")
    frame = Frame(opcode, b"there?").serialize(mask=True)
    client.socket.transport.write(4 * frame)
    with pytest.raises(Refusal):
        await client.call("ping")
    client.socket.transport.write(3 * frame)
    assert await client.wait_closed() == 4529


async def test_automatic_messages_are_not_charged_as_commands(open_gateway, connect) -> None:
    gateway = await open_gateway(limits=Limits(rate=0.001, burst=7.0, drain=6.0, closing=0.5))
    table = await seat_players(connect, gateway, players=2)
    await table.host.call("round.open")
    ann = table.players[0]
    for k in range(2):
        await commit_entropy(table, k=k)
        await table.host.call("deck.shuffle")
        await reveal_entropy(table, k=k)
        await ann.until(lambda k=k: ann.types().count("DeckSealed") == k + 1)
    await ann.call("deck.draw")


async def test_a_message_over_the_limit_closes_the_connection(gateway, connect) -> None:
    client = await connect(gateway)
    await client.send_raw(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x" * 16_300}))
    await client.until(lambda: len(client.notifications) == 1)
    await client.send_raw("x" * (16 * 1024 + 1))
    assert await client.wait_closed() == 1009


async def test_fragments_are_joined_up_to_a_limit(gateway, connect) -> None:
    client = await connect(gateway)
    text = '{"jsonrpc":"2.0","id":7,"method":"ping"}'
    await client.send_raw([text[:5], text[5:20], "", text[20:]])
    await client.until(lambda: len(client.notifications) == 1)
    assert client.notifications[0]["params"]["id"] == 7
    await client.send_raw([""] * 100)
    assert await client.wait_closed() == 1009


async def test_binary_frames_are_refused(gateway, connect) -> None:
    client = await connect(gateway)
    await client.send_raw(b"{}")
    assert await client.wait_closed() == 1003


@pytest.mark.parametrize(
    "text",
    [
        b"\xff{}",
        b'{"jsonrpc":"2.0","id":1,"method":"p\xffng"}',
        b'{"jsonrpc":"2.0","id":1,"method":"table.state","params":{"table":"\xed\xa0\x80"}}',
    ],
)
async def test_a_text_that_is_not_utf8_closes_the_connection(gateway, connect, text) -> None:
    client = await connect(gateway)
    await client.socket.send(text, text=True)
    assert await client.wait_closed() == 1007


async def test_a_connection_without_a_request_is_closed(open_gateway, connect) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, opening=0.05))
    silent, speaking = await connect(gateway), None
    assert await silent.wait_closed() == 4408
    speaking = await connect(gateway)
    await speaking.call("ping")
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    async with asyncio.timeout(30):
        assert await reader.read() == b""
    writer.close()
    assert not speaking.closed.done()


async def test_connections_of_an_address_are_limited(open_gateway, connect) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, connections_per_address=2))
    first = await connect(gateway)
    await connect(gateway)
    with pytest.raises(InvalidStatus) as caught:
        await connect(gateway)
    assert caught.value.response.status_code == 503
    assert caught.value.response.headers["Retry-After"]
    await first.close()
    await eventually(lambda: len(gateway.registry.connections) == 1)
    await connect(gateway)
    assert gateway.metrics.refused.total() == 1


async def test_an_address_with_far_too_many_connections_gets_no_page(open_gateway) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, connections_per_address=1))
    idle = [
        await asyncio.open_connection("127.0.0.1", gateway.port) for _ in range(PAGE_FACTOR - 1)
    ]
    assert (await get(gateway.port, "/")).status == 200
    idle.append(await asyncio.open_connection("127.0.0.1", gateway.port))
    await eventually(lambda: len(gateway.registry.connections) == PAGE_FACTOR)
    refused = await get(gateway.port, "/")
    assert (refused.status, refused.headers["retry-after"]) == (503, "5")
    for _, writer in idle:
        writer.close()
    await eventually(lambda: not gateway.registry.connections)
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
async def test_which_origins_may_connect(gateway, connect, origin, allowed) -> None:
    if allowed:
        await (await connect(gateway, origin=origin)).call("ping")
    else:
        assert await refused_status(connect(gateway, origin=origin)) == 403


async def test_origins_in_the_settings_replace_the_default(open_gateway, connect) -> None:
    gateway = await open_gateway(origins=["https://cards.example"])
    await (await connect(gateway, origin="https://cards.example")).call("ping")
    await (await connect(gateway, origin=f"http://127.0.0.1:{gateway.port}")).call("ping")
    with pytest.raises(InvalidStatus):
        await connect(gateway, origin="http://localhost:3000")


async def test_only_the_known_subprotocol_is_negotiated(gateway, connect) -> None:
    plain = await connect(gateway)
    assert plain.socket.subprotocol is None
    named = await connect(gateway, subprotocols=["other.v9", "dealer.v1"])
    assert named.socket.subprotocol == "dealer.v1"
    assert await refused_status(connect(gateway, subprotocols=["other.v9"])) == 400


async def test_nothing_is_compressed(gateway, connect) -> None:
    client = await connect(gateway, compression="deflate")
    assert client.socket.protocol.extensions == []


async def test_an_unreadable_request_does_not_close_the_connection(gateway, connect) -> None:
    client = await connect(gateway)
    texts = [unreadable for unreadable in UNREADABLE if is_utf8(unreadable[0])]
    for count, (data, code, id) in enumerate(texts, start=1):
        await client.socket.send(data, text=True)
        await client.until(lambda count=count: len(client.notifications) == count)
        answer = client.notifications[-1]["params"]
        assert (answer["error"]["code"], answer["id"]) == (code, json.loads(id))
    await client.call("ping")


TEXTS = st.text(max_size=40) | st.sampled_from(["deck.draw", "table.join", "ping", "52", "top"])
VALUES = st.none() | st.booleans() | st.integers() | TEXTS | st.lists(TEXTS, max_size=3)
PARAMS = st.sampled_from(["table", "token", "count", "from", "name", "cmd", "after", "deck", "to"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_every_request_is_answered_once(gateway, data) -> None:
    """With any parameters a request with an id has one answer, and the connection stays open."""
    methods = sorted(METHODS)
    requests = st.tuples(st.sampled_from(methods), st.dictionaries(PARAMS, VALUES, max_size=4))
    frames = data.draw(st.lists(requests, min_size=1, max_size=6))
    client = await RpcClient.connect(gateway.port)
    for id, (method, params) in enumerate(frames):
        frame = {"jsonrpc": "2.0", "id": f"f{id}", "method": method, "params": params}
        await client.send_raw(json.dumps(frame))
    await client.until(lambda: len(client.notices("answer")) == len(frames))
    answers = sorted(answer["id"] for answer in client.notices("answer"))
    assert answers == sorted(f"f{id}" for id in range(len(frames)))
    assert not [a for a in client.notices("answer") if a.get("error", {}).get("code") == -32603]
    await client.call("ping")
    await client.close()


async def read_text(reader: asyncio.StreamReader) -> bytes:
    """The next frame's payload."""
    _, length = await reader.readexactly(2)
    if length == 126:
        length = int.from_bytes(await reader.readexactly(2), "big")
    return await reader.readexactly(length)


def ping(id: int) -> bytes:
    text = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % id
    return Frame(Opcode.TEXT, text).serialize(mask=True)


async def send_pieces(pieces: list[bytes], writer: asyncio.StreamWriter) -> None:
    """Send pieces at intervals, so that each arrives on its own."""
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.01)


async def test_frames_may_arrive_in_any_pieces(gateway) -> None:
    """Single, several at once, or cut anywhere: each is read once."""
    reader, writer = await open_websocket(gateway.port)
    frames = [ping(id) for id in range(8)]
    stream = b"".join(frames)
    one, three = len(frames[0]), len(frames[0]) * 3 + 7
    pieces = [stream[:one], stream[one:three], stream[three : three + 1], stream[three + 1 : -1]]
    await send_pieces([*pieces, stream[-1:]], writer)
    for id in range(8):
        assert b'"id":%d,' % id in await read_text(reader)
    writer.close()


async def test_a_frame_in_the_payload_of_another_is_not_read_as_one(gateway) -> None:
    reader, writer = await open_websocket(gateway.port)
    text = b'{"jsonrpc":"2.0","id":9,"method":"ping"} '
    inner = bytes([0x81, 0x80 | len(text)]) + bytes(4) + text
    first = b"\xe2"  # of a character whose other bytes are the first two of the frame within
    assert is_utf8(first + inner)
    outer = bytes([0x81, 0x80 | len(first + inner)]) + bytes(4) + first
    await send_pieces([outer, inner, ping(7)], writer)
    assert b"-32700" in await read_text(reader)
    assert b'"id":7,' in await read_text(reader)
    writer.close()
