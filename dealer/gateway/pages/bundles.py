"""Bundles of tables over HTTP; a download of one that cannot change may be resumed.

`Range: bytes=N-` gets the bytes from N on (RFC 9110, section 14), if `If-Range` has the strong tag
or is missing. They are those without compression, whatever the client accepts. Any other range is
ignored, so that the whole is sent.

The bundle of the first N events (`?size=N`, a size that the house has signed) changes only when one
of its checkpoints is cosigned; so does a closed table's longest one. Their tag
is a hash of their bytes, so it is the same on every node, before and after the table is archived.
It is computed, with the length, by reading the bundle once; the next request finds both here. A
cosignature that arrives meanwhile is left out: it is in the next one. The bundle of an open table
grows: it is sent without a tag, and `Content-Location` names the one of fixed size that it is.

A client may pause its download for the limit `idle`, and read slowly: while it reads nothing,
nothing is read from the log, and no more than a few blocks are in memory.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from array import array
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from typing import BinaryIO, NamedTuple
from urllib.parse import parse_qs

from websockets.http11 import Request, Response

from dealer.errors import BadRequest, UnknownTable, amount
from dealer.gateway.clients import ClientConnection
from dealer.gateway.net.responses import response
from dealer.gateway.pages import streams
from dealer.gateway.pages.static_files import accepts_gzip
from dealer.proof.bundle import checkpoint
from dealer.proof.opened import has_part
from dealer.service import LiveTable, Service
from dealer.service.tables import archive as archived
from dealer.service.tables.archive import ArchiveRecord

JSONL = "application/jsonl; charset=utf-8"

SLOWEST = 1024
"""Bytes per second that a reader has to take; a full write buffer may wait so much longer."""

MEASURED = 1024
"""Bundles whose tag and length are kept."""

NOTE = '{"checkpoint":'
OPENING = '{"opened":'
"""The beginnings of the lines of signed notes and of openings."""

Lines = Callable[[], AsyncGenerator[str]]
Pieces = Callable[[int], AsyncGenerator[bytes]]
"""Makes the bytes from an index on."""

_REST = re.compile(r"bytes=([0-9]{1,18})-", re.IGNORECASE)
_SIZE = re.compile(r"[1-9][0-9]{0,14}")


class Measured(NamedTuple):
    """The strong tag of a bundle, its length in bytes, and the lines of each of its notes."""

    etag: str
    length: int
    note_lines: array[int] = array("I")


class Bundles:
    """Answers `/bundle.jsonl` of a table. `reading` is as in `blocks_of`.

    The methods return None if the answer was sent or the client has disconnected.
    """

    def __init__(self, service: Service, reading: asyncio.Lock) -> None:
        self._service = service
        self._reading = reading
        self._measured = OrderedDict[tuple[bytes, int, int], Measured]()

    async def of_live(
        self,
        connection: ClientConnection,
        request: Request,
        live_table: LiveTable,
        *,
        writing: Callable[[], None],
    ) -> Response | None:
        """Send the bundle of a table in the log; `writing` is as in `Checkpoints.checkpoint`."""
        table = live_table.table
        size, public = _size_in(request), table.rules.watched
        fixed = size is not None or (table.closed and streams.is_settled(live_table))
        if size is None:
            size, _ = await self._service.checkpoints.checkpoint(live_table, writing=writing)
        else:
            await self._require_signed(live_table, size)
        lines: Lines = partial(self._service.bundle, live_table, size=size)
        if not fixed:
            # Relative, so that it holds behind a proxy that serves this under a path.
            where = {"Content-Location": f"bundle.jsonl?size={size}"}
            packed = public and accepts_gzip(request)
            more = streams.Download(gzip=packed).headers() | where
            blocks = streams.blocks_of(lines(), self._reading)
            await streams.stream(
                connection,
                streams.compressed(blocks) if packed else blocks,
                kind=JSONL,
                more=more,
                seconds=_longest_pause(connection),
            )
            return None
        count = await streams.cosigned(self._service, live_table)
        key = (live_table.id, size, count)
        if key not in self._measured:
            measured = await self._measure(connection, lines)
            if measured is None:
                return None
            self._measured[key] = measured
            if len(self._measured) > MEASURED:
                self._measured.popitem(last=False)
        measured = self._measured[key]
        pieces = self._pieces(partial(_as_measured, lines, measured))
        return await _send(connection, request, measured, pieces, public=public)

    async def of_archived(
        self,
        connection: ClientConnection,
        request: Request,
        kept: ArchiveRecord,
        file: BinaryIO,
        *,
        public: bool,
    ) -> Response | None:
        """Send the bundle of an archived table, whose record names the open `file`."""
        size = _size_in(request)
        # The row's length may have been altered; its hash is compared when the file is opened.
        length = os.fstat(file.fileno()).st_size
        measured: Measured | None = Measured(_tag(kept.sha256.hex()), length)
        pieces: Pieces = partial(_file_from, file)
        if size is not None and size != kept.size:
            lines: Lines = partial(_first_events, file, size)
            measured = await self._measure(connection, lines)
            pieces = self._pieces(lines)
        if measured is None:
            return None
        return await _send(connection, request, measured, pieces, public=public)

    async def _require_signed(self, live_table: LiveTable, size: int) -> None:
        """Raise UnknownTable unless the house has signed the table at this size."""
        sizes = await self._service.log.signed_sizes(live_table.id)
        if size not in sizes:
            raise _unsigned(size, max((each for each in sizes if each < size), default=0))

    async def _measure(self, connection: ClientConnection, lines: Lines) -> Measured | None:
        """Read the whole bundle once; None if the client disconnects."""
        digest, length, signatures = sha256(), 0, array("I")
        counted = _counting(lines(), signatures)
        async with aclosing(streams.blocks_of(counted, self._reading)) as blocks:
            async for block in blocks:
                if connection.transport.is_closing():
                    return None
                digest.update(block)
                length += len(block)
                await connection.long_answers.pause(connection.budget)
        return Measured(_tag(digest.hexdigest()), length, signatures)

    def _pieces(self, lines: Lines) -> Pieces:
        return lambda first: _from_byte(streams.blocks_of(lines(), self._reading), first)


async def _send(
    connection: ClientConnection,
    request: Request,
    measured: Measured,
    pieces: Pieces,
    *,
    public: bool,
) -> Response | None:
    """Send a bundle that cannot change, or the rest of it."""
    first = first_byte(request, measured)
    packed = public and first is None and accepts_gzip(request)
    download = streams.Download(measured.etag, packed, stored=public)
    if answer := download.unchanged(request):
        return answer
    more, status = download.headers() | {"Accept-Ranges": "bytes"}, HTTPStatus.OK
    if first is not None and first >= measured.length:
        sentence = f"This has {measured.length} bytes, and the range begins behind them.\n"
        return response(
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
            sentence,
            Content_Range=f"bytes */{measured.length}",
        )
    if first is not None:
        more["Content-Range"] = f"bytes {first}-{measured.length - 1}/{measured.length}"
        status = HTTPStatus.PARTIAL_CONTENT
    blocks = pieces(first or 0)
    await streams.stream(
        connection,
        streams.compressed(blocks) if packed else blocks,
        kind=JSONL,
        status=status,
        length=None if packed else measured.length - (first or 0),
        more=more,
        seconds=_longest_pause(connection),
    )
    return None


def first_byte(request: Request, measured: Measured) -> int | None:
    """The byte from which on the client wants the rest of this bundle; None for the whole."""
    asked = _REST.fullmatch(", ".join(request.headers.get_all("Range")).strip())
    condition = request.headers.get("If-Range", measured.etag)
    if request.method != "GET" or asked is None or condition.strip() != measured.etag:
        return None
    return int(asked[1])


async def _from_byte(blocks: AsyncGenerator[bytes], first: int) -> AsyncGenerator[bytes]:
    """The bytes from an index on; a block before it is taken and counted, and is empty here."""
    async with aclosing(blocks):
        async for block in blocks:
            yield block[first:]
            first = max(first - len(block), 0)


def _longest_pause(connection: ClientConnection) -> float:
    """Seconds after which a reader that takes nothing is disconnected."""
    return connection.limits.idle + connection.limits.buffer / SLOWEST


def _size_in(request: Request) -> int | None:
    """The number of events that the query asks for; None if it does not."""
    asked = parse_qs(request.path.partition("?")[2], keep_blank_values=True).get("size")
    if asked is None:
        return None
    if len(asked) > 1 or not _SIZE.fullmatch(asked[0]):
        raise BadRequest("`size` is a number of events: of the first ones, from 1 on.")
    return int(asked[0])


def _unsigned(size: int, before: int) -> UnknownTable:
    return UnknownTable(
        f"The house has signed no checkpoint of this table at {amount(size, 'event')}; the "
        f"last one before is at {before}."
    )


async def _counting(lines: AsyncGenerator[str], note_lines: array[int]) -> AsyncGenerator[str]:
    """The lines; the number of lines of each note is added to `note_lines`."""
    async with aclosing(lines):
        async for line in lines:
            if line.startswith(NOTE):
                note_lines.append(json.loads(line)["checkpoint"].count("\n"))
            yield line


async def _as_measured(lines: Lines, measured: Measured) -> AsyncGenerator[str]:
    """The lines of a bundle as they were measured: cosignatures that came later are left out.

    The log adds them at the end of a note.
    """
    note_lines = iter(measured.note_lines)
    async with aclosing(lines()) as found:
        async for line in found:
            if not line.startswith(NOTE):
                yield line
                continue
            note, count = json.loads(line)["checkpoint"], next(note_lines, 0)
            kept = note.split("\n")[:count]
            yield line if note.count("\n") == count else checkpoint("\n".join([*kept, ""]))


def _tag(digest: str) -> str:
    return f'"{digest[:32]}"'


async def _first_events(file: BinaryIO, size: int) -> AsyncGenerator[str]:
    """The lines of the bundle of the first events of an archived one.

    Raises UnknownTable at the end if it has no checkpoint of this size, or if a name or text in
    these events is withheld: that is no fault only of a closed table.
    """
    number = newest = withheld = 0
    async for line in archived.lines_of(file):
        if line.startswith(NOTE):
            upto = int(json.loads(line)["checkpoint"].split("\n")[1])
            if upto > size:
                continue
            newest = upto
        elif line.startswith(OPENING):
            if json.loads(line)["version"] > size:
                continue
            withheld -= 1
        elif number > size:
            continue
        elif number:
            withheld += has_part(json.loads(line))
        number += 1
        yield line
    if newest != size:
        raise _unsigned(size, newest)
    if withheld:
        raise UnknownTable(
            "A name or text of this table is withheld: only its whole bundle can be verified."
        )


async def _file_from(file: BinaryIO, first: int) -> AsyncGenerator[bytes]:
    """The bytes of a file from an index on."""
    await asyncio.to_thread(file.seek, first)
    while block := await asyncio.to_thread(file.read, streams.BLOCK):
        yield block
