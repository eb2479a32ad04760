"""Commands: requests to change a table, which `decide` accepts or refuses.

The `Actor` of a command comes from the tokens of its session, never from the content of a frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from dealer.game.absence import Absence
from dealer.game.events import immutable
from dealer.game.insecure_deck import InsecureDeck
from dealer.game.stacks import DECK
from dealer.game.state import Round

CardRef = str | int
"""A card, by its slot; or by its code, if the actor may see it."""

Where = Literal["top", "bottom"] | int
"""An end of a stack, or a place in it; place 0 is the bottom."""


class Actor(NamedTuple):
    """The sender of a command: the host, the player at a seat, both, or neither.

    `host` says that the sender has the host token. With `taken_at`, the version of the seat's
    SeatTaken event, a command is refused after that player left the seat; without it the command is
    of the seat's current player. A `service` is a program with a service key for this table.
    """

    host: bool = False
    seat: int | None = None
    taken_at: int | None = None
    service: bool = False


@immutable
class OpenTable:
    """Open a table under `origin` with the house key `key`, 32 bytes, and complete rules.

    With the round `laid_out` it is a practice table, whose rules say so.
    """

    origin: str
    key: bytes
    rules: Mapping[str, Any]
    laid_out: Round | None = None


@immutable
class TakeSeat:
    """Take a seat; `key` is the player's Ed25519 key for cosignatures, 32 bytes."""

    name: str
    seat: int | None = None  # the lowest free seat if None
    key: bytes | None = None
    bot: bool = False


@immutable
class LeaveSeat:
    """Leave the actor's seat; the hand stays with the seat."""

    actor: Actor
    absence: Absence | None = None


@immutable
class VacateSeat:
    """Remove the player of a seat, for a reason of at most 256 bytes; the hand stays."""

    actor: Actor
    seat: int
    reason: str = ""
    absence: Absence | None = None


@immutable
class MoveSeat:
    """Move the actor to the free seat `to`; or, as host or service, ask the player of `seat`."""

    actor: Actor
    to: int
    seat: int | None = None  # the actor's own if None


@immutable
class TransferHost:
    """Make the player of a seat the host."""

    actor: Actor
    seat: int
    absence: Absence | None = None


@immutable
class AddNote:
    """Add a text of at most 2,048 bytes to the log, under a kind such as `poker.bet`."""

    actor: Actor
    kind: str
    text: str


@immutable
class CloseTable:
    """Close the table permanently, with its open round."""

    actor: Actor
    forced: bool = False  # bypasses the rules: closed by the operator or for inactivity


@immutable
class OpenRound:
    """Open a round with a deck, bottom first; `entropy` is "players" or "house", waits in ms."""

    actor: Actor
    deck: tuple[str, ...]
    entropy: str
    commit_ms: int
    reveal_ms: int


@immutable
class CloseRound:
    """Close the round and publish its secret."""

    actor: Actor


@immutable
class StartShuffle:
    """Start a shuffle of a stack; `steps` below the full number make it partial."""

    actor: Actor
    stack: str = DECK
    algorithm: str = "backward"
    steps: int | None = None  # a full shuffle if None


@immutable
class DrawAtRandom:
    """Start the partial shuffle of a random draw; a Draw of `count` cards from the top follows."""

    actor: Actor
    count: int = 1
    source: str = DECK


@immutable
class CommitEntropy:
    """Send the digest, 32 bytes, of a nonce for shuffle `k` of a round."""

    actor: Actor
    round: int
    k: int
    digest: bytes


@immutable
class RevealEntropy:
    """Reveal the nonce, 32 bytes, of an earlier digest."""

    actor: Actor
    round: int
    k: int
    nonce: bytes


@immutable
class CheckDeadlines:
    """Apply the deadlines of the running shuffle at `now`, in milliseconds since 1970."""

    now: int


@immutable
class CloseEntropy:
    """End the wait for digests of shuffle `k`, if only those of the `absent` players are missing.

    They are given as (seat, version of SeatTaken). Only the server sends it.
    """

    round: int
    k: int
    absent: frozenset[tuple[int, int]]


@immutable
class FinishShuffle:
    """Shuffle and seal, with all entropy revealed; `root` is checkpoint C1's.

    A `deck` replaces the tape: in the first shuffle of a practice table, or as a test deck, which
    only a server with insecure test decks gives.
    """

    root: bytes
    deck: InsecureDeck | None = None


class DealtPile(NamedTuple):
    """A pile that gets `number` cards of a deal, each on top of the one before."""

    stack: str
    number: int
    face: Literal["up", "down"] = "down"


@immutable
class Deal:
    """Deal `each` cards, one at a time, to each seat, and then to piles.

    `each` may be 0 if there are piles.
    """

    actor: Actor
    each: int
    seats: tuple[int, ...] | None = None  # all taken seats if None
    piles: tuple[DealtPile, ...] = ()  # afterwards, in this order


@immutable
class Draw:
    """Draw cards into the actor's hand: `count` from one end, those that are named, or all."""

    actor: Actor
    count: int = 1
    source: str = DECK
    where: Literal["top", "bottom"] = "top"
    cards: tuple[CardRef, ...] | None = None
    whole: bool = False  # the whole stack, bottom first, which keeps its order


@immutable
class Cut:
    """Cut a stack: the cards from place `at` upwards go to the bottom."""

    actor: Actor
    at: int
    stack: str = DECK


@immutable
class Move:
    """Move cards from one stack to another: burn, discard, play, give, return, pile, collect."""

    actor: Actor
    action: str  # the action whose rule applies
    source: str
    to: str
    cards: tuple[CardRef, ...] | None = None
    count: int | None = None  # from the top, if no cards are named
    where: Where = "top"
    face: Literal["up", "down"] = "down"
    whole: bool = False  # the whole stack, bottom first, which keeps its order


@immutable
class Show:
    """Show cards to everyone, or to the seat `to` only."""

    actor: Actor
    source: str
    cards: tuple[CardRef, ...] | None = None  # the top card if None
    to: int | None = None
    whole: bool = False  # all cards of the stack


@immutable
class Pass:
    """Put cards of the actor's hand aside for the seat `to`, until all seats have passed.

    Without cards it delivers what was passed, if no seat is awaited or the actor is host.
    """

    actor: Actor
    cards: tuple[CardRef, ...] | None = None
    to: int | None = None


@immutable
class TakeBack:
    """Reverse the last move of cards, or the actor's own pass, if it showed no card to anyone."""

    actor: Actor


Command = (
    OpenTable
    | TakeSeat
    | LeaveSeat
    | VacateSeat
    | MoveSeat
    | TransferHost
    | AddNote
    | CloseTable
    | OpenRound
    | CloseRound
    | StartShuffle
    | DrawAtRandom
    | CommitEntropy
    | RevealEntropy
    | CheckDeadlines
    | CloseEntropy
    | FinishShuffle
    | Deal
    | Draw
    | Cut
    | Move
    | Show
    | Pass
    | TakeBack
)
