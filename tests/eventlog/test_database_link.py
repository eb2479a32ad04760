"""The link to a database: what is lost when it is cut."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.harness.database_link import DatabaseLink

TURNS = 50
"""Iterations of the loop within which a cut would have reached the client."""


@pytest.mark.parametrize("lost", ["request", "reply"])
async def test_a_lost_reply_is_one_that_the_server_has_sent(tmp_path: Path, lost: str) -> None:
    order: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            order.append(f"server: {data.decode()}")
            for _ in range(TURNS):
                await asyncio.sleep(0)
            order.append("answered")
            writer.write(b"answer")
            await writer.drain()
        writer.close()

    socket = tmp_path / "socket"
    server = await asyncio.start_unix_server(serve, socket)
    async with server, DatabaseLink(socket) as link:
        reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
        writer.write(b"one")
        assert await reader.readexactly(6) == b"answer"
        link.lost, link.cut_at = lost, lambda data: True
        writer.write(b"two")
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        order.append("cut")
        writer.close()
    assert link.cuts == 1
    expected = ["server: one", "answered", "server: two", "answered", "cut"]
    assert order == (expected if lost == "reply" else [*expected[:2], "cut"])
