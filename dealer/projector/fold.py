"""Folds events into changes of the read models; pure, without secrets.

The fold keeps a `Table` in its public state: hidden faces and the swaps of a running shuffle are
unknown. When a round closes its secret is published, and all of its rows are written again
(`dealer.projector.closed_round`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from dealer.game import events
from dealer.game.events import Event
from dealer.game.stacks import DECK, hand
from dealer.game.state import Player, Round, Shuffle, Table, evolve
from dealer.projector import changes
from dealer.projector.models import MoveRow, RoundRow, SeatRow, ShuffleRow, TableRow
from dealer.proof.canonical import dump

TimedEvent = tuple[Event, int]
"""An event and its time in milliseconds; its version follows from the ones before it."""


def fold(
    stream: changes.StreamKey, table: Table, timed_events: Iterable[TimedEvent]
) -> changes.Changes:
    """The rows that the events change, which close no round; `table` becomes the state after them.

    `table` needs the open round and the version only; players who sat down before the round opened
    may be missing. After an InconsistentEvent `table` must not be used again.
    """
    folding, rules = Folding(stream, table), Folding.RULES
    for event, at in timed_events:
        version, rule = table.version + 1, rules.get(type(event))
        try:  # `Folding.apply` without the call, and without hidden parts
            if rule is not None:
                rule(folding, event, at)
            evolve(table, event, at, public=True)
        except (ValueError, KeyError, IndexError) as error:
            raise changes.InconsistentEvent(version, error) from error
    return folding.finish()


class Folding:
    """The fold of one table's events into `changes`; see `fold`."""

    RULES: ClassVar[dict[type[Event], Callable[[Any, Any, int], None]]] = {}
    """The method that adds an event's rows, before the event is applied to `table`."""

    def __init__(self, stream: changes.StreamKey, table: Table) -> None:
        self.stream = stream
        self.table = table
        self.changes = changes.Changes()
        # Each stack that changed: the lowest place that did, and how many cards it had before.
        self._touched: dict[str, tuple[int, int]] = {}
        self._opened_rounds: int | None = None
        self._closed_at: int | None = None

    def apply(self, event: Event, at: int) -> None:
        rule = self.RULES.get(type(event))
        if rule is not None:
            rule(self, event, at)
        evolve(self.table, event, at)

    def finish(self) -> changes.Changes:
        """The changes, once the last event was applied: also of the stacks."""
        round_ = self.table.round
        for stack, (lowest, before) in self._touched.items():
            if round_ is None:
                raise ValueError("only an open round has stacks")
            key = (self.stream.id, round_.number, stack)
            shuffle, cards = round_.shuffle, round_.cards(stack)
            if len(cards) < before:
                self.changes.shorten(key, len(cards))
            unknown = shuffle is not None and shuffle.swaps_hidden and shuffle.stack == stack
            self.changes.put_cards(
                key,
                [None] * len(cards) if unknown else cards,
                first=lowest,
                opened=round_.opened,
                faces=round_.faces,
            )
        self.changes.update(self.reached(self.table.version))
        return self.changes

    def reached(self, version: int) -> changes.TableReached:
        """The change of the table's own row, which has this version then."""
        return changes.TableReached(version, self._opened_rounds, self._closed_at, self.stream.id)

    @property
    def version(self) -> int:
        """The version of the event that is being applied."""
        return self.table.version + 1

    @property
    def round(self) -> Round:
        if self.table.round is None:
            raise ValueError(f"version {self.version} needs an open round")
        return self.table.round

    @property
    def shuffle(self) -> Shuffle:
        if self.round.shuffle is None:
            raise ValueError(f"version {self.version} needs a running shuffle")
        return self.round.shuffle

    def touch(self, stack: str, place: int) -> None:
        """Write the places of a stack from this one on; to be called before they change."""
        known = self._touched.get(stack)
        if known is None:
            self._touched[stack] = place, len(self.round.cards(stack))
        elif place < known[0]:
            self._touched[stack] = place, known[1]

    # Table and seats

    def table_opened(self, event: events.TableOpened, at: int) -> None:
        row = TableRow(
            self.stream.id, self.stream.table.hex(), event.name, event.origin,
            event.key.hex(), dump(dict(event.rules)), opened_at=at, closed_at=None, rounds=0,
            events=0,
        )  # fmt: skip
        self.changes.add(row)

    def table_closed(self, event: events.TableClosed, at: int) -> None:
        self._closed_at = at

    def seat_taken(self, event: events.SeatTaken, at: int) -> None:
        key = None if event.key is None else event.key.hex()
        stream = self.stream.id
        self.changes.add(SeatRow(stream, event.seat, self.version, at, event.name, key))

    def seat_left(self, event: events.SeatGivenUp, at: int) -> None:
        # Who sat down before the round opened is missing in the state, and not needed otherwise.
        self.table.seats.setdefault(event.seat, Player("", None, 0))
        freed = changes.SeatFreed(self.version, at, self.stream.id, event.seat, self.version)
        self.changes.update(freed)

    # Rounds and shuffles

    def round_opened(self, event: events.RoundOpened, at: int) -> None:
        row = RoundRow(
            self.stream.id, event.round, self.version, at, len(event.deck), event.entropy,
            event.commitment.hex(),
        )  # fmt: skip
        self.changes.add(row)
        self._opened_rounds = event.round
        self._touched[DECK] = 0, 0

    def shuffle_started(self, event: events.ShuffleStarted, at: int) -> None:
        row = ShuffleRow(
            self.stream.id, event.round, event.k, event.stack, event.n, event.algorithm,
            event.steps, self.version, at,
        )  # fmt: skip
        self.changes.add(row)

    def entropy_closed(self, event: events.EntropyClosed, at: int) -> None:
        committed = len(self.shuffle.digests)
        stream = self.stream.id
        self.changes.update(
            changes.EntropyGathered(self.version, committed, stream, event.round, event.k)
        )

    def shuffle_voided(self, event: events.ShuffleVoided, at: int) -> None:
        self._end_shuffle("voided", None, at)

    def swapped(self, event: events.CardsSwapped, at: int) -> None:
        if not self.shuffle.swaps_hidden:  # the first one, from which on no place is known
            self.touch(self.shuffle.stack, 0)

    def sealed(self, event: events.DeckSealed, at: int) -> None:
        self.touch(self.shuffle.stack, 0)
        self._end_shuffle("sealed", event.first, at)

    def _end_shuffle(self, outcome: str, first: int | None, at: int) -> None:
        round_, shuffle = self.round, self.shuffle
        ended = changes.ShuffleEnded(
            outcome, self.version, at, len(shuffle.nonces), first,
            self.stream.id, round_.number, shuffle.k,
        )  # fmt: skip
        self.changes.update(ended)

    # Cards

    def moved(self, event: events.CardDrawn | events.CardMoved, at: int) -> None:
        slot, source = event.slot, event.source
        if isinstance(event, events.CardDrawn):
            name, target, place = "CardDrawn", hand(event.seat), None
        else:
            name, target, place = "CardMoved", event.to, event.place
        touched, round_ = self._touched, self.table.round or self.round
        cards = round_.stacks[source]
        last = len(cards) - 1
        from_place = last if cards[last] == slot else cards.index(slot)
        length = len(round_.stacks.get(target, ()))
        to_place = length if place is None else place
        # `touch` and `add` without the calls, which most events would make.
        known = touched.get(source)
        if known is None:
            touched[source] = from_place, last + 1
        elif from_place < known[0]:
            touched[source] = from_place, known[1]
        known = touched.get(target)
        if known is None:
            touched[target] = to_place, length
        elif to_place < known[0]:
            touched[target] = to_place, known[1]
        row = MoveRow(
            self.stream.id, self.table.version + 1, at, round_.number, name, source,
            from_place, target, to_place, slot, round_.faces[slot], int(slot in round_.shown),
        )  # fmt: skip
        moves = self.changes.added.get(MoveRow)
        if moves is None:
            moves = self.changes.added[MoveRow] = []
        moves.append(row)

    def shown(self, event: events.CardShown, at: int) -> None:
        round_, slot = self.round, event.slot
        stack = round_.stack_of(slot)
        if stack is None:
            raise ValueError(f"slot {slot} is not on the table")
        place = round_.cards(stack).index(slot)
        self.touch(stack, place)
        row = MoveRow(
            self.stream.id, self.version, at, round_.number, "CardShown", stack, place, stack,
            place, slot, event.card, shown=1,
        )  # fmt: skip
        self.changes.add(row)

    def shown_earlier(self, event: events.CardShown, at: int) -> None:
        """Also write the face to the earlier moves of the round, which are without it."""
        self.shown(event, at)
        began, stream = self.table.round_versions[-1], self.stream.id
        self.changes.update(changes.FaceShown(event.card, stream, began, self.version, event.slot))

    def cut(self, event: events.StackCut, at: int) -> None:
        self.touch(event.stack, 0)
        row = MoveRow(
            self.stream.id, self.version, at, event.round, "StackCut", event.stack, event.at,
            event.stack, target_place=0, slot=None, card=None, shown=0,
        )  # fmt: skip
        self.changes.add(row)


Folding.RULES = {
    events.TableOpened: Folding.table_opened,
    events.TableClosed: Folding.table_closed,
    events.SeatTaken: Folding.seat_taken,
    events.SeatLeft: Folding.seat_left,
    events.SeatVacated: Folding.seat_left,
    events.RoundOpened: Folding.round_opened,
    events.ShuffleStarted: Folding.shuffle_started,
    events.EntropyClosed: Folding.entropy_closed,
    events.ShuffleVoided: Folding.shuffle_voided,
    events.CardsSwapped: Folding.swapped,
    events.DeckSealed: Folding.sealed,
    events.CardDrawn: Folding.moved,
    events.CardMoved: Folding.moved,
    events.CardShown: Folding.shown_earlier,
    events.StackCut: Folding.cut,
}
