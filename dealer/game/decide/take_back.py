"""Taking a move back: its cards return to their places by further moves; no event is erased.

Only a move that showed no card to anyone can be taken back. Its player is the seat whose hand its
events name. A move between piles names no player: all who may move cards of piles may take it back,
as they may move the cards back anyway. What left the deck is final.
"""

from __future__ import annotations

from dealer.errors import NothingToTakeBack
from dealer.game import events
from dealer.game.commands import Actor, TakeBack
from dealer.game.decide.permission import idle_round, is_permitted, require_permission
from dealer.game.events import Event
from dealer.game.moves import CardsMoved
from dealer.game.stacks import seat_of
from dealer.game.state import TAKE_BACK, Round, Table


def take_back(command: TakeBack, table: Table) -> list[Event]:
    """Reverse the last move, or else the cards that the actor's seat has passed.

    The last event is a note with the versions of the reversed events. Raises NothingToTakeBack.
    """
    actor = command.actor
    require_permission(table, actor, "take_back")
    round_ = idle_round(table)
    last = round_.moves.last
    obstacle = _obstacle(table, actor, last)
    if last is None or obstacle is not None:
        last = None if actor.seat is None else round_.moves.passed.get(actor.seat)
    if last is None:
        raise NothingToTakeBack(obstacle or "")
    note = events.NoteAdded(actor.seat or 0, TAKE_BACK, last.versions)
    return [*_reversed(round_, last), note]


def _obstacle(table: Table, actor: Actor, last: CardsMoved | None) -> str | None:
    """Why the actor may not take the last move back; None if the actor may."""
    if last is None:
        return "There is no move to take back: cards were shown, drawn or shuffled since, or none."
    if last.revealed:
        return "The last move showed a card to a player; what has been seen cannot be taken back."
    giver, taker = seat_of(last.source), seat_of(last.to)
    if giver is not None and taker is not None and giver != taker:
        return "Cards that were given to another seat cannot be taken back."
    if last.seat is None:
        if is_permitted(table, actor, "pile"):
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
