"""The reconnecting connection of the JavaScript client, against a minimal server."""

from __future__ import annotations

import asyncio
import json

import pytest
from websockets.asyncio.server import ServerConnection

from tests.client.conftest import TABLE
from tests.client.test_connection import FakeServer, answer, refuse
from tests.web.client.node_client import JsError

pytestmark = pytest.mark.slow

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
async def fake(clients):
    async with FakeServer() as fake:
        await clients.connect("house", fake.url, retry=QUICK)
        await clients.run(
            """
            its.states = [];
            its.house.on("connection", ({ state }) => its.states.push(state));
            """
        )
        yield fake


@pytest.mark.parametrize("code", [4401, 4403, 4408, 4409, 1009])
async def test_final_close_codes_end_the_connection(fake, clients, code):
    async def act(frame, socket):
        await socket.close(code, "")

    fake.script = act
    for _ in range(2):
        with pytest.raises(JsError) as ended:
            await clients.run(LIST)
        assert (ended.value.name, ended.value.code) == ("SessionEnded", code)
        assert ended.value.message.endswith(".")
    assert len(fake.requests) == 1
    status = await clients.run("return [its.house.connection.state, its.states]")
    assert status == ["away", ["away"]]


@pytest.mark.parametrize("code", [1012, 1013, 4508, 4529, None])
async def test_other_close_codes_cause_a_reconnect_with_the_same_cmd(fake, clients, code):
    async def act(frame, socket):
        if len(fake.requests) == 3:
            await refuse(socket, frame, 34, "too_many_tables", temporary=False)
        elif code:
            await socket.close(code, "")
        else:
            socket.transport.abort()

    fake.script = act
    with pytest.raises(JsError) as refused:
        await clients.run(OPEN)
    assert refused.value.reason == "too_many_tables"
    assert len({frame["params"]["cmd"] for frame in fake.requests}) == 1
    assert len(fake.requests[0]["params"]["cmd"]) >= 22  # unguessable
    states = await clients.run("return its.states")
    assert (states[0], states[-1]) == ("resuming", "connected")


async def test_a_server_that_stopped_reading_is_disconnected(fake, clients):
    stopped: list[ServerConnection] = []

    async def act(frame, socket):
        if frame["method"] == "ping":
            await answer(socket, frame, {})
        elif not stopped:
            stopped.append(socket)
            socket.transport.pause_reading()
        else:
            await answer(socket, frame, {"tables": [1]})

    fake.script = act
    await clients.connect("house", fake.url, retry=QUICK | {"silence": 50})
    assert await clients.run(LIST) == [1]
    stopped[0].transport.abort()


async def test_a_client_reconnects_when_a_draining_server_announced(fake, clients):
    """Not earlier, and without a pause of its own; it is connected until the server closes."""
    times = []

    async def act(frame, socket):
        times.append(asyncio.get_running_loop().time())
        if len(times) == 1:
            params = {"reconnect_in_ms": 100}
            notification = {"jsonrpc": "2.0", "method": "session.drain", "params": params}
            await socket.send(json.dumps(notification))
            await answer(socket, frame, {"tables": []})
        elif len(times) == 2:
            await socket.close(1012, "")
        else:
            await answer(socket, frame, {"tables": []})

    fake.script = act
    await clients.connect("house", fake.url, retry=QUICK | {"backoff": 1e9, "backoffMax": 1e9})
    states = "its.house.on('connection', ({ state }) => its.states.push(state))"
    assert await clients.run(f"its.states = []; {states}; {LIST}") == []
    assert await clients.run("return its.states") == []
    assert await clients.run(LIST) == []
    assert times[2] - times[0] >= 0.09
    assert await clients.run("return its.states") == ["draining", "connected"]


async def test_the_client_gives_up_when_the_server_stays_away(fake, clients):
    async def act(frame, socket):
        fake.listener.close()
        socket.transport.abort()

    fake.script = act
    with pytest.raises(JsError, match=r"HouseUnreachable: .* away for too long"):
        await clients.run(LIST)
    states = await clients.run("return [its.states, String(its.house.connection.error)]")
    assert states[0][:2] == ["resuming", "away"]
    assert "away for too long" in states[1]


async def test_temporary_refusals_are_retried_with_the_same_cmd(fake, clients):
    async def act(frame, socket):
        if len(fake.requests) == 1:
            await refuse(socket, frame, 52, "rate_limited", retry_after_ms=5)
        elif len(fake.requests) == 2:
            await refuse(socket, frame, 50, "conflict")
        else:
            await refuse(socket, frame, 34, "too_many_tables", temporary=False)

    fake.script = act
    with pytest.raises(JsError) as refused:
        await clients.run(OPEN)
    assert refused.value.reason == "too_many_tables"
    assert len({frame["params"]["cmd"] for frame in fake.requests}) == 1


async def test_retries_are_limited(fake, clients):
    async def act(frame, socket):
        await refuse(socket, frame, 50, "conflict")

    fake.script = act
    with pytest.raises(JsError) as refused:
        await clients.run(OPEN)
    assert (refused.value.name, refused.value.reason) == ("Refused", "conflict")
    assert len(fake.requests) == QUICK["attempts"]


async def test_a_server_that_does_not_answer_hello_is_reported(clients):
    async with FakeServer() as fake:
        fake.answers_hello = False
        with pytest.raises(JsError, match=r"HouseUnreachable: .* does not answer session.hello"):
            await clients.connect("house", fake.url, retry={"open": 100})


async def test_an_unreachable_server_is_reported(clients):
    with pytest.raises(JsError, match=r"HouseUnreachable: .* does not answer"):
        await clients.connect("house", "ws://127.0.0.1:9/ws")


@pytest.mark.parametrize("path", ["", "/", "/nowhere", "/tables"])
async def test_an_address_without_a_websocket_is_to_be_corrected(clients, real_server, path):
    base = real_server.url.removesuffix("/ws")
    bare = base.removeprefix("ws://")
    for url in (f"{base}{path}", f"http://{bare}{path}", f"{bare}{path}", f"localhost{path}"):
        with pytest.raises(JsError) as wrong:
            await clients.connect("house", url)
        assert wrong.value.name == "ConfigurationError"
        assert wrong.value.message == (
            f"There is no WebSocket at {url}: its address is like ws://127.0.0.1:8080/ws, or "
            "wss://dealer.example/ws."
        )


async def test_a_full_server_is_not_a_wrong_address(clients):
    """It refuses the upgrade; to the same address without one it answers 426."""

    async def answers(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        status = "503 Full" if b"upgrade: websocket" in head else "426 Upgrade Required"
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        )
        writer.close()

    async with await asyncio.start_server(answers, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(JsError, match=r"HouseUnreachable: .* does not answer"):
            await clients.connect("house", f"ws://127.0.0.1:{port}/ws")


async def test_malformed_frames_are_ignored(fake, clients):
    async def act(frame, socket):
        noises = ("", "[]", "null", "7", '{"method":"event","params":3}', '{"id":99,"result":{}}')
        for noise in (*noises, '{"method":"events","params":{"list":[null]}}', "{"):
            await socket.send(noise)
        await answer(socket, frame, {"tables": [2]})

    fake.script = act
    assert await clients.run(LIST) == [2]
    assert await clients.run("return its.states") == []


async def test_closing_rejects_pending_requests(fake, clients):
    received = asyncio.Event()

    async def act(frame, socket):
        received.set()

    fake.script = act
    waiting = clients.begin(LIST)
    await received.wait()
    await clients.run("await its.house.close()")
    with pytest.raises(JsError, match="closed its connection"):
        await waiting


async def test_a_resume_whose_answer_was_lost_is_replaced_on_the_next_socket(fake, clients):
    async def act(frame, socket):
        if frame["method"] != "table.resume":
            await answer(socket, frame, {"tables": []})
        elif len(fake.requests) == 1:
            await socket.close(1012, "")
        else:
            await refuse(socket, frame, 30, "unknown_table", temporary=False)

    fake.script = act
    with pytest.raises(JsError) as refused:
        await clients.run(
            """
            its.store = client.memoryStore();
            its.store.set(`dealer/${args.table}/seat`, JSON.stringify({ token: "seat.1.2.t" }));
            its.house = await client.connect(args.url, { store: its.store, retry: args.retry });
            await its.house.enter(args.table);
            """,
            table="00" * 16,
            url=fake.url,
            retry=QUICK,
        )
    assert refused.value.reason == "unknown_table"
    await clients.run(LIST)  # answered after every earlier request
    assert [frame["method"] for frame in fake.requests].count("table.resume") == 2


async def test_a_table_s_address_is_used_as_soon_as_the_table_is_known(fake, clients):
    """One node keeps the socket that it has; at several it is replaced, without a pause."""

    async def act(frame, socket):
        await refuse(socket, frame, 32, "unknown_table", temporary=False)

    fake.script = act
    watch = "await its.house.watch(args.table).catch(({ reason }) => reason)"
    watching = {"js": watch, "table": TABLE}
    await clients.run(**watching)
    assert fake.paths == ["/ws"]
    fake.hello = {"by_table": True}
    connecting = """
        its.second = await client.connect(args.url, { retry: { backoff: 60_000 } });
        return its.second.watch(args.table).catch(({ reason }) => reason);
    """
    assert await clients.run(connecting, url=fake.url, table=TABLE) == "unknown_table"
    assert fake.paths[1:] == ["/ws", f"/ws/{TABLE}"]
    known = "its.third = await client.connect(args.url, { table: args.table });" + watch.replace(
        "its.house", "its.third"
    )
    await clients.run(known, url=fake.url, table=TABLE)
    assert fake.paths[3:] == [f"/ws/{TABLE}"]


async def test_an_intended_close_is_not_reported(clients, real_server):
    await clients.connect("house", real_server.url)
    seen = await clients.run(
        """
        const seen = [], table = await its.house.open({ seats: 2 });
        for (const one of [its.house, table]) {
          one.on("connection", ({ state }) => seen.push(state));
        }
        await its.house.close();
        const { state, error } = table.connection;
        return [seen, state, its.house.connection.state, error.name];
        """
    )
    assert seen == [[], "away", "away", "HouseUnreachable"]


async def test_a_table_reports_the_end_of_its_connection_once(fake, clients):
    async def act(frame, socket):
        await socket.close(4403, "")

    fake.script = act
    with pytest.raises(JsError):
        await clients.run(
            """
            its.house.watch("ab".repeat(16)).catch(() => {});
            return its.house.tables();
            """
        )
    assert await clients.run("return its.states") == ["away"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            "table.draw(1, { ende: 'bottom' })",
            'There is no option "ende"; the options here are: end.',
        ),
        ("table.shuffle({ pille: 'x' })", 'no option "pille"; .*: pile, algorithm, steps, wait'),
        ("table.give(0)", "Options must be an object; .*: to"),
        ("table.move('deck')", "Options must be an object; .*: to, cards"),
        ("table.pass(0, null)", "Options must be an object; .*: to"),
        ("table.deal(1, [2])", "Options must be an object; .*: seats, piles"),
        ("table.until(() => true, 5)", "Options must be an object; .*: timeout"),
        ("its.house.open({ decks: 2 })", 'no option "decks"; .*: deck, seats'),
        ("its.house.join(table.id, 'Bob')", "Options must be an object; .*: name, seat"),
        ("client.connect(its.house.url, { nam: 'Bob' })", 'no option "nam"; .*: name, store'),
        ("table.stack('books')", "A stack is deck, hand:<seat> or pile:<name>"),
        ("table.stack('hand:0')", "A stack is deck, hand:<seat> or pile:<name>"),
    ],
)
async def test_unknown_options_are_refused(clients, real_server, call, sentence):
    await clients.connect("house", real_server.url)
    with pytest.raises(JsError, match=sentence) as refused:
        await clients.run(f"const table = await its.house.open(); return {call}")
    assert (refused.value.name, refused.value.reason) == ("Refused", "bad_request")
