"""What happened, told as one would tell it at the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, assert_never

from dealer.game.cards import UNKNOWN
from dealer.game.events import (
    CardDrawn,
    CardMoved,
    CardPeeked,
    CardShown,
    CardsSwapped,
    DeckSealed,
    EntropyClosed,
    EntropyCommitted,
    EntropyRevealed,
    Event,
    RoundClosed,
    RoundOpened,
    SeatLeft,
    SeatTaken,
    ShuffleStarted,
    ShuffleVoided,
    StackCut,
    TableClosed,
    TableOpened,
)
from dealer.game.stacks import BURN, DECK, DISCARD, seat_of
from dealer.game.state import Table
from dealer.history.printable import harmless
from dealer.history.story import Moment, retell
from dealer.proof.verify import Swap


class Told(NamedTuple):
    """One event in words; `round` is 0 outside of rounds, `cards` are those that it names.

    `swap` is there for a swap of a closed round.
    """

    version: int
    at: int
    round: int
    type: str
    sentence: str
    cards: tuple[str, ...] = ()
    swap: Swap | None = None


def tell(leaves: Iterable[str | bytes], swaps: Iterable[Swap]) -> Iterator[Told]:
    """The story of the verified `leaves` of one table, from its first event on.

    `swaps` are those that the verifier recomputed; a card that needs others to be known is `??`.
    """
    return map(told, retell(leaves, swaps))


def told(moment: Moment) -> Told:
    """One moment in words."""
    sentence, cards = _words(moment.table, moment.event, moment.swap)
    version, at, number, type_ = moment[:4]
    return Told(version, at, number, type_, harmless(sentence), cards, moment.swap)


def _words(table: Table, event: Event, swap: Swap | None) -> tuple[str, tuple[str, ...]]:
    """The sentence, and the codes in it, of an event that is about to happen to `table`."""
    match event:
        case CardsSwapped(_, _, step, i, _):
            if swap is None:
                return f"step {step}: place {i} changes with a place that is still hidden", ()
            a, b = swap.cards
            words = " ".join(map(str, swap.words))
            return f"step {step}: places {i} and {swap.j} change, {a} and {b}; tape {words}", (a, b)
        case CardDrawn(_, seat, source, slot, _):
            card = _face(table, slot)
            return f"{_who(table, seat)} draws {card} from {_where(table, source, slot)}", (card,)
        case CardMoved(_, slot):
            return _moved(table, event), (_face(table, slot),)
        case CardShown(_, slot, card, _):
            lies = named(table, _stack_of(table, slot))
            return f"{card} in {lies} is turned up for all", (card,)
        case CardPeeked(_, slot, seat, _):
            card = _face(table, slot)
            lies = named(table, _stack_of(table, slot))
            return f"{_who(table, seat)} is shown {card} in {lies}", (card,)
        case StackCut(_, stack, at):
            return f"{named(table, stack)} is cut: places {at} and up come to the bottom", ()
        case _:
            return _around(table, event), ()


def _moved(table: Table, event: CardMoved) -> str:
    """Burns and discards are called so; of any other move it is said where the card went."""
    card, source = _face(table, event.slot), event.source
    origin = _where(table, source, event.slot)
    if event.to == BURN and source == DECK:
        return f"{card} is burned from {origin}"
    if event.to == DISCARD and seat_of(source) is not None:
        return f"{card} is discarded from {origin}"
    target, lying = named(table, event.to), 0
    if table.round is not None:
        lying = len(table.round.cards(event.to)) - (event.to == source)
    if event.place == lying:
        return f"{card} goes from {origin} to {target}"
    return f"{card} goes from {origin} to place {event.place} (not the top) of {target}"


Around = (
    TableOpened
    | TableClosed
    | SeatTaken
    | SeatLeft
    | RoundOpened
    | RoundClosed
    | ShuffleStarted
    | EntropyCommitted
    | EntropyClosed
    | EntropyRevealed
    | ShuffleVoided
    | DeckSealed
)


def _around(table: Table, event: Around) -> str:
    """Who comes and goes, rounds, and what is said around a shuffle."""
    match event:
        case TableOpened(origin, key, _):
            return f"the table {origin} opens; its key is {key.hex()}"
        case TableClosed():
            return "the table closes"
        case SeatTaken(seat, name, key):
            return f"{name} sits down on seat {seat}" + (f", key {key.hex()}" if key else "")
        case SeatLeft(seat):
            return f"{_who(table, seat)} leaves seat {seat}"
        case RoundOpened(number, deck, entropy, _, _, commitment):
            whose = "the house alone" if entropy == "house" else "the house and the players"
            return (
                f"round {number} opens: {len(deck)} cards, random bytes of {whose}; the house's "
                f"secret is committed to by {commitment.hex()}"
            )
        case RoundClosed(number, secret):
            return f"round {number} closes; the house's secret was {secret.hex()}"
        case ShuffleStarted(_, k, stack, n, algorithm, steps):
            return (
                f"shuffle {k} begins: {named(table, stack)}, {n} cards, {algorithm}, {steps} steps"
            )
        case EntropyCommitted(_, k, seat, digest):
            return f"{_who(table, seat)} promises random bytes for shuffle {k}: {digest.hex()}"
        case EntropyClosed(_, k):
            return f"no more promises count for shuffle {k}; the house signs the log so far"
        case EntropyRevealed(_, _, seat, nonce):
            return f"{_who(table, seat)} shows the bytes: {nonce.hex()}"
        case ShuffleVoided(_, k):
            return f"shuffle {k} is given up, for {_silent(table)} did not show the bytes"
        case DeckSealed(_, k, first, slots):
            last = first + len(slots) - 1
            return f"shuffle {k} is done: its cards are sealed in slots {first} to {last}"
        case _:
            assert_never(event)


def _who(table: Table, seat: int) -> str:
    player = table.seats.get(seat)
    return f"seat {seat}" if player is None else f"{player.name} (seat {seat})"


def _silent(table: Table) -> str:
    shuffle = None if table.round is None else table.round.shuffle
    return " and ".join(_who(table, seat) for seat in (shuffle.missing() if shuffle else ()))


def _face(table: Table, slot: int) -> str:
    return UNKNOWN if table.round is None else table.round.face(slot) or UNKNOWN


def _stack_of(table: Table, slot: int) -> str:
    return (table.round and table.round.stack_of(slot)) or DECK


def named(table: Table, stack: str) -> str:
    """A stack as one would speak of it at the table."""
    seat = seat_of(stack)
    if seat is not None:
        return f"the hand of {_who(table, seat)}"
    return "the deck" if stack == DECK else f"the pile {stack.removeprefix('pile:')}"


def _where(table: Table, stack: str, slot: int) -> str:
    """A stack, and where in it the card lay if it was not the top one and it matters."""
    cards = [] if table.round is None else table.round.cards(stack)
    if not cards or cards[-1] == slot or seat_of(stack) is not None:
        return named(table, stack)
    return f"place {cards.index(slot)} (not the top) of {named(table, stack)}"
