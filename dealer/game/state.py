"""State of a table: its players, and the cards of the open round.

The state is the fold of the table's events. `evolve` applies an event without validation and
changes the state in place, since copying a table for every event would be expensive. The server
folds complete events; a client folds what it received, with None for faces hidden from it.

A card on a stack is an int: `~place`, the complement of its place in the round's opening deck,
until a shuffle of its stack is sealed; its slot from then on.

`copy_table` makes a copy that stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import NamedTuple, assert_never

from dealer.game import events
from dealer.game.events import SEAT_MOVE, TAKE_BACK, Event
from dealer.game.moves import CardFrom, CardsMoved, Moves
from dealer.game.names import look_alike
from dealer.game.rules import Rules
from dealer.game.shuffle import full
from dealer.game.stacks import DECK, hand, seat_of

COMMITMENT_BYTES = 32

SEAT_CHANGE = re.compile(r"([1-9][0-9]{0,9})-([1-9][0-9]{0,9})")
"""The text of these two notes: the seats before and after the move."""


READMIT = "readmit"
"""The kind of the note by which a host or a service lets a removed player sit down again."""

_AWAY = re.compile(r"away for [0-9,]+ (second|minute)s?")
"""The reason of the server when other players free the seat of one who is absent."""


class SeatHolder(NamedTuple):
    """A player as the holder of a seat.

    `taken_at`, the version of the SeatTaken event, distinguishes this player from those who held
    the same seat before or hold it later.
    """

    seat: int
    taken_at: int


@dataclass(slots=True)
class Player:
    """The player of a seat; `bot` is a program's claim to be one."""

    name: str
    key: bytes | None
    taken_at: int  # version of the SeatTaken event
    bot: bool = False


@dataclass(slots=True)
class Shuffle:
    """A shuffle that has started and is not sealed yet."""

    k: int
    stack: str
    n: int
    algorithm: str
    steps: int
    started_at: int
    digests: dict[int, bytes]
    before: tuple[int, ...] = ()  # the stack at the start of the shuffle
    nonces: dict[int, bytes] = field(default_factory=dict)
    closed_version: int = 0  # version of EntropyClosed, the size of C1; 0 before it
    closed_at: int = 0
    swaps_hidden: bool = False  # the j of a swap was hidden from this reader

    def missing(self) -> list[int]:
        """Seats that sent a digest and no nonce yet."""
        return [seat for seat in self.digests if seat not in self.nonces]

    def ready(self) -> bool:
        """Whether the digests are closed and all of them opened."""
        return self.closed_version > 0 and len(self.nonces) == len(self.digests)

    def entropy(self) -> list[bytes]:
        """The players' nonces in ascending order of seats."""
        return [self.nonces[seat] for seat in sorted(self.nonces)]


@dataclass(slots=True)
class Round:
    """The open round: its stacks, slots and shuffle."""

    number: int
    opened: tuple[str, ...]
    entropy: str
    commit_ms: int
    reveal_ms: int
    commitment: bytes
    stacks: dict[str, list[int]]
    k: int = 0  # number of the running shuffle, or of the next one
    shuffle: Shuffle | None = None
    early_digests: dict[int, bytes] = field(default_factory=dict)  # sent before their shuffle
    withheld: set[int] = field(default_factory=set)  # seats that failed to reveal in this round
    faces: list[str | None] = field(default_factory=list)  # by slot
    sealed: bytearray = field(default_factory=bytearray)  # commitments by slot, 32 bytes each
    drawable: bytearray = field(default_factory=bytearray)  # by slot: 1 if a shuffle reached it
    shown: set[int] = field(default_factory=set)  # slots whose face is public
    known: dict[int, set[int]] = field(default_factory=dict)  # seat → slots it has seen
    moves: Moves = field(default_factory=Moves)  # that can be taken back

    def cards(self, stack: str) -> list[int]:
        """The cards of a stack, bottom first; empty for a stack that was never used."""
        return self.stacks.get(stack, [])

    def face(self, card: int) -> str | None:
        """The code of a card; None if this reader may not know it."""
        return self.faces[card] if card >= 0 else self.opened[~card]

    def commitment_of(self, slot: int) -> bytes:
        """The sealed commitment of a slot, 32 bytes."""
        return bytes(self.sealed[COMMITMENT_BYTES * slot : COMMITMENT_BYTES * (slot + 1)])

    def stack_of(self, slot: int) -> str | None:
        """The stack that holds this slot; None if a later shuffle replaced the slot."""
        return next((name for name, cards in self.stacks.items() if slot in cards), None)

    def sees(self, seat: int | None, slot: int) -> bool:
        """Whether a seat, or a spectator (None), may know the face of this slot."""
        return slot in self.shown or (seat is not None and slot in self.known.get(seat, ()))

    def all_shuffled(self, cards: Iterable[int]) -> bool:
        """Whether shuffles have reached all of these cards."""
        return all(card >= 0 and self.drawable[card] for card in cards)


@dataclass(slots=True)
class Table:
    """The state of a table, evolved from its events.

    `host_seat` is the seat of the player whom the host made host; None while the host is the one
    who opened the table. `moved` has the players who moved to another seat and are still there:
    each holder that they were, with the one that they are. `removed` has the names of players whom
    the host or a service removed for a reason: they stay out until they are readmitted.
    """

    version: int = 0
    at: int = 0
    origin: str = ""
    key: bytes = b""
    rules: Rules = field(default_factory=Rules)
    seats: dict[int, Player] = field(default_factory=dict)
    host_seat: int | None = None
    round: Round | None = None
    round_versions: list[int] = field(default_factory=list)  # of the RoundOpened events
    closed: bool = False
    moved: dict[SeatHolder, SeatHolder] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)

    def holder(self, seat: int | None) -> SeatHolder | None:
        """The current holder of a seat; None if the seat is free."""
        player = None if seat is None else self.seats.get(seat)
        return None if seat is None or player is None else SeatHolder(seat, player.taken_at)

    def next_at(self, now: int) -> int:
        """The time of a command that is decided at `now`, in milliseconds; never before the last.

        After a move it is later than that move, so that the log distinguishes the two.
        """
        at = max(now, self.at)
        # Only after a move that may be taken back: a stream of draws keeps the clock's time.
        last = None if self.round is None else self.round.moves.last
        return at + 1 if last is not None and last.at == at else at

    def still_seated(self, holder: SeatHolder) -> bool:
        """Whether the seat still belongs to the player who took it at `holder.taken_at`."""
        player = self.seats.get(holder.seat)
        return player is not None and player.taken_at == holder.taken_at

    def latest(self, holder: SeatHolder) -> SeatHolder:
        """The player at the seat that they have moved to; `holder` if they have not moved."""
        return self.moved.get(holder, holder)

    def earliest(self, holder: SeatHolder) -> SeatHolder:
        """The player at the seat that they took when they joined."""
        return min(self._earlier(holder), key=attrgetter("taken_at"), default=holder)

    def seat_at(self, holder: SeatHolder, version: int) -> int | None:
        """The seat that the same player had at a version; None before they joined."""
        seats = (one for one in (holder, *self._earlier(holder)) if one.taken_at <= version)
        latest = max(seats, key=attrgetter("taken_at"), default=None)
        return None if latest is None else latest.seat

    def _earlier(self, holder: SeatHolder) -> list[SeatHolder]:
        """The player at the seats that they have moved from."""
        return [first for first, later in self.moved.items() if later == holder]


def evolve(table: Table, event: Event, at: int, *, public: bool = False) -> None:
    """Apply `event`, recorded at millisecond `at`, to `table` in place, without validation.

    With `public` its hidden part is left out, as by a reader of the public log. Raises ValueError
    for an event that needs an open round or a running shuffle if there is none.
    """
    table.version += 1
    table.at = at
    match event:
        case events.CardDrawn(seat=seat, source=source, slot=slot, card=card):
            _move(table, slot, source, hand(seat), seat, None, None if public else card)
        case events.CardsSwapped(i=i, j=j):
            round_, shuffle = _shuffling(table)
            if j is None or public:
                shuffle.swaps_hidden = True
            else:
                cards = round_.stacks[shuffle.stack]
                cards[i], cards[j] = cards[j], cards[i]
        case events.CardMoved(slot=slot, source=source, to=to, place=place, card=card):
            _move(table, slot, source, to, seat_of(to), place, None if public else card)
        case events.CardShown(slot=slot, card=card):
            round_ = _round(table)
            round_.shown.add(slot)
            round_.faces[slot] = card
            round_.moves.shown(slot, at)
        case events.CardPeeked(slot=slot, seat=seat, card=card):
            round_ = _round(table)
            round_.known.setdefault(seat, set()).add(slot)
            if card is not None and not public:
                round_.faces[slot] = card
            round_.moves.last = None
        case events.StackCut(stack=stack, at=place):
            round_ = _round(table)
            cards = round_.cards(stack)
            cards[:] = cards[place:] + cards[:place]
            round_.moves.last = None
        case events.EntropyCommitted(k=k, seat=seat, digest=digest):
            round_ = _round(table)
            running = round_.shuffle
            digests = running.digests if running and running.k == k else round_.early_digests
            digests[seat] = digest
        case events.EntropyRevealed(seat=seat, nonce=nonce):
            _, shuffle = _shuffling(table)
            shuffle.nonces[seat] = nonce
        case events.EntropyClosed():
            _, shuffle = _shuffling(table)
            shuffle.closed_version = table.version
            shuffle.closed_at = at
        case events.ShuffleStarted():
            _start_shuffle(table, event, at)
        case events.ShuffleVoided():
            round_, shuffle = _shuffling(table)
            round_.withheld.update(shuffle.missing())
            round_.k += 1
            round_.shuffle = None
        case events.DeckSealed():
            _seal(table, event)
        case events.RoundOpened():
            _open_round(table, event)
        case events.RoundClosed():
            table.round = None
        case events.NoteAdded(seat=seat, kind=kind, text=text):
            if kind == TAKE_BACK and table.round is not None:
                table.round.moves.last = None
            elif kind == SEAT_MOVE:
                _note_move(table, seat, text)
            elif kind == READMIT:
                table.removed = {name for name in table.removed if not look_alike(name, text)}
        case events.SeatTaken(seat=seat, name=name, key=key, bot=bot):
            table.seats[seat] = Player(name, key, table.version, bot)
        case events.SeatLeft(seat=seat):
            _leave(table, seat)
        case events.SeatVacated(seat=seat, by=by, reason=reason):
            if reason and not (by == "service" and _AWAY.fullmatch(reason)):
                table.removed.add(table.seats[seat].name)
            _leave(table, seat)
        case events.HostTransferred(seat=seat):
            table.host_seat = seat
        case events.TableOpened(origin=origin, key=key, rules=rules, name=name):
            table.origin, table.key = origin, key
            table.rules = Rules.read(rules if name is None else {**rules, "name": name})
        case events.TableClosed():
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
        raise ValueError(f"version {table.version} needs a running shuffle")
    return round_, round_.shuffle


def _open_round(table: Table, event: events.RoundOpened) -> None:
    table.round_versions.append(table.version)
    table.round = Round(
        number=event.round,
        opened=event.deck,
        entropy=event.entropy,
        commit_ms=event.commit_ms,
        reveal_ms=event.reveal_ms,
        commitment=event.commitment,
        stacks={DECK: [~place for place in range(len(event.deck))]},
    )


def _start_shuffle(table: Table, event: events.ShuffleStarted, at: int) -> None:
    round_ = _round(table)
    round_.moves.last = None
    round_.shuffle = Shuffle(
        k=event.k,
        stack=event.stack,
        n=event.n,
        algorithm=event.algorithm,
        steps=event.steps,
        started_at=at,
        digests=round_.early_digests,
        before=tuple(round_.cards(event.stack)),
    )
    round_.early_digests = {}


def _move(
    table: Table,
    slot: int,
    source: str,
    to: str,
    seat: int | None,
    place: int | None,
    card: str | None,
) -> None:
    """Move a card to a place, or to the top (None); `seat`, whose hand `to` is, learns its face."""
    round_ = table.round or _round(table)
    cards = round_.stacks[source]
    if source == DECK:
        round_.moves.last = None
        if cards[-1] == slot:
            cards.pop()
        else:
            cards.remove(slot)
    else:
        left = len(cards) - 1 if cards[-1] == slot else cards.index(slot)
        del cards[left]
        round_.moves.record(
            CardFrom(slot, left),
            version=table.version,
            at=table.at,
            source=source,
            to=to,
            drawn=place is None,
            known=seat is None or round_.sees(seat, slot),
        )
    target = round_.stacks.get(to)
    if target is None:
        target = round_.stacks[to] = []
    if place is None:
        target.append(slot)
    else:
        target.insert(place, slot)
    if seat is None:
        return
    known = round_.known.get(seat)
    if known is None:
        known = round_.known[seat] = set()
    known.add(slot)
    if card is not None:
        round_.faces[slot] = card


def _seal(table: Table, event: events.DeckSealed) -> None:
    """Give every place of the stack a new slot, so that no known card can be followed."""
    round_, shuffle = _shuffling(table)
    cards = round_.stacks.setdefault(shuffle.stack, [])
    n = len(cards)
    untouched = 0 if shuffle.steps == full(n) or round_.all_shuffled(cards) else n - shuffle.steps
    round_.faces.extend(None if shuffle.swaps_hidden else round_.face(card) for card in cards)
    round_.drawable.extend(bytes(untouched) + b"\x01" * (n - untouched))
    round_.sealed.extend(b"".join(event.slots))
    replaced = set(cards)
    round_.moves.drop(replaced)
    round_.shown -= replaced
    for slots in round_.known.values():
        slots -= replaced
    cards[:] = range(event.first, event.first + n)
    round_.k += 1
    round_.shuffle = None


def _note_move(table: Table, seat: int, text: str) -> None:
    """The two events that follow in the same append are SeatLeft and SeatTaken of this player."""
    match, holder = SEAT_CHANGE.fullmatch(text), table.holder(seat)
    if match is not None and holder is not None and int(match[1]) == seat:
        later = SeatHolder(int(match[2]), table.version + 2)
        table.moved = {
            earlier: later if now == holder else now for earlier, now in table.moved.items()
        } | {holder: later}


def _leave(table: Table, seat: int) -> None:
    """Free a seat. Its hand stays; the seat no longer knows other faces that its player saw."""
    player = table.seats.pop(seat)
    if table.moved:
        left = SeatHolder(seat, player.taken_at)
        table.moved = {earlier: now for earlier, now in table.moved.items() if now != left}
    if table.host_seat == seat:
        table.host_seat = None
    round_ = table.round
    if round_ is None:
        return
    round_.early_digests.pop(seat, None)
    round_.moves.left(seat)
    if round_.shuffle is not None and not round_.shuffle.closed_version:
        round_.shuffle.digests.pop(seat, None)
    if seat in round_.known:
        round_.known[seat].intersection_update(round_.cards(hand(seat)))


def copy_table(table: Table) -> Table:
    """A state that is equal to `table` and shares nothing with it that can change."""
    return replace(
        table,
        seats={seat: replace(player) for seat, player in table.seats.items()},
        round=None if table.round is None else _copy_of_round(table.round),
        round_versions=list(table.round_versions),
        moved=dict(table.moved),
        removed=set(table.removed),
    )


def _copy_of_round(round_: Round) -> Round:
    return replace(
        round_,
        stacks={name: list(cards) for name, cards in round_.stacks.items()},
        shuffle=None if round_.shuffle is None else _copy_of_shuffle(round_.shuffle),
        early_digests=dict(round_.early_digests),
        withheld=set(round_.withheld),
        faces=list(round_.faces),
        sealed=bytearray(round_.sealed),
        drawable=bytearray(round_.drawable),
        shown=set(round_.shown),
        known={seat: set(slots) for seat, slots in round_.known.items()},
        moves=_copy_of_moves(round_.moves),
    )


def _copy_of_shuffle(shuffle: Shuffle) -> Shuffle:
    return replace(shuffle, digests=dict(shuffle.digests), nonces=dict(shuffle.nonces))


def _copy_of_moves(moves: Moves) -> Moves:
    last = None if moves.last is None else _copy_of_moved(moves.last)
    return Moves(last, {seat: _copy_of_moved(passed) for seat, passed in moves.passed.items()})


def _copy_of_moved(moved: CardsMoved) -> CardsMoved:
    return replace(moved, cards=list(moved.cards))
