"""Read model changes of a closed round: every swap with both its cards, and every face.

A round can have any number of events, so it is replayed a limited number of events at a time:
`RoundReveal.add` writes what concerns single events, `close_round` the stacks at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dealer.game import events
from dealer.game.events import Event
from dealer.game.state import Round, Table, evolve
from dealer.projector.changes import Cards, Changes
from dealer.projector.types import InconsistentEvent, Number

# These events move no card, and may refer to players who sat down before the round.
_IGNORED = (
    events.SeatTaken,
    events.SeatLeft,
    events.SeatVacated,
    events.HostTransferred,
    events.NoteAdded,
    events.EntropyCommitted,
    events.EntropyRevealed,
)


class RoundReveal:
    """The replay of the round whose RoundClosed has version `closed`, with its hidden parts.

    `reached` is the last version replayed, at first the one before RoundOpened; `secret` is S.
    """

    def __init__(self, stream: Number, *, opened: int, closed: int, secret: bytes) -> None:
        self.stream = stream
        self.closed = closed
        self.secret = secret
        self.reached = opened - 1
        self._table = Table()

    @property
    def complete(self) -> bool:
        """Whether every event up to RoundClosed was replayed."""
        return self.reached == self.closed - 1

    @property
    def round(self) -> Round:
        """The state that was reached; ValueError before RoundOpened."""
        if self._table.round is None:
            raise ValueError("a round's events begin with RoundOpened")
        return self._table.round

    def add(self, more: Iterable[tuple[int, Event]], changes: Changes) -> None:
        """Replay the next events, each with its version; add their swaps and faces to `changes`.

        Raises InconsistentEvent for the version of RoundClosed.
        """
        for version, event in more:
            try:
                self._add(version, event, changes)
            except (ValueError, KeyError, IndexError) as error:
                raise InconsistentEvent(self.closed, error) from error
            self.reached = version

    def _add(self, version: int, event: Event, changes: Changes) -> None:
        match event:
            case events.CardsSwapped(round=number, k=k, step=step, i=i, j=j):
                i_card, j_card = self._faces(i, j)
                row = (self.stream, number, k, step, version, i, j, i_card, j_card)
                changes.add("swaps", row)
            case events.CardDrawn(slot=slot) | events.CardMoved(slot=slot):
                if slot not in self.round.shown:
                    changes.update("face opened", (self.round.faces[slot], self.stream, version))
            case _ if isinstance(event, _IGNORED):
                return
        evolve(self._table, event, 0)

    def _faces(self, i: int, j: int | None) -> tuple[str, str]:
        round_ = self.round
        if round_.shuffle is None or j is None:
            raise ValueError("a swap needs a running shuffle and both places")
        cards = round_.cards(round_.shuffle.stack)
        i_card, j_card = round_.face(cards[i]), round_.face(cards[j])
        if i_card is None or j_card is None:
            raise ValueError("a swapped card has a face once its round is closed")
        return i_card, j_card


def close_round(
    stream: Number,
    public: Round,
    before: Mapping[str, Cards],
    reveal: RoundReveal | None,
    changes: Changes,
) -> None:
    """Add to `changes` the stacks at the round's end with all their faces.

    `public` is the round's public state, `before` has the stacks as the read models have them,
    `reveal` is complete. Raises ValueError if the two states differ.
    """
    if reveal is None:
        raise ValueError("a round's events begin with RoundOpened")
    full = reveal.round
    for stack, cards in full.stacks.items():
        if cards != public.cards(stack):
            raise ValueError(f"the round's {stack} differs from the public state")
        changes.diff_stack(
            (stream, public.number, stack),
            before=before.get(stack, []),
            after=cards,
            opened=full.opened,
            faces=full.faces,
            newly_shown=range(len(full.faces)),
        )
