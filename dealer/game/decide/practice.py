"""Practice tables: the cards of a closed round, laid out again as they lay at one version.

Such a table has the rule `practice`, which only the server writes: an object with `table`, `round`
and `version` of the source, and `root`, its Merkle root at a checkpoint that covers the round's
close. The swaps of the first shuffle bring the cards into the order in which they are laid out, as
those of a test deck. Its first events are, in one append:

    TableOpened
    SeatTaken      for each seat whose hand has cards, as "Seat 1" and so on
    RoundOpened    the deck and the waits of the source; entropy "house"
    ShuffleStarted, EntropyClosed, CardsSwapped …, DeckSealed
    CardDrawn or CardMoved   for each card of the hands and piles, from the top of the deck
    CardShown      for each card that lies face up
    SeatLeft       for each of these seats, whose hand stays for the player who takes the seat
"""

from __future__ import annotations

from dealer.game import events
from dealer.game.decide.round_secrets import RoundSecrets
from dealer.game.decide.selection import shown
from dealer.game.events import Event
from dealer.game.insecure_deck import InsecureDeck
from dealer.game.shuffle import full
from dealer.game.stacks import DECK, seat_of
from dealer.game.state import Round


def begin(source: Round, house: RoundSecrets) -> list[Event]:
    """What follows TableOpened: the seats, the round, and its first shuffle without swaps."""
    n = len(source.opened)
    return [
        *(events.SeatTaken(seat, f"Seat {seat}", None) for seat in _seats(source)),
        events.RoundOpened(
            round=1,
            deck=source.opened,
            entropy="house",
            commit_ms=source.commit_ms,
            reveal_ms=source.reveal_ms,
            commitment=house.commitment,
        ),
        events.ShuffleStarted(1, 0, DECK, n, "backward", full(n)),
        events.EntropyClosed(1, 0),
    ]


def deck_of(source: Round) -> InsecureDeck:
    """The deck after that shuffle; all faces of the source are known."""
    cards = [card for _, _, card in _placed(source)] + source.cards(DECK)[::-1]
    return InsecureDeck(order=tuple(source.face(card) or "" for card in cards))


def lay_out(source: Round, round_: Round, house: RoundSecrets) -> list[Event]:
    """What follows the seal of `round_`: its cards placed, some turned up, and the seats left."""
    number, deck = round_.number, round_.cards(DECK)
    placed: list[Event] = []
    for slot, (stack, place, card) in zip(reversed(deck), _placed(source), strict=False):
        seat = seat_of(stack)
        placed.append(
            events.CardMoved(number, slot, DECK, stack, place, None)
            if seat is None
            else events.CardDrawn(number, seat, DECK, slot, source.face(card))
        )
    faces = {source.face(card) for card in source.shown}
    turned = [shown(round_, house, slot) for slot in deck if round_.face(slot) in faces]
    return [*placed, *turned, *map(events.SeatLeft, _seats(source))]


def _placed(source: Round) -> list[tuple[str, int, int]]:
    """The stack, the place and the card of all cards that are not in the deck."""
    return [
        (stack, place, card)
        for stack in sorted(source.stacks)
        if stack != DECK
        for place, card in enumerate(source.stacks[stack])
    ]


def _seats(source: Round) -> list[int]:
    """The seats whose hands have cards."""
    seats = [seat_of(stack) for stack, cards in source.stacks.items() if cards]
    return sorted(seat for seat in seats if seat is not None)
