"""The events of a table. Each class is one type of event in the log, in the past tense.

A hidden field is None for a reader who may not know its value. Bytes are `bytes` here and hex in
the log (`dealer.proof.codec`); `source` is the log's member `from`.

What other modules derive about a type of event is declared on its class, see `EventType`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from dealer.game.immutable import immutable
from dealer.game.stacks import seat_of

PROTOCOL = "dealer/v1"

Hidden = Literal["j", "card"]
Commitment = Literal["never", "always", "into_hand"]


class PrivateFace(NamedTuple):
    """The face of one card that an event shows to one seat only."""

    seat: int
    slot: int
    card: str


class EventType:
    """Base class of all events: the facts about a type of event, with those of most types.

    `HIDDEN` is the field that is no part of the leaf's public members. `COMMITMENT` says which
    leaves commit to it: none, all, or those of cards that enter a hand. After an event with
    `CHECKPOINT` the house signs a checkpoint.
    """

    __slots__ = ()

    HIDDEN: ClassVar[Hidden | None] = None
    COMMITMENT: ClassVar[Commitment] = "never"
    CHECKPOINT: ClassVar[bool] = False

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
    """A table was opened: its origin, the house key, 32 bytes, and complete rules."""

    origin: str
    key: bytes
    rules: Mapping[str, Any]


@immutable
class SeatTaken(EventType):
    """A player took a seat; `key` cosigns checkpoints, 32 bytes; `bot` is a program's claim."""

    seat: int
    name: str
    key: bytes | None = None
    bot: bool = False


@immutable
class SeatLeft(EventType):
    """A player left a seat; its hand stays."""

    seat: int


@immutable
class SeatVacated(EventType):
    """The host or a service removed the player of a seat, `by` either; its hand stays.

    `by` is also a service where the server did it for another player, because this one was away.
    """

    seat: int
    by: str
    reason: str


@immutable
class HostTransferred(EventType):
    """The player of a seat became the host, for as long as that player stays."""

    seat: int


@immutable
class NoteAdded(EventType):
    """A text was added by a seat, or by the host or a service (0).

    It changes nothing, except for two kinds that only the server adds: `take_back`, after the
    events that reverse a move, and `seat_move`, before SeatLeft and SeatTaken of one player.
    """

    seat: int
    kind: str
    text: str


@immutable
class RoundOpened(EventType):
    """A round began, with the commitment to its secret and its deck, bottom first."""

    round: int
    deck: tuple[str, ...]
    entropy: str
    commit_ms: int
    reveal_ms: int
    commitment: bytes


@immutable
class ShuffleStarted(ShuffleEvent):
    """Shuffle `k` of the round began, of a stack of `n` cards."""

    round: int
    k: int
    stack: str
    n: int
    algorithm: str
    steps: int


@immutable
class EntropyCommitted(ShuffleEvent):
    """A seat's digest, 32 bytes, for shuffle `k`."""

    round: int
    k: int
    seat: int
    digest: bytes


@immutable
class EntropyClosed(ShuffleEvent):
    """No more digests are accepted for shuffle `k`; its checkpoint C1 follows."""

    CHECKPOINT: ClassVar[bool] = True

    round: int
    k: int


@immutable
class ShuffleVoided(ShuffleEvent):
    """Shuffle `k` ended without a seal, because a reveal was missing."""

    round: int
    k: int


@immutable
class EntropyRevealed(ShuffleEvent):
    """A seat's nonce, 32 bytes, for shuffle `k`."""

    round: int
    k: int
    seat: int
    nonce: bytes


@immutable
class CardsSwapped(ShuffleEvent):
    """Step `step` of shuffle `k` exchanged places `i` and `j`; `j` is hidden until the reveal."""

    HIDDEN: ClassVar[Hidden | None] = "j"
    COMMITMENT: ClassVar[Commitment] = "always"

    round: int
    k: int
    step: int
    i: int
    j: int | None


@immutable
class DeckSealed(ShuffleEvent):
    """The shuffled stack got new slots from `first` on, with a commitment, 32 bytes, for each."""

    CHECKPOINT: ClassVar[bool] = True

    round: int
    k: int
    first: int
    slots: tuple[bytes, ...]


@immutable
class CardDrawn(EventType):
    """A slot went from the deck or a pile into a seat's hand."""

    HIDDEN: ClassVar[Hidden | None] = "card"
    COMMITMENT: ClassVar[Commitment] = "always"

    round: int
    seat: int
    source: str
    slot: int
    card: str | None

    def private_face(self) -> PrivateFace | None:
        """The drawn card, for the seat that drew it."""
        return None if self.card is None else PrivateFace(self.seat, self.slot, self.card)


@immutable
class CardMoved(EventType):
    """A slot went from one stack to place `place` of another."""

    HIDDEN: ClassVar[Hidden | None] = "card"
    COMMITMENT: ClassVar[Commitment] = "into_hand"

    round: int
    slot: int
    source: str
    to: str
    place: int
    card: str | None  # None unless `to` is a hand

    def private_face(self) -> PrivateFace | None:
        """The card, for the seat whose hand it went to."""
        seat = seat_of(self.to)
        if seat is None or self.card is None:
            return None
        return PrivateFace(seat, self.slot, self.card)


@immutable
class CardShown(EventType):
    """A card was opened to everyone: code and the salt of its slot's commitment."""

    round: int
    slot: int
    card: str
    salt: bytes


@immutable
class CardPeeked(EventType):
    """A card was shown to one seat only."""

    HIDDEN: ClassVar[Hidden | None] = "card"  # stored for the seat, never committed to

    round: int
    slot: int
    seat: int
    card: str | None

    def private_face(self) -> PrivateFace | None:
        """The card, for the seat that it was shown to."""
        return None if self.card is None else PrivateFace(self.seat, self.slot, self.card)


@immutable
class StackCut(EventType):
    """A stack was cut: the cards from place `at` upwards went to the bottom."""

    round: int
    stack: str
    at: int


@immutable
class RoundClosed(EventType):
    """The round ended, and its secret was published."""

    CHECKPOINT: ClassVar[bool] = True

    round: int
    secret: bytes


@immutable
class TableClosed(EventType):
    """The table ended; no event follows."""

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

PRIVATE_FACE_TYPES = frozenset(name for name, kind in TYPES.items() if kind.HIDDEN == "card")
"""Names of the types of event that may show a face to one seat only."""
