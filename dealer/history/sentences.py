"""Every event as one English sentence, for the audit, the text history and the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, assert_never

from dealer.game import events
from dealer.game.cards import UNKNOWN
from dealer.game.events import Event
from dealer.game.stacks import BURN, DECK, DISCARD, is_pass_pile, passed_to, seat_of
from dealer.game.state import TAKE_BACK, Table
from dealer.history.printable import escape_control
from dealer.history.replay import ReplayStep, replay_bundle
from dealer.proof.verify import Swap


class Sentence(NamedTuple):
    """One event as a sentence; `round` is 0 outside of rounds, `cards` are the codes it names.

    `swap` is the recomputed swap, for a CardsSwapped of a closed round.
    """

    version: int
    at: int
    round: int
    type: str
    sentence: str
    cards: tuple[str, ...] = ()
    swap: Swap | None = None


def describe_all(leaves: Iterable[str | bytes], swaps: Iterable[Swap]) -> Iterator[Sentence]:
    """A sentence for each of the verified `leaves` of one table, from its first event on.

    `swaps` are those that the verifier recomputed; without them a card is written as `??`.
    """
    return map(describe, replay_bundle(leaves, swaps))


def describe(step: ReplayStep) -> Sentence:
    """The sentence of one event."""
    sentence, cards = _sentence(step.table, step.event, step.swap)
    version, at, number, type_ = step[:4]
    return Sentence(version, at, number, type_, escape_control(sentence), cards, step.swap)


def _sentence(table: Table, event: Event, swap: Swap | None) -> tuple[str, tuple[str, ...]]:
    """The sentence and the codes in it; `table` is the state before the event."""
    match event:
        case events.CardsSwapped(step=step, i=i):
            if swap is None:
                return f"step {step}: place {i} is swapped with a hidden place", ()
            a, b = swap.cards
            words = " ".join(map(str, swap.words))
            return f"step {step}: swaps places {i} ({a}) and {swap.j} ({b}); tape {words}", (a, b)
        case events.CardDrawn(seat=seat, source=source, slot=slot):
            card = _face(table, slot)
            return f"{_who(table, seat)} draws {card} from {_where(table, source, slot)}", (card,)
        case events.CardMoved(slot=slot):
            return _moved(table, event), (_face(table, slot),)
        case events.CardShown(slot=slot, card=card):
            stack = named(table, _stack_of(table, slot))
            return f"{card} in {stack} is turned up for all", (card,)
        case events.CardPeeked(slot=slot, seat=seat):
            card = _face(table, slot)
            stack = named(table, _stack_of(table, slot))
            return f"{_who(table, seat)} is shown {card} in {stack}", (card,)
        case events.StackCut(stack=stack, at=at):
            return f"{named(table, stack)} is cut: the cards from place {at} go to the bottom", ()
        case _:
            return _cardless(table, event), ()


def _moved(table: Table, event: events.CardMoved) -> str:
    """A move from the deck to pile:burn is a burn, from a hand to pile:discard a discard."""
    card, source = _face(table, event.slot), event.source
    origin = _where(table, source, event.slot)
    if event.to == BURN and source == DECK:
        return f"{card} is burned from {origin}"
    if event.to == DISCARD and seat_of(source) is not None:
        return f"{card} is discarded from {origin}"
    if is_pass_pile(event.to) and seat_of(source) is not None:
        return f"{card} is passed from {origin} to {_who(table, passed_to(event.to))}"
    target, lying = named(table, event.to), 0
    if table.round is not None:
        lying = len(table.round.cards(event.to)) - (event.to == source)
    if event.place == lying:
        return f"{card} goes from {origin} to {target}"
    return f"{card} goes from {origin} to place {event.place} (not the top) of {target}"


CardlessEvent = (
    events.TableOpened
    | events.TableClosed
    | events.SeatTaken
    | events.SeatLeft
    | events.SeatVacated
    | events.HostTransferred
    | events.NoteAdded
    | events.RoundOpened
    | events.RoundClosed
    | events.ShuffleStarted
    | events.EntropyCommitted
    | events.EntropyClosed
    | events.EntropyRevealed
    | events.ShuffleVoided
    | events.DeckSealed
)


def _cardless(table: Table, event: CardlessEvent) -> str:
    """The sentence of an event that names no card: tables, seats, rounds and entropy."""
    match event:
        case events.TableOpened(origin=origin, key=key):
            return f"the table {origin} opens; its key is {key.hex()}"
        case events.TableClosed():
            return "the table closes"
        case events.SeatTaken(seat=seat, name=name, key=key, bot=bot):
            who = f"{name} (a bot)" if bot else name
            return f"{who} sits down at seat {seat}" + (f", key {key.hex()}" if key else "")
        case events.SeatLeft(seat=seat):
            return f"{_who(table, seat)} leaves seat {seat}"
        case events.SeatVacated(seat=seat, by=by, reason=reason):
            why = f": {reason}" if reason else ""
            return f"the {by} removes {_who(table, seat)} from seat {seat}{why}"
        case events.HostTransferred(seat=seat):
            return f"{_who(table, seat)} is the host from here on"
        case events.NoteAdded(seat=seat, kind=kind, text=text) if kind == TAKE_BACK:
            versions = f"versions {text.replace('-', ' to ')}" if "-" in text else f"version {text}"
            return f"{_who(table, seat) if seat else 'the host'} took back {versions}"
        case events.NoteAdded(seat=seat, kind=kind, text=text):
            return f"{_who(table, seat) if seat else 'the host'} notes ({kind}): {text}"
        case events.RoundOpened(round=number, deck=deck, entropy=entropy, commitment=commitment):
            whose = "the house alone" if entropy == "house" else "the house and the players"
            return (
                f"round {number} opens: {len(deck)} cards, random bytes of {whose}; the house "
                f"commits to its secret: {commitment.hex()}"
            )
        case events.RoundClosed(round=number, secret=secret):
            return f"round {number} closes; the house's secret was {secret.hex()}"
        case events.ShuffleStarted(k=k, stack=stack, n=n, algorithm=algorithm, steps=steps):
            return (
                f"shuffle {k} begins: {named(table, stack)}, {n} cards, {algorithm}, {steps} steps"
            )
        case events.EntropyCommitted(k=k, seat=seat, digest=digest):
            return f"{_who(table, seat)} commits to random bytes for shuffle {k}: {digest.hex()}"
        case events.EntropyClosed(k=k):
            return f"commitments for shuffle {k} are closed; the house signs the log so far"
        case events.EntropyRevealed(seat=seat, nonce=nonce):
            return f"{_who(table, seat)} reveals random bytes: {nonce.hex()}"
        case events.ShuffleVoided(k=k):
            return f"shuffle {k} is voided: {_withholding(table)} did not reveal random bytes"
        case events.DeckSealed(k=k, first=first, slots=slots):
            last = first + len(slots) - 1
            return f"shuffle {k} is done: its cards are sealed in slots {first} to {last}"
        case _:
            assert_never(event)


def _who(table: Table, seat: int) -> str:
    player = table.seats.get(seat)
    return f"seat {seat}" if player is None else f"{player.name} (seat {seat})"


def _withholding(table: Table) -> str:
    shuffle = None if table.round is None else table.round.shuffle
    return " and ".join(_who(table, seat) for seat in (shuffle.missing() if shuffle else ()))


def _face(table: Table, slot: int) -> str:
    return UNKNOWN if table.round is None else table.round.face(slot) or UNKNOWN


def _stack_of(table: Table, slot: int) -> str:
    return (table.round and table.round.stack_of(slot)) or DECK


def named(table: Table, stack: str) -> str:
    """A stack in words: "the deck", "the hand of Ann (seat 1)", "the pile burn"."""
    seat = seat_of(stack)
    if seat is not None:
        return f"the hand of {_who(table, seat)}"
    return "the deck" if stack == DECK else f"the pile {stack.removeprefix('pile:')}"


def _where(table: Table, stack: str, slot: int) -> str:
    """The stack of a card in words, with its place if it is not the top card of deck or pile."""
    cards = [] if table.round is None else table.round.cards(stack)
    if not cards or cards[-1] == slot or seat_of(stack) is not None:
        return named(table, stack)
    return f"place {cards.index(slot)} (not the top) of {named(table, stack)}"
