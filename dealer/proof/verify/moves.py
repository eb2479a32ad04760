"""Everything but shuffles: seats, rounds, and cards that change their place or are shown.

- SeatTaken, SeatLeft (moves): a free seat, a taken seat; at any time before TableClosed. Leaving
  drops the seat's digest until EntropyClosed; its hand stays where it is.
- RoundOpened (secrets): rounds count 1, 2, 3 …, one at a time; if the round is closed later, its S
  has the length that the deck asks for, and opens the commitment.
- RoundClosed (secrets): the round that is open, and no shuffle runs.
- TableClosed (moves): no round is open. Whatever follows it fails its own check.
- CardDrawn (moves): from the deck or a pile where the slot lies, by a seat that is taken; a shuffle
  must have reached the card; the commitment is that of the card.
- CardMoved (moves): the slot lies in `from`; `place` is 0 … the cards of `to` once the card has
  left `from`; `to` may be any pile, or the hand of any seat that was ever taken: then a shuffle
  must have reached the card, and the commitment is that of the card.
- CardShown (seals): the slot lies on a stack now; card and salt open its commitment.
- CardPeeked (moves): the slot lies on a stack now, the seat is taken.
- StackCut (moves): deck or pile, `at` is 0 … its cards, at both ends the order stays. A deck may be
  cut before its first shuffle.

"A shuffle reached the card": it was in a full shuffle, or among the top `steps` of a partial one,
or in any shuffle of a stack all of whose cards had been reached before.
"""

from __future__ import annotations

from dealer.game.stacks import hand, seat_of
from dealer.proof.keys import RoundKeys, secret_length, slot_commitment
from dealer.proof.verify.books import Books, Round, Wrong, check_hidden
from dealer.proof.verify.form import Leaf


def table_opened(books: Books, leaf: Leaf) -> None:
    """Its place is a matter of form, its key and origin of the heads."""


def table_closed(books: Books, leaf: Leaf) -> None:
    if books.round is not None:
        raise Wrong("A round is open, and its secret not shown.")
    books.closed = True


def seat_taken(books: Books, leaf: Leaf) -> None:
    seat = leaf.public["seat"]
    if seat in books.seats:
        raise Wrong("Somebody sits there.")
    books.seats.add(seat)
    books.sat.add(seat)


def seat_left(books: Books, leaf: Leaf) -> None:
    seat = leaf.public["seat"]
    if seat not in books.seats:
        raise Wrong("Nobody sits there.")
    books.seats.remove(seat)
    round_ = books.round
    if round_ is not None:
        round_.ahead.pop(seat, None)
        if round_.shuffle is not None and not round_.shuffle.closed:
            round_.shuffle.digests.pop(seat, None)


def round_opened(books: Books, leaf: Leaf) -> None:
    public = leaf.public
    number, secret, keys = public["round"], books.secrets.get(leaf.version), None
    if books.round is not None:
        raise Wrong(f"Round {books.round.number} is open.")
    if number != books.rounds + 1:
        raise Wrong(f"The next round is {books.rounds + 1}.")
    if secret is not None:
        keys = RoundKeys(table=books.table, round=number, secret=secret)
        if len(secret) != secret_length(len(public["deck"])):
            raise Wrong("The secret that the house showed has not the length for this deck.")
        if keys.commitment.hex() != public["commitment"]:
            raise Wrong("The secret that the house showed is not the one it committed to.")
    books.round = Round.open(public, secret=secret, keys=keys)
    books.rounds = books.remarks.rounds = number


def round_closed(books: Books, leaf: Leaf) -> None:
    books.still(leaf)
    books.round = None


def drawn(books: Books, leaf: Leaf) -> None:
    public = leaf.public
    round_ = books.still(leaf)
    source, slot, seat = public["from"], public["slot"], public["seat"]
    if seat_of(source) is not None:
        raise Wrong("Nobody draws from a hand.")
    if seat not in books.seats:
        raise Wrong("Nobody sits there.")
    cards = _where(round_, source, slot)
    _check_into_hand(round_, leaf, slot)
    if cards[-1] != slot:
        books.remarks.not_top += 1
    cards.remove(slot)
    round_.cards(hand(seat)).append(slot)


def moved(books: Books, leaf: Leaf) -> None:
    public = leaf.public
    round_ = books.still(leaf)
    slot, to, place = public["slot"], public["to"], public["place"]
    source = _where(round_, public["from"], slot)
    seat = seat_of(to)
    if seat is not None:
        if seat not in books.sat:
            raise Wrong("Nobody ever sat there.")
        _check_into_hand(round_, leaf, slot)
    room = len(round_.cards(to)) - (to == public["from"])
    if place > room:
        raise Wrong(f"There the places are 0 to {room}.")
    source.remove(slot)
    round_.cards(to).insert(place, slot)


def shown(books: Books, leaf: Leaf) -> None:
    public = leaf.public
    round_ = books.still(leaf)
    slot = public["slot"]
    if not round_.lies(slot):
        raise Wrong("This slot lies nowhere.")
    opened = slot_commitment(
        table=books.table,
        round=round_.number,
        slot=slot,
        salt=bytes.fromhex(public["salt"]),
        card=public["card"],
    )
    if opened.hex() != round_.commitments[slot]:
        raise Wrong("Card and salt do not open the slot's commitment.")


def peeked(books: Books, leaf: Leaf) -> None:
    round_ = books.still(leaf)
    if not round_.lies(leaf.public["slot"]):
        raise Wrong("This slot lies nowhere.")
    if leaf.public["seat"] not in books.seats:
        raise Wrong("Nobody sits there.")


def cut(books: Books, leaf: Leaf) -> None:
    public = leaf.public
    round_ = books.still(leaf)
    if seat_of(public["stack"]) is not None:
        raise Wrong("A hand is not cut.")
    cards, at = round_.cards(public["stack"]), public["at"]
    if at > len(cards):
        raise Wrong(f"The stack has {len(cards)} cards.")
    cards[:] = cards[at:] + cards[:at]


def _where(round_: Round, stack: str, slot: int) -> list[int]:
    cards = round_.cards(stack)
    if slot not in cards:
        raise Wrong(f"Slot {slot} does not lie there.")
    return cards


def _check_into_hand(round_: Round, leaf: Leaf, slot: int) -> None:
    if not round_.drawable[slot]:
        raise Wrong("No shuffle reached this card, so it may not come into a hand.")
    check_hidden(round_, leaf, f'{{"card":"{round_.faces[slot]}"}}')
