"""`GET /feed`: the events of a service key's tables, as NDJSON or as server-sent events.

    GET /feed?after=POSITION&table=ID&type=CardDrawn&wait=0
    Authorization: Bearer dk_…

The answer stays open for what comes, unless `wait=0`. A stream that is open when its key is revoked
or when the server drains ends; the client follows again from the last position that it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qsl

from websockets.http11 import Request, Response

from dealer.errors import BadRequest
from dealer.feed.pages import Entry, FeedFilter
from dealer.feed.positions import START, Place
from dealer.gateway.clients import ClientConnection
from dealer.gateway.net.responses import response, unauthorized
from dealer.gateway.pages.streams import BLOCK, stream
from dealer.service import Service
from dealer.service.identity.service_keys import ServiceKey
from dealer.service.identity.service_tables import feed_filter

NDJSON = "application/x-ndjson"
SSE = "text/event-stream"

HEARTBEAT_SECONDS = 15.0
"""Seconds without an event after which something is sent, so that the connection stays open."""

RETRY_MS = 2000
"""Milliseconds after which a client of server-sent events connects again."""

STREAMS = 20
"""Open streams of one key; each holds a page in memory."""

PAGE = 32
"""Events of a page, about; the longest has some 100 KB."""


class Follow(NamedTuple):
    """What a request asks for; `wait` is False for what there is at present only."""

    after: str
    filter: FeedFilter
    wait: bool
    sse: bool


class FeedAnswers:
    """Answers `GET /feed`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._streams: Counter[int] = Counter()  # open ones by the number of their key

    async def answer(self, connection: ClientConnection, request: Request) -> Response | None:
        """Stream the feed, or answer why not; raises DealerError."""
        key = connection.service_key
        if key is None:
            sentence = "GET /feed needs `Authorization: Bearer` with a valid service key."
            return unauthorized(sentence)
        follow = await self._follow(request, key)
        if not follow.wait:
            await self._service.feed.scheduler.up_to_date()
        try:
            place = await self._service.feed.place(follow.after)
        except ValueError:
            raise BadRequest("`after` is not a position.") from None
        kind = SSE if follow.sse else NDJSON
        if request.method == "HEAD":
            return response(HTTPStatus.OK, b"", kind=kind)
        if self._streams[key.id] >= STREAMS:
            sentence = f"This key follows {STREAMS} feeds over HTTP already; end one of them.\n"
            return response(HTTPStatus.TOO_MANY_REQUESTS, sentence, Retry_After="10")
        self._streams[key.id] += 1
        try:
            await stream(
                connection,
                self._blocks(connection, key, follow, place),
                kind=kind,
                more={"X-Accel-Buffering": "no", "Accept-Ranges": "none"},
            )
        finally:
            self._streams[key.id] -= 1
        return None

    async def _follow(self, request: Request, key: ServiceKey) -> Follow:
        asked = parse_qsl(request.path.partition("?")[2], keep_blank_values=True)
        members = dict(asked)
        if members.keys() - {"after", "table", "type", "wait"}:
            raise BadRequest("The parameters of /feed are after, table, type and wait.")
        types = [each for name, text in asked if name == "type" for each in text.split(",")]
        table = members.get("table")
        filter = await feed_filter(self._service.log, key, table=table, types=types)
        wait = members.get("wait", "1")
        if wait not in ("0", "1"):
            raise BadRequest("`wait` is 0 or 1.")
        sse = SSE in request.headers.get("Accept", "")
        after = members.get("after", START)
        if sse:
            after = request.headers.get("Last-Event-ID") or after
        return Follow(after, filter, wait == "1", sse)

    async def _blocks(
        self, connection: ClientConnection, key: ServiceKey, follow: Follow, place: Place
    ) -> AsyncGenerator[bytes]:
        feed, head = self._service.feed, self._service.feed.head
        # No empty line after it, nor after a comment: some clients take that for an event.
        yield b"retry: %d\n" % RETRY_MS if follow.sse else b""
        head.followers += 1  # the feed keeps what comes in memory
        try:
            while self._service.service_keys.is_valid(key):
                async with connection.long_answers.permit(connection.budget):
                    page = await feed.reader.read(place, follow.filter, limit=PAGE)
                place = page.place
                # Also an empty one: then the client may be gone, or have a debt to pay.
                for block in _blocks_of(page.entries, sse=follow.sse):
                    yield block
                if page.more:
                    continue
                if head.closing or not follow.wait:
                    break
                if not await head.wait(place.seq - 1, seconds=HEARTBEAT_SECONDS):
                    yield b": heartbeat\n" if follow.sse else b"\n"
        finally:
            head.followers -= 1


def _blocks_of(entries: Iterable[Entry], *, sse: bool) -> Iterator[bytes]:
    """Blocks of about `BLOCK` bytes, one at least."""
    block = bytearray()
    for entry in entries:
        line = f"id: {entry.position}\ndata: {entry.text}\n\n" if sse else f"{entry.text}\n"
        block += line.encode()
        if len(block) >= BLOCK:
            yield bytes(block)
            block.clear()
    yield bytes(block)
