"""Commands that move or show cards: draw, deal, cut, move, show."""

from __future__ import annotations

from collections.abc import Sequence

from dealer.errors import (
    BadPlace,
    BadRequest,
    CardNotInHand,
    CardNotThere,
    DeckEmpty,
    NotEntitled,
    NotSealed,
    NotYourSeat,
)
from dealer.game import events
from dealer.game.commands import Actor, CardRef, Cut, Deal, Draw, Move, Show, Where
from dealer.game.decide.permission import idle_round, require_permission, require_seat
from dealer.game.decide.round_secrets import RoundSecrets
from dealer.game.events import Event
from dealer.game.stacks import DECK, is_stack, seat_of
from dealer.game.state import Round, Table

STACKS_MAX = 256
"""Most stacks of one round, empty ones included; bounds the memory that pile names can take."""


def draw(command: Draw, table: Table) -> list[Event]:
    """Draw cards into the actor's hand, as CardDrawn events in their order."""
    seat = require_seat(table, command.actor)
    require_permission(table, command.actor, "draw" if command.source == DECK else "pile")
    round_ = idle_round(table)
    if command.source != DECK:
        _check_pile(command.source)
    if command.cards is not None:
        slots = _named(round_, command.actor, command.source, command.cards)
    else:
        slots = _taken(round_, command.source, command.count, command.where)
    _check_drawable(round_, slots)
    number, source, faces = round_.number, command.source, round_.faces
    return [events.CardDrawn(number, seat, source, slot, faces[slot]) for slot in slots]


def deal(command: Deal, table: Table) -> list[Event]:
    """Deal one card at a time to each seat, in order of seats, `command.each` times."""
    require_permission(table, command.actor, "deal")
    round_ = idle_round(table)
    seats = tuple(sorted(table.seats)) if command.seats is None else command.seats
    if not seats:
        raise BadRequest("No seat of this table is taken; players join first.")
    if any(seat not in table.seats for seat in seats) or len(set(seats)) != len(seats):
        raise BadRequest("Name only seats that are taken, and each of them once.")
    if command.each < 1:
        raise BadRequest("Deal at least one card to each seat.")
    slots = _taken(round_, DECK, command.each * len(seats), "top")
    _check_drawable(round_, slots)
    return [
        events.CardDrawn(round_.number, seats[turn % len(seats)], DECK, slot, round_.faces[slot])
        for turn, slot in enumerate(slots)
    ]


def cut(command: Cut, table: Table) -> list[Event]:
    """Cut the deck or a pile at a place from 0 to its number of cards."""
    require_permission(table, command.actor, "cut")
    round_ = idle_round(table)
    _check_pile(command.stack)
    n = len(round_.cards(command.stack))
    if not 0 <= command.at <= n:
        raise BadPlace(f"Cut at a place from 0 to {n}, counted from the bottom.")
    return [events.StackCut(round_.number, command.stack, command.at)]


def move(command: Move, table: Table, house: RoundSecrets) -> list[Event]:
    """Move cards; cards that turn face up are opened by CardShown with their salts."""
    round_ = idle_round(table)
    _permit_move(table, command)
    slots = _chosen(round_, command.actor, command.source, command.cards, command.count)
    to_seat = seat_of(command.to)
    if to_seat is not None:
        if to_seat not in table.seats:
            raise BadRequest(f"Seat {to_seat} is not taken.")
        _check_drawable(round_, slots)
    moved: list[Event] = []
    for slot, place in zip(slots, _places(round_, command, slots), strict=True):
        card = None if to_seat is None else round_.faces[slot]
        moved.append(events.CardMoved(round_.number, slot, command.source, command.to, place, card))
        if command.face == "up" and slot not in round_.shown:
            moved.append(_shown(round_, house, slot))
    return moved


def show(command: Show, table: Table, house: RoundSecrets) -> list[Event]:
    """Open cards to everyone with their salts, or to one seat by CardPeeked."""
    round_ = idle_round(table)
    _check_stack(command.source)
    seat = seat_of(command.source)
    if seat is not None:
        if seat != command.actor.seat:
            raise NotYourSeat("You may show only the cards of your own hand.")
        require_seat(table, command.actor)
        require_permission(table, command.actor, "show")
    else:
        require_permission(table, command.actor, "turn")
    count = 1 if command.cards is None else None
    slots = _chosen(round_, command.actor, command.source, command.cards, count)
    if command.to is None:
        return [_shown(round_, house, slot) for slot in slots if slot not in round_.shown]
    if command.to not in table.seats:
        raise BadRequest(f"Seat {command.to} is not taken.")
    return [
        events.CardPeeked(round_.number, slot, command.to, round_.faces[slot])
        for slot in slots
        if not round_.sees(command.to, slot)
    ]


def _shown(round_: Round, house: RoundSecrets, slot: int) -> events.CardShown:
    return events.CardShown(round_.number, slot, round_.faces[slot] or "", house.slot_salt(slot))


def _permit_move(table: Table, command: Move) -> None:
    """Check that the rules allow this move; from another seat's hand only the host may move."""
    for stack in (command.source, command.to):
        _check_stack(stack)
    owner = seat_of(command.source)
    if owner is not None and owner == command.actor.seat:
        require_seat(table, command.actor)
        require_permission(table, command.actor, _action(command))
    elif owner is not None:
        if not command.actor.host:
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


def _check_stack(stack: str) -> None:
    if not is_stack(stack):
        raise BadRequest("A stack is deck, hand:<seat> or pile:<name>.")


def _check_pile(stack: str) -> None:
    if not is_stack(stack) or seat_of(stack) is not None:
        raise BadRequest("Name deck or pile:<name>; a hand belongs to its seat.")


def _taken(round_: Round, stack: str, count: int, where: str) -> list[int]:
    """The next `count` slots from an end of a stack, in the order in which they leave it."""
    cards = round_.cards(stack)
    if count < 1:
        raise BadRequest("Name at least one card.")
    if count > len(cards):
        raise DeckEmpty(f"The stack has {len(cards)} cards left; {count} were requested.")
    slots = cards[:count] if where == "bottom" else cards[: -count - 1 : -1]
    if slots[0] < 0:
        raise NotSealed("This stack was not shuffled in this round; shuffle it first.")
    return slots


def _chosen(
    round_: Round,
    actor: Actor,
    stack: str,
    cards: Sequence[CardRef] | None,
    count: int | None,
) -> list[int]:
    if cards is not None and count is not None:
        raise BadRequest("Name the cards or their count, not both.")
    if cards is not None:
        return _named(round_, actor, stack, cards)
    return _taken(round_, stack, 1 if count is None else count, "top")


def _named(round_: Round, actor: Actor, stack: str, refs: Sequence[CardRef]) -> list[int]:
    """Slots of the named cards. A code matches only a card that the actor may see."""
    cards = round_.cards(stack)
    present = set(cards)
    seen = {round_.faces[c]: c for c in cards if c >= 0 and round_.sees(actor.seat, c)}
    slots = [seen.get(ref, -1) if isinstance(ref, str) else ref for ref in refs]
    if not slots:
        raise BadRequest("Name at least one card.")
    if len(set(slots)) != len(slots) and -1 not in slots:
        raise BadRequest("Name each card once.")
    if any(slot < 0 or slot not in present for slot in slots):
        if seat_of(stack) is not None:
            raise CardNotInHand("A card you named is not in that hand, or you may not see it.")
        raise CardNotThere("A card you named is not in that stack, or you may not see it.")
    return slots


def _check_drawable(round_: Round, slots: Sequence[int]) -> None:
    drawable = round_.drawable
    for slot in slots:
        if not drawable[slot]:
            raise NotSealed("A partial shuffle did not reach these cards; shuffle the stack again.")


def _places(round_: Round, command: Move, slots: Sequence[int]) -> list[int]:
    """The place of each card in the target stack, after it was taken out of its own place.

    Each card goes on top of the one before it, or, with `where` "bottom", below it.
    """
    target = round_.cards(command.to)
    if command.to not in round_.stacks and len(round_.stacks) >= STACKS_MAX:
        raise BadRequest(f"A round has at most {STACKS_MAX} stacks; use an existing pile.")
    same = command.to == command.source
    first = _place(command.where, len(target) - same)
    if command.where == "bottom":
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
