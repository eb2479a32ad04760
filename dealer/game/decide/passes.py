"""Simultaneous passing: cards wait face down in `pass:<seat>` until all seats have passed.

Until then no other command may touch these piles, and each seat may take its own cards back. The
pass of the last seat moves all cards to their hands in the same append. So that the seats do not
wait for a player who has left, `hand.pass` without cards delivers them: anyone's if no seat is
awaited any more, the host's in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dealer.errors import BadRequest, NotEntitled
from dealer.game import events
from dealer.game.commands import CardRef, Pass
from dealer.game.decide.permission import idle_round, is_host, require_permission, require_seat
from dealer.game.decide.selection import require_room_for, select_named_cards
from dealer.game.events import Event
from dealer.game.stacks import DISCARD, hand, pass_pile, passed_to, seat_of
from dealer.game.state import Round, Table


def pass_cards(command: Pass, table: Table) -> list[Event]:
    """Put cards into the pile of the seat that gets them; deliver all if no seat is awaited."""
    require_permission(table, command.actor, "pass")
    round_ = idle_round(table)
    if command.cards is None:
        return _deliver_now(command, table, round_)
    seat, to = require_seat(table, command.actor), command.to
    if to is None or to == seat or to not in table.seats:
        raise BadRequest("Name with `to` the taken seat that gets the cards, not your own.")
    if seat in round_.moves.passed:
        raise NotEntitled(
            "You have passed already; take your cards back first to pass others (hand.take_back)."
        )
    given = _put_aside(command.cards, command, round_, seat, to)
    waiting = [*round_.moves.waiting(), *((seat, event.slot, event.to) for event in given)]
    if _awaited(table, round_, but=seat):
        return list(given)
    sizes = {hand(seat): len(round_.cards(hand(seat))) - len(given)}
    return [*given, *_deliveries(table, round_, waiting, sizes)]


def _put_aside(
    cards: tuple[CardRef, ...], command: Pass, round_: Round, seat: int, to: int
) -> list[events.CardMoved]:
    source, pile = hand(seat), pass_pile(to)
    slots = select_named_cards(round_, command.actor, source, cards)
    require_room_for(round_, [pile])
    first = len(round_.cards(pile))
    return [
        events.CardMoved(round_.number, slot, source, pile, place, None)
        for place, slot in enumerate(slots, first)
    ]


def _deliver_now(command: Pass, table: Table, round_: Round) -> list[Event]:
    if command.to is not None:
        raise BadRequest("Name the cards that you pass, or no seat to deliver what was passed.")
    if not round_.moves.passed:
        raise BadRequest("No cards wait to be passed.")
    awaited = _awaited(table, round_)
    if awaited and not (command.actor.service or is_host(table, command.actor)):
        seats = ", ".join(map(str, awaited))
        raise NotEntitled(f"Not all have passed (seats: {seats}); only the host may deliver now.")
    return list(_deliveries(table, round_, round_.moves.waiting(), {}))


def _awaited(table: Table, round_: Round, *, but: int | None = None) -> list[int]:
    """The taken seats that have cards and have not passed, without the seat `but`."""
    passed = round_.moves.passed
    return [
        seat
        for seat in sorted(table.seats)
        if seat != but and seat not in passed and round_.cards(hand(seat))
    ]


def _deliveries(
    table: Table, round_: Round, waiting: Iterable[tuple[int, int, str]], sizes: dict[str, int]
) -> Iterator[Event]:
    """The moves of the cards that wait, given as (seat that gave it, slot, pile), to their seats.

    A card for a seat that is free by now goes back to its giver, and if that seat is free, too, to
    the discard pile. `sizes` are those of stacks that earlier events of the same append change.
    """
    for owner, slot, pile in sorted(waiting, key=lambda card: passed_to(card[2])):
        seat = next((seat for seat in (passed_to(pile), owner) if seat in table.seats), None)
        to = DISCARD if seat is None else hand(seat)
        place = sizes.setdefault(to, len(round_.cards(to)))
        sizes[to] = place + 1
        face = None if seat_of(to) is None else round_.faces[slot]
        yield events.CardMoved(round_.number, slot, pile, to, place, face)
