"""How a table stands: who sits where, and which card lies in which place.

The state is the fold of a table's events: `evolve` believes each event and changes the state in
place (a resident table is never copied). The house folds whole events; a client folds what it was
shown, and has None where a face is hidden from it.

A card on a stack is an int. Before its stack was first sealed it is `~place`, the complement of its
place in the round's opening deck; from then on it is its slot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

from dealer.game.events import (
    CardDrawn,
    CardMoved,
    CardPeeked,
    CardShown,
    CardsSwapped,
    DeckSealed,
    EntropyClosed,
    EntropyCommitted,
    EntropyRevealed,
    Event,
    RoundClosed,
    RoundOpened,
    SeatLeft,
    SeatTaken,
    ShuffleStarted,
    ShuffleVoided,
    StackCut,
    TableClosed,
    TableOpened,
)
from dealer.game.rules import Rules
from dealer.game.shuffle import full
from dealer.game.stacks import DECK, hand, seat_of

COMMITMENT_BYTES = 32


@dataclass(slots=True)
class Player:
    name: str
    key: bytes | None
    since: int  # the version of their SeatTaken


@dataclass(slots=True)
class Shuffle:
    """A shuffle between its start and its seal."""

    k: int
    stack: str
    n: int
    algorithm: str
    steps: int
    started_at: int
    digests: dict[int, bytes]
    before: tuple[int, ...] = ()  # the stack as it lay when the shuffle started
    nonces: dict[int, bytes] = field(default_factory=dict)
    closed_version: int = 0  # the size of C1; 0 while digests are awaited
    closed_at: int = 0
    blind: bool = False  # some swap was hidden from this reader

    def missing(self) -> list[int]:
        """Seats that committed and have not revealed."""
        return [seat for seat in self.digests if seat not in self.nonces]

    def ready(self) -> bool:
        """Whether all that the tape needs is there."""
        return self.closed_version > 0 and len(self.nonces) == len(self.digests)

    def entropy(self) -> list[bytes]:
        """The players' nonces in order of seats."""
        return [self.nonces[seat] for seat in sorted(self.nonces)]


@dataclass(slots=True)
class Round:
    number: int
    opened: tuple[str, ...]
    entropy: str
    commit_ms: int
    reveal_ms: int
    commitment: bytes
    stacks: dict[str, list[int]]
    k: int = 0  # of the shuffle that runs or comes next
    shuffle: Shuffle | None = None
    ahead: dict[int, bytes] = field(default_factory=dict)  # digests that came before their shuffle
    withheld: set[int] = field(default_factory=set)
    faces: list[str | None] = field(default_factory=list)  # by slot
    sealed: bytearray = field(default_factory=bytearray)  # commitments by slot, 32 bytes each
    drawable: bytearray = field(default_factory=bytearray)  # by slot: 1 where a shuffle reached it
    shown: set[int] = field(default_factory=set)  # slots whose face everybody knows
    known: dict[int, set[int]] = field(default_factory=dict)  # seat → slots it has seen

    def cards(self, stack: str) -> list[int]:
        """The cards of a stack, bottom first; none where nothing was ever put."""
        return self.stacks.get(stack, [])

    def face(self, card: int) -> str | None:
        return self.faces[card] if card >= 0 else self.opened[~card]

    def commitment_of(self, slot: int) -> bytes:
        return bytes(self.sealed[COMMITMENT_BYTES * slot : COMMITMENT_BYTES * (slot + 1)])

    def stack_of(self, slot: int) -> str | None:
        """Where the card in this slot lies; None if the slot is not on the table any more."""
        return next((name for name, cards in self.stacks.items() if slot in cards), None)

    def sees(self, seat: int | None, slot: int) -> bool:
        """Whether a seat, or somebody without one, may know the face in this slot."""
        return slot in self.shown or (seat is not None and slot in self.known.get(seat, ()))

    def mixed(self, cards: Iterable[int]) -> bool:
        """Whether a shuffle has reached every one of these cards."""
        return all(card >= 0 and self.drawable[card] for card in cards)


@dataclass(slots=True)
class Table:
    version: int = 0
    at: int = 0
    origin: str = ""
    key: bytes = b""
    rules: Rules = field(default_factory=Rules)
    seats: dict[int, Player] = field(default_factory=dict)
    round: Round | None = None
    openings: list[int] = field(default_factory=list)  # versions of the RoundOpened so far
    closed: bool = False


def replay(events: Iterable[tuple[Event, int]]) -> Table:
    """The state after events, each with its time in milliseconds, from the first one on."""
    table = Table()
    for event, at in events:
        evolve(table, event, at)
    return table


def evolve(table: Table, event: Event, at: int) -> None:
    """Let `event`, which happened at millisecond `at`, be true of `table`."""
    table.version += 1
    table.at = at
    match event:
        case CardDrawn(_, seat, source, slot, card):
            _move(table, slot, source, hand(seat), None, card)
        case CardsSwapped(_, _, _, i, j):
            round_, shuffle = _shuffling(table)
            if j is None:
                shuffle.blind = True
            else:
                cards = round_.stacks[shuffle.stack]
                cards[i], cards[j] = cards[j], cards[i]
        case CardMoved(_, slot, source, to, place, card):
            _move(table, slot, source, to, place, card)
        case CardShown(_, slot, card, _):
            round_ = _round(table)
            round_.shown.add(slot)
            round_.faces[slot] = card
        case CardPeeked(_, slot, seat, card):
            round_ = _round(table)
            _learn(round_, seat, slot, card)
        case StackCut(_, stack, place):
            cards = _round(table).cards(stack)
            cards[:] = cards[place:] + cards[:place]
        case EntropyCommitted(_, k, seat, digest):
            round_ = _round(table)
            running = round_.shuffle
            digests = running.digests if running and running.k == k else round_.ahead
            digests[seat] = digest
        case EntropyRevealed(_, _, seat, nonce):
            _, shuffle = _shuffling(table)
            shuffle.nonces[seat] = nonce
        case EntropyClosed():
            _, shuffle = _shuffling(table)
            shuffle.closed_version = table.version
            shuffle.closed_at = at
        case ShuffleStarted(_, k, stack, n, algorithm, steps):
            round_ = _round(table)
            before = tuple(round_.cards(stack))
            round_.shuffle = Shuffle(k, stack, n, algorithm, steps, at, round_.ahead, before)
            round_.ahead = {}
        case ShuffleVoided():
            round_, shuffle = _shuffling(table)
            round_.withheld.update(shuffle.missing())
            round_.k += 1
            round_.shuffle = None
        case DeckSealed():
            _seal(table, event)
        case RoundOpened(number, deck, entropy, commit_ms, reveal_ms, commitment):
            stacks = {DECK: [~place for place in range(len(deck))]}
            table.round = Round(number, deck, entropy, commit_ms, reveal_ms, commitment, stacks)
            table.openings.append(table.version)
        case RoundClosed():
            table.round = None
        case SeatTaken(seat, name, key):
            table.seats[seat] = Player(name, key, table.version)
        case SeatLeft(seat):
            _leave(table, seat)
        case TableOpened(origin, key, rules):
            table.origin, table.key, table.rules = origin, key, Rules.read(rules)
        case TableClosed():
            table.closed = True
        case _:
            assert_never(event)


def _round(table: Table) -> Round:
    if table.round is None:
        raise ValueError(f"version {table.version} needs an open round")
    return table.round


def _shuffling(table: Table) -> tuple[Round, Shuffle]:
    round_ = _round(table)
    if round_.shuffle is None:
        raise ValueError(f"version {table.version} needs a shuffle that runs")
    return round_, round_.shuffle


def _learn(round_: Round, seat: int, slot: int, card: str | None) -> None:
    round_.known.setdefault(seat, set()).add(slot)
    if card is not None:
        round_.faces[slot] = card


def _move(
    table: Table, slot: int, source: str, to: str, place: int | None, card: str | None
) -> None:
    """Move a card to a place, to the top if it is None; a hand that gets it learns its face."""
    round_ = _round(table)
    cards = round_.stacks[source]
    if cards[-1] == slot:
        cards.pop()
    else:
        cards.remove(slot)
    target = round_.stacks.get(to)
    if target is None:
        target = round_.stacks[to] = []
    if place is None:
        target.append(slot)
    else:
        target.insert(place, slot)
    seat = seat_of(to)
    if seat is not None:
        _learn(round_, seat, slot, card)


def _seal(table: Table, event: DeckSealed) -> None:
    """Give each place a new slot: nobody may follow a card that they knew through a shuffle."""
    round_, shuffle = _shuffling(table)
    cards = round_.stacks.setdefault(shuffle.stack, [])
    n = len(cards)
    untouched = 0 if shuffle.steps == full(n) or round_.mixed(cards) else n - shuffle.steps
    round_.faces.extend(None if shuffle.blind else round_.face(card) for card in cards)
    round_.drawable.extend(bytes(untouched) + b"\x01" * (n - untouched))
    round_.sealed.extend(b"".join(event.slots))
    gone = set(cards)
    round_.shown -= gone
    for slots in round_.known.values():
        slots -= gone
    cards[:] = range(event.first, event.first + n)
    round_.k += 1
    round_.shuffle = None


def _leave(table: Table, seat: int) -> None:
    """The hand stays with the seat; what else its player had seen is nobody's knowledge."""
    del table.seats[seat]
    round_ = table.round
    if round_ is None:
        return
    round_.ahead.pop(seat, None)
    if round_.shuffle is not None and not round_.shuffle.closed_version:
        round_.shuffle.digests.pop(seat, None)
    if seat in round_.known:
        round_.known[seat].intersection_update(round_.cards(hand(seat)))
