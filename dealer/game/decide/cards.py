"""Commands that move or show cards: draw, cut, move, show."""

from __future__ import annotations

from collections.abc import Sequence

from dealer.errors import BadPlace, BadRequest, NotEntitled, NotYourSeat
from dealer.game import events
from dealer.game.commands import Cut, Draw, Move, Show, Where
from dealer.game.decide.permission import idle_round, is_host, require_permission, require_seat
from dealer.game.decide.round_secrets import RoundSecrets
from dealer.game.decide.selection import (
    chosen,
    require_drawable,
    require_no_pass,
    require_no_pass_pile,
    require_pile,
    require_room_for,
    require_stack,
    select_named_cards,
    shown,
    taken,
    whole,
)
from dealer.game.events import Event
from dealer.game.stacks import DECK, seat_of
from dealer.game.state import Round, Table


def draw(command: Draw, table: Table) -> list[Event]:
    """Draw cards into the actor's hand, as CardDrawn events in their order."""
    actor, round_ = command.actor, table.round
    action = "draw" if command.source == DECK else "pile"
    # The most frequent command: its conditions are tested without calls. A function is called only
    # where its test has failed, to refuse with the reason; only a host may pass the first two.
    seat = actor.seat
    if seat not in table.seats or table.rules.who[action] != "players":
        seat = require_seat(table, actor)
        require_permission(table, actor, action)
    if round_ is None or round_.shuffle is not None:
        round_ = idle_round(table)
    if command.source != DECK:
        require_pile(command.source)
        require_no_pass(round_, command.source)
    if command.cards is not None:
        slots = select_named_cards(round_, command.actor, command.source, command.cards)
    elif command.whole:
        slots = whole(round_, command.source)
    else:
        slots = round_.stacks.get(command.source, [])[-1:]
        if command.count != 1 or command.where != "top" or not slots or slots[0] < 0:
            slots = taken(round_, command.source, command.count, command.where)
    drawn: list[Event] = []
    for slot in slots:
        if not round_.drawable[slot]:
            require_drawable(round_, slots)
        card = round_.faces[slot]
        drawn.append(events.CardDrawn(round_.number, seat, command.source, slot, card))
    return drawn


def cut(command: Cut, table: Table) -> list[Event]:
    """Cut the deck or a pile at a place from 0 to its number of cards."""
    require_permission(table, command.actor, "cut")
    round_ = idle_round(table)
    require_pile(command.stack)
    require_no_pass(round_, command.stack)
    n = len(round_.cards(command.stack))
    if not 0 <= command.at <= n:
        raise BadPlace(f"Cut at a place from 0 to {n}, counted from the bottom.")
    return [events.StackCut(round_.number, command.stack, command.at)]


def move(command: Move, table: Table, house: RoundSecrets) -> list[Event]:
    """Move cards; cards that turn face up are opened by CardShown with their salts."""
    round_ = idle_round(table)
    _permit_move(table, command)
    require_no_pass(round_, command.source)
    require_no_pass_pile(command.to)
    slots = chosen(
        round_,
        command.actor,
        command.source,
        command.cards,
        command.count,
        all_cards=command.whole,
    )
    to_seat = seat_of(command.to)
    if to_seat is not None:
        if to_seat not in table.seats:
            raise BadRequest(f"Seat {to_seat} is not taken.")
        require_drawable(round_, slots)
    moved: list[Event] = []
    for slot, place in zip(slots, _places(round_, command, slots), strict=True):
        card = None if to_seat is None else round_.faces[slot]
        moved.append(events.CardMoved(round_.number, slot, command.source, command.to, place, card))
        if command.face == "up" and slot not in round_.shown:
            moved.append(shown(round_, house, slot))
    return moved


def show(command: Show, table: Table, house: RoundSecrets) -> list[Event]:
    """Open cards to everyone with their salts, or to one seat by CardPeeked."""
    round_ = idle_round(table)
    require_stack(command.source)
    seat = seat_of(command.source)
    if seat is not None:
        if seat != command.actor.seat:
            raise NotYourSeat("You may show only the cards of your own hand.")
        require_seat(table, command.actor)
        require_permission(table, command.actor, "show")
    else:
        require_permission(table, command.actor, "turn")
        require_no_pass(round_, command.source)
    slots = chosen(
        round_, command.actor, command.source, command.cards, None, all_cards=command.whole
    )
    if command.to is None:
        return [shown(round_, house, slot) for slot in slots if slot not in round_.shown]
    if command.to not in table.seats:
        raise BadRequest(f"Seat {command.to} is not taken.")
    return [
        events.CardPeeked(round_.number, slot, command.to, round_.faces[slot])
        for slot in slots
        if not round_.sees(command.to, slot)
    ]


def _permit_move(table: Table, command: Move) -> None:
    """Check that the rules allow this move.

    From another seat's hand only the host and a service may move.
    """
    for stack in (command.source, command.to):
        require_stack(stack)
    owner = seat_of(command.source)
    if owner is not None and owner == command.actor.seat:
        require_seat(table, command.actor)
        require_permission(table, command.actor, _action(command))
    elif owner is not None:
        if not (command.actor.service or is_host(table, command.actor)):
            raise NotYourSeat("That is another seat's hand.")
        require_permission(table, command.actor, "collect")
        if seat_of(command.to) is not None:
            raise NotEntitled("Collected cards go onto the deck or a pile, not into a hand.")
        if command.face == "up":
            raise NotEntitled("Cards of another seat's hand are collected face down; name no face.")
    else:
        require_permission(table, command.actor, _action(command))
        if command.face == "up":
            require_permission(table, command.actor, "turn")


def _action(command: Move) -> str:
    """The action whose rule applies, from the stacks rather than from the name of the command.

    A generic move must not get round the rules for draw, deal, give or return.
    """
    owner, to = seat_of(command.source), seat_of(command.to)
    if command.source == DECK and to is not None:
        return "draw" if to == command.actor.seat else "deal"
    if owner is not None and command.action == "pile":
        if command.to == DECK:
            return "return"
        if to is not None and to != owner:
            return "give"
    return command.action


def _places(round_: Round, command: Move, slots: Sequence[int]) -> list[int]:
    """The place of each card in the target stack, after it was taken out of its own place.

    Each card goes on top of the one before it, or, with `where` "bottom", below it. A whole stack
    keeps its order in any place.
    """
    target = round_.cards(command.to)
    require_room_for(round_, [command.to])
    same = command.to == command.source
    first = _place(command.where, len(target) - same)
    if command.where == "bottom" and not command.whole:
        return [0] * len(slots)
    if not same:
        return list(range(first, first + len(slots)))
    # Within one stack, the cards already moved stay adjacent. If the next card comes from below
    # them, they sink by one place, so that its target place stays the same.
    others = [card for card in target if card != slots[0]]
    below = set(others[:first])
    places = [first]
    for slot in slots[1:]:
        places.append(places[-1] + (slot not in below))
    return places


def _place(where: Where, size: int) -> int:
    if where == "top":
        return size
    if where == "bottom":
        return 0
    if not isinstance(where, int) or not 0 <= where <= size:
        raise BadPlace(f"A place in that stack is 0 (the bottom) to {size}, top, or bottom.")
    return where
