"""Exchanged cards: no viewer's bytes depend on cards that are not theirs.

A plan is run twice with the same random bytes, and the second time two cards have exchanged their
places in the deck. A client who was to see neither has to receive the same frames, at the same
virtual times and of the same lengths. Excepted are the list of the round's cards, which is public,
and hashes and signatures, of which the lengths have to be equal.

What a client was to see is not taken from its frames, but from what the service has encoded for its
seat and from the faces in the log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations, zip_longest
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

from dealer.eventlog import EventRecord
from dealer.game.tape import Tape
from dealer.service.commands import executor
from tests.simulation.plan import CLIENTS

if TYPE_CHECKING:
    from tests.simulation.witness import Witness
    from tests.simulation.world import World

_DECK = re.compile(r'"deck":\[[^]]*\]')
_HASH = re.compile(r"[0-9a-f]{32,}|[A-Za-z0-9+/]{40,}={0,2}")


class Frame(NamedTuple):
    """What a client received, and when, in seconds."""

    at: float
    text: str

    def masked(self) -> tuple[float, str]:
        """The frame with dots for hashes and signatures, and an empty list of the deck."""
        return self.at, _HASH.sub(lambda found: "." * len(found[0]), _DECK.sub("[]", self.text))


class Shown:
    """The cards that were encoded for the eyes of one seat: (table, seat, card)."""

    def __init__(self) -> None:
        self.faces: set[tuple[str, int, str]] = set()

    def add(self, entry: EventRecord) -> None:
        if entry.seat:  # not what is opened to all
            table, card = json.loads(entry.leaf)["table"], json.loads(entry.private)["card"]
            self.faces.add((table, entry.seat, card))

    def unseen(self, name: str, deck: list[str], witness: Witness) -> set[str]:
        """The cards that this client was never to see."""
        seats, public = set(), ""
        for (table, _), leaves in witness.ever.items():
            for leaf in leaves:
                public += _DECK.sub("", leaf)
                if '"type":"SeatTaken"' in leaf:
                    seat = json.loads(leaf)["public"]["seat"]
                    seats |= {(table, seat)} if witness.takers[leaf] == name else set()
        own = {card for table, seat, card in self.faces if (table, seat) in seats}
        return {card for card in deck if card not in own and f'"{card}"' not in public}


@contextmanager
def recorded() -> Iterator[Shown]:
    """Record what is encoded for single seats.

    Shuffles do not depend on the log in the block, in which the order of the deck is.
    """
    shown, encode, begin = Shown(), executor.encode, Tape.__init__

    def encode_recorded(*arguments: Any, **named: Any) -> Any:
        record = encode(*arguments, **named)
        shown.add(record)
        return record

    def begin_without_root(self: Tape, *, root: bytes, **inputs: Any) -> None:
        begin(self, root=bytes(len(root)), **inputs)

    with (
        patch.object(executor, "encode", encode_recorded),
        patch.object(Tape, "__init__", begin_without_root),
    ):
        yield shown


def exchanged(world: World, shown: Shown) -> tuple[list[str], list[str]] | None:
    """(the deck with two cards exchanged, the clients who were to see neither), if there are any.

    Preferred are cards that others have seen: of those most would leak.
    """
    deck, random = world.deck, Random(world.plan.seed)
    unseen = {name: shown.unseen(name, deck, world.witness) for name in CLIENTS}
    drawn = {card for _, _, card in shown.faces}
    pairs = [
        (len({one, other} & drawn), random.random(), one, other)
        for one, other in combinations(deck, 2)
        if any({one, other} <= cards for cards in unseen.values())
    ]
    if not pairs:
        return None
    _, _, one, other = max(pairs)
    names = {one: other, other: one}
    blind = [name for name, cards in unseen.items() if {one, other} <= cards]
    return [names.get(card, card) for card in deck], blind


def compare(first: World, second: World, blind: list[str]) -> None:
    """Report to the first world what shows its clients that cards are exchanged in the second."""
    for name in blind:
        received = [first.witness.frames_of[name], second.witness.frames_of[name]]
        first.seen("compared after an exchange")
        for one, other in zip_longest(*received):
            if one is None or other is None:
                first.fault(f"{name} receives another number of frames with cards exchanged")
            elif one.masked() != other.masked():
                first.fault(_sentence(name, one, other))
            else:
                continue
            break


def _sentence(name: str, one: Frame, other: Frame) -> str:
    (at, mine), (when, theirs) = one.masked(), other.masked()
    start = next((n for n, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), 0)
    part = slice(max(0, start - 40), start + 40)
    return (
        f"{name} can see that cards it never saw are exchanged: {mine[part]!r} at {at:.6f},"
        f" {theirs[part]!r} at {when:.6f}; lengths {len(one.text)} and {len(other.text)}"
    )
