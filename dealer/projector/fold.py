"""From what happened to how the tables look: pure, and with no secret.

The fold keeps a `Table` as the public sees it: no face that the log does not tell, and a shuffle
whose swaps it cannot follow. When a round closes, its secret is in the log, and the round is gone
through once more with everything in it (`dealer.projector.closing`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dealer.game.events import (
    CardDrawn,
    CardMoved,
    CardShown,
    CardsSwapped,
    DeckSealed,
    EntropyClosed,
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
from dealer.game.stacks import hand
from dealer.game.state import Player, Round, Shuffle, Table, evolve
from dealer.projector.changes import Cards, Changes
from dealer.projector.closing import close_round
from dealer.projector.happened import Contradiction, Happened, Stream
from dealer.proof.canonical import dump


def fold(stream: Stream, table: Table, happened: Iterable[Happened]) -> Changes:
    """The rows that `happened` changes, one event after the other; `table` moves along with it.

    `table` needs the open round and the version only; who had sat down before the round opened
    may be missing. After a Contradiction `table` is worth nothing.
    """
    folding = _Folding(stream, table)
    for one in happened:
        version = folding.version
        try:
            folding.apply(one)
        except (ValueError, KeyError, IndexError) as error:
            raise Contradiction(version, error) from error
    return folding.finish()


def believe(table: Table, event: Event, at: int) -> None:
    """`evolve` for a table that was rebuilt from its open round's beginning on.

    Who leaves may have sat down before that; nothing else of theirs is asked for.
    """
    if isinstance(event, SeatLeft):
        table.seats.setdefault(event.seat, Player("", None, 0))
    evolve(table, event, at)


class _Folding:
    def __init__(self, stream: Stream, table: Table) -> None:
        self.stream = stream
        self.table = table
        self.changes = Changes()
        self._before: dict[str, Cards] = {}
        self._turned: set[int] = set()
        self._opened_rounds: int | None = None
        self._closed_at: int | None = None

    def apply(self, happened: Happened) -> None:
        event, at, opened = happened
        rule = _RULES.get(type(event))
        if rule is not None:
            rule(self, event, at)
        if isinstance(event, RoundClosed):
            self._close(event, at, opened)
        believe(self.table, event, at)

    def finish(self) -> Changes:
        self._lay()
        number, table = self.stream.number, self.table
        last = (table.version, self._opened_rounds, self._closed_at, number)
        self.changes.touch("table", last)
        return self.changes

    @property
    def version(self) -> int:
        """Of the event that is being applied."""
        return self.table.version + 1

    @property
    def round(self) -> Round:
        if self.table.round is None:
            raise ValueError(f"version {self.version} needs an open round")
        return self.table.round

    @property
    def shuffle(self) -> Shuffle:
        if self.round.shuffle is None:
            raise ValueError(f"version {self.version} needs a shuffle that runs")
        return self.round.shuffle

    # Who sits there

    def table_opened(self, event: TableOpened, at: int) -> None:
        name = event.rules.get("name")
        self.changes.add(
            "tables",
            (
                self.stream.number, self.stream.table.hex(),
                name if isinstance(name, str) else None, event.origin,
                event.key.hex(), dump(dict(event.rules)), at, None, 0, 0,
            ),
        )  # fmt: skip

    def table_closed(self, event: TableClosed, at: int) -> None:
        self._closed_at = at

    def seat_taken(self, event: SeatTaken, at: int) -> None:
        key = None if event.key is None else event.key.hex()
        row = (self.stream.number, event.seat, self.version, at, event.name, key, None, None)
        self.changes.add("seats", row)

    def seat_left(self, event: SeatLeft, at: int) -> None:
        left = (self.version, at, self.stream.number, event.seat, self.version)
        self.changes.touch("seat left", left)

    # Rounds and shuffles

    def round_opened(self, event: RoundOpened, at: int) -> None:
        row = (
            self.stream.number, event.round, self.version, at, len(event.deck), event.entropy,
            event.commitment.hex(), None, None, None,
        )  # fmt: skip
        self.changes.add("rounds", row)
        self._opened_rounds = event.round
        self._before = {"deck": []}

    def shuffle_started(self, event: ShuffleStarted, at: int) -> None:
        row = (
            self.stream.number, event.round, event.k, event.stack, event.n, event.algorithm,
            event.steps, self.version, at, None, None, None, "running", None, None, None,
        )  # fmt: skip
        self.changes.add("shuffles", row)

    def entropy_closed(self, event: EntropyClosed, at: int) -> None:
        committed = len(self.shuffle.digests)
        row = (self.version, committed, self.stream.number, event.round, event.k)
        self.changes.touch("entropy gathered", row)

    def shuffle_voided(self, event: ShuffleVoided, at: int) -> None:
        self._end_shuffle("voided", None, at)

    def swapped(self, event: CardsSwapped, at: int) -> None:
        self._touch(self.shuffle.stack)

    def sealed(self, event: DeckSealed, at: int) -> None:
        self._touch(self.shuffle.stack)
        self._end_shuffle("sealed", event.first, at)

    def _end_shuffle(self, outcome: str, first: int | None, at: int) -> None:
        round_, shuffle = self.round, self.shuffle
        ended = (outcome, self.version, at, len(shuffle.nonces), first)
        self.changes.touch("shuffle ended", (*ended, self.stream.number, round_.number, shuffle.k))

    def _close(self, event: RoundClosed, at: int, opened: Sequence[tuple[int, Event]]) -> None:
        number, round_ = self.stream.number, self.round
        for stack in round_.stacks:
            self._touch(stack)
        closed = (self.version, at, event.secret.hex(), number, event.round)
        self.changes.touch("round closed", closed)
        close_round(number, round_, self._before, opened, self.changes)
        self._before, self._turned = {}, set()

    # Cards

    def drawn(self, event: CardDrawn, at: int) -> None:
        target = hand(event.seat)
        self._move("CardDrawn", at, event.slot, event.source, target, None)

    def moved(self, event: CardMoved, at: int) -> None:
        self._move("CardMoved", at, event.slot, event.source, event.to, event.place)

    def _move(
        self, name: str, at: int, slot: int, source: str, target: str, place: int | None
    ) -> None:
        self._touch(source)
        self._touch(target)
        round_ = self.round
        cards = round_.cards(source)
        last = len(cards) - 1
        from_place = last if cards[last] == slot else cards.index(slot)
        to_place = len(round_.cards(target)) if place is None else place
        self.changes.add(
            "moves",
            (
                self.stream.number, self.version, at, round_.number, name, source, from_place,
                target, to_place, slot, round_.faces[slot], int(slot in round_.shown),
            ),
        )  # fmt: skip

    def shown(self, event: CardShown, at: int) -> None:
        round_, slot = self.round, event.slot
        stack = round_.stack_of(slot)
        if stack is None:
            raise ValueError(f"slot {slot} is not on the table")
        self._touch(stack)
        self._turned.add(slot)
        number, place = self.stream.number, round_.cards(stack).index(slot)
        self.changes.add(
            "moves",
            (
                number, self.version, at, round_.number, "CardShown", stack, place,
                stack, place, slot, event.card, 1,
            ),
        )  # fmt: skip
        began = self.table.openings[-1]
        self.changes.touch("face told", (event.card, number, began, self.version, slot))

    def cut(self, event: StackCut, at: int) -> None:
        self._touch(event.stack)
        self.changes.add(
            "moves",
            (
                self.stream.number, self.version, at, event.round, "StackCut", event.stack,
                event.at, event.stack, 0, None, None, 0,
            ),
        )  # fmt: skip

    # Stacks

    def _touch(self, stack: str) -> None:
        """Remembers how a stack was before the first change, to write only what differs."""
        if stack not in self._before:
            self._before[stack] = public(self.round, stack)

    def _lay(self) -> None:
        if not self._before:
            return
        round_ = self.round
        for stack, before in self._before.items():
            self.changes.lay(
                (self.stream.number, round_.number, stack),
                before=before,
                after=public(round_, stack),
                opened=round_.opened,
                faces=round_.faces,
                turned=self._turned,
            )


def public(round_: Round, stack: str) -> Cards:
    """A stack's cards as the public knows them; between swap and seal it cannot tell any."""
    shuffle = round_.shuffle
    if shuffle is not None and shuffle.blind and shuffle.stack == stack:
        return [None] * shuffle.n
    return list(round_.cards(stack))


_RULES: dict[type[Event], Callable[..., None]] = {
    TableOpened: _Folding.table_opened,
    TableClosed: _Folding.table_closed,
    SeatTaken: _Folding.seat_taken,
    SeatLeft: _Folding.seat_left,
    RoundOpened: _Folding.round_opened,
    ShuffleStarted: _Folding.shuffle_started,
    EntropyClosed: _Folding.entropy_closed,
    ShuffleVoided: _Folding.shuffle_voided,
    CardsSwapped: _Folding.swapped,
    DeckSealed: _Folding.sealed,
    CardDrawn: _Folding.drawn,
    CardMoved: _Folding.moved,
    CardShown: _Folding.shown,
    StackCut: _Folding.cut,
}
