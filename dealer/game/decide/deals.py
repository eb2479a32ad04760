"""The deal: cards to each seat, then to piles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dealer.errors import BadRequest
from dealer.game import events
from dealer.game.commands import Deal, DealtPile
from dealer.game.decide.permission import idle_round, require_permission
from dealer.game.decide.round_secrets import RoundSecrets
from dealer.game.decide.selection import (
    require_drawable,
    require_no_pass_pile,
    require_room_for,
    shown,
    taken,
)
from dealer.game.events import Event
from dealer.game.stacks import DECK, is_stack, seat_of
from dealer.game.state import Round, Table


def deal(command: Deal, table: Table, house: RoundSecrets) -> list[Event]:
    """Deal one card at a time to each seat, `command.each` times, then the cards of each pile."""
    require_permission(table, command.actor, "deal")
    round_ = idle_round(table)
    seats = tuple(sorted(table.seats)) if command.seats is None else command.seats
    if not seats and command.each:
        raise BadRequest("No seat of this table is taken; players join first.")
    if any(seat not in table.seats for seat in seats) or len(set(seats)) != len(seats):
        raise BadRequest("Name only seats that are taken, and each of them once.")
    if command.each < (0 if command.piles else 1):
        raise BadRequest("Deal at least one card to each seat.")
    _check_piles(command, table, round_)
    to_seats = command.each * len(seats)
    in_piles = sum(pile.number for pile in command.piles)
    slots = taken(round_, DECK, to_seats + in_piles, "top")
    require_drawable(round_, slots[:to_seats])
    number, faces = round_.number, round_.faces
    dealt: list[Event] = [
        events.CardDrawn(number, seats[turn % len(seats)], DECK, slot, faces[slot])
        for turn, slot in enumerate(slots[:to_seats])
    ]
    dealt.extend(_onto_piles(command.piles, slots[to_seats:], round_, house))
    return dealt


def _check_piles(command: Deal, table: Table, round_: Round) -> None:
    """Check the piles of a deal, which must not get round the rules for piles."""
    if not command.piles:
        return
    names = [pile.stack for pile in command.piles]
    # A deal must not get round the rules for piles.
    require_permission(table, command.actor, "pile")
    if any(pile.face == "up" for pile in command.piles):
        require_permission(table, command.actor, "turn")
    for name in names:
        if name == DECK or not is_stack(name) or seat_of(name) is not None:
            raise BadRequest("Cards are dealt to seats and to piles; name pile:<name>.")
        require_no_pass_pile(name)
    if len(set(names)) != len(names):
        raise BadRequest("Name each pile once.")
    if any(pile.number < 1 for pile in command.piles):
        raise BadRequest("Deal at least one card to each pile.")
    require_room_for(round_, names)


def _onto_piles(
    piles: Sequence[DealtPile], slots: Sequence[int], round_: Round, house: RoundSecrets
) -> Iterator[Event]:
    rest = iter(slots)
    for pile in piles:
        first = len(round_.cards(pile.stack))
        for place in range(first, first + pile.number):
            slot = next(rest)
            yield events.CardMoved(round_.number, slot, DECK, pile.stack, place, None)
            if pile.face == "up" and slot not in round_.shown:
                yield shown(round_, house, slot)
