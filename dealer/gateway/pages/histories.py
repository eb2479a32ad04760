"""Histories of a table over HTTP, as sentences.

A child process makes each, `python -m dealer.history`: verifying a bundle takes seconds of
processor time and two kilobytes of memory per event, for a request that any client may send. So it
neither delays players nor enlarges the server.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import zlib
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs

from websockets.http11 import Request, Response

from dealer.errors import DatabaseDamaged, HistoryUnavailable, Unavailable
from dealer.gateway.clients import ClientConnection
from dealer.gateway.net.responses import PLAIN, response
from dealer.gateway.pages.downloads import Download, HistoryCache, part_of, send_part
from dealer.gateway.pages.ranges import Span
from dealer.gateway.pages.streams import BLOCK, ConcurrencyLimit, blocks_of, stream
from dealer.gateway.rate_limit.cpu_time import metered
from dealer.history.pile_titles import GameTitles
from dealer.languages.language import Language, accepted, language_of
from dealer.packs.catalogue import Catalogue

_WHAT = re.compile(r"/(?:history|round-(?P<round>[1-9][0-9]{0,9}))\.txt")

SECONDS = 120.0
"""Timeout of the process."""

NICENESS = 10
"""Niceness of the process, so that it does not slow the server down."""

_PACKAGES = str(Path(__file__).parents[3])

NO_HISTORY = 1
"""Exit code if there is no such history; standard error has the reason."""

T = TypeVar("T")


class Histories:
    """Answers `/history.txt` and `/round-<n>.txt` of a table.

    Each is made from a bundle, which is verified first, by a child process that ends when the
    client disconnects; one at a time, which bounds the memory. `reading` is held while a part of a
    bundle is read, see `blocks_of`.
    """

    def __init__(self, reading: asyncio.Lock, catalogue: Catalogue) -> None:
        self._reading = reading
        self._catalogue = catalogue
        self._process = asyncio.Lock()
        self._concurrency = ConcurrencyLimit("histories")  # a large one takes seconds
        self._cache = HistoryCache()

    @staticmethod
    def has(what: str) -> bool:
        """Whether `what`, an address below the table's, leads to a history."""
        return _WHAT.fullmatch(what) is not None

    @staticmethod
    def round_of(what: str) -> int | None:
        """The number of the round at the address `what`; None if there is none."""
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
        try:
            made = self._cache.get(download.etag) if download.stored else None
            if made is None:
                _require_short(events, connection.limits.history)
                with self._concurrency.admitted(connection.address):
                    tag, round = language_for(request).tag, self.round_of(what)
                    made = await self._make(connection, bundle, tag, round)
                if made is None:
                    return None
                if download.stored:
                    self._cache.put(download.etag, made)
            return await self._send(connection, request, made, download)
        except HistoryUnavailable as error:
            return response(HTTPStatus.NOT_FOUND, f"{error}\n")

    async def _make(
        self,
        connection: ClientConnection,
        bundle: AsyncGenerator[str],
        language: str,
        round: int | None,
    ) -> bytes | None:
        """The compressed history; None if the client disconnects."""
        await connection.long_answers.pause(connection.budget)
        async with self._process:
            blocks = blocks_of(bundle, self._reading)
            making = partial(
                make_history,
                blocks,
                language=language,
                round=round,
                games=self._catalogue.pile_titles(language),
            )
            return await _while_connected(connection, metered(making, connection.budget))

    async def _send(
        self,
        connection: ClientConnection,
        request: Request,
        made: bytes,
        download: Download,
    ) -> Response | None:
        if not download.gzip:
            plain = int.from_bytes(made[-4:], "little")  # RFC 1952, ISIZE
            pieces = partial(_plain, made)
            return await send_part(connection, request, pieces, plain, download, kind=PLAIN)
        blocks, more = _parts(made), download.headers()
        await stream(connection, blocks, kind=PLAIN, length=len(made), more=more)
        return None


def language_for(request: Request) -> Language:
    """The language of a history: the query's `lang`, or the one that the client prefers."""
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


def _plain(packed: bytes, span: Span) -> AsyncGenerator[bytes]:
    return part_of(_decompressed(packed), span)


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


async def make_history(
    blocks: AsyncIterator[bytes],
    *,
    language: str,
    round: int | None,
    games: GameTitles,
) -> bytes:
    """The history of the bundle that consists of `blocks`, compressed with gzip.

    `language` is the tag of a language, and `games` has the titles of piles in it, by game and by
    the plain name of the pile. Raises HistoryUnavailable if there is none, DatabaseDamaged if the
    bundle fails verification, Unavailable after `SECONDS`. Cancelling it ends the process.
    """
    arguments = [language, *([] if round is None else [str(round)])]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "dealer.history", *arguments),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={"PYTHONPATH": _PACKAGES},  # without the secrets in ours
    )
    reading = asyncio.gather(_read(process.stdout), _read(process.stderr))
    try:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        async with asyncio.timeout(SECONDS):
            await _feed(process, games, blocks)
            made, said = await reading
            code = await process.wait()
    except TimeoutError:
        raise Unavailable("This history took too long to make; try again later.") from None
    finally:
        await _end(process)
        await asyncio.gather(reading, return_exceptions=True)
    if code == NO_HISTORY:
        raise HistoryUnavailable(said.decode())
    if code:
        raise DatabaseDamaged(said.decode(errors="replace")[-1000:])
    return made


async def _feed(process: Process, games: GameTitles, blocks: AsyncIterator[bytes]) -> None:
    assert process.stdin is not None
    # A process that ended early reports the reason itself.
    with suppress(ConnectionError):
        process.stdin.write(json.dumps(games).encode() + b"\n")
        async for block in blocks:
            process.stdin.write(block)
            await process.stdin.drain()
    process.stdin.close()


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    assert stream is not None
    return await stream.read()


async def _end(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
