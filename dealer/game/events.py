"""What happened at a table, one fact each, as fairness.md's table of events names them.

A field whose comment says hidden is None for a reader who may not know it. Bytes are bytes here;
`dealer.proof.codec` writes them as hex. `source` is called `from` in the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PROTOCOL = "dealer/v1"


@dataclass(frozen=True, slots=True)
class TableOpened:
    origin: str
    key: bytes
    rules: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SeatTaken:
    seat: int
    name: str
    key: bytes | None = None


@dataclass(frozen=True, slots=True)
class SeatLeft:
    seat: int


@dataclass(frozen=True, slots=True)
class RoundOpened:
    round: int
    deck: tuple[str, ...]
    entropy: str
    commit_ms: int
    reveal_ms: int
    commitment: bytes


@dataclass(frozen=True, slots=True)
class ShuffleStarted:
    round: int
    k: int
    stack: str
    n: int
    algorithm: str
    steps: int


@dataclass(frozen=True, slots=True)
class EntropyCommitted:
    round: int
    k: int
    seat: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class EntropyClosed:
    round: int
    k: int


@dataclass(frozen=True, slots=True)
class ShuffleVoided:
    round: int
    k: int


@dataclass(frozen=True, slots=True)
class EntropyRevealed:
    round: int
    k: int
    seat: int
    nonce: bytes


@dataclass(frozen=True, slots=True)
class CardsSwapped:
    round: int
    k: int
    step: int
    i: int
    j: int | None  # hidden


@dataclass(frozen=True, slots=True)
class DeckSealed:
    round: int
    k: int
    first: int
    slots: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class CardDrawn:
    round: int
    seat: int
    source: str
    slot: int
    card: str | None  # hidden


@dataclass(frozen=True, slots=True)
class CardMoved:
    round: int
    slot: int
    source: str
    to: str
    place: int
    card: str | None  # hidden, and only where `to` is a hand


@dataclass(frozen=True, slots=True)
class CardShown:
    round: int
    slot: int
    card: str
    salt: bytes


@dataclass(frozen=True, slots=True)
class CardPeeked:
    round: int
    slot: int
    seat: int
    card: str | None  # kept for the seat that saw it; no part of the leaf


@dataclass(frozen=True, slots=True)
class StackCut:
    round: int
    stack: str
    at: int


@dataclass(frozen=True, slots=True)
class RoundClosed:
    round: int
    secret: bytes


@dataclass(frozen=True, slots=True)
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
