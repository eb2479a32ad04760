"""Long HTTP responses, streamed block by block; the connection is closed at their end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from http import HTTPStatus
from types import MappingProxyType

from websockets.datastructures import Headers
from websockets.http11 import Request

from dealer.errors import DealerError
from dealer.gateway.http.client_connection import ClientConnection
from dealer.gateway.http.responses import headers_of
from dealer.gateway.rate_limit.cpu_time import Turns

BLOCK = 32 * 1024
"""Bytes of a block of a streamed answer, about."""


async def stream(
    connection: ClientConnection,
    request: Request,
    blocks: AsyncGenerator[bytes],
    *,
    turns: Turns,
    kind: str,
    status: HTTPStatus = HTTPStatus.OK,
    length: int | None = None,
    more: Mapping[str, str] = MappingProxyType({}),
    seconds: float | None = None,
) -> None:
    """Answer with blocks as they are made, in total `length` bytes if that is known, and close.

    `more` are headers; the answer to HEAD has no blocks. A client that for so many `seconds`, by
    default the limit `sending`, does not read what is in the write buffer is disconnected; then, in
    HTTP/1.1, the last bytes or chunk are missing, so that the client detects the truncation. Each
    block waits until the client's address has paid for the processor time of the earlier ones.
    """
    head_only = request.method == "HEAD"
    chunked = request.protocol == "HTTP/1.1" and length is None and not head_only
    headers = Headers(headers_of(kind) | dict(more))
    if seconds is not None:
        connection.wait_for_reader(seconds)
    if length is not None:
        headers["Content-Length"] = str(length)
    if chunked:
        headers["Transfer-Encoding"] = "chunked"
    async with aclosing(blocks):
        # Before the status line: an error of the first block is answered with a status of its own.
        block: bytes | None = await anext(blocks, b"")
        transport = connection.transport
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\n{headers}".encode()
        if head_only:
            block = b""
        try:
            while block is not None:
                if not await connection.http_drained():
                    transport.abort()
                    await connection.wait_closed()
                    return
                if head or block:
                    transport.write(head + (_chunk(block, chunked) if block else b""))
                    head = b""
                if head_only:
                    break
                await turns.pause(connection.budget)
                block = await anext(blocks, None)
            if chunked and await connection.http_drained():
                transport.write(b"0\r\n\r\n")
            transport.close()
            async with asyncio.timeout(connection.sending):
                await connection.wait_closed()
        except (DealerError, TimeoutError):
            transport.abort()
            await connection.wait_closed()
        except Exception:
            transport.abort()  # its head was sent: no other answer may follow
            raise


async def blocks_of(lines: AsyncGenerator[str], turn: asyncio.Lock) -> AsyncGenerator[bytes]:
    """Blocks of lines, of about `BLOCK` bytes.

    Each is made while `turn` is held: it takes the event loop a few milliseconds, and only one
    download at a time does so. The lock is not held while a client reads.
    """
    line: str | None = ""
    async with aclosing(lines):
        while line is not None:
            block = bytearray()
            async with turn:
                while len(block) < BLOCK and (line := await anext(lines, None)) is not None:
                    block += line.encode() + b"\n"
            if block:
                yield bytes(block)


def _chunk(data: bytes, chunked: bool) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if chunked else data
