"""Attacks below the protocol: TCP, HTTP and WebSocket frames that no real client sends."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress

from tests.chaos.floods import FLOODS, Flood, frame
from tests.chaos.hostile_client import ANSWER_SECONDS, Attack, Attacker, Rejected

PATHS = (
    "/web/../../../etc/passwd",
    "/web/0000000000000000/../../config.py",
    "/web/0000000000000000/%2e%2e/%2e%2e/config.py",
    "/tables/" + "0" * 32 + "/bundle.jsonl",
    "/tables/" + "0" * 32 + "/..%2f..%2fdealer.db.key",
    "//evil.example/tables",
    "/" + "a" * 8000,
)
HANDSHAKES = (
    "Host: evil.example\r\n",
    "Origin: https://evil.example\r\n",
    "Origin: null\r\n",
    "Origin: http://[\r\n",
    "Origin: a\r\nOrigin: b\r\n",
    "Sec-WebSocket-Protocol: other\r\n",
    "X-Forwarded-For: 10.0.0.1\r\n",
    "Authorization: Bearer " + "0" * 4000 + "\r\n",
)
BODIES = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabcde",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nabcde\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20,
    b"GET /tables HTTP/1.0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)
UNREADABLE_REQUESTS = (
    b"[" * 8000,
    b'{"a":' * 3000,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 2000 + b"]" * 2000 + b"}",
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"table.list"}',
    b'{"jsonrpc":"2.0","id":1,"method":"table.open","params":{"rules":{"a":1,"a":2}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"table.open","params":{"rules":{"a":1e999}}}',
    b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"' + b"m" * 12000 + b'"}',
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]' * 100,
    b'{"jsonrpc":"2.0","id":1,"method":"ping\\u0000","params":{"\\ud800":1}}',
    b'{"jsonrpc":"2.0","id":1,"method":"table.resume","params":{"token":"x","after":1e400}}',
    b"\xff\xfe" * 4000,
    b'"' + b'\\"' * 7000 + b'"',
)


async def connects(me: Attacker) -> None:
    """Connections that are reset immediately."""
    for _ in range(400):
        if not me.running():
            break
        (await me.dial()).close()


async def slow_http(me: Attacker) -> None:
    """The largest answers, read a few bytes at a time."""
    table = me.chance.choice(me.honest)
    path = me.chance.choice((f"/tables/{table}/bundle.jsonl", "/audit.html", "/openrpc.json"))
    reader, writer = await me.get(path, small=True)
    try:
        while me.running() and await reader.read(16):
            await me.rest(0.1)
    finally:
        writer.transport.abort()


async def downloads(me: Attacker) -> None:
    """Bundles, histories and documents; every second download is aborted in the middle."""
    while me.running():
        own = [table for table, _ in me.own[-20:]]
        table = me.chance.choice(me.honest + own)
        path = me.chance.choice(
            (
                f"/tables/{table}/bundle.jsonl",
                f"/tables/{table}/history.txt",
                f"/tables/{table}/round-1.txt",
                f"/tables/{table}/audit",
                "/audit.html",
                "/openrpc.json",
                "/asyncapi.json",
                "/client.js",
            )
        )
        reader, writer = await me.get(path, more="Accept-Encoding: gzip\r\n")
        most = me.chance.choice((1, 100_000, 2**30))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                while most > 0 and (data := await reader.read(2**16)):
                    await me.pace()
                    most -= len(data)
                me.tally.granted += 1
        finally:
            writer.transport.abort()


async def strange_requests(me: Attacker) -> None:
    """Paths outside the folder, bodies where none are allowed, foreign Host headers."""
    for path in PATHS:
        with suppress(OSError, TimeoutError):
            reader, writer = await me.get(path)
            await _answer(reader, writer)
    for data in BODIES:
        reader, writer = await me.connect()
        writer.write(data)
        me.tally.requests += 1
        with suppress(OSError, TimeoutError):
            await _answer(reader, writer)
    for more in HANDSHAKES:
        with suppress(Rejected, OSError, TimeoutError, asyncio.IncompleteReadError):
            async with await me.socket(more=more):
                pass


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            while await reader.read(2**16):
                pass
    finally:
        writer.transport.abort()


async def unreadable(me: Attacker) -> None:
    """Requests with deep nesting, duplicate members, unknown methods or no JSON."""
    async with await me.socket() as socket:
        while me.running():
            for data in UNREADABLE_REQUESTS:
                me.tally.requests += 1
                await socket.send_frame(data)
            method = {"jsonrpc": "2.0", "id": secrets.token_hex(8), "method": secrets.token_hex(8)}
            await socket.send_frame(json.dumps(method).encode())


async def control_frames(me: Attacker) -> None:
    """Pings, pongs and empty fragments, as many as are accepted."""
    async with await me.socket() as socket:
        while me.running():
            for first in (0x89, 0x8A):
                me.tally.requests += 1
                await socket.send_frame(b"a" * 100, first)
            await socket.send_frame(b"", 0x01)
            for _ in range(30):
                await socket.send_frame(b"", 0x00)
            await socket.send_frame(b'{"jsonrpc":"2.0","id":1,"method":"ping"}', 0x80)


async def behind_a_page(me: Attacker) -> None:
    """Frames after a request for a page that takes long to build, or whose answer is never read."""
    table = me.chance.choice(me.honest)
    path = me.chance.choice((f"/tables/{table}/history.txt", f"/tables/{table}/bundle.jsonl"))
    _, writer = await me.get(path, small=True)
    try:
        for _ in range(2000):
            if not me.running():
                break
            await me.pace()
            writer.write(frame(0x81, b"a" * 16_000) * 4)
            async with asyncio.timeout(ANSWER_SECONDS):
                await writer.drain()
    finally:
        writer.transport.abort()


async def crowd(me: Attacker) -> None:
    """Hundreds of silent connections at the same time."""
    with ExitStack() as stack:
        for _ in range(500):
            if not me.running():
                break
            stack.callback((await me.dial()).close)
        await me.rest(3600)


def _flood(kind: Flood) -> Callable[[Attacker], Awaitable[None]]:
    async def attack(me: Attacker) -> None:
        stream = await me.connect()
        try:
            async with asyncio.timeout(max(0.1, me.until - time.monotonic())):
                await kind(stream, me.chance)
                while await stream[0].read(2**16):
                    await me.pace()
        finally:
            stream[1].transport.abort()

    attack.__doc__ = kind.__doc__
    return attack


BYTES: dict[str, tuple[Attack, int]] = {
    one.__name__: (one, workers)
    for one, workers in (
        (connects, 2),
        (slow_http, 6),
        (downloads, 6),
        (strange_requests, 2),
        (unreadable, 2),
        (control_frames, 2),
        (behind_a_page, 2),
        (crowd, 1),
    )
} | {f"flood_{kind.__name__}": (_flood(kind), 2) for kind in FLOODS}
"""Each attack with the number of its concurrent workers."""
