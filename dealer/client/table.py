"""A table as one player, host or spectator sees it: its verified state and its commands."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, Literal

from dealer.client.answers import Place, confirmed
from dealer.client.event_stream import EventStream
from dealer.client.event_verifier import Evidence
from dealer.client.markers import Markers
from dealer.client.requests import Members
from dealer.client.snapshot import restore
from dealer.client.table_session import TableSession
from dealer.errors import BadToken, DealerError, ShuffleRunning
from dealer.game.cards import UNKNOWN
from dealer.game.commands import CardRef, Where
from dealer.game.decide.selection import require_stack
from dealer.game.stacks import DECK, hand
from dealer.game.state import Table
from dealer.proof.checkpoint import read_checkpoint
from dealer.proof.verify.practice import NOT_FAIR
from dealer.proof.verify.replay import INSECURE

SHUFFLES_MAX = 3
"""How often a command that is rejected because a shuffle is running is sent again."""

Predicate = Callable[["RemoteTable"], bool]

Deck = str | Sequence[str] | Mapping[str, Any]
"""`"52"`, `"54"`, codes, or `{"decks", "jokers", "cards"}`."""

End = Literal["top", "bottom", "random"]
Face = Literal["up", "down"]
Cards = CardRef | Sequence[CardRef]


class RemoteTable:
    """One table of a house. `dealer.client.House` makes it.

    Properties are the current state; `events()` iterates over events from now on, and
    `until(predicate)` waits for a condition. Every event is verified. If the server cheats, each of
    these raises HouseCheated, and `evidence` has the proof.

    A command returns when this client has verified the resulting events. It raises Refused, with
    the reason, if the server refuses it. Cards are given by code, if this client sees them, or by
    slot; piles by their name without the prefix `pile:`.
    """

    def __init__(self, session: TableSession) -> None:
        self.id: str = session.id
        self._session = session
        self._verifier = session.verifier

    def __repr__(self) -> str:
        return f"<table {self.id}: version {self.version}, seat {self.seat}>"

    @property
    def state(self) -> Table:
        """The state of the table as this viewer may know it; unknown faces are None."""
        return self._verifier.state

    @property
    def version(self) -> int:
        """The version of the newest verified event."""
        return self._verifier.version

    @property
    def seat(self) -> int | None:
        """This client's seat; None for a host without a seat and for a spectator."""
        return self._verifier.seat

    @property
    def seats(self) -> dict[int, str]:
        """Players' names by seat."""
        return {seat: player.name for seat, player in sorted(self.state.seats.items())}

    @property
    def round(self) -> int | None:
        """The number of the open round."""
        return None if self.state.round is None else self.state.round.number

    @property
    def shuffling(self) -> bool:
        """Whether a shuffle is running."""
        return self.state.round is not None and self.state.round.shuffle is not None

    @property
    def shuffled(self) -> bool:
        """Whether the deck can be drawn from: a shuffle has ended that reached all of its cards."""
        round_ = self.state.round
        if round_ is None or round_.shuffle is not None:
            return False
        return round_.all_shuffled(round_.cards(DECK))

    @property
    def hand(self) -> list[str]:
        """Codes of this player's cards, in the order in which they were received."""
        return [] if self.seat is None else self.stack(hand(self.seat))

    @property
    def deck_count(self) -> int:
        """The number of cards in the deck; 0 without a round."""
        return 0 if self.state.round is None else len(self.state.round.cards(DECK))

    @property
    def piles(self) -> dict[str, list[str]]:
        """Codes of each pile's cards, bottom first, by the pile's name."""
        stacks = [] if self.state.round is None else sorted(self.state.round.stacks)
        return {name[5:]: self.stack(name) for name in stacks if name.startswith("pile:")}

    @property
    def markers(self) -> Markers:
        """Turn, dealer button, scores and so on, of the notes that this client has seen."""
        return self._session.markers

    @property
    def closed(self) -> bool:
        """Whether the table was closed."""
        return self.state.closed

    @property
    def key(self) -> bytes | None:
        """The key that signs this table's heads; it never changes."""
        return self._verifier.log.key

    @property
    def checkpoints(self) -> list[str]:
        """Verified signed heads, oldest first: `saved` for the verifier."""
        return [head.note for head in self._session.store.heads]

    @property
    def cosigned(self) -> int:
        """Size of the newest checkpoint whose cosignature the server accepted."""
        return self._session.cosigned

    @property
    def evidence(self) -> Evidence | None:
        """Evidence that the server cheated; None if it did not."""
        return self._session.evidence

    @property
    def token(self) -> str | None:
        """The token of this player's seat, a secret; None without a seat.

        Who has read it may play the seat with another client: from then on digests that come for
        the seat while this client is away are no doubt.
        """
        self._session.own_seat.share()
        return self._session.token

    @property
    def invite(self) -> str | None:
        """The invitation that others need to join, if the rules ask for one; for the host."""
        invite: str | None = self._session.store.record.get("invite")
        return invite

    @property
    def doubts(self) -> list[str]:
        """Sentences about the house that this player knows but cannot prove."""
        alarm = [INSECURE] if self.insecure else []
        alarm += [] if self.practice is None else [NOT_FAIR]
        return alarm + self._session.responder.entropy.doubts

    @property
    def insecure(self) -> bool:
        """Whether the server has insecure test decks: it may choose the cards of this table.

        Such a table is for tests; its rounds are not replayed, and `doubts` say so.
        """
        return self._verifier.insecure

    @property
    def practice(self) -> Mapping[str, Any] | None:
        """What a practice table was laid out from: `table`, `round`, `version` and `root`; or None.

        The cards of its first round are no fair deal, which `doubts` say.
        """
        return self._verifier.practice

    def stack(self, name: str) -> list[str]:
        """Codes of a stack's cards, bottom first; `??` for unknown faces.

        Raises BadRequest for what is no name of a stack.
        """
        require_stack(name)
        round_ = self.state.round
        if round_ is None:
            return []
        return [round_.face(card) or UNKNOWN for card in round_.cards(name)]

    def events(self) -> EventStream:
        """Events from now on: `async for version, at, event in table.events()`.

        The stream ends when the table is closed or left; on an error it raises that error.
        """
        return self._session.events.branch()

    async def until(
        self,
        predicate: Predicate,
        *,
        timeout: float | None = None,  # noqa: ASYNC109, so that the error says what was waited for
    ) -> RemoteTable:
        """Wait until `predicate(table)` is true; it is evaluated now and after every event.

        A state that has passed before the call is not noticed, so wait for what stays true
        (`table.version >= 57`), or read `events()`. Raises TimeoutError after `timeout`
        seconds, and what ends the table's session.
        """
        await self._session.until(lambda: predicate(self), timeout)
        return self

    async def sealed(self) -> None:
        """Wait until no shuffle is running."""
        await self.until(lambda table: not table.shuffling)

    async def call(self, method: str, **params: Any) -> Members:
        """Send the command `method` with a new `cmd`; its result, once its events are verified.

        For methods that have none of their own here. It is sent again if a shuffle was running.
        """
        members = {name: value for name, value in params.items() if value is not None}
        members["cmd"] = str(uuid.uuid4())
        version, seat, before = self.version, self.seat, Place.of(self.state)
        with closing(self.events()) as seen:
            for attempt in range(SHUFFLES_MAX + 1):
                try:
                    result = await self._session.ask(method, members, changes=True)
                    break
                except ShuffleRunning:
                    if attempt == SHUFFLES_MAX:
                        raise
                    await self.sealed()
            await self._reached(method, result, since=version)
            made = [event for at, _, event in seen.unread() if at <= result["version"]]
        if len(made) < result["version"] - version:
            raise DealerError(
                f"The server did {method}, and sent a snapshot of the table in place of its events:"
                " what it brought is in the table's state."
            )
        seats, faces = (seat, self.seat), self._verifier.faces
        answer = confirmed(made, method, members, result, before=before, seats=seats, faces=faces)
        return self._session.accuse(method) if answer is None else answer

    async def _reached(self, method: str, result: Members, *, since: int) -> None:
        """Wait for the version in an answer, which is not before that at which it was asked."""
        version = result.get("version")
        if type(version) is not int or version < since:
            self._session.accuse(method)
        await self.until(lambda table: table.version >= version)

    def _compare_entropy(self, round_: int, entropy: str | None) -> None:
        own = "house" if self.state.rules.given.get("entropy") == "house" else "players"
        asked = entropy or own
        taken = self._verifier.entropies.get(round_, asked)
        self._session.responder.entropy.compare(round_, taken=taken, asked=asked)

    # Seats and the table

    async def vacate(self, seat: int, reason: str = "") -> None:
        """Remove the player of a seat, as the host; the cards of its hand stay there.

        Other players may do it when that player has had no connection for two minutes.
        """
        await self.call("seat.vacate", seat=seat, reason=reason or None)

    async def move_seat(self, to: int, *, seat: int | None = None) -> None:
        """Move to the free seat `to`, with the same token; no card may be before this player.

        With `seat`, as the host: ask the player of that seat to move there.
        """
        await self.call("seat.move", to=to, seat=seat)

    async def transfer_host(self, seat: int) -> None:
        """Make the player of a seat the host, for as long as that player stays.

        A player may become host when the host has had no connection for two minutes.
        """
        await self.call("table.transfer_host", seat=seat)

    async def note(self, kind: str, text: str) -> None:
        """Add a text of at most 2,048 bytes to the log, for everyone: a bet, a question, chat."""
        await self.call("table.note", kind=kind, text=text)

    async def leave(self) -> None:
        """Leave the seat, where the cards of its hand stay, and the table.

        A client with the host token stays at the table without a seat; call it again to leave. If
        other players are seated, one of them becomes host.
        """
        session, seated = self._session, self.seat is not None

        def left(result: Members) -> None:
            session.store.update(token=None, seat=None, since=None)
            self._verifier.seat = None
            if result.get("host") is True:
                return
            if seated and session.host_token is not None:
                # The answer was lost, and the request was repeated as a host without a seat.
                session.attach()
            else:
                session.end(None)

        try:
            await session.ask("table.leave", {}, changes=True, answered=left)
        except BadToken:
            # The answer was lost with a socket, and the token was already invalid on the next one.
            if self.seat is None:
                raise
            left({})

    async def close(self) -> None:
        """Close the table permanently, with its open round."""
        await self.call("table.close")

    # Cards

    async def round_open(
        self,
        *,
        deck: Deck | None = None,
        entropy: Literal["players", "house"] | None = None,
        commit_ms: int | None = None,
        reveal_ms: int | None = None,
    ) -> int:
        """Open a round with a new deck (`deck`, or the table's default); its number.

        If the round has other entropy than `entropy`, the table's `doubts` say so.
        """
        result = await self.call(
            "round.open",
            deck=deck_spec(deck),
            entropy=entropy,
            commit_ms=commit_ms,
            reveal_ms=reveal_ms,
        )
        number = int(result["round"])
        self._compare_entropy(number, entropy)
        return number

    async def round_close(self) -> None:
        """Close the round; the house reveals its secret and this client replays the round."""
        await self.call("round.close")

    async def shuffle(
        self,
        *,
        pile: str | None = None,
        algorithm: Literal["backward", "forward"] | None = None,
        steps: int | None = None,
        wait: bool = True,
    ) -> int:
        """Shuffle the deck or a pile, and with `wait` wait for its seal; its `shuffle_index`.

        Shuffles of a round are counted from 0.
        """
        params = {"algorithm": algorithm, "steps": steps}
        if pile is None:
            result = await self.call("deck.shuffle", **params)
        else:
            result = await self.call("pile.shuffle", pile=pile, **params)
        if wait:
            await self.sealed()
        return int(result["k"])

    async def deal(
        self,
        each: int = 1,
        *,
        seats: Sequence[int] | None = None,
        piles: Sequence[Mapping[str, Any]] | None = None,
    ) -> int:
        """Deal `each` cards one at a time to `seats`, or to all seats; the number dealt.

        Then each of `piles`, such as `{"name": "board", "count": 3, "face": "up"}`, gets its cards.
        """
        named = None if seats is None else list(seats)
        onto = None if piles is None else [dict(pile) for pile in piles]
        return int((await self.call("deck.deal", each=each, seats=named, piles=onto))["dealt"])

    async def draw(self, count: int = 1, *, end: End = "top") -> list[str]:
        """Draw from the deck into this player's hand; the codes."""
        drawn: list[str] = (await self.call("deck.draw", count=count, **{"from": end}))["cards"]
        return drawn

    async def burn(self, count: int = 1) -> None:
        """Move cards from the top of the deck to the burn pile, face down."""
        await self.call("deck.burn", count=count)

    async def cut(self, at: int) -> None:
        """Cut the deck: the cards from place `at` upwards go to the bottom."""
        await self.call("deck.cut", at=at)

    async def return_cards(
        self,
        cards: Cards | None = None,
        *,
        count: int | None = None,
        source: str | None = None,
        where: Where | None = None,
    ) -> None:
        """Return cards to the deck: from this player's hand, or from `source`, a `pile:<name>`."""
        await self.call(
            "deck.return", cards=_cards(cards), count=count, where=where, **{"from": source}
        )

    async def discard(
        self, cards: Cards, *, pile: str | None = None, face: Face | None = None
    ) -> None:
        """Move cards from this player's hand to the discard pile or another pile."""
        await self.call("hand.discard", cards=_cards(cards), pile=pile, face=face)

    async def play(
        self, cards: Cards, *, pile: str | None = None, face: Face | None = None
    ) -> None:
        """Move cards from this player's hand to the table or another pile, face up by default."""
        await self.call("hand.play", cards=_cards(cards), pile=pile, face=face)

    async def give(self, cards: Cards, *, to: int) -> None:
        """Give cards from this player's hand to the seat `to`."""
        await self.call("hand.give", cards=_cards(cards), to=to)

    async def pass_(self, cards: Cards | None = None, *, to: int | None = None) -> None:
        """Pass cards from this player's hand to the seat `to`, with the passes of all seats.

        Without cards: deliver what was passed, if no seat is awaited or this player is the host.
        """
        await self.call("hand.pass", cards=_cards(cards), to=to)

    async def take_back(self) -> None:
        """Take back this player's last move, or its pass, if it showed no card to anyone."""
        await self.call("hand.take_back")

    async def show(
        self, cards: Cards | None = None, *, to: int | None = None, whole: bool = False
    ) -> None:
        """Show cards from this player's hand, or the `whole` hand, to all or to the seat `to`."""
        await self.call("hand.show", cards=_cards(cards), to=to, all=whole or None)

    async def pile_draw(
        self,
        pile: str,
        count: int | None = None,
        *,
        end: End | None = None,
        cards: Cards | None = None,
        whole: bool = False,
    ) -> list[str]:
        """Draw from an end of a pile, or specific cards, or the `whole` pile; the codes."""
        params = {"count": count, "from": end, "cards": _cards(cards), "all": whole or None}
        drawn: list[str] = (await self.call("pile.draw", pile=pile, **params))["cards"]
        return drawn

    async def move(
        self,
        source: str,
        *,
        to: str,
        cards: Cards | None = None,
        count: int | None = None,
        where: Where | None = None,
        face: Face | None = None,
        whole: bool = False,
    ) -> None:
        """Move cards from any stack to another: `deck`, `hand`, or a pile's name.

        A `whole` stack keeps its order.
        """
        await self.call(
            "pile.move",
            to=to,
            cards=_cards(cards),
            count=count,
            where=where,
            face=face,
            all=whole or None,
            **{"from": source},
        )

    async def pile_turn(
        self, pile: str, cards: Cards | None = None, *, whole: bool = False
    ) -> None:
        """Turn up the top card of a pile, or specific cards, or the `whole` pile."""
        await self.call("pile.turn", pile=pile, cards=_cards(cards), all=whole or None)

    # Proof, and what the server alone says

    async def bundle(self) -> Members:
        """Where the bundle for a verifier is: `url`, a path, and `version`."""
        since = self.version
        result = await self._session.ask("audit.bundle", {}, changes=False)
        await self._reached("audit.bundle", result, since=since)
        if result.get("url") != f"/tables/{self.id}/bundle.jsonl":
            self._session.accuse("audit.bundle")
        return result

    async def state_at(self, version: int) -> Table:
        """The state at an earlier version, with the cards that this viewer could see then.

        It is as the server reports it, and verified only as far as its cards were opened to this
        client. Raises BadRequest if there is no such version.
        """
        result = await self._session.ask("table.state", {"at": version}, changes=False)
        past, opened = restore(result["state"], seat=self.seat), self._verifier.faces
        faces = () if past.round is None else enumerate(past.round.faces)
        number = 0 if past.round is None else past.round.number
        others = any(face != opened.get((number, slot), face) for slot, face in faces if face)
        if others or (past.version, past.key) != (version, self.key):
            self._session.accuse("table.state")
        return past

    async def presence(self) -> Members:
        """Which players are connected, as the server reports it; this cannot be verified.

        `seats` are `{"seat", "here", "since"}`: whether the seat has a live connection, and since
        when (epoch ms, None if unknown); `watching` is the number of spectators.
        """
        return await self._session.ask("table.presence", {}, changes=False)

    async def broadcast_link(self) -> str:
        """The path of the table's broadcast; BadRequest if its rules do not have one."""
        result = await self._session.ask("broadcast.link", {}, changes=False)
        return f"/tables/{self.id}/broadcast#{result['link']}"

    async def revoke_broadcast(self) -> bool:
        """Take back the link, which ends those who watch by it; whether there was one."""
        result = await self._session.ask("broadcast.revoke", {}, changes=False)
        return bool(result["revoked"])

    async def cosign(self, note: str) -> int:
        """Cosign one of `checkpoints` with this player's key and send it; the size of the head."""
        params = {"cosignature": self._session.responder.signature(note)}
        await self._session.ask("table.cosign", params, changes=True)
        return read_checkpoint(note).size


def _cards(cards: Cards | None) -> list[CardRef] | None:
    """A list of cards; a single card needs no list."""
    if cards is None:
        return None
    return [cards] if isinstance(cards, str | int) else list(cards)


def deck_spec(deck: Deck | None) -> Any:
    """A deck as a JSON value."""
    if deck is None or isinstance(deck, str):
        return deck
    return dict(deck) if isinstance(deck, Mapping) else list(deck)
