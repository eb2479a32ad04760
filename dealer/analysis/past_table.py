"""A table at one version, as one viewer saw it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from dealer.errors import BadRequest
from dealer.game.cards import UNKNOWN
from dealer.game.stacks import DECK, hand, seat_of
from dealer.game.state import Round, Table
from dealer.game.view import SPECTATOR, snapshot

Everyone = Literal["public", "house"]
Viewer = int | Everyone | None
"""A seat; `public` or None for what everyone saw; `house` for every card."""

PILE = "pile:"


@dataclass(frozen=True)
class PastTable:
    """A table at `version`, whose event was at `at`, as `viewer` saw it.

    `seats` are the players' names by seat, `host_seat` is None while the host is who opened the
    table, `rounds` counts the rounds opened so far and `round` is the number of the open one.
    `stacks` are codes by stack, bottom first, `??` for a face that the viewer did not know.
    `complete` is False if faces may be missing because their round is still open and the log was
    opened without the house key. `members` is the state as a client gets it on the wire; for the
    house it has all `cards`.
    """

    table: str
    version: int
    at: int
    viewer: Viewer
    closed: bool
    seats: dict[int, str]
    host_seat: int | None
    rounds: int
    round: int | None
    stacks: dict[str, list[str]]
    complete: bool
    members: dict[str, Any]

    @property
    def deck_count(self) -> int:
        """The number of cards in the deck; 0 between rounds."""
        return len(self.stacks.get(DECK, ()))

    @property
    def hands(self) -> dict[int, list[str]]:
        """The hands by seat, also those of free seats."""
        seats = {stack: seat_of(stack) for stack in self.stacks}
        return {
            seat: self.stacks[stack] for stack, seat in sorted(seats.items()) if seat is not None
        }

    @property
    def piles(self) -> dict[str, list[str]]:
        """The piles by name."""
        found = ((name, cards) for name, cards in self.stacks.items() if name.startswith(PILE))
        return {name.removeprefix(PILE): cards for name, cards in found}

    def hand(self, seat: int) -> list[str]:
        """The hand of a seat, bottom first; empty if it holds no card."""
        return self.stacks.get(hand(seat), [])


def past_table(table: str, state: Table, viewer: Viewer, *, secret_known: bool) -> PastTable:
    """The view of a state; raises BadRequest if `viewer` is a seat that was free then."""
    viewer = "public" if viewer is None else viewer
    members = snapshot(state, SPECTATOR)
    if isinstance(viewer, int):
        holder = state.holder(viewer)
        if holder is None:
            raise BadRequest(f"Seat {viewer} was free at version {state.version}.")
        members = snapshot(state, holder)
    elif viewer not in get_args(Everyone):
        raise BadRequest(f"A viewer is a seat, public or house, not {viewer!r}.")
    round_ = state.round
    if round_ is not None and viewer == "house":
        _reveal(round_, members["round"])
    return PastTable(
        table=table,
        version=state.version,
        at=state.at,
        viewer=viewer,
        closed=state.closed,
        seats={seat: player.name for seat, player in sorted(state.seats.items())},
        host_seat=state.host_seat,
        rounds=len(state.round_versions),
        round=None if round_ is None else round_.number,
        stacks={} if round_ is None else _codes(round_, members["round"]),
        complete=round_ is None or viewer == "public" or secret_known,
        members=members,
    )


def _reveal(round_: Round, view: dict[str, Any]) -> None:
    """Replace the stacks by their actual order, also during a shuffle, and add every known face."""
    view["stacks"] = {name: list(cards) for name, cards in sorted(round_.stacks.items())}
    slots = sorted(card for cards in round_.stacks.values() for card in cards if card >= 0)
    faces = ((card, round_.face(card)) for card in slots)
    view["cards"] = [[card, face] for card, face in faces if face is not None]


def _codes(round_: Round, view: dict[str, Any]) -> dict[str, list[str]]:
    faces = dict(view["cards"])
    return {
        name: [round_.opened[~card] if card < 0 else faces.get(card, UNKNOWN) for card in cards]
        for name, cards in view["stacks"].items()
        if cards
    }
