"""Histories of a table over HTTP: sentences, or hands in the PHH format."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncGenerator, Coroutine
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import parse_qs

from websockets.http11 import Request, Response

from dealer.errors import HistoryUnavailable
from dealer.gateway.http.client_connection import ClientConnection
from dealer.gateway.http.concurrency import ConcurrencyLimit
from dealer.gateway.http.downloads import Download, HistoryCache, part_of
from dealer.gateway.http.history_process import make_history
from dealer.gateway.http.ranges import span_of
from dealer.gateway.http.responses import PLAIN, response
from dealer.gateway.http.streams import BLOCK, blocks_of, stream
from dealer.gateway.rate_limit.cpu_time import Turns, metered
from dealer.history.poker import phh
from dealer.languages.language import Language, accepted, language_of

_WHAT = re.compile(r"/(?:history\.txt|round-(?P<round>[1-9][0-9]{0,9})\.(?P<form>txt|phh))")

T = TypeVar("T")


class Histories:
    """Answers `/history.txt`, `/round-<n>.txt` and `/round-<n>.phh` of a table.

    Each is made from a bundle, which is verified first, by a child process that ends when the
    client disconnects; one at a time, which bounds the memory. `reading` is held while a part of a
    bundle is read, see `blocks_of`.
    """

    def __init__(self, reading: asyncio.Lock, *, turns: Turns) -> None:
        self._reading = reading
        self._turns = turns
        self._process = asyncio.Lock()
        self._concurrency = ConcurrencyLimit("histories")  # a large one takes seconds
        self._cache = HistoryCache()

    @staticmethod
    def has(what: str) -> bool:
        """Whether `what`, an address below the table's, is that of a history."""
        return _WHAT.fullmatch(what) is not None

    @staticmethod
    def round_of(what: str) -> int | None:
        """The number of the round at the address `what`; None if it is not that of a round."""
        match = _WHAT.fullmatch(what)
        return None if match is None or match["round"] is None else int(match["round"])

    async def answer(
        self,
        connection: ClientConnection,
        request: Request,
        bundle: AsyncGenerator[str],
        what: str,
        *,
        events: int,
        download: Download,
    ) -> Response | None:
        """Send the history at the address `what` below the table's; 404 if there is none.

        `bundle` are the lines of a bundle with so many `events`, which are read when the process
        starts. Returns None if the answer was sent or the client has disconnected.
        """
        form = "phh" if what.endswith(".phh") else "text"
        kind = phh.KIND if form == "phh" else PLAIN
        try:
            made = self._cache.get(download.etag) if download.stored else None
            if made is None:
                _require_short(events, connection.limits.history)
                with self._concurrency.admitted(connection.address):
                    making = {"form": form, "language": language_for(request).tag}
                    made = await self._make(connection, bundle, making, self.round_of(what))
                if made is None:
                    return None
                if download.stored:
                    self._cache.put(download.etag, made)
            return await self._send(connection, request, made, kind, download)
        except HistoryUnavailable as error:
            return response(HTTPStatus.NOT_FOUND, f"{error}\n")

    async def _make(
        self,
        connection: ClientConnection,
        bundle: AsyncGenerator[str],
        how: dict[str, str],
        round: int | None,
    ) -> bytes | None:
        """The compressed history; None if the client disconnects."""
        await self._turns.pause(connection.budget)
        async with self._process:
            blocks = blocks_of(bundle, self._reading)
            making = partial(make_history, blocks, **how, round=round)
            return await _while_connected(connection, metered(making, connection.budget.cpu))

    async def _send(
        self,
        connection: ClientConnection,
        request: Request,
        made: bytes,
        kind: str,
        download: Download,
    ) -> Response | None:
        plain = int.from_bytes(made[-4:], "little")  # RFC 1952, ISIZE
        status, length, more = HTTPStatus.OK, plain, download.headers()
        span = span_of(request, etag=download.etag, length=plain)
        if isinstance(span, Response):
            return span
        if download.gzip:
            blocks, length = _parts(made), len(made)
        elif span is None:
            blocks = _decompressed(made)
        else:
            blocks = part_of(_decompressed(made), span)
            status, length = HTTPStatus.PARTIAL_CONTENT, span.stop - span.first
            more |= {"Content-Range": span.header}
        await stream(
            connection,
            request,
            blocks,
            turns=self._turns,
            kind=kind,
            status=status,
            length=length,
            more=more,
        )
        return None


def language_for(request: Request) -> Language:
    """The language of a history: that of the query's `lang`, or the one that the client prefers."""
    query = parse_qs(request.path.partition("?")[2])
    asked = language_of(query["lang"][0]) if "lang" in query else None
    return asked or accepted(", ".join(request.headers.get_all("Accept-Language")))


def _require_short(events: int, most: int) -> None:
    if events > most:
        raise HistoryUnavailable(
            f"This table has {events} events, and histories of more than {most} are not made here: "
            "download the table's bundle.jsonl and run `dealer history` on it."
        )


async def _while_connected(connection: ClientConnection, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`; None, and it is cancelled, if the client disconnects."""
    if connection.transport.is_closing():
        work.close()
        return None
    making = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(connection.wait_closed())
    try:
        await asyncio.wait((making, leaving), return_when=asyncio.FIRST_COMPLETED)
        return making.result() if making.done() else None
    finally:
        making.cancel()
        leaving.cancel()
        await asyncio.gather(making, leaving, return_exceptions=True)


async def _parts(packed: bytes) -> AsyncGenerator[bytes]:
    for start in range(0, len(packed), BLOCK):
        yield packed[start : start + BLOCK]


async def _decompressed(packed: bytes) -> AsyncGenerator[bytes]:
    """Decompress block by block: only the part that is being sent is in memory."""
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    while packed:
        yield unpacking.decompress(packed, BLOCK)
        packed = unpacking.unconsumed_tail
    yield unpacking.flush()
