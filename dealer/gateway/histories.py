"""What was played at a table, to read: in plain words, or as a file that poker programs take."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from http import HTTPStatus

from websockets.http11 import Response

from dealer.errors import NoHistory
from dealer.gateway.askers import Askers
from dealer.gateway.connection import GuestConnection
from dealer.gateway.http import PLAIN, response
from dealer.history import phh, text
from dealer.history.story import Game

_WHAT = re.compile(r"/(?:history\.txt|round-(?P<round>[1-9][0-9]{0,9})\.(?P<form>txt|phh))")


class Histories:
    """Answers `/history.txt`, `/round-<n>.txt` and `/round-<n>.phh` of a table.

    Each is made afresh from a bundle that is verified first, beside the event loop and one at a
    time: reading old games must not slow those that are played. Nothing is made for somebody who
    has hung up meanwhile.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._askers = Askers("histories")  # a large table's takes a second or more

    @staticmethod
    def has(what: str) -> bool:
        return _WHAT.fullmatch(what) is not None

    async def answer(
        self, connection: GuestConnection, bundle: AsyncIterator[str], what: str
    ) -> Response | None:
        """The history at this address below the table's, or why there is none just now, or ever.

        The lines of `bundle` are asked for when it is its turn. None if who asked has hung up.
        """
        match = _WHAT.fullmatch(what)
        number, form = (None, None) if match is None else match.group("round", "form")
        round, as_phh = None if number is None else int(number), form == "phh"
        try:
            with self._askers.admitted(connection.address):
                async with self._turn:
                    if connection.transport.is_closing():
                        return None
                    lines = [line async for line in bundle]
                    made = await asyncio.to_thread(_make, lines, round=round, as_phh=as_phh)
        except NoHistory as error:
            return response(HTTPStatus.NOT_FOUND, f"{error}\n")
        return response(HTTPStatus.OK, made, kind=phh.KIND if as_phh else PLAIN)


def _make(lines: list[str], *, round: int | None, as_phh: bool) -> str:
    game = Game.read(lines)
    if as_phh and round is not None:
        return phh.write(game, round=round)
    return "".join(f"{line}\n" for line in text.write(game, round=round))
