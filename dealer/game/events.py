"""What happened at a table, one fact each, as fairness.md's table of events names them.

A field whose comment says hidden is None for a reader who may not know it. Bytes are bytes here;
`dealer.proof.codec` writes them as hex. `source` is called `from` in the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

PROTOCOL = "dealer/v1"

Fact = TypeVar("Fact")


@dataclass_transform(frozen_default=True)
def fact(kind: type[Fact]) -> type[Fact]:
    """A dataclass that nobody may change: the type checker holds that.

    A check at run time (`frozen=True`) would make an event four times as dear, and there is one
    for every swap.
    """
    return dataclass(slots=True, unsafe_hash=True)(kind)


@fact
class TableOpened:
    origin: str
    key: bytes
    rules: Mapping[str, Any]


@fact
class SeatTaken:
    seat: int
    name: str
    key: bytes | None = None


@fact
class SeatLeft:
    seat: int


@fact
class RoundOpened:
    round: int
    deck: tuple[str, ...]
    entropy: str
    commit_ms: int
    reveal_ms: int
    commitment: bytes


@fact
class ShuffleStarted:
    round: int
    k: int
    stack: str
    n: int
    algorithm: str
    steps: int


@fact
class EntropyCommitted:
    round: int
    k: int
    seat: int
    digest: bytes


@fact
class EntropyClosed:
    round: int
    k: int


@fact
class ShuffleVoided:
    round: int
    k: int


@fact
class EntropyRevealed:
    round: int
    k: int
    seat: int
    nonce: bytes


@fact
class CardsSwapped:
    round: int
    k: int
    step: int
    i: int
    j: int | None  # hidden


@fact
class DeckSealed:
    round: int
    k: int
    first: int
    slots: tuple[bytes, ...]


@fact
class CardDrawn:
    round: int
    seat: int
    source: str
    slot: int
    card: str | None  # hidden


@fact
class CardMoved:
    round: int
    slot: int
    source: str
    to: str
    place: int
    card: str | None  # hidden, and only where `to` is a hand


@fact
class CardShown:
    round: int
    slot: int
    card: str
    salt: bytes


@fact
class CardPeeked:
    round: int
    slot: int
    seat: int
    card: str | None  # kept for the seat that saw it; no part of the leaf


@fact
class StackCut:
    round: int
    stack: str
    at: int


@fact
class RoundClosed:
    round: int
    secret: bytes


@fact
class TableClosed:
    pass


Event = (
    TableOpened
    | SeatTaken
    | SeatLeft
    | RoundOpened
    | ShuffleStarted
    | EntropyCommitted
    | EntropyClosed
    | ShuffleVoided
    | EntropyRevealed
    | CardsSwapped
    | DeckSealed
    | CardDrawn
    | CardMoved
    | CardShown
    | CardPeeked
    | StackCut
    | RoundClosed
    | TableClosed
)
