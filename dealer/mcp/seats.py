"""The seats of one agent: what its tools do, by the Python client.

The connection has only the rights of the agent's own seats, so that this process never has a card
that they may not see. Tokens, random bytes and the verified log position are stored before they are
used: an agent that was killed continues in its seats.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from pathlib import Path
from typing import Any, Literal

from dealer.bots.links import TableLink, read_link
from dealer.client import Happened, House, RemoteTable, connect
from dealer.errors import BadRequest, BadToken, DealerError
from dealer.mcp.evidence import evidence_of
from dealer.mcp.memory import Memory
from dealer.mcp.views import OF_SHUFFLES, Members, event_view, is_turn, table_view

EVENTS_MAX = 5_000
"""Newest events of a table that are kept for `wait`, without those that only shuffles need."""

WAIT_MAX = 300.0
"""Seconds that one `wait` takes at most."""


class Seats:
    """The seats at the tables of one server (`ws://…/ws`), stored in `folder`.

    `name` is the player's name if `sit` is given none.
    """

    def __init__(self, server: str, folder: Path, *, name: str) -> None:
        self._server = server
        self._name = name
        self._memory = Memory(folder, server)
        self._house: House | None = None
        self._opening = asyncio.Lock()
        self._tables: dict[str, RemoteTable] = {}
        self._events: dict[str, deque[Happened]] = defaultdict(lambda: deque(maxlen=EVENTS_MAX))

    async def close(self) -> None:
        """Close the connection; the seats are kept, and the next call opens another one."""
        house, self._house = self._house, None
        self._tables.clear()
        self._events.clear()
        if house is not None:
            await house.close()

    async def list_tables(self) -> Members:
        """The tables that the server lists publicly, and the one that was used last."""
        house = await self._connected()
        return {"tables": await house.tables(), "current": self._memory.table}

    async def sit(self, table: str, *, name: str | None = None, seat: int | None = None) -> Members:
        """Take a seat at a table, given by its id or a link; or continue in its own seat."""
        link = read_link(table, server=self._server)
        if link.server != self._server:
            raise BadRequest(f"This agent plays at {self._server}; that link is to {link.server}.")
        house = await self._connected()
        remote = await self._join(house, link, name or self._name, seat)
        if not self._memory.seen(remote.id):  # `wait` gives what happens from now on
            self._memory.store(remote.id, seen=remote.version)
        return table_view(remote)

    async def look(self, table: str | None = None) -> Members:
        """The table as the agent's seat sees it."""
        return table_view(await self._at(table))

    async def wait(
        self, table: str | None = None, *, seconds: float = 30.0, after: int | None = None
    ) -> Members:
        """Wait until there are events, or until it is the agent's turn; `events`, then as `look`.

        The events are those after version `after`: by default after those that `wait` has given,
        also before a restart. `events` is empty after `seconds` without any.
        """
        remote = await self._at(table)
        start = self._memory.seen(remote.id) if after is None else after
        if not is_turn(remote):
            try:
                async with asyncio.timeout(min(max(seconds, 0.0), WAIT_MAX)):
                    await remote.until(lambda _: bool(self._after(remote, start)))
            except TimeoutError:
                pass
        events = self._after(remote, start)
        self._memory.store(remote.id, seen=remote.version)
        return {"events": events} | table_view(remote)

    async def draw(
        self, count: int = 1, *, pile: str | None = None, table: str | None = None
    ) -> Members:
        """Draw from the deck, or from a pile, into the seat's hand."""
        remote = await self._at(table)
        drawn = await (remote.draw(count) if pile is None else remote.pile_draw(pile, count))
        return {"drawn": drawn, "my_hand": remote.hand, "version": remote.version}

    async def play(
        self,
        cards: list[str],
        *,
        pile: str | None = None,
        face_up: bool = True,
        table: str | None = None,
    ) -> Members:
        """Move cards of the seat's hand onto a pile; onto `discard` by the rule for discarding."""
        remote = await self._at(table)
        face: Literal["up", "down"] = "up" if face_up else "down"
        if pile == "discard":
            await remote.discard(cards, face=face)
        else:
            await remote.play(cards, pile=pile, face=face)
        return {"played": cards, "face": face, "my_hand": remote.hand, "version": remote.version}

    async def note(self, kind: str, text: str, *, table: str | None = None) -> Members:
        """Add a note to the log: a turn marker, a bet, a sentence."""
        remote = await self._at(table)
        await remote.note(kind, text)
        return {"version": remote.version}

    async def leave(self, table: str | None = None) -> Members:
        """Leave the seat."""
        remote = await self._at(table)
        await remote.leave()
        self._tables.pop(remote.id, None)
        return {"table": remote.id, "left": True}

    async def evidence(self, table: str | None = None) -> Members:
        """Verify the table's whole log, and say where others can check it."""
        return await evidence_of(await self._at(table), self._server)

    async def _connected(self) -> House:
        """The connection, opened at the first use, and again if it has ended permanently."""
        async with self._opening:
            if self._house is None:
                self._house = await connect(
                    self._server,
                    store=self._memory.tables,
                    table=self._memory.table,
                    on_event=self._on_event,
                )
            return self._house

    async def _join(
        self, house: House, link: TableLink, name: str, seat: int | None
    ) -> RemoteTable:
        here = self._tables.get(link.table)
        if here is not None and here.seat is not None:
            return here
        if link.token is not None:
            return self._use(await house.resume(link.table, token=link.token))
        remote = await house.join(
            link.table, name=name, seat=seat, invite=link.invite, ticket=link.ticket, bot=True
        )
        return self._use(remote)

    async def _at(self, table: str | None) -> RemoteTable:
        """The table in use, where the agent has a seat; after a restart its seat is resumed."""
        chosen = table or self._memory.table
        if chosen is None:
            raise BadRequest("Sit down at a table first: use `list_tables`, then `sit`.")
        link = read_link(chosen, server=self._server)
        remote = self._tables.get(link.table)
        if remote is not None and remote.seat is not None:
            return remote
        try:
            return self._use(await (await self._connected()).resume(link.table))
        except BadToken:
            raise BadToken("You have no seat at that table, or no longer: use `sit`.") from None

    def _use(self, remote: RemoteTable) -> RemoteTable:
        self._tables[remote.id] = remote
        self._memory.store(remote.id)
        return remote

    def _on_event(self, table: str, happened: Happened) -> None:
        if not isinstance(happened.event, OF_SHUFFLES):
            self._events[table].append(happened)

    def _after(self, remote: RemoteTable, version: int) -> list[dict[str, Any]]:
        return [event_view(event) for event in self._events[remote.id] if event.version > version]


def sentence_of(error: DealerError) -> str:
    """An error for the agent: a refusal has a reason for programs, too."""
    reason = getattr(error, "reason", None)
    return str(error) if reason is None else f"{error} ({reason})"
