"""What happened, told as one would tell it at the table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, assert_never

from dealer.cli.output import harmless
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
from dealer.game.stacks import DECK, seat_of
from dealer.game.state import Table, evolve
from dealer.proof import codec
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
    table, known = Table(), {swap.version: swap for swap in swaps}
    for text in leaves:
        leaf = json.loads(text)
        swap = known.get(leaf["version"])
        hidden: Mapping[str, int] = {} if swap is None else {"j": swap.j}
        event = codec.decode(leaf["type"], leaf["v"], leaf["public"], hidden)
        sentence, cards = _words(table, event, swap)
        number = leaf["public"].get("round", 0)
        yield Told(
            leaf["version"], leaf["at"], number, leaf["type"], harmless(sentence), cards, swap
        )
        evolve(table, event, leaf["at"])


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
        case CardMoved(_, slot, source, to, place, _):
            card = _face(table, slot)
            origin, target = _where(table, source, slot), _stack(table, to)
            return f"{card} goes from {origin} to place {place} of {target}", (card,)
        case CardShown(_, slot, card, _):
            lies = _stack(table, _stack_of(table, slot))
            return f"{card} in {lies} is turned up for all", (card,)
        case CardPeeked(_, slot, seat, _):
            card = _face(table, slot)
            lies = _stack(table, _stack_of(table, slot))
            return f"{_who(table, seat)} is shown {card} in {lies}", (card,)
        case StackCut(_, stack, at):
            return f"{_stack(table, stack)} is cut: places {at} and up come to the bottom", ()
        case _:
            return _around(table, event), ()


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
                f"shuffle {k} begins: {_stack(table, stack)}, {n} cards, {algorithm}, {steps} steps"
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


def _stack(table: Table, stack: str) -> str:
    seat = seat_of(stack)
    if seat is not None:
        return f"the hand of {_who(table, seat)}"
    return "the deck" if stack == DECK else f"the pile {stack.removeprefix('pile:')}"


def _where(table: Table, stack: str, slot: int) -> str:
    """A stack, and where in it the card lay if it was not the top one and it matters."""
    cards = [] if table.round is None else table.round.cards(stack)
    if not cards or cards[-1] == slot or seat_of(stack) is not None:
        return _stack(table, stack)
    return f"place {cards.index(slot)} (not the top) of {_stack(table, stack)}"
