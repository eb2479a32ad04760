"""Cards that change their place or are shown: deal, draw, move, show, cut."""

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
from dealer.game.commands import Actor, CardRef, Cut, Deal, Draw, Move, Show, Where
from dealer.game.decide.house import House
from dealer.game.decide.permission import permit, seated, still_round
from dealer.game.events import CardDrawn, CardMoved, CardPeeked, CardShown, Event, StackCut
from dealer.game.stacks import DECK, is_stack, seat_of
from dealer.game.state import Round, Table

STACKS_MAX = 256
"""Deck, hands and piles of a round, emptied ones too: names must not fill the house's memory."""


def draw(command: Draw, table: Table) -> list[Event]:
    seat = seated(table, command.actor)
    permit(table, command.actor, "draw" if command.source == DECK else "pile")
    round_ = still_round(table)
    _check_pile(command.source)
    if command.cards is not None:
        slots = _named(round_, command.actor, command.source, command.cards)
    else:
        slots = _taken(round_, command.source, command.count, command.where)
    _check_drawable(round_, slots)
    number, source, faces = round_.number, command.source, round_.faces
    return [CardDrawn(number, seat, source, slot, faces[slot]) for slot in slots]


def deal(command: Deal, table: Table) -> list[Event]:
    """One card at a time round the table, in the order of the seats."""
    permit(table, command.actor, "deal")
    round_ = still_round(table)
    seats = tuple(sorted(table.seats)) if command.seats is None else command.seats
    if not seats:
        raise BadRequest("Nobody sits at this table to deal to.")
    if any(seat not in table.seats for seat in seats) or len(set(seats)) != len(seats):
        raise BadRequest("Deal to seats that are taken, each named once.")
    if command.each < 1:
        raise BadRequest("Deal at least one card to each seat.")
    slots = _taken(round_, DECK, command.each * len(seats), "top")
    _check_drawable(round_, slots)
    return [
        CardDrawn(round_.number, seats[turn % len(seats)], DECK, slot, round_.faces[slot])
        for turn, slot in enumerate(slots)
    ]


def cut(command: Cut, table: Table) -> list[Event]:
    permit(table, command.actor, "cut")
    round_ = still_round(table)
    _check_pile(command.stack)
    n = len(round_.cards(command.stack))
    if not 0 <= command.at <= n:
        raise BadPlace(f"Cut at 0 to {n}, counted from the bottom.")
    return [StackCut(round_.number, command.stack, command.at)]


def move(command: Move, table: Table, house: House) -> list[Event]:
    round_ = still_round(table)
    _permit_move(table, command)
    slots = _chosen(round_, command.actor, command.source, command.cards, command.count)
    to_seat = seat_of(command.to)
    if to_seat is not None:
        if to_seat not in table.seats:
            raise BadRequest(f"Nobody sits at seat {to_seat}.")
        _check_drawable(round_, slots)
    events: list[Event] = []
    for slot, at in zip(slots, _places(round_, command, slots), strict=True):
        card = None if to_seat is None else round_.faces[slot]
        events.append(CardMoved(round_.number, slot, command.source, command.to, at, card))
        if command.face == "up" and slot not in round_.shown:
            events.append(_shown(round_, house, slot))
    return events


def show(command: Show, table: Table, house: House) -> list[Event]:
    round_ = still_round(table)
    _check_stack(command.source)
    seat = seat_of(command.source)
    if seat is not None:
        if seat != command.actor.seat:
            raise NotYourSeat("You may show the cards of your own hand only.")
        seated(table, command.actor)
        permit(table, command.actor, "show")
    else:
        permit(table, command.actor, "turn")
    count = 1 if command.cards is None else None
    slots = _chosen(round_, command.actor, command.source, command.cards, count)
    if command.to is None:
        return [_shown(round_, house, slot) for slot in slots if slot not in round_.shown]
    if command.to not in table.seats:
        raise BadRequest(f"Nobody sits at seat {command.to}.")
    return [
        CardPeeked(round_.number, slot, command.to, round_.faces[slot])
        for slot in slots
        if not round_.sees(command.to, slot)
    ]


def _shown(round_: Round, house: House, slot: int) -> CardShown:
    return CardShown(round_.number, slot, round_.faces[slot] or "", house.slot_salt(slot))


def _permit_move(table: Table, command: Move) -> None:
    """From one's own hand by one's own right; from another's only the host, who collects."""
    for stack in (command.source, command.to):
        _check_stack(stack)
    owner = seat_of(command.source)
    if owner is not None and owner == command.actor.seat:
        seated(table, command.actor)
        permit(table, command.actor, _right(command))
    elif owner is not None:
        if not command.actor.host:
            raise NotYourSeat("That is another seat's hand.")
        permit(table, command.actor, "collect")
        if seat_of(command.to) is not None:
            raise NotEntitled("Cards are collected onto the deck or a pile, not into a hand.")
        if command.face == "up":
            raise NotEntitled("Cards of another seat's hand are collected face down.")
    else:
        permit(table, command.actor, _right(command))
        if command.face == "up":
            permit(table, command.actor, "turn")


def _right(command: Move) -> str:
    """The rule that a move falls under: what is a draw, a deal or a gift is so by any name."""
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
        raise BadRequest("Name deck or pile:<name> here; a hand is its seat's own.")


def _taken(round_: Round, stack: str, count: int, where: str) -> list[int]:
    """The next `count` cards from an end of a stack, in the order in which they come off."""
    cards = round_.cards(stack)
    if count < 1:
        raise BadRequest("Name at least one card.")
    if count > len(cards):
        raise DeckEmpty(f"{len(cards)} cards are left there, and {count} were asked for.")
    slots = cards[:count] if where == "bottom" else cards[: -count - 1 : -1]
    if slots[0] < 0:
        raise NotSealed("This stack has not been shuffled in this round; shuffle it first.")
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
    """Slots of the cards that were named; one that the actor may not see has to go by its slot."""
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
            raise CardNotInHand("A card you named is not in that hand, or you have not seen it.")
        raise CardNotThere("A card you named is not there, or you have not seen it.")
    return slots


def _check_drawable(round_: Round, slots: Sequence[int]) -> None:
    drawable = round_.drawable
    for slot in slots:
        if not drawable[slot]:
            raise NotSealed("The shuffle was partial and did not reach these cards; shuffle more.")


def _places(round_: Round, command: Move, slots: Sequence[int]) -> list[int]:
    """Where each card goes once it has left its place: onto the one before, or to the bottom."""
    target = round_.cards(command.to)
    if command.to not in round_.stacks and len(round_.stacks) >= STACKS_MAX:
        raise BadRequest(f"A round has at most {STACKS_MAX} stacks; use a pile that is there.")
    same = command.to == command.source
    first = _place(command.where, len(target) - same)
    if command.where == "bottom":
        return [0] * len(slots)
    if not same:
        return list(range(first, first + len(slots)))
    # Within a stack those already moved lie together, with the same cards below them as the first
    # one; they sink by a place when one of these leaves to lie on them.
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
        raise BadPlace(f"A place there is 0 (the bottom) to {size}, or top, or bottom.")
    return where
