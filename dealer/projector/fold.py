"""Folds events into changes of the read models; pure, without secrets.

The fold keeps a `Table` in its public state: hidden faces and the swaps of a running shuffle are
unknown. When a round closes its secret is published, and the round is replayed with its hidden
parts (`dealer.projector.round_reveal`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from dealer.game import events
from dealer.game.events import Event
from dealer.game.stacks import hand
from dealer.game.state import Player, Round, Shuffle, Table, evolve
from dealer.projector.changes import Cards, Changes, Row
from dealer.projector.round_reveal import RoundReveal, close_round
from dealer.projector.types import InconsistentEvent, StreamKey
from dealer.proof.canonical import dump

TimedEvent = tuple[Event, int, RoundReveal | None]
"""An event and its time in milliseconds; its version follows from the ones before it. The third
member comes with RoundClosed alone: the round, replayed with its hidden parts."""


def fold(stream: StreamKey, table: Table, timed_events: Iterable[TimedEvent]) -> Changes:
    """The rows that the events change; `table` is updated to the state after them.

    `table` needs the open round and the version only; players who sat down before the round opened
    may be missing. After an InconsistentEvent `table` must not be used again.
    """
    folding = Folding(stream, table)
    for event, at, reveal in timed_events:
        version = table.version + 1
        try:
            folding.apply(event, at, reveal)
        except (ValueError, KeyError, IndexError) as error:
            raise InconsistentEvent(version, error) from error
    return folding.finish()


def evolve_partial(table: Table, event: Event, at: int) -> None:
    """`evolve` for a table that was rebuilt from the beginning of its open round.

    A player who leaves may have sat down before that; nothing else about the player is needed.
    """
    if isinstance(event, events.SeatGivenUp):
        table.seats.setdefault(event.seat, Player("", None, 0))
    evolve(table, event, at)


class Folding:
    """The fold of one table's events into `changes`; see `fold`.

    `REMEMBERS` says whether the stacks are kept as they were before their first change.
    """

    REMEMBERS: ClassVar[bool] = True

    def __init__(self, stream: StreamKey, table: Table) -> None:
        self.stream = stream
        self.table = table
        self.changes = Changes()
        self._before: dict[str, Cards] = {}
        self._newly_shown: set[int] = set()
        self._opened_rounds: int | None = None
        self._closed_at: int | None = None

    def apply(self, event: Event, at: int, reveal: RoundReveal | None = None) -> None:
        rule = _RULES.get(type(event))
        if rule is not None:
            rule(self, event, at)
        if isinstance(event, events.RoundClosed):
            self.close(reveal)
        if isinstance(event, events.SeatGivenUp):
            evolve_partial(self.table, event, at)
        else:
            evolve(self.table, event, at)

    def finish(self) -> Changes:
        self._write_stacks()
        self.changes.update("table", self.table_row(self.table.version))
        return self.changes

    def table_row(self, version: int) -> Row:
        return (version, self._opened_rounds, self._closed_at, self.stream.number)

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

    # Table and seats

    def table_opened(self, event: events.TableOpened, at: int) -> None:
        name = event.rules.get("name")
        self.changes.add(
            "tables",
            (
                self.stream.number, self.stream.table.hex(),
                name if isinstance(name, str) else None, event.origin,
                event.key.hex(), dump(dict(event.rules)), at, None, 0, 0,
            ),
        )  # fmt: skip

    def table_closed(self, event: events.TableClosed, at: int) -> None:
        self._closed_at = at

    def seat_taken(self, event: events.SeatTaken, at: int) -> None:
        key = None if event.key is None else event.key.hex()
        row = (self.stream.number, event.seat, self.version, at, event.name, key, None, None)
        self.changes.add("seats", row)

    def seat_left(self, event: events.SeatGivenUp, at: int) -> None:
        left = (self.version, at, self.stream.number, event.seat, self.version)
        self.changes.update("seat left", left)

    # Rounds and shuffles

    def round_opened(self, event: events.RoundOpened, at: int) -> None:
        row = (
            self.stream.number, event.round, self.version, at, len(event.deck), event.entropy,
            event.commitment.hex(), None, None, None,
        )  # fmt: skip
        self.changes.add("rounds", row)
        self._opened_rounds = event.round
        self._before = {"deck": []}

    def shuffle_started(self, event: events.ShuffleStarted, at: int) -> None:
        row = (
            self.stream.number, event.round, event.k, event.stack, event.n, event.algorithm,
            event.steps, self.version, at, None, None, None, "running", None, None, None,
        )  # fmt: skip
        self.changes.add("shuffles", row)

    def entropy_closed(self, event: events.EntropyClosed, at: int) -> None:
        committed = len(self.shuffle.digests)
        row = (self.version, committed, self.stream.number, event.round, event.k)
        self.changes.update("entropy gathered", row)

    def shuffle_voided(self, event: events.ShuffleVoided, at: int) -> None:
        self._end_shuffle("voided", None, at)

    def swapped(self, event: events.CardsSwapped, at: int) -> None:
        self.remember(self.shuffle.stack)

    def sealed(self, event: events.DeckSealed, at: int) -> None:
        self.remember(self.shuffle.stack)
        self._end_shuffle("sealed", event.first, at)

    def _end_shuffle(self, outcome: str, first: int | None, at: int) -> None:
        round_, shuffle = self.round, self.shuffle
        ended = (outcome, self.version, at, len(shuffle.nonces), first)
        self.changes.update("shuffle ended", (*ended, self.stream.number, round_.number, shuffle.k))

    def round_closed(self, event: events.RoundClosed, at: int) -> None:
        row = (self.version, at, event.secret.hex(), self.stream.number, event.round)
        self.changes.update("round closed", row)

    def close(self, reveal: RoundReveal | None) -> None:
        """Write the stacks at the round's end, with all faces out of `reveal`."""
        round_ = self.round
        for stack in round_.stacks:
            self.remember(stack)
        close_round(self.stream.number, round_, self._before, reveal, self.changes)
        self._before, self._newly_shown = {}, set()

    # Cards

    def moved(self, event: events.CardDrawn | events.CardMoved, at: int) -> None:
        slot, source = event.slot, event.source
        if isinstance(event, events.CardDrawn):
            name, target, place = "CardDrawn", hand(event.seat), None
        else:
            name, target, place = "CardMoved", event.to, event.place
        before, round_ = self._before, self.table.round or self.round
        if self.REMEMBERS:  # `remember` without the calls
            if source not in before:
                before[source] = public(round_, source)
            if target not in before:
                before[target] = public(round_, target)
        cards = round_.stacks[source]
        last = len(cards) - 1
        from_place = last if cards[last] == slot else cards.index(slot)
        to_place = len(round_.stacks.get(target, ())) if place is None else place
        moves = self.changes.added.get("moves")
        if moves is None:
            moves = self.changes.added["moves"] = []
        moves.append(
            (
                self.stream.number, self.table.version + 1, at, round_.number, name, source,
                from_place, target, to_place, slot, round_.faces[slot], int(slot in round_.shown),
            )
        )  # fmt: skip

    def shown(self, event: events.CardShown, at: int) -> None:
        round_, slot = self.round, event.slot
        stack = round_.stack_of(slot)
        if stack is None:
            raise ValueError(f"slot {slot} is not on the table")
        self.remember(stack)
        self._newly_shown.add(slot)
        number, place = self.stream.number, round_.cards(stack).index(slot)
        self.changes.add(
            "moves",
            (
                number, self.version, at, round_.number, "CardShown", stack, place,
                stack, place, slot, event.card, 1,
            ),
        )  # fmt: skip
        self.open_earlier(slot, event.card)

    def open_earlier(self, slot: int, card: str) -> None:
        """Write the face of a shown card to its earlier moves in the round."""
        began = self.table.round_versions[-1]
        self.changes.update("face shown", (card, self.stream.number, began, self.version, slot))

    def cut(self, event: events.StackCut, at: int) -> None:
        self.remember(event.stack)
        self.changes.add(
            "moves",
            (
                self.stream.number, self.version, at, event.round, "StackCut", event.stack,
                event.at, event.stack, 0, None, None, 0,
            ),
        )  # fmt: skip

    # Stacks

    def remember(self, stack: str) -> None:
        """Keep a stack's state before its first change, so that only the difference is written."""
        if self.REMEMBERS and stack not in self._before:
            self._before[stack] = public(self.round, stack)

    def _write_stacks(self) -> None:
        if not self._before:
            return
        round_ = self.round
        for stack, before in self._before.items():
            self.changes.diff_stack(
                (self.stream.number, round_.number, stack),
                before=before,
                after=public(round_, stack),
                opened=round_.opened,
                faces=round_.faces,
                newly_shown=self._newly_shown,
            )


def public(round_: Round, stack: str) -> Cards:
    """A stack's cards in the public state; all unknown between its first swap and its seal."""
    shuffle = round_.shuffle
    if shuffle is not None and shuffle.swaps_hidden and shuffle.stack == stack:
        return [None] * shuffle.n
    return list(round_.cards(stack))


_RULES: dict[type[Event], Callable[..., None]] = {
    events.TableOpened: Folding.table_opened,
    events.TableClosed: Folding.table_closed,
    events.SeatTaken: Folding.seat_taken,
    events.SeatLeft: Folding.seat_left,
    events.SeatVacated: Folding.seat_left,
    events.RoundOpened: Folding.round_opened,
    events.RoundClosed: Folding.round_closed,
    events.ShuffleStarted: Folding.shuffle_started,
    events.EntropyClosed: Folding.entropy_closed,
    events.ShuffleVoided: Folding.shuffle_voided,
    events.CardsSwapped: Folding.swapped,
    events.DeckSealed: Folding.sealed,
    events.CardDrawn: Folding.moved,
    events.CardMoved: Folding.moved,
    events.CardShown: Folding.shown,
    events.StackCut: Folding.cut,
}
