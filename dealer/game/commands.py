"""What somebody may wish for at a table. A command is a wish: `decide` grants or refuses it.

Who wishes is an `Actor`, made from the session's tokens and never from what a frame says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from dealer.game.stacks import DECK

CardRef = str | int
"""A card that the actor sees, by its code; any card, by its slot."""

Where = Literal["top", "bottom"] | int
"""An end of a stack, or a place in it counted from 0, the bottom."""


class Actor(NamedTuple):
    """`since`, the version of the seat's SeatTaken, tells its player from the next one there."""

    host: bool = False
    seat: int | None = None
    since: int | None = None  # whoever sits there if None


@dataclass(frozen=True, slots=True)
class OpenTable:
    origin: str
    key: bytes
    rules: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TakeSeat:
    name: str
    seat: int | None = None  # the lowest free one if None
    key: bytes | None = None


@dataclass(frozen=True, slots=True)
class LeaveSeat:
    actor: Actor


@dataclass(frozen=True, slots=True)
class CloseTable:
    actor: Actor
    forced: bool = False  # whatever the rules say: by the operator, or for want of players


@dataclass(frozen=True, slots=True)
class OpenRound:
    actor: Actor
    deck: tuple[str, ...]
    entropy: str
    commit_ms: int
    reveal_ms: int


@dataclass(frozen=True, slots=True)
class CloseRound:
    actor: Actor


@dataclass(frozen=True, slots=True)
class StartShuffle:
    actor: Actor
    stack: str = DECK
    algorithm: str = "backward"
    steps: int | None = None  # all if None


@dataclass(frozen=True, slots=True)
class DrawAtRandom:
    """The shuffle that lets `count` cards be drawn from anywhere: a Draw from the top follows."""

    actor: Actor
    count: int = 1
    source: str = DECK


@dataclass(frozen=True, slots=True)
class CommitEntropy:
    actor: Actor
    round: int
    k: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class RevealEntropy:
    actor: Actor
    round: int
    k: int
    nonce: bytes


@dataclass(frozen=True, slots=True)
class PassTime:
    """The house's clock shows `now`, in milliseconds; who is late is waited for no more."""

    now: int


@dataclass(frozen=True, slots=True)
class FinishShuffle:
    """All entropy is there and C1 has this root: shuffle and seal."""

    root: bytes


@dataclass(frozen=True, slots=True)
class Deal:
    actor: Actor
    each: int
    seats: tuple[int, ...] | None = None  # every seated player if None


@dataclass(frozen=True, slots=True)
class Draw:
    actor: Actor
    count: int = 1
    source: str = DECK
    where: Literal["top", "bottom"] = "top"
    cards: tuple[CardRef, ...] | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    actor: Actor
    at: int
    stack: str = DECK


@dataclass(frozen=True, slots=True)
class Move:
    """Cards from one stack onto another: a burn, a discard, a play, a gift, a return, any other."""

    actor: Actor
    action: str  # as the rules call it
    source: str
    to: str
    cards: tuple[CardRef, ...] | None = None
    count: int | None = None  # from the top, where no cards are named
    where: Where = "top"
    face: Literal["up", "down"] = "down"


@dataclass(frozen=True, slots=True)
class Show:
    """Turn cards up for all, or let one seat see them."""

    actor: Actor
    source: str
    cards: tuple[CardRef, ...] | None = None  # the top card if None
    to: int | None = None


Command = (
    OpenTable
    | TakeSeat
    | LeaveSeat
    | CloseTable
    | OpenRound
    | CloseRound
    | StartShuffle
    | DrawAtRandom
    | CommitEntropy
    | RevealEntropy
    | PassTime
    | FinishShuffle
    | Deal
    | Draw
    | Cut
    | Move
    | Show
)
