"""A table as one player, host or onlooker has it before them, kept up to date and checked."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from dealer.client.following import Following
from dealer.client.happenings import Happenings
from dealer.client.moves import Moves
from dealer.client.questions import Members
from dealer.client.witness import Evidence
from dealer.errors import BadToken, ShuffleRunning
from dealer.game.cards import UNKNOWN
from dealer.game.stacks import DECK, hand
from dealer.game.state import Table

SHUFFLES_MAX = 3
"""How many shuffles a wish waits for that is refused because one is running."""

Predicate = Callable[["RemoteTable"], bool]


class RemoteTable(Moves):
    """One table at the house. `dealer.client.house.House` makes these.

    Properties tell how it stands now; `events()` iterates over what happens from now on, and
    `until(predicate)` waits for something to be true. Everything that the house says is checked;
    if it cheats, HouseCheated ends each of these, and `evidence` is kept.
    """

    def __init__(self, following: Following) -> None:
        self.id = following.id
        self._following = following
        self._witness = following.witness

    def __repr__(self) -> str:
        return f"<table {self.id}: version {self.version}, seat {self.seat}>"

    @property
    def state(self) -> Table:
        """The whole table as far as this viewer may know it, faces None where they may not."""
        return self._witness.state

    @property
    def version(self) -> int:
        return self._witness.version

    @property
    def seat(self) -> int | None:
        """This client's seat; None for a host without one, and for who only watches."""
        return self._witness.seat

    @property
    def seats(self) -> dict[int, str]:
        """Who sits where: names by seat."""
        return {seat: player.name for seat, player in sorted(self.state.seats.items())}

    @property
    def round(self) -> int | None:
        """The number of the open round."""
        return None if self.state.round is None else self.state.round.number

    @property
    def shuffling(self) -> bool:
        return self.state.round is not None and self.state.round.shuffle is not None

    @property
    def hand(self) -> list[str]:
        """Codes of one's own cards, in the order in which they came."""
        return [] if self.seat is None else self.stack(hand(self.seat))

    @property
    def deck_count(self) -> int:
        return 0 if self.state.round is None else len(self.state.round.cards(DECK))

    @property
    def piles(self) -> dict[str, list[str]]:
        """Codes of each pile's cards, bottom first, by the pile's name."""
        stacks = [] if self.state.round is None else sorted(self.state.round.stacks)
        return {name[5:]: self.stack(name) for name in stacks if name.startswith("pile:")}

    @property
    def closed(self) -> bool:
        return self.state.closed

    @property
    def key(self) -> bytes | None:
        """The key that this table's heads are signed with; the same for ever."""
        return self._witness.story.key

    @property
    def checkpoints(self) -> list[str]:
        """Signed heads that were checked, oldest first: what a verifier takes as `saved`."""
        return [head.note for head in self._following.store.heads]

    @property
    def cosigned(self) -> int:
        """Size of the newest checkpoint whose cosignature the server took from this client."""
        return self._following.cosigned

    @property
    def evidence(self) -> Evidence | None:
        """What was kept when the house was caught; None as long as all is well."""
        return self._following.evidence

    @property
    def invite(self) -> str | None:
        """What lets others join, where the rules ask for it; known to who opened the table."""
        invite: str | None = self._following.store.facts.get("invite")
        return invite

    @property
    def doubts(self) -> list[str]:
        """What only this player can know, and nobody can prove."""
        return list(self._following.duties.entropy.doubts)

    def stack(self, name: str) -> list[str]:
        """Codes of a stack's cards, bottom first, `??` where this viewer may not know."""
        round_ = self.state.round
        if round_ is None:
            return []
        return [round_.face(card) or UNKNOWN for card in round_.cards(name)]

    def events(self) -> Happenings:
        """What happens from now on: `async for version, at, event in table.events()`.

        It ends with the table, or when one has left it, and raises what ended it otherwise.
        """
        return self._following.happenings.branch()

    async def until(self, predicate: Predicate) -> RemoteTable:
        """Wait until `predicate(table)` holds; it is looked at after every event."""
        await self._following.until(lambda: predicate(self))
        return self

    async def sealed(self) -> None:
        await self.until(lambda table: not table.shuffling)

    async def change(self, method: str, **params: Any) -> Members:
        members = {name: value for name, value in params.items() if value is not None}
        members["cmd"] = str(uuid.uuid4())
        for attempt in range(SHUFFLES_MAX + 1):
            try:
                result = await self._following.ask(method, members, changes=True)
                break
            except ShuffleRunning:
                if attempt == SHUFFLES_MAX:
                    raise
                await self.sealed()
        await self.until(lambda table: table.version >= result["version"])
        return result

    async def change_seen(self, method: str, **params: Any) -> list[str]:
        round_ = self.round
        result = await self.change(method, **params)
        faces = self._witness.faces
        return [faces.get((round_ or 0, slot), UNKNOWN) for slot in result["slots"]]

    def opened(self, round_: int, entropy: str | None) -> None:
        own = "house" if self.state.rules.given.get("entropy") == "house" else "players"
        asked = entropy or own
        taken = self._witness.entropies.get(round_, asked)
        self._following.duties.entropy.compare(round_, taken=taken, asked=asked)

    async def leave(self) -> None:
        """Give up one's seat; the cards of its hand stay where they are. The host stays host."""
        following = self._following
        try:
            await following.ask("table.leave", {}, changes=True)
        except BadToken:
            # The answer was lost with a socket, and the seat's token opens nothing on the next.
            if self.seat is None:
                raise
        following.store.learn(token=None, seat=None, since=None)
        self._witness.seat = None
        if following.host_token is None:
            following.end(None)

    async def bundle(self) -> Members:
        """Where the whole log can be fetched for a verifier: `url`, a path, and `version`."""
        return await self._following.ask("audit.bundle", {}, changes=False)

    async def presence(self) -> Members:
        """Who is at the table just now, by the house's word.

        `seats` are `{"seat", "here", "since"}`: whether the seat has a live connection, and since
        when (epoch ms, None if the house does not know); `watching` is the number of onlookers.
        """
        return await self._following.ask("table.presence", {}, changes=False)

    async def cosign(self, note: str) -> int:
        """Sign a head, one of `checkpoints`, with this player's key; its size."""
        params = {"cosignature": self._following.duties.signature(note)}
        return int((await self._following.ask("table.cosign", params, changes=True))["size"])
