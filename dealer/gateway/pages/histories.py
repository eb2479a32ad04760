"""Histories of a table over HTTP, as sentences.

Those of a closed round and of a closed table never change, and are kept for the next client.

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
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import suppress
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs

from websockets.http11 import Request, Response

from dealer.errors import DatabaseDamaged, HistoryUnavailable, Unavailable
from dealer.eventlog.rows import leaf_of
from dealer.gateway.clients import ClientConnection
from dealer.gateway.net.responses import PLAIN, response
from dealer.gateway.pages import streams as page_streams
from dealer.gateway.pages.static_files import accepts_gzip
from dealer.gateway.pages.streams import stream
from dealer.gateway.rate_limit.cpu_time import metered
from dealer.history.pile_titles import GameTitles
from dealer.languages.language import Language, accepted, language_of
from dealer.packs.catalogue import Catalogue
from dealer.service import LiveTable, Service
from dealer.version import running_version

_WHAT = re.compile(r"/(?:history|round-(?P<round>[1-9][0-9]{0,9}))\.txt")

SECONDS = 120.0
"""Timeout of the process."""

NICENESS = 10
"""Niceness of the process, so that it does not slow the server down."""

_PACKAGES = str(Path(__file__).parents[3])

NO_HISTORY = 1
"""Exit code if there is no such history; standard error has the reason."""

CACHED = 8 * 2**20
"""Bytes of compressed histories that are kept."""

CACHED_EACH = 2**20
"""Bytes above which a compressed history is not kept."""

HISTORY_VARIES = "Accept-Encoding, Accept-Language"

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
        self._concurrency = page_streams.ConcurrencyLimit("histories")  # a large one takes seconds
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
        download: page_streams.Download,
    ) -> Response | None:
        """Send the history at the address `what` below the table's; 404 if there is none.

        `bundle` are the lines of a bundle with so many `events`, which are read when the process
        starts. Returns None if the answer was sent or the client has disconnected.
        """
        if answer := download.unchanged(request):
            return answer
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
            plain = int.from_bytes(made[-4:], "little")  # RFC 1952, ISIZE
            await stream(
                connection,
                _parts(made) if download.gzip else _decompressed(made),
                kind=PLAIN,
                length=len(made) if download.gzip else plain,
                more=download.headers(),
            )
            return None
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
            blocks = page_streams.blocks_of(bundle, self._reading)
            making = partial(
                make_history,
                blocks,
                language=language,
                round=round,
                games=self._catalogue.pile_titles(language),
            )
            return await _while_connected(connection, metered(making, connection.budget))


async def history_download(
    service: Service, live_table: LiveTable, request: Request, what: str, *, round: int | None
) -> page_streams.Download:
    """How to send the history of this table at the address `what`, of all or of one `round`."""
    table = live_table.table
    if not table.rules.watched:
        return page_streams.Download(vary=HISTORY_VARIES)
    content: str | None = None
    if page_streams.is_settled(live_table):
        if round is not None:
            content = await _closed_round(service, live_table, round)
        elif table.closed:
            content = f"{await page_streams.cosigned(service, live_table)} {live_table.leaf}"
    packed, tag = accepts_gzip(request), ""
    if content is not None:
        tag = history_tag(what, content)
    return page_streams.Download(tag, packed, stored=content is not None, vary=HISTORY_VARIES)


def history_tag(what: str, content: str) -> str:
    """The tag of the history `what` that this version makes of `content`, which never changes."""
    digest = sha256(f"{running_version()} {what} {content}".encode()).hexdigest()[:32]
    return f'"{digest}"'


async def _closed_round(service: Service, live_table: LiveTable, number: int) -> str | None:
    """The leaf of the RoundOpened, which no other round has; None unless the round is closed."""
    table = live_table.table
    is_open = table.round is not None and table.round.number == number
    if is_open or not 1 <= number <= len(table.round_versions):
        return None
    opened = table.round_versions[number - 1]
    rows = await service.log.read(live_table.id, after=opened - 1, limit=1)
    return leaf_of(live_table.id, rows[0]) if rows else None


class HistoryCache:
    """Compressed histories that cannot change, by ETag: at most `CACHED` bytes of them."""

    def __init__(self) -> None:
        self.bytes = 0
        self._histories: OrderedDict[str, bytes] = OrderedDict()

    def get(self, etag: str) -> bytes | None:
        """A history, which counts as used."""
        if etag in self._histories:
            self._histories.move_to_end(etag)
        return self._histories.get(etag)

    def put(self, etag: str, packed: bytes) -> None:
        """Keep a history, unless it is large or may change; the least recently used ones go."""
        if not etag or len(packed) > CACHED_EACH or etag in self._histories:
            return
        self._histories[etag] = packed
        self.bytes += len(packed)
        while self.bytes > CACHED:
            _, gone = self._histories.popitem(last=False)
            self.bytes -= len(gone)


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


async def _parts(packed: bytes) -> AsyncGenerator[bytes]:
    for start in range(0, len(packed), page_streams.BLOCK):
        yield packed[start : start + page_streams.BLOCK]


async def _decompressed(packed: bytes) -> AsyncGenerator[bytes]:
    """Decompress block by block: only the part that is being sent is in memory."""
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    while packed:
        yield unpacking.decompress(packed, page_streams.BLOCK)
        packed = unpacking.unconsumed_tail
    yield unpacking.flush()


async def make_history(
    blocks: AsyncIterator[bytes], *, language: str, round: int | None, games: GameTitles
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
