"""The services of docker-compose.yml as processes: a game is played over both of its nodes."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import subprocess
from contextlib import AsyncExitStack, ExitStack
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from select import select
from urllib.request import urlopen

import pytest

from dealer.client import RemoteTable, connect
from dealer.client.requests import RetryPolicy
from dealer.config.settings import SETTINGS
from tests.chaos import game_under_faults
from tests.harness.composed import NODES, Node, as_composed, composed
from tests.harness.server_process import PATIENT


def test_the_nodes_have_only_settings_that_exist() -> None:
    known = {setting.variable for setting in SETTINGS}
    for name in (*NODES, "migrate"):
        assert set(composed()["services"][name]["environment"]) <= known


async def test_a_game_continues_when_one_node_is_killed_and_the_other_drains(
    tmp_path: Path,
) -> None:
    """The node at which the players meet is stopped, then the other; they only see resumes."""
    figures, used = game_under_faults.Figures(), set[Node]()
    async with as_composed(tmp_path) as server:

        async def inject_faults(playing: asyncio.Task[None]) -> None:
            first, other = server.nodes
            while not served_draws(first):
                if await game_under_faults.ended_within(playing, 0.1):
                    return
                first, other = other, first
            used.add(first)
            await first.end(signal.SIGKILL)
            while not served_draws(other):
                if await game_under_faults.ended_within(playing, 0.1):
                    return
            used.add(other)
            await first.open()
            if await game_under_faults.ended_within(playing, 1.0):
                return
            await other.end(signal.SIGTERM)
            if await game_under_faults.ended_within(playing, 1.0):
                return
            await other.open()

        await game_under_faults.play_through(server, tmp_path, inject_faults, figures)
    assert figures.faults == []
    assert (figures.lost, figures.doubled, figures.changed) == (0, 0, 0)
    assert figures.rounds >= 1
    assert figures.resumes > 0
    assert len(used) == 2, "one of the nodes did not serve the game"


async def test_a_drain_interrupts_each_of_twenty_players_for_one_reconnect(tmp_path: Path) -> None:
    """A second attempt of a client would wait for hours."""
    patience = RetryPolicy(backoff=1e6, backoff_max=1e6)
    async with as_composed(tmp_path) as server, AsyncExitStack() as stack:

        async def join(name: str, table: str) -> RemoteTable:
            connecting = connect(server.url, name=name, table=table, patience=patience)
            return await (await stack.enter_async_context(connecting)).join(table)

        host = await stack.enter_async_context(connect(server.url, name="Host", patience=patience))
        opened = await host.open(seats=20, rules={"entropy": "house"})
        players = [await join(f"Player {number}", opened.id) for number in range(1, 21)]
        await opened.round_open()
        await opened.shuffle()
        assert all([await player.draw(1) for player in players])
        for node in server.nodes:
            if served_draws(node):
                await node.end(signal.SIGTERM)
        async with asyncio.timeout(PATIENT):
            assert all(await asyncio.gather(*(player.draw(1) for player in players)))


async def test_a_backup_is_made_while_the_nodes_run(tmp_path: Path) -> None:
    """By the programs of the services `dump` and `backup`, as the owner of the tables."""
    backups, file = tmp_path / "backups", composed()
    backups.mkdir()
    async with as_composed(tmp_path) as server:
        for name in ("dump", "backup"):
            await asyncio.to_thread(
                server.database.run, file, name,
                BACKUPS=str(backups), DEALER_HOUSE_KEY_FILE=str(tmp_path / "key"),
            )  # fmt: skip
        async with asyncio.timeout(60):
            while b"dealer_backup_age_seconds NaN" in metrics(server.nodes[0]):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert b"\ndealer_backup_age_seconds " in metrics(server.nodes[0])
    (made,) = backups.iterdir()
    assert {each.name for each in made.iterdir()} == {"SHA256SUMS", "dealer.dump", "key"}
    listed = (made / "SHA256SUMS").read_text()
    assert [line.split()[1] for line in listed.splitlines()] == ["dealer.dump", "key/key"]


async def test_the_proxy_answers_its_own_health_check(tmp_path: Path) -> None:
    """Also while no node is ready: to restart the proxy would not help."""
    test = composed()["services"]["proxy"]["healthcheck"]["test"]
    async with as_composed(tmp_path) as server:
        for node in server.nodes:
            await node.end(signal.SIGTERM)
        address = test[-1].replace(":8080", f":{server.port}")
        assert (await asyncio.to_thread(urlopen, address)).status == 200


@pytest.mark.parametrize("port", ["443", "8443"])
async def test_over_tls(tmp_path: Path, port: str) -> None:
    """With a certificate the plain port redirects to the TLS port."""
    file = certificate(tmp_path)
    async with as_composed(tmp_path, certificate=file, DEALER_HTTPS_PORT=port) as server:
        moved, page = await asyncio.gather(
            asyncio.to_thread(head, HTTPConnection("127.0.0.1", server.port)),
            asyncio.to_thread(
                head,
                HTTPSConnection(
                    "localhost",
                    server.tls_port,
                    context=ssl.create_default_context(cafile=str(file)),
                ),
            ),
        )
    assert moved[0] == 308
    assert moved[1]["location"].startswith(f"https://localhost:{port}/")
    assert page[0] == 200
    strictly = page[1].get("strict-transport-security", "=0")
    assert (int(strictly.partition("=")[2]) > 0) == (port == "443")


async def test_connections_of_one_address_are_limited(tmp_path: Path) -> None:
    async with as_composed(tmp_path) as server:
        with ExitStack() as stack:

            def open_connection(address: str) -> socket.socket:
                return stack.enter_context(
                    socket.create_connection(("127.0.0.1", server.port), 10, (address, 0))
                )

            held = [open_connection("127.0.0.2") for _ in range(251)]
            # The proxy's threads take connections in any order; an idle one is closed much later.
            closed, _, _ = await asyncio.to_thread(select, held, [], [], 10)
            assert [closed_by_peer(connection) for connection in closed] == [True]
            (one,) = closed
            for connection in (
                open_connection("127.0.0.3"),
                next(connection for connection in held if connection is not one),
            ):
                connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert (await asyncio.to_thread(connection.recv, 12)).endswith(b"200")


def closed_by_peer(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def served_draws(node: Node) -> bool:
    """Whether cards were drawn through this node."""
    return b'dealer_calls_total{method="deck.draw",outcome="ok"}' in metrics(node)


def metrics(node: Node) -> bytes:
    with socket.create_connection(("127.0.0.1", node.ops_port)) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return b"".join(iter(lambda: connection.recv(65536), b""))


def head(connection: HTTPConnection) -> tuple[int, dict[str, str]]:
    connection.request("GET", "/", headers={"Host": "localhost"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}


def certificate(folder: Path) -> Path:
    """A self-signed certificate for localhost, with its key in the same file."""
    key, signed, both = (folder / name for name in ("tls.key", "tls.crt", "tls.pem"))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(signed)],
        check=True, capture_output=True,
    )  # fmt: skip
    both.write_bytes(signed.read_bytes() + key.read_bytes())
    return both
