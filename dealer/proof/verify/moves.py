"""Rules of all events except those of shuffles: seats, rounds, moved and shown cards.

- SeatTaken, SeatLeft, SeatVacated (moves): a free seat, a taken seat; at any time before
  TableClosed. Leaving removes the seat's digest before EntropyClosed; its hand stays.
- HostTransferred, NoteAdded (moves): the seat is taken, or a note's is 0; at any time before
  TableClosed, also during a shuffle. They change no card.
- RoundOpened (secrets): rounds are numbered 1, 2, 3 …, one open at a time; if the round is closed
  later, its S has the length required for the deck and opens the commitment.
- RoundClosed (secrets): it names the open round, and no shuffle is running.
- TableClosed (moves): no round is open. Any event after it fails under the check of its type.
- CardDrawn (moves): from the deck or pile that contains the slot, to a taken seat; a shuffle must
  have reached the card; the commitment is the card's.
- CardMoved (moves): `from` contains the slot; `place` is 0 … the number of cards of `to` after the
  card has left `from`; `to` is the deck, a pile, or the hand of a seat that was ever taken: then a
  shuffle must have reached the card, and the commitment is the card's.
- CardShown (seals): a stack contains the slot; card and salt open its commitment.
- CardPeeked (moves): a stack contains the slot, the seat is taken.
- StackCut (moves): deck or pile, `at` is 0 … its number of cards; either end leaves the order
  unchanged. A deck may be cut before its first shuffle.

"A shuffle reached the card": it was in a full shuffle, or among the top `steps` of a partial one,
or in any shuffle of a stack all of whose cards had been reached before.
"""

from __future__ import annotations

from dealer.game.stacks import DECK, hand, seat_of
from dealer.proof.round_keys import RoundKeys, secret_length, slot_commitment
from dealer.proof.verify.form import Leaf
from dealer.proof.verify.ledger import Ledger, Round, RuleViolation, check_hidden


def table_opened(ledger: Ledger, leaf: Leaf) -> None:
    """Accept the event: `form` checks its position, `heads` its key and origin."""


def table_closed(ledger: Ledger, leaf: Leaf) -> None:
    """TableClosed: no round is open."""
    if ledger.round is not None:
        raise RuleViolation("A round is open and its secret not revealed.")
    ledger.closed = True


def seat_taken(ledger: Ledger, leaf: Leaf) -> None:
    """SeatTaken: the seat is free."""
    seat = leaf.public["seat"]
    if seat in ledger.seats:
        raise RuleViolation("This seat is already taken.")
    ledger.seats.add(seat)
    ledger.sat.add(seat)


def seat_left(ledger: Ledger, leaf: Leaf) -> None:
    """SeatLeft, SeatVacated: the seat is taken; its digest is dropped until EntropyClosed."""
    seat = _taken(ledger, leaf)
    ledger.seats.remove(seat)
    round_ = ledger.round
    if round_ is not None:
        round_.ahead.pop(seat, None)
        if round_.shuffle is not None and not round_.shuffle.closed:
            round_.shuffle.digests.pop(seat, None)


def host_transferred(ledger: Ledger, leaf: Leaf) -> None:
    """HostTransferred: the seat is taken."""
    _taken(ledger, leaf)


def note_added(ledger: Ledger, leaf: Leaf) -> None:
    """NoteAdded: the seat is taken, or 0 for the host or a service."""
    if leaf.public["seat"]:
        _taken(ledger, leaf)


def round_opened(ledger: Ledger, leaf: Leaf) -> None:
    """RoundOpened: the next number, and a published secret opens the commitment."""
    public = leaf.public
    number, deck = public["round"], public["deck"]
    secret, keys = ledger.secrets.get(leaf.version), None
    if ledger.round is not None:
        raise RuleViolation(f"Round {ledger.round.number} is open.")
    if number != ledger.rounds + 1:
        raise RuleViolation(f"The next round is {ledger.rounds + 1}.")
    if secret is not None:
        keys = RoundKeys(table=ledger.table, round=number, secret=secret)
        if len(secret) != secret_length(len(deck)):
            raise RuleViolation(
                "The revealed secret does not have the length required for this deck."
            )
        if keys.commitment.hex() != public["commitment"]:
            raise RuleViolation("The revealed secret is not the one that the house committed to.")
    stacks = {DECK: [~place for place in range(len(deck))]}
    ledger.round = Round(number, deck, public["entropy"], secret, keys, stacks)
    ledger.rounds = ledger.remarks.rounds = number


def round_closed(ledger: Ledger, leaf: Leaf) -> None:
    """RoundClosed: this round is open and no shuffle is running."""
    ledger.idle_round(leaf)
    ledger.round = None


def drawn(ledger: Ledger, leaf: Leaf) -> None:
    """CardDrawn: from a deck or pile that has the slot, by a taken seat."""
    public = leaf.public
    round_ = ledger.idle_round(leaf)
    source, slot = public["from"], public["slot"]
    if seat_of(source) is not None:
        raise RuleViolation("A hand cannot be drawn from.")
    seat = _taken(ledger, leaf)
    cards = _cards_with(round_, source, slot)
    _check_into_hand(round_, leaf, slot)
    if cards[-1] != slot:
        ledger.remarks.not_top += 1
    cards.remove(slot)
    round_.cards(hand(seat)).append(slot)


def moved(ledger: Ledger, leaf: Leaf) -> None:
    """CardMoved: from the stack that has the slot, to a place that exists."""
    public = leaf.public
    round_ = ledger.idle_round(leaf)
    slot, to, place = public["slot"], public["to"], public["place"]
    source = _cards_with(round_, public["from"], slot)
    seat = seat_of(to)
    if seat is not None:
        if seat not in ledger.sat:
            raise RuleViolation("The seat of that hand was never taken.")
        _check_into_hand(round_, leaf, slot)
    room = len(round_.cards(to)) - (to == public["from"])
    if place > room:
        raise RuleViolation(f"The places of that stack are 0 to {room}.")
    source.remove(slot)
    round_.cards(to).insert(place, slot)


def shown(ledger: Ledger, leaf: Leaf) -> None:
    """CardShown: card and salt open the slot's commitment."""
    public = leaf.public
    round_ = ledger.idle_round(leaf)
    slot = public["slot"]
    if not round_.on_table(slot):
        raise RuleViolation("No stack contains this slot.")
    opened = slot_commitment(
        table=ledger.table,
        round=round_.number,
        slot=slot,
        salt=bytes.fromhex(public["salt"]),
        card=public["card"],
    )
    if opened.hex() != round_.commitments[slot]:
        raise RuleViolation("Card and salt do not open the slot's commitment.")
    round_.shown.add(slot)


def peeked(ledger: Ledger, leaf: Leaf) -> None:
    """CardPeeked: the slot is on a stack and the seat is taken."""
    round_ = ledger.idle_round(leaf)
    if not round_.on_table(leaf.public["slot"]):
        raise RuleViolation("No stack contains this slot.")
    _taken(ledger, leaf)


def cut(ledger: Ledger, leaf: Leaf) -> None:
    """StackCut: a deck or pile, at a place that exists."""
    public = leaf.public
    round_ = ledger.idle_round(leaf)
    if seat_of(public["stack"]) is not None:
        raise RuleViolation("A hand cannot be cut.")
    cards, at = round_.cards(public["stack"]), public["at"]
    if at > len(cards):
        raise RuleViolation(f"The stack has {len(cards)} cards.")
    cards[:] = cards[at:] + cards[:at]


def _taken(ledger: Ledger, leaf: Leaf) -> int:
    """The event's seat, which must be taken."""
    seat: int = leaf.public["seat"]
    if seat not in ledger.seats:
        raise RuleViolation("This seat is not taken.")
    return seat


def _cards_with(round_: Round, stack: str, slot: int) -> list[int]:
    cards = round_.cards(stack)
    if slot not in cards:
        raise RuleViolation(f"That stack does not contain slot {slot}.")
    return cards


def _check_into_hand(round_: Round, leaf: Leaf, slot: int) -> None:
    if not round_.drawable[slot]:
        raise RuleViolation("No shuffle reached this card, so it may not enter a hand.")
    check_hidden(round_, leaf, f'{{"card":"{round_.faces[slot]}"}}')
