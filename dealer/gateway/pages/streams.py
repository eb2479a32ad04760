"""Long HTTP responses, streamed block by block, and the limit of those that take long to make.

A download has a strong tag (RFC 9110, section 8.8) if it cannot change. Downloads of private tables
are neither compressed (BREACH: they are secret, and players choose names in them) nor stored by
clients.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from http import HTTPStatus
from types import MappingProxyType
from typing import NamedTuple

from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from dealer.errors import DealerError, Overloaded
from dealer.gateway.clients import ClientConnection
from dealer.gateway.net.responses import headers_of, response
from dealer.gateway.pages.static_files import REVALIDATE, is_known, weak
from dealer.service import LiveTable, Service

BLOCK = 32 * 1024
"""Bytes of a block of a streamed answer, about."""

MAX_CONCURRENT = 32
MAX_CONCURRENT_PER_ADDRESS = 4


class ConcurrencyLimit:
    """Limits concurrent requests for `what`, in total and per client address."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._active: Counter[str] = Counter()  # by address

    @contextmanager
    def admitted(self, address: str) -> Iterator[None]:
        """Count a request while the block runs; Overloaded if that exceeds a limit."""
        if (
            self._active[address] >= MAX_CONCURRENT_PER_ADDRESS
            or self._active.total() >= MAX_CONCURRENT
        ):
            raise Overloaded(f"Too many requests for {self._what} at the moment; try again later.")
        self._active[address] += 1
        try:
            yield
        finally:
            self._active -= Counter([address])


async def stream(
    connection: ClientConnection,
    blocks: AsyncGenerator[bytes],
    *,
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
    block waits until the client's address owes no processor time.
    """
    headers = Headers(headers_of(kind) | dict(more))
    if length is not None:
        headers["Content-Length"] = str(length)
    if seconds is not None:
        connection.wait_for_reader(seconds)
    async with aclosing(blocks):
        # Before the status line: an error of the first block is answered with a status of its own.
        block: bytes | None = await anext(blocks, b"")
        try:
            if await connection.drained():
                head = Response(status.value, status.phrase, headers)
                connection.begin_answer(head, block or b"")
                if connection.exchange.head_only or await _send(connection, blocks):
                    connection.end_answer()
                else:
                    connection.abort()
        except DealerError:
            connection.abort()
        except Exception:
            connection.abort()  # its head was sent: no other answer may follow
            raise
    await connection.wait_closed()


async def _send(connection: ClientConnection, blocks: AsyncGenerator[bytes]) -> bool:
    """Write the blocks, each when no time is owed and the last one has left the buffer.

    Returns whether the connection took them all.
    """
    await connection.long_answers.pause(connection.budget)
    async for block in blocks:
        if not await connection.drained():
            return False
        connection.go_on_answering(block)
        await connection.long_answers.pause(connection.budget)
    return await connection.drained()


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


class Download(NamedTuple):
    """How a download is sent: with gzip or plain, and with this `etag`, empty if it may change.

    The tag is the strong one of the plain bytes. Only what is `stored` may be kept by clients and
    by this server. `vary` are the headers of the request on which the answer depends.
    """

    etag: str = ""
    gzip: bool = False
    stored: bool = False
    vary: str = "Accept-Encoding"

    def headers(self) -> dict[str, str]:
        """Headers of the answer beside those of every download."""
        more = {"Content-Encoding": "gzip"} if self.gzip else {}
        if self.etag:
            more["ETag"] = weak(self.etag) if self.gzip else self.etag
        if self.stored:
            more["Cache-Control"] = REVALIDATE
        return more | {"Vary": self.vary, "Accept-Ranges": "none"}

    def unchanged(self, request: Request) -> Response | None:
        """304 if the client has this content; None otherwise."""
        if not is_known(request, self.etag):
            return None
        return response(HTTPStatus.NOT_MODIFIED, b"", **self._replace(gzip=False).headers())


async def compressed(blocks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The blocks as one gzip stream; holds no more than a block."""
    packing = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    async with aclosing(blocks):
        async for block in blocks:
            yield packing.compress(block)
    yield packing.flush()


def is_settled(live_table: LiveTable) -> bool:
    """Whether the log has the whole state: an event that is not on disk is not final."""
    return live_table.committed == live_table.table.version and not live_table.reloading


async def cosigned(service: Service, live_table: LiveTable) -> int:
    """The count that grows with each cosignature of one of the table's checkpoints."""
    found = await service.log.heads_and_cosigned([live_table.id])
    return found.get(live_table.id, (0, 0))[1]
