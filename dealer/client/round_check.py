"""The reckoning when a round closes: with the house's secret shown, was it all as it was promised?

While a round is played its events are kept; then the tape is spun again, every swap made again,
every card followed, and each commitment compared: to the swaps, the drawn cards, the sealed slots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import NoReturn

from dealer.errors import HouseCheated
from dealer.game.events import (
    CardDrawn,
    CardMoved,
    CardPeeked,
    CardsSwapped,
    DeckSealed,
    Event,
    RoundClosed,
)
from dealer.game.shuffle import Step, steps_of
from dealer.game.stacks import seat_of
from dealer.game.state import Round, Table, evolve
from dealer.game.tape import Tape
from dealer.proof.codec import encode_hidden
from dealer.proof.keys import RoundKeys, round_commitment, secret_length

RootAt = Callable[[int], bytes | None]


@dataclass(slots=True)
class RoundRecord:
    """A round as one viewer saw it: the table when they began to, and each event after that.

    `table` is the table's id, 16 bytes; `openings` the salts, by slot, that this viewer was given.
    """

    table: bytes
    base: Table
    facts: list[tuple[Event, str | None]] = field(default_factory=list)
    openings: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def start(cls, table: bytes, state: Table) -> RoundRecord:
        """A record that begins with the table as it is now."""
        base = Table(version=state.version, seats=dict(state.seats), round=deepcopy(state.round))
        return cls(table, base)

    def add(self, event: Event, commit: str | None) -> None:
        """Keep the next event, with the commitment to its hidden part, hex, if it has one."""
        self.facts.append((event, commit))

    def check(self, secret: bytes, *, root_at: RootAt) -> None:
        """Compare all with S; `root_at(size)` is the tree's root, None where it is not known.

        Raises HouseCheated at the first thing that differs.
        """
        round_ = self.base.round
        assert round_ is not None
        commitment = round_commitment(table=self.table, round=round_.number, secret=secret)
        if len(secret) != secret_length(len(round_.opened)) or commitment != round_.commitment:
            _fail("The house closed the round with another secret than it had promised.")
        keys = RoundKeys(table=self.table, round=round_.number, secret=secret)
        for slot, salt in self.openings.items():
            if keys.slot_salt(slot) != salt:
                _fail("A card was opened with a salt that the round's secret does not give.")
        _Replay(deepcopy(self.base), keys, secret, root_at).run(self.facts)


class _Replay:
    """The round once more, this time with every face known."""

    def __init__(self, table: Table, keys: RoundKeys, secret: bytes, root_at: RootAt) -> None:
        assert table.round is not None
        self.table = table
        self.round: Round = table.round
        self.keys = keys
        self.secret = secret
        self.root_at = root_at
        self.steps: Iterator[Step] | None = None
        self._open_slots()

    def run(self, facts: list[tuple[Event, str | None]]) -> None:
        for event, commit in facts:
            if isinstance(event, RoundClosed):
                return
            whole = self._whole(event)
            hidden = encode_hidden(whole)
            if hidden is not None:
                version = self.table.version + 1
                if self.keys.event_commitment(version, hidden).hex() != commit:
                    _fail(f"What event {version} hid was not what the secret says.")
            followed = not isinstance(whole, DeckSealed) or self._follows(whole)
            evolve(self.table, whole, 0)
            if not followed:
                self._open_slots()

    def _whole(self, event: Event) -> Event:
        """The event with what was hidden in it."""
        match event:
            case CardsSwapped():
                return replace(event, j=self._next_j(event))
            case CardDrawn(_, _, _, slot, card) | CardPeeked(_, slot, _, card):
                return replace(event, card=self._face(slot, card))
            case CardMoved(_, slot, _, to, _, card) if seat_of(to) is not None:
                return replace(event, card=self._face(slot, card))
            case _:
                return event

    def _face(self, slot: int, shown: str | None) -> str | None:
        face = self.round.faces[slot]
        if shown is not None and shown != face:
            _fail("A card that you were shown is not the one that lay there.")
        return face

    def _next_j(self, event: CardsSwapped) -> int | None:
        """Where the tape sends this step; None if its C1 is from before we were there."""
        shuffle = self.round.shuffle
        assert shuffle is not None
        if self.steps is None:
            root = self.root_at(shuffle.closed_version)
            if root is None:
                return None
            tape = Tape(
                secret=self.secret,
                nonces=shuffle.entropy(),
                root=root,
                k=shuffle.k,
                n=shuffle.n,
            )
            self.steps = steps_of(
                shuffle.algorithm, n=shuffle.n, steps=shuffle.steps, below=tape.below
            )
        return next(self.steps)[2]

    def _follows(self, event: DeckSealed) -> bool:
        """Whether the swaps before this seal were all known; then the seal is compared, too."""
        shuffle = self.round.shuffle
        assert shuffle is not None
        self.steps = None
        if shuffle.blind:
            return False
        order = [self.round.face(card) or "" for card in self.round.cards(shuffle.stack)]
        if self.keys.slot_commitments(event.first, order) != list(event.slots):
            _fail("The house sealed the cards in another order than its shuffle gave.")
        return True

    def _open_slots(self) -> None:
        """Find the face of every sealed card on the table that we could not follow."""
        round_ = self.round
        lying = [card for cards in round_.stacks.values() for card in cards]
        left = set(round_.opened) - {round_.opened[~card] for card in lying if card < 0}
        unknown = []
        for slot in (card for card in lying if card >= 0):
            face = round_.faces[slot]
            if face is None:
                unknown.append(slot)
            elif face not in left:
                _fail("The house showed one card in two places.")
            else:
                left.remove(face)
                if self.keys.slot_commitment(slot, face) != round_.commitment_of(slot):
                    _fail("The house described a card as another one than was sealed.")
        for slot in unknown:
            sealed = round_.commitment_of(slot)
            card = next((c for c in left if self.keys.slot_commitment(slot, c) == sealed), None)
            if card is None:
                _fail("The house sealed something that is no card of this round's deck.")
            round_.faces[slot] = card
            left.remove(card)


def _fail(sentence: str) -> NoReturn:
    raise HouseCheated(sentence)
