"""The seats of one agent: its tools, by the Python client.

Each public method of `Seats` but `close` is a tool, whose signature and docstring the agent reads.

The connection has only the rights of the agent's own seats, so that this process never has a card
that they may not see. Tokens, random bytes and the verified log position are stored before they are
used: an agent that was killed continues in its seats.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import defaultdict, deque
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dealer.bots.links import TableLink, read_link
from dealer.client import House, RemoteTable, TableEvent, connect
from dealer.errors import BadRequest, BadToken, ConfigurationError
from dealer.mcp.views import OF_SHUFFLES, Members, event_view, evidence_of, is_turn, table_view

EVENTS_MAX = 5_000
"""Newest events of a table that are kept for `wait`, without those that only shuffles need."""

WAIT_MAX = 300.0
"""Seconds that one `wait` takes at most."""


Table = Annotated[str | None, Field(description="The table's id; without it, the table used last.")]
Pile = Annotated[str | None, Field(description="A pile's name, such as discard or table.")]


class Seats:
    """The seats at the tables of one server (`ws://…/ws`), stored in `folder`.

    `name` is the player's name if `sit` is given none.
    """

    def __init__(self, server: str, folder: Path, *, name: str) -> None:
        self._server = server
        self._name = name
        self._memory = _Memory(folder, server)
        self._house: House | None = None
        self._opening = asyncio.Lock()
        self._tables: dict[str, RemoteTable] = {}
        self._events: dict[str, deque[TableEvent]] = defaultdict(lambda: deque(maxlen=EVENTS_MAX))

    async def close(self) -> None:
        """Close the connection; the seats are kept, and the next call opens another one."""
        house, self._house = self._house, None
        self._tables.clear()
        self._events.clear()
        if house is not None:
            await house.close()

    async def list_tables(self) -> Members:
        """List the public tables of the server, and the id of the one that you used last."""
        house = await self._connected()
        return {"tables": await house.tables(), "current": self._memory.table}

    async def sit(
        self,
        table: Annotated[str, Field(description="The table's id, or a link to it.")],
        *,
        name: Annotated[str | None, Field(description="Your name at the table.")] = None,
        seat: Annotated[int | None, Field(description="The seat; by default a free one.")] = None,
    ) -> Members:
        """Take a seat at a table, or continue in the seat that you have there; the table."""
        link = read_link(table, server=self._server)
        if link.server != self._server:
            raise BadRequest(f"This agent plays at {self._server}; that link is to {link.server}.")
        house = await self._connected()
        remote = await self._join(house, link, name or self._name, seat)
        if not self._memory.seen(remote.id):  # `wait` gives what happens from now on
            self._memory.store(remote.id, seen=remote.version)
        return table_view(remote)

    async def look(self, table: Table = None) -> Members:
        """Look at the table as your seat sees it: hands, piles, turn, what you may do."""
        return table_view(await self._at(table))

    async def wait(
        self,
        *,
        seconds: Annotated[float, Field(description="At most 300.", ge=0)] = 30.0,
        after: Annotated[
            int | None,
            Field(description="Give the events after this version; by default the new ones."),
        ] = None,
        table: Table = None,
    ) -> Members:
        """Wait until something happens or it is your turn; the new events, and the table."""
        # New are those that `wait` has not given yet, also before a restart.
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
        self, count: Annotated[int, Field(ge=1)] = 1, *, pile: Pile = None, table: Table = None
    ) -> Members:
        """Draw cards from the top of the deck, or of a pile, into your hand."""
        remote = await self._at(table)
        drawn = await (remote.draw(count) if pile is None else remote.pile_draw(pile, count))
        return {"drawn": drawn, "my_hand": remote.hand, "version": remote.version}

    async def play(
        self,
        cards: Annotated[list[str], Field(description="Codes of cards in your hand.")],
        *,
        pile: Pile = None,
        face_up: bool = True,
        table: Table = None,
    ) -> Members:
        """Play cards of your hand onto a pile, by default the table; `discard` discards them."""
        remote = await self._at(table)
        face: Literal["up", "down"] = "up" if face_up else "down"
        if pile == "discard":
            await remote.discard(cards, face=face)
        else:
            await remote.play(cards, pile=pile, face=face)
        return {"played": cards, "face": face, "my_hand": remote.hand, "version": remote.version}

    async def note(
        self,
        kind: Annotated[str, Field(description="turn, chat, poker.bet or another kind.")],
        text: str,
        *,
        table: Table = None,
    ) -> Members:
        """Add a note to the log, for everyone: pass the turn on, bet, or say something."""
        remote = await self._at(table)
        await remote.note(kind, text)
        return {"version": remote.version}

    async def leave(self, table: Table = None) -> Members:
        """Leave your seat; the cards of your hand stay there."""
        remote = await self._at(table)
        await remote.leave()
        self._tables.pop(remote.id, None)
        return {"table": remote.id, "left": True}

    async def evidence(self, table: Table = None) -> Members:
        """Verify the whole log of the table, and get the addresses of its bundle and its audit."""
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

    def _on_event(self, table: str, event: TableEvent) -> None:
        if not isinstance(event.event, OF_SHUFFLES):
            self._events[table].append(event)

    def _after(self, remote: RemoteTable, version: int) -> list[dict[str, Any]]:
        return [event_view(event) for event in self._events[remote.id] if event.version > version]


class _Memory:
    """What an agent needs after a restart, in a folder, besides the client's own store.

    agent.json    {"server", "table": the one that was used last, "seen": {table: version}}
    tables/       the store of the client: tokens, random bytes, verified signed heads

    Raises ConfigurationError if the folder is of another server.
    """

    def __init__(self, folder: Path, server: str) -> None:
        self._file = folder / "agent.json"
        self.tables = folder / "tables"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            stored = json.loads(self._file.read_text()) if self._file.exists() else {}
            self._seen: dict[str, int] = dict(stored.get("seen", {}))
            self.table: str | None = stored.get("table")
        except (OSError, RecursionError, ValueError, AttributeError, TypeError) as error:
            raise ConfigurationError(
                f"The agent's folder {folder} cannot be read: {error}"
            ) from error
        if stored.get("server", server) != server:
            raise ConfigurationError(
                f"The seats in {folder} are at {stored['server']}: use another folder for {server}."
            )
        self._server = server

    def seen(self, table: str) -> int:
        """The version up to which the agent was given the events of a table."""
        return self._seen.get(table, 0)

    def store(self, table: str, *, seen: int | None = None) -> None:
        """Remember the table as the one in use, and how far the agent has read it."""
        changed = self.table != table or seen not in (None, self._seen.get(table))
        self.table = table
        if seen is not None:
            self._seen[table] = seen
        if changed:
            self._write({"seen": self._seen, "server": self._server, "table": table})

    def _write(self, members: dict[str, Any]) -> None:
        fresh = self._file.with_suffix(".new")
        try:
            fresh.write_text(json.dumps(members, sort_keys=True))
            os.replace(fresh, self._file)
        except OSError as error:
            raise ConfigurationError(f"{self._file} cannot be written: {error}") from error
