"""Commands that move or show cards: draw, cut, move, show, deal, pass, and taking a move back.

*The deal*: cards to each seat, then to piles.

*Face up*: a move that turns a card of a pile is also `turn`, one that turns a card of the actor's
hand and leaves it in a hand is also `show`.

*Simultaneous passing*: cards wait face down in `pass:<seat>` until all seats have passed. Until
then no other command may touch these piles, and each seat may take its own cards back. The pass of
the last seat moves all cards to their hands in the same append. So that the seats do not wait for a
player who has left, `hand.pass` without cards delivers them: anyone's if no seat is awaited any
more, the host's in any case.

*Taking back*: the cards of a move return to their places by further moves; no event is erased. Only
a move that showed no card to anyone can be taken back. Its player is the seat whose hand its events
name. A move between piles names no player: all who may move cards of piles may take it back, as
they may move the cards back anyway. What left the deck is final.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dealer.errors import BadPlace, BadRequest, NotEntitled, NothingToTakeBack, NotYourSeat
from dealer.game import commands, events
from dealer.game.decide import permission, selection
from dealer.game.decide.round_secrets import RoundSecrets
from dealer.game.events import TAKE_BACK, Event
from dealer.game.moves import CardsMoved
from dealer.game.stacks import DECK, DISCARD, hand, is_stack, pass_pile, passed_to, seat_of
from dealer.game.state import Round, Table


def draw(command: commands.Draw, table: Table) -> list[Event]:
    """Draw cards into the actor's hand, as CardDrawn events in their order."""
    actor, round_ = command.actor, table.round
    action = "draw" if command.source == DECK else "pile"
    # The most frequent command: its conditions are tested without calls. A function is called only
    # if its test has failed, to refuse with the reason; only a host may pass the first two.
    seat = actor.seat
    if seat not in table.seats or table.rules.who[action] != "players":
        seat = permission.require_seat(table, actor)
        permission.require_permission(table, actor, action)
    if round_ is None or round_.shuffle is not None:
        round_ = permission.idle_round(table)
    if command.source != DECK:
        selection.require_pile(command.source)
        selection.require_no_pass(round_, command.source)
    if command.cards is not None:
        slots = selection.select_named_cards(round_, command.actor, command.source, command.cards)
    elif command.whole:
        slots = selection.whole(round_, command.source)
    else:
        slots = round_.stacks.get(command.source, [])[-1:]
        if command.count != 1 or command.where != "top" or not slots or slots[0] < 0:
            slots = selection.taken(round_, command.source, command.count, command.where)
    drawn: list[Event] = []
    for slot in slots:
        if not round_.drawable[slot]:
            selection.require_drawable(round_, slots)
        card = round_.faces[slot]
        drawn.append(events.CardDrawn(round_.number, seat, command.source, slot, card))
    return drawn


def cut(command: commands.Cut, table: Table) -> list[Event]:
    """Cut the deck or a pile at a place from 0 to its number of cards."""
    permission.require_permission(table, command.actor, "cut")
    round_ = permission.idle_round(table)
    selection.require_pile(command.stack)
    selection.require_no_pass(round_, command.stack)
    n = len(round_.cards(command.stack))
    if not 0 <= command.at <= n:
        raise BadPlace(f"Cut at a place from 0 to {n}, counted from the bottom.")
    return [events.StackCut(round_.number, command.stack, command.at)]


def move(command: commands.Move, table: Table, house: RoundSecrets) -> list[Event]:
    """Move cards; cards that turn face up are opened by CardShown with their salts."""
    round_ = permission.idle_round(table)
    _permit_move(table, command)
    selection.require_no_pass(round_, command.source)
    selection.require_no_pass_pile(command.to)
    slots = selection.chosen(
        round_, command.actor, command.source, command.cards, command.count, all_cards=command.whole
    )
    to_seat = seat_of(command.to)
    if to_seat is not None:
        if to_seat not in table.seats:
            raise BadRequest(f"Seat {to_seat} is not taken.")
        if command.action == "give" and command.source == command.to:
            raise BadRequest("Name with `to` the seat of another player: this one has the cards.")
        selection.require_drawable(round_, slots)
    moved: list[Event] = []
    for slot, place in zip(slots, _places(round_, command, slots), strict=True):
        card = None if to_seat is None else round_.faces[slot]
        moved.append(events.CardMoved(round_.number, slot, command.source, command.to, place, card))
        if command.face == "up" and slot not in round_.shown:
            moved.append(selection.shown(round_, house, slot))
    return moved


def show(command: commands.Show, table: Table, house: RoundSecrets) -> list[Event]:
    """Open cards to everyone with their salts, or to one seat by CardPeeked."""
    round_ = permission.idle_round(table)
    selection.require_stack(command.source)
    seat = seat_of(command.source)
    if seat is not None:
        if seat != command.actor.seat:
            raise NotYourSeat("You may show only the cards of your own hand.")
        permission.require_seat(table, command.actor)
        permission.require_permission(table, command.actor, "show")
    else:
        permission.require_permission(table, command.actor, "turn")
        selection.require_no_pass(round_, command.source)
    slots = selection.chosen(
        round_, command.actor, command.source, command.cards, None, all_cards=command.whole
    )
    if command.to is None:
        return [selection.shown(round_, house, slot) for slot in slots if slot not in round_.shown]
    if command.to not in table.seats:
        raise BadRequest(f"Seat {command.to} is not taken.")
    return [
        events.CardPeeked(round_.number, slot, command.to, round_.faces[slot])
        for slot in slots
        if not round_.sees(command.to, slot)
    ]


def _permit_move(table: Table, command: commands.Move) -> None:
    """Check that the rules allow this move.

    From another seat's hand only the host and a service may move.
    """
    for stack in (command.source, command.to):
        selection.require_stack(stack)
    owner = seat_of(command.source)
    if owner is not None and owner == command.actor.seat:
        permission.require_seat(table, command.actor)
        permission.require_permission(table, command.actor, _action(command))
        if command.face == "up" and seat_of(command.to) is not None:  # open, but not played
            permission.require_permission(table, command.actor, "show")
    elif owner is not None:
        if not (command.actor.service or permission.is_host(table, command.actor)):
            raise NotYourSeat("That is another seat's hand.")
        permission.require_permission(table, command.actor, "collect")
        if seat_of(command.to) is not None:
            raise NotEntitled("Collected cards go onto the deck or a pile, not into a hand.")
        if command.face == "up":
            raise NotEntitled("Cards of another seat's hand are collected face down; name no face.")
    else:
        permission.require_permission(table, command.actor, _action(command))
        if command.face == "up":
            permission.require_permission(table, command.actor, "turn")


def _action(command: commands.Move) -> str:
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


def _places(round_: Round, command: commands.Move, slots: Sequence[int]) -> list[int]:
    """The place of each card in the target stack, after it was taken out of its own place.

    Each card goes on top of the one before it, or, with `where` "bottom", below it. A whole stack
    keeps its order in any place.
    """
    target = round_.cards(command.to)
    selection.require_room_for(round_, [command.to])
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


def _place(where: commands.Where, size: int) -> int:
    if where == "top":
        return size
    if where == "bottom":
        return 0
    if not isinstance(where, int) or not 0 <= where <= size:
        raise BadPlace(f"A place in that stack is 0 (the bottom) to {size}, top, or bottom.")
    return where


def deal(command: commands.Deal, table: Table, house: RoundSecrets) -> list[Event]:
    """Deal one card at a time to each seat, `command.each` times, then the cards of each pile."""
    permission.require_permission(table, command.actor, "deal")
    round_ = permission.idle_round(table)
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
    slots = selection.taken(round_, DECK, to_seats + in_piles, "top")
    selection.require_drawable(round_, slots[:to_seats])
    number, faces = round_.number, round_.faces
    dealt: list[Event] = [
        events.CardDrawn(number, seats[turn % len(seats)], DECK, slot, faces[slot])
        for turn, slot in enumerate(slots[:to_seats])
    ]
    dealt.extend(_onto_piles(command.piles, slots[to_seats:], round_, house))
    return dealt


def _check_piles(command: commands.Deal, table: Table, round_: Round) -> None:
    if not command.piles:
        return
    names = [pile.stack for pile in command.piles]
    # A deal must not get round the rules for piles.
    permission.require_permission(table, command.actor, "pile")
    if any(pile.face == "up" for pile in command.piles):
        permission.require_permission(table, command.actor, "turn")
    for name in names:
        if name == DECK or not is_stack(name) or seat_of(name) is not None:
            raise BadRequest("Cards are dealt to seats and to piles; name pile:<name>.")
        selection.require_no_pass_pile(name)
    if len(set(names)) != len(names):
        raise BadRequest("Name each pile once.")
    if any(pile.number < 1 for pile in command.piles):
        raise BadRequest("Deal at least one card to each pile.")
    selection.require_room_for(round_, names)


def _onto_piles(
    piles: Sequence[commands.DealtPile], slots: Sequence[int], round_: Round, house: RoundSecrets
) -> Iterator[Event]:
    rest = iter(slots)
    for pile in piles:
        first = len(round_.cards(pile.stack))
        for place in range(first, first + pile.number):
            slot = next(rest)
            yield events.CardMoved(round_.number, slot, DECK, pile.stack, place, None)
            if pile.face == "up" and slot not in round_.shown:
                yield selection.shown(round_, house, slot)


def pass_cards(command: commands.Pass, table: Table) -> list[Event]:
    """Put cards into the pile of the seat that gets them; deliver all if no seat is awaited."""
    permission.require_permission(table, command.actor, "pass")
    round_ = permission.idle_round(table)
    if command.cards is None:
        return _deliver_now(command, table, round_)
    seat, to = permission.require_seat(table, command.actor), command.to
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
    cards: tuple[commands.CardRef, ...], command: commands.Pass, round_: Round, seat: int, to: int
) -> list[events.CardMoved]:
    source, pile = hand(seat), pass_pile(to)
    slots = selection.select_named_cards(round_, command.actor, source, cards)
    selection.require_room_for(round_, [pile])
    first = len(round_.cards(pile))
    return [
        events.CardMoved(round_.number, slot, source, pile, place, None)
        for place, slot in enumerate(slots, first)
    ]


def _deliver_now(command: commands.Pass, table: Table, round_: Round) -> list[Event]:
    if command.to is not None:
        raise BadRequest("Name the cards that you pass, or no seat to deliver what was passed.")
    if not round_.moves.passed:
        raise BadRequest("No cards wait to be passed.")
    awaited = _awaited(table, round_)
    if awaited and not (command.actor.service or permission.is_host(table, command.actor)):
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
    the discard pile. `sizes` are the sizes of stacks that earlier events of the same append change.
    """
    for owner, slot, pile in sorted(waiting, key=lambda card: passed_to(card[2])):
        seat = next((seat for seat in (passed_to(pile), owner) if seat in table.seats), None)
        to = DISCARD if seat is None else hand(seat)
        place = sizes.setdefault(to, len(round_.cards(to)))
        sizes[to] = place + 1
        face = None if seat_of(to) is None else round_.faces[slot]
        yield events.CardMoved(round_.number, slot, pile, to, place, face)


def take_back(command: commands.TakeBack, table: Table) -> list[Event]:
    """Reverse the last move, or else the cards that the actor's seat has passed.

    The last event is a note with the versions of the reversed events. Raises NothingToTakeBack.
    """
    actor = command.actor
    permission.require_permission(table, actor, "take_back")
    round_ = permission.idle_round(table)
    last = round_.moves.last
    obstacle = _obstacle(table, actor, last)
    if last is None or obstacle is not None:
        last = None if actor.seat is None else round_.moves.passed.get(actor.seat)
    if last is None:
        raise NothingToTakeBack(obstacle or "")
    note = events.NoteAdded(actor.seat or 0, TAKE_BACK, last.versions)
    return [*_reversed(round_, last), note]


def _obstacle(table: Table, actor: commands.Actor, last: CardsMoved | None) -> str | None:
    """Why the actor may not take the last move back; None if the actor may."""
    if last is None:
        return "There is no move to take back: cards were shown, drawn or shuffled since, or none."
    if last.revealed:
        return "The last move showed a card to a player; what has been seen cannot be taken back."
    giver, taker = seat_of(last.source), seat_of(last.to)
    if giver is not None and taker is not None and giver != taker:
        return "Cards that were given to another seat cannot be taken back."
    if last.seat is None:
        if permission.is_permitted(table, actor, "pile"):
            return None
        return "The last move was not one of your hand."
    if last.seat != actor.seat:
        return "The last move was another seat's."
    if giver is not None and taker is None and table.rules.who["collect"] != "nobody":
        return "Here the host may move cards of hands: the log does not say whose move it was."
    return None


def _reversed(round_: Round, moved: CardsMoved) -> list[Event]:
    """The moves that put the cards back, the last one first."""
    room = len(round_.cards(moved.source)) - (moved.source == moved.to)
    into_hand = seat_of(moved.source) is not None
    back: list[Event] = []
    for slot, place in reversed(moved.cards):
        face = round_.faces[slot] if into_hand else None
        place = min(place, room)  # a hand may have fewer cards than when it passed these
        back.append(events.CardMoved(round_.number, slot, moved.to, moved.source, place, face))
        room += moved.source != moved.to
    return back
