"""The address of a table at a server, and which sockets a connection opens there."""

from __future__ import annotations

import asyncio

import pytest

from dealer.client.connection import Connection, ServerAddress
from tests.client.conftest import TABLE
from tests.client.test_connection import QUICK, FakeServer, answer

OTHER = "f" * 32


@pytest.fixture
async def server():
    async with FakeServer() as server:
        yield server


@pytest.mark.parametrize(
    ("server", "url"),
    [
        ("ws://127.0.0.1:8080/ws", f"ws://127.0.0.1:8080/ws/{TABLE}"),
        ("wss://cards.example/ws/", f"wss://cards.example/ws/{TABLE}"),
        ("wss://cards.example/games/ws?a=b", f"wss://cards.example/games/ws/{TABLE}?a=b"),
        ("wss://cards.example/other", "wss://cards.example/other"),
        (f"wss://cards.example/ws/{TABLE}", f"wss://cards.example/ws/{TABLE}"),
    ],
)
def test_a_table_is_named_after_the_endpoint(server: str, url: str) -> None:
    address = ServerAddress(server)
    assert address.url == server
    assert address.route_to(TABLE) == (url != server)
    assert address.url == ServerAddress(server, TABLE).url == url
    assert not address.route_to(TABLE)


@pytest.mark.parametrize("table", ["", "short", TABLE.upper().replace("0", "A"), "../" + TABLE])
def test_what_is_no_table_is_not_put_into_the_address(table: str) -> None:
    address = ServerAddress("ws://127.0.0.1/ws", table)
    assert not address.route_to(table)
    assert address.url == "ws://127.0.0.1/ws"


async def ready(frame, socket):
    await answer(socket, frame, {})


async def test_several_nodes_get_a_table_s_clients_at_its_own_address(server):
    server.hello, server.script = {"by_table": True}, ready
    connection = Connection(server.url, patience=QUICK)
    await connection.start()
    connection.route_to(TABLE)
    await connection.ask("ping", {}, table=None)
    assert server.paths == ["/ws", f"/ws/{TABLE}"]
    connection.route_to(TABLE)
    connection.handlers[TABLE] = Ignored()
    connection.route_to(OTHER)
    await connection.ask("ping", {}, table=None)
    assert connection.sockets == 2, "a second table is followed over the same socket"
    await connection.close()


async def test_a_request_without_an_answer_keeps_its_socket(server):
    answers = asyncio.Event()

    async def script(frame, socket):
        await answers.wait()
        await answer(socket, frame, {})

    server.hello, server.script = {"by_table": True}, script
    connection = Connection(server.url, patience=QUICK)
    await connection.start()
    asked = connection.ask("ping", {}, table=None)
    connection.route_to(TABLE)
    answers.set()
    await asked
    assert (connection.sockets, len(server.requests)) == (1, 1)
    await connection.close()


async def test_one_node_keeps_the_socket_and_is_found_at_the_address_later(server):
    server.script = ready
    connection = Connection(server.url, patience=QUICK)
    await connection.start()
    connection.route_to(TABLE)
    await connection.ask("ping", {}, table=None)
    assert connection.sockets == 1
    connection.drop_socket()
    await connection.ask("ping", {}, table=None)
    assert server.paths == ["/ws", f"/ws/{TABLE}"]
    await connection.close()


async def test_a_table_known_from_the_beginning_is_in_the_first_address(server):
    server.hello, server.script = {"by_table": True}, ready
    connection = Connection(server.url, table=TABLE, patience=QUICK)
    await connection.start()
    connection.route_to(TABLE)
    await connection.ask("ping", {}, table=None)
    assert server.paths == [f"/ws/{TABLE}"]
    await connection.close()


class Ignored:
    over = False

    def attach(self):
        pass

    def notified(self, method, params):
        pass

    def end(self, error):
        pass
