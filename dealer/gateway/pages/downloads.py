"""Downloads of tables: compressed if the client accepts it, with a tag and ranges if they cannot
change, and the histories of these kept for the next client.

The histories of a closed round and of a closed table never change; bundles are described in
`bundles.py`, tags and ranges in `ranges.py`. Downloads of private tables are neither compressed
(BREACH: they are secret, and players choose names in them) nor stored by clients.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from hashlib import sha256
from http import HTTPStatus
from typing import NamedTuple

from websockets.http11 import Request, Response

from dealer.eventlog.rows import leaf_of
from dealer.gateway.clients import ClientConnection
from dealer.gateway.net.responses import response
from dealer.gateway.pages.ranges import Span, asks_range, is_known, span_of, weak
from dealer.gateway.pages.static_files import REVALIDATE, accepts_gzip
from dealer.gateway.pages.streams import stream
from dealer.service import LiveTable, Service
from dealer.version import running_version

Pieces = Callable[[Span], AsyncGenerator[bytes]]
"""Makes the bytes of a span."""

CACHED = 8 * 2**20
"""Bytes of compressed histories that are kept."""

CACHED_EACH = 2**20
"""Bytes above which a compressed history is not kept."""


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
        return more | {"Vary": self.vary, "Accept-Ranges": "bytes" if self.etag else "none"}

    def unchanged(self, request: Request) -> Response | None:
        """304 if the client has this content; None otherwise."""
        if not is_known(request, self.etag):
            return None
        return response(HTTPStatus.NOT_MODIFIED, b"", **self._replace(gzip=False).headers())


HISTORY_VARIES = "Accept-Encoding, Accept-Language"


def takes_gzip(request: Request) -> bool:
    """Whether the answer is compressed: a range is one of the plain bytes."""
    return accepts_gzip(request) and not asks_range(request)


async def history_download(
    service: Service, live_table: LiveTable, request: Request, what: str, *, round: int | None
) -> Download:
    """How to send the history of this table at the address `what`, of all or of one `round`."""
    table = live_table.table
    if not table.rules.watched:
        return Download(vary=HISTORY_VARIES)
    content: str | None = None
    if is_settled(live_table):
        if round is not None:
            content = await _closed_round(service, live_table, round)
        elif table.closed:
            content = f"{await cosigned(service, live_table)} {live_table.leaf}"
    packed, tag = takes_gzip(request), ""
    if content is not None:
        tag = history_tag(what, content)
    return Download(tag, packed, stored=content is not None, vary=HISTORY_VARIES)


def history_tag(what: str, content: str) -> str:
    """The tag of the history `what` that this version makes of `content`, which never changes."""
    digest = sha256(f"{running_version()} {what} {content}".encode()).hexdigest()[:32]
    return f'"{digest}"'


def is_settled(live_table: LiveTable) -> bool:
    """Whether the log has the whole state: an event that is not on disk is not final."""
    return live_table.committed == live_table.table.version and not live_table.reloading


async def cosigned(service: Service, live_table: LiveTable) -> int:
    """The count that grows with each cosignature of one of the table's checkpoints."""
    found = await service.log.heads_and_cosigned([live_table.id])
    return found.get(live_table.id, (0, 0))[1]


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


async def send_part(
    connection: ClientConnection,
    request: Request,
    pieces: Pieces,
    length: int,
    download: Download,
    *,
    kind: str,
    seconds: float | None = None,
) -> Response | None:
    """Send what has so many bytes, or the range that is asked for; `pieces` makes those of a span.

    Returns the answer if the client has all of it, and to a range that there is not; `seconds`
    as of `stream`.
    """
    if answer := download.unchanged(request):
        return answer
    span = span_of(request, etag=download.etag, length=length)
    if isinstance(span, Response):
        return span
    more, status = download.headers(), HTTPStatus.OK
    if span is not None:
        more["Content-Range"] = span.header
        status = HTTPStatus.PARTIAL_CONTENT
    whole = span or Span(0, length, length)
    blocks = pieces(whole)
    await stream(
        connection,
        compressed(blocks) if download.gzip else blocks,
        kind=kind,
        status=status,
        length=None if download.gzip else whole.stop - whole.first,
        more=more,
        seconds=seconds,
    )
    return None


async def compressed(blocks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The blocks as one gzip stream; holds no more than a block."""
    packing = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    async with aclosing(blocks):
        async for block in blocks:
            yield packing.compress(block)
    yield packing.flush()


async def part_of(blocks: AsyncGenerator[bytes], span: Span) -> AsyncGenerator[bytes]:
    """The bytes of this span; a block before it is taken and counted, and is empty here."""
    at = 0
    async with aclosing(blocks):
        async for block in blocks:
            start, at = at, at + len(block)
            yield block[max(span.first - start, 0) : max(span.stop - start, 0)]
            if at >= span.stop:
                return
