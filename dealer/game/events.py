"""The events of a table. Each class is one type of event in the log, in the past tense.

A hidden field is None for a reader who may not know its value. Bytes are `bytes` here and hex in
the log (`dealer.proof.codec`); `source` is the log's member `from`.

What other modules derive about a type of event is declared on its class, see `EventType`. The first
paragraph of its docstring is published (`/openrpc.json`, the reference), and so is the text beside
the type of each field: a text for machines and people who do not know this program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    TypeVar,
    dataclass_transform,
    get_args,
)

from dealer.game.stacks import seat_of

Kind = TypeVar("Kind")


@dataclass_transform(frozen_default=True)
def immutable(kind: type[Kind]) -> type[Kind]:
    """Make `kind` a dataclass with slots that is immutable to the type checker.

    Immutability at run time (`frozen=True`) would make construction four times slower, and every
    draw is a command and an event, every swap of a shuffle an event.
    """
    return dataclass(slots=True, unsafe_hash=True)(kind)


PROTOCOL = "dealer/v1"

FORGOTTEN = "\u2014"
"""The name of a player whose own was withheld from a bundle, so that the person is forgotten."""

TAKE_BACK = "take_back"
"""The kind of the note that ends the events of a move taken back; only the server writes it."""

SEAT_MOVE = "seat_move"
"""The kind of the note before SeatLeft and SeatTaken of a player who moves, such as `2-3`."""

SEAT_OFFER = "seat_offer"
"""The kind of the note by which a host or a service asks a player to move, such as `2-3`."""

PROGRAM = "program"
"""The kind of the note by which a server says, before a round, which program it is."""

SERVER_NOTES = (TAKE_BACK, SEAT_MOVE, SEAT_OFFER, PROGRAM)
"""The kinds of notes that only the server writes: their texts name no person, and are public."""

Hidden = Literal["j", "card"]
Commitment = Literal["never", "always", "into_hand"]

Seat = Annotated[int, "number of the seat, from 1"]
Round = Annotated[int, "number of the round, from 1"]
ShuffleIndex = Annotated[int, "ordinal of the shuffle in the round, from 0"]
Slot = Annotated[int, "number of the sealed card"]
Card = Annotated[str, "code of the card"]
Stack = Annotated[str, "the stack: `deck`, or a pile"]
Source = Annotated[str, "the stack that the card came from"]
Salt = Annotated[bytes, "salt of the card's commitment"]
Origin = Annotated[str, "name of the table's log in its checkpoints"]
PlayerName = Annotated[str, "name of the player"]
CommitMs = Annotated[int, "how long players may commit to random bytes, in milliseconds"]
RevealMs = Annotated[int, "how long players may reveal random bytes, in milliseconds"]
StackSize = Annotated[int, "how many cards the stack has"]
ShuffleSteps = Annotated[int, "how many steps the shuffle has"]


class PrivateFace(NamedTuple):
    """The face of one card that an event shows to one seat only."""

    seat: Seat
    slot: Slot
    card: Card


class EventType:
    """Base class of all events: the facts about a type of event, with those of most types.

    `HIDDEN` is the field that is no part of the leaf's public members. `COMMITMENT` says which
    leaves commit to it: none, all, or those of cards that enter a hand. `OPENED` are the fields
    that people write: all may know them, but the leaf only commits to them (`dealer.proof.opened`).
    After an event with `CHECKPOINT` the house signs a checkpoint. The effect of an event with
    `LASTING` outlives its round.
    """

    __slots__ = ()

    HIDDEN: ClassVar[Hidden | None] = None
    COMMITMENT: ClassVar[Commitment] = "never"
    OPENED: ClassVar[tuple[str, ...]] = ()
    CHECKPOINT: ClassVar[bool] = False
    LASTING: ClassVar[bool] = False

    def private_face(self) -> PrivateFace | None:
        """The face that this event shows to one seat only; None if it shows none."""
        return None


class ShuffleEvent(EventType):
    """Base class of the events of a shuffle; `k`, its name in the log, is the `shuffle_index`."""

    __slots__ = ()

    k: int

    @property
    def shuffle_index(self) -> int:
        """The number of the shuffle in its round, from 0."""
        return self.k


@immutable
class TableOpened(EventType):
    """A table was opened; always version 1."""

    OPENED: ClassVar[tuple[str, ...]] = ("name",)
    LASTING: ClassVar[bool] = True

    origin: Origin
    key: Annotated[bytes, "the house's Ed25519 public key for this table"]
    rules: Annotated[Mapping[str, Any], "the rules of the table"]
    name: Annotated[str | None, "name of the table, if it has one"] = None


@immutable
class SeatTaken(EventType):
    """A player took a seat."""

    OPENED: ClassVar[tuple[str, ...]] = ("key", "name")
    LASTING: ClassVar[bool] = True

    seat: Seat
    name: PlayerName
    key: Annotated[
        bytes | None, "the Ed25519 public key with which the player cosigns, of those that do"
    ] = None
    bot: Annotated[bool, "only of a program, as its service says"] = False


@immutable
class SeatLeft(EventType):
    """A player left the seat.

    The hand stays there.
    """

    LASTING: ClassVar[bool] = True

    seat: Seat


@immutable
class SeatVacated(EventType):
    """The player of the seat was removed by the host, a service, or the server.

    The hand stays there. The server removes a player who was away, for another player.
    """

    OPENED: ClassVar[tuple[str, ...]] = ("reason",)
    LASTING: ClassVar[bool] = True

    seat: Seat
    by: Annotated[str, "`service` also where the server did it for another player"]
    reason: Annotated[str, "why the player was removed"]


@immutable
class HostTransferred(EventType):
    """The player of the seat became the host.

    For as long as that player stays.
    """

    LASTING: ClassVar[bool] = True

    seat: Seat


@immutable
class NoteAdded(EventType):
    """A text was added by a seat, or by the host or a service (seat 0).

    It changes nothing, except for two kinds that only the server adds: `take_back`, after the
    events that reverse a move, and `seat_move`, before SeatLeft and SeatTaken of one player.
    """

    OPENED: ClassVar[tuple[str, ...]] = ("text",)  # but for `SERVER_NOTES`

    seat: Annotated[int, "number of the seat; 0 for the host or a service"]
    kind: Annotated[str, "kind of the note"]
    text: Annotated[str, "the note itself"]


@immutable
class RoundOpened(EventType):
    """A round was opened with a deck, bottom first, and the house's commitment."""

    round: Round
    deck: Annotated[tuple[str, ...], "codes of the cards, bottom first"]
    entropy: Annotated[str, "whose random bytes shuffle"]
    commit_ms: CommitMs
    reveal_ms: RevealMs
    commitment: Annotated[bytes, "hash of the house's secret of the round"]


@immutable
class ShuffleStarted(ShuffleEvent):
    """A shuffle was requested; players commit to their entropy."""

    round: Round
    k: ShuffleIndex
    stack: Stack
    n: StackSize
    algorithm: Annotated[str, "`backward` (from the top) or `forward` (from the bottom)"]
    steps: ShuffleSteps


@immutable
class EntropyCommitted(ShuffleEvent):
    """A seat committed to random bytes."""

    round: Round
    k: ShuffleIndex
    seat: Seat
    digest: Annotated[bytes, "hash of the bytes that the seat committed to"]


@immutable
class EntropyClosed(ShuffleEvent):
    """Commitments are closed; the house signs a checkpoint over this version.

    It is C1 of the shuffle.
    """

    CHECKPOINT: ClassVar[bool] = True

    round: Round
    k: ShuffleIndex


@immutable
class ShuffleVoided(ShuffleEvent):
    """Committed bytes were not revealed in time; the shuffle does not take place."""

    round: Round
    k: ShuffleIndex


@immutable
class EntropyRevealed(ShuffleEvent):
    """A seat revealed the bytes that it had committed to."""

    round: Round
    k: ShuffleIndex
    seat: Seat
    nonce: Annotated[bytes, "the bytes that the seat committed to"]


@immutable
class CardsSwapped(ShuffleEvent):
    """One step of a shuffle: places i and j exchanged their cards; j is hidden."""

    HIDDEN: ClassVar[Hidden | None] = "j"
    COMMITMENT: ClassVar[Commitment] = "always"

    round: Round
    k: ShuffleIndex
    step: Annotated[int, "number of the step, from 0"]
    i: Annotated[int, "the first of the two places; 0 is the bottom"]
    j: int | None


@immutable
class DeckSealed(ShuffleEvent):
    """A shuffle is over; each place got a slot with a commitment to its card."""

    CHECKPOINT: ClassVar[bool] = True

    round: Round
    k: ShuffleIndex
    first: Annotated[int, "the first of the new slots"]
    slots: Annotated[
        tuple[bytes, ...], "commitments of the new slots, from the bottom of the stack upwards"
    ]


@immutable
class CardDrawn(EventType):
    """A seat drew a card; its face is for that seat."""

    HIDDEN: ClassVar[Hidden | None] = "card"
    COMMITMENT: ClassVar[Commitment] = "always"

    round: Round
    seat: Seat
    source: Source
    slot: Slot
    card: Card | None

    def private_face(self) -> PrivateFace | None:
        """The drawn card, for the seat that drew it."""
        return None if self.card is None else PrivateFace(self.seat, self.slot, self.card)


@immutable
class CardMoved(EventType):
    """A card moved from one stack to another."""

    HIDDEN: ClassVar[Hidden | None] = "card"
    COMMITMENT: ClassVar[Commitment] = "into_hand"

    round: Round
    slot: Slot
    source: Source
    to: Annotated[str, "the stack that received the card"]
    place: Annotated[int, "place in the stack that received the card; 0 is the bottom"]
    card: Card | None  # None unless `to` is a hand

    def private_face(self) -> PrivateFace | None:
        """The card, for the seat whose hand it went to."""
        seat = seat_of(self.to)
        if seat is None or self.card is None:
            return None
        return PrivateFace(seat, self.slot, self.card)


@immutable
class CardShown(EventType):
    """A card was turned face up for all."""

    round: Round
    slot: Slot
    card: Card
    salt: Salt


@immutable
class CardPeeked(EventType):
    """A card was shown to one seat."""

    HIDDEN: ClassVar[Hidden | None] = "card"  # stored for the seat, never committed to

    round: Round
    slot: Slot
    seat: Seat
    card: Card | None

    def private_face(self) -> PrivateFace | None:
        """The card, for the seat that it was shown to."""
        return None if self.card is None else PrivateFace(self.seat, self.slot, self.card)


@immutable
class StackCut(EventType):
    """A stack was cut."""

    round: Round
    stack: Stack
    at: Annotated[int, "the place from which the cards went to the bottom; 0 is the bottom"]


@immutable
class RoundClosed(EventType):
    """The round is over, and the house's secret is public."""

    CHECKPOINT: ClassVar[bool] = True

    round: Round
    secret: Annotated[bytes, "the house's secret of the round"]


@immutable
class TableClosed(EventType):
    """The table is closed permanently.

    No event follows.
    """

    CHECKPOINT: ClassVar[bool] = True


Event = (
    TableOpened
    | SeatTaken
    | SeatLeft
    | SeatVacated
    | HostTransferred
    | NoteAdded
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

SeatGivenUp = SeatLeft | SeatVacated
"""A player no longer holds a seat."""

TYPES: dict[str, type[EventType]] = {kind.__name__: kind for kind in get_args(Event)}
"""Every type of event by its name in the log."""

CHECKPOINT_TYPES = frozenset(name for name, kind in TYPES.items() if kind.CHECKPOINT)
"""The types of event after which the house signs a checkpoint, in the same transaction."""

LASTING_TYPES = tuple(name for name, kind in TYPES.items() if kind.LASTING)
"""The types of event whose effect outlives a round: few events, and an index has them."""

HIDDEN_TYPES = frozenset(name for name, kind in TYPES.items() if kind.HIDDEN)
"""Names of the types of event that may have a hidden part."""

OPENED_TYPES = frozenset(name for name, kind in TYPES.items() if kind.OPENED)
"""Names of the types of event that may have an opened part."""

PRIVATE_FACE_TYPES = frozenset(name for name, kind in TYPES.items() if kind.HIDDEN == "card")
"""Names of the types of event that may show a face to one seat only."""
