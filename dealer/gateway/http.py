"""Plain HTTP on the way to the table: one answer a connection, and long ones line by line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from http import HTTPStatus

from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from dealer.errors import DealerError
from dealer.gateway.connection import GuestConnection

POLICY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    ),
    "Referrer-Policy": "no-referrer",
}
"""What a page may do; on scripts and styles it would say nothing, thirty times for one page."""

PLAIN = "text/plain; charset=utf-8"
PAGE = "text/html; charset=utf-8"
PICTURE = "image/svg+xml"
BLOCK = 32 * 1024


def response(status: HTTPStatus, body: str | bytes, *, kind: str = PLAIN, **more: str) -> Response:
    """A whole answer; underscores in the names of `more` headers stand for hyphens."""
    data = body.encode() if isinstance(body, str) else body
    named = {name.replace("_", "-"): value for name, value in more.items()}
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        named["Allow"] = "GET, HEAD"
    if status != HTTPStatus.NOT_MODIFIED:
        named.setdefault("Content-Length", str(len(data)))
    return Response(status.value, status.phrase, Headers(_headers(kind) | named), data)


def without_body(answer: Response) -> Response:
    """The answer to HEAD: all but the body."""
    return Response(answer.status_code, answer.reason_phrase, answer.headers, b"")


async def stream(
    connection: GuestConnection,
    request: Request,
    blocks: AsyncGenerator[bytes],
    *,
    kind: str,
    length: int | None = None,
) -> None:
    """Answer with blocks as they come, of `length` bytes together if that is known, and close.

    Each block has `limits.sending` to be taken, or the connection is dropped; then, in HTTP/1.1,
    the last bytes or chunk are missing and the reader knows that it does not have all. The next
    one waits until the client's address has paid for the time that the earlier ones took.
    """
    floor = connection.door.floor
    chunked = request.protocol == "HTTP/1.1" and length is None
    headers = Headers(_headers(kind))
    if length is not None:
        headers["Content-Length"] = str(length)
    if chunked:
        headers["Transfer-Encoding"] = "chunked"
    async with aclosing(blocks):
        # What cannot be read at all gets an answer that says so.
        block: bytes | None = await anext(blocks, b"")
        transport = connection.transport
        transport.write(f"HTTP/1.1 200 OK\r\n{headers}".encode())
        try:
            while block is not None:
                if not await connection.taken():
                    return
                if block:
                    transport.write(_chunk(block, chunked))
                await floor.pump.turns.pause(connection.budget)
                block = await anext(blocks, None)
            if chunked:
                transport.write(b"0\r\n\r\n")
            transport.close()
            async with asyncio.timeout(floor.limits.sending):
                await connection.wait_closed()
        except (DealerError, TimeoutError):
            transport.abort()
            await connection.wait_closed()


async def blocks_of(lines: AsyncGenerator[str], turn: asyncio.Lock) -> AsyncGenerator[bytes]:
    """Blocks of lines, of about `BLOCK` bytes.

    Each is made while `turn` is held: making one takes the event loop a few milliseconds, and of
    all downloads only one at a time does. None waits there for its client.
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


def _headers(kind: str) -> dict[str, str]:
    fixed = {
        "Content-Type": kind,
        "Connection": "close",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }
    return fixed | POLICY if kind in (PAGE, PICTURE) else fixed
