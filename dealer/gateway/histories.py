"""What was played at a table, to read: in plain words, or as a file that poker programs take."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncGenerator, Coroutine
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

from websockets.http11 import Request, Response

from dealer.errors import NoHistory
from dealer.gateway.askers import Askers
from dealer.gateway.connection import GuestConnection
from dealer.gateway.history_process import make_history
from dealer.gateway.http import BLOCK, PLAIN, blocks_of, response, stream
from dealer.gateway.turns import metered
from dealer.history import phh

_WHAT = re.compile(r"/(?:history\.txt|round-(?P<round>[1-9][0-9]{0,9})\.(?P<form>txt|phh))")

T = TypeVar("T")


class Histories:
    """Answers `/history.txt`, `/round-<n>.txt` and `/round-<n>.phh` of a table.

    Each is made from a bundle that is verified first, by a process of its own and one at a time,
    which ends when the client has disconnected; so much memory is used at the most. `reading` is
    held while a part of a bundle is read, see `blocks_of`.
    """

    def __init__(self, reading: asyncio.Lock) -> None:
        self._reading = reading
        self._turn = asyncio.Lock()
        self._askers = Askers("histories")  # a large table's takes a second or more

    @staticmethod
    def has(what: str) -> bool:
        return _WHAT.fullmatch(what) is not None

    async def answer(
        self,
        connection: GuestConnection,
        request: Request,
        bundle: AsyncGenerator[str],
        what: str,
        *,
        events: int,
    ) -> Response | None:
        """Send the history at this address below the table's, or say why there is none.

        The lines of `bundle`, which has so many `events`, are asked for when it is its turn. None
        if the answer was sent or the client has disconnected.
        """
        match = _WHAT.fullmatch(what)
        number, given = (None, None) if match is None else match.group("round", "form")
        round, form = None if number is None else int(number), "phh" if given == "phh" else "text"
        kind = phh.KIND if form == "phh" else PLAIN
        try:
            _require_short(events, connection.door.floor.limits.history)
            with self._askers.admitted(connection.address):
                await connection.door.floor.pump.turns.pause(connection.budget)
                async with self._turn:
                    blocks = blocks_of(bundle, self._reading)
                    making = partial(make_history, blocks, form=form, round=round)
                    made = await _while_there(connection, metered(making, connection.budget.cpu))
                if made is None:
                    return None
                length = int.from_bytes(made[-4:], "little")  # RFC 1952, ISIZE
                if request.method == "HEAD":
                    return response(HTTPStatus.OK, b"", kind=kind, Content_Length=str(length))
                await stream(connection, request, _unpacked(made), kind=kind, length=length)
        except NoHistory as error:
            return response(HTTPStatus.NOT_FOUND, f"{error}\n")
        return None


def _require_short(events: int, most: int) -> None:
    if events > most:
        raise NoHistory(
            f"This table has {events} events, and histories of more than {most} are not made here: "
            "download the table's bundle.jsonl and run `dealer history` on it."
        )


async def _while_there(connection: GuestConnection, work: Coroutine[Any, Any, T]) -> T | None:
    """What `work` gives; None, and it is cancelled, if the client disconnects meanwhile."""
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


async def _unpacked(packed: bytes) -> AsyncGenerator[bytes]:
    """What was compressed, block by block: only what is being sent is there in full."""
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    while packed:
        yield unpacking.decompress(packed, BLOCK)
        packed = unpacking.unconsumed_tail
    yield unpacking.flush()
