"""A table at one version as one viewer saw it; `dealer.open_bundle` needs no database for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from dealer.errors import BadRequest
from dealer.game.cards import UNKNOWN
from dealer.game.stacks import DECK, hand, seat_of
from dealer.game.state import Round, Table
from dealer.game.view import SPECTATOR, snapshot
from dealer.history.replay import Game, replay_bundle
from dealer.proof import bundle
from dealer.proof.verify import verify
from dealer.service.reading.past_states import require_version

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


@dataclass(frozen=True, slots=True)
class OpenBundle:
    """A verified bundle; `game.moments()` are its events, each with the table before it."""

    game: Game

    def state(self, at: int | None = None, *, viewer: Viewer = None) -> PastTable:
        """The table at a version, by default the newest, as a viewer saw it then.

        `viewer` is a seat, `public` or None for what everyone saw, or `house` for every card; the
        hidden cards of a round that is not closed are unknown to each. Raises BadRequest if there
        is no such version, or if that seat was free.
        """
        game, table = self.game, Table()
        version = len(game.leaves) if at is None else at
        require_version(version, head=len(game.leaves))
        for step in replay_bundle([*game.leaves[:version], *game.openings], game.swaps):
            table = step.table  # one table, which has each event once the next step is asked for
        known = table.round is not None and table.round.number <= game.closed
        return past_table(game.table, table, viewer, secret_known=known)


def open_bundle(
    file: str | os.PathLike[str], *, key: bytes | str | None = None, saved: Sequence[str] = ()
) -> OpenBundle:
    """The bundle in a file, which is verified first, as `dealer verify` does.

    `key` is the table's key if you know it, 32 bytes or hex, and `saved` are checkpoints that you
    kept, as for `dealer.proof.verify.verify`. Raises the ProofFault of the first fault,
    HistoryUnavailable for a table with insecure test decks, and OSError.

        print(dealer.open_bundle("game.jsonl").state(at=57, viewer=2).hand(2))
    """
    data, notes = bundle.restore(Path(file).read_bytes())
    lines = bundle.read(data)
    return OpenBundle(Game.read(lines, verify(lines, key=key, saved=saved, notes=notes)))
