"""Which cards a command means: those that it names, a number from an end of a stack, or all."""

from __future__ import annotations

from collections.abc import Sequence

from dealer.errors import (
    BadRequest,
    CardNotInHand,
    CardNotThere,
    DeckEmpty,
    NotEntitled,
    NotSealed,
    amount,
)
from dealer.game import events
from dealer.game.commands import Actor, CardRef
from dealer.game.decide.round_secrets import RoundSecrets
from dealer.game.stacks import is_pass_pile, is_stack, seat_of
from dealer.game.state import Round

STACKS_MAX = 256
"""Most stacks of one round, empty ones included; bounds the memory that pile names can take."""


def require_stack(stack: str) -> None:
    """Raise BadRequest unless this is the name of a stack."""
    if not is_stack(stack):
        raise BadRequest("A stack is deck, hand:<seat> or pile:<name>.")


def require_pile(stack: str) -> None:
    """Raise BadRequest unless this is the name of the deck or a pile."""
    if not is_stack(stack) or seat_of(stack) is not None:
        raise BadRequest("Name deck or pile:<name>; a hand belongs to its seat.")


def require_no_pass(round_: Round, stack: str) -> None:
    """Raise NotEntitled if cards wait in this pile to be passed."""
    if round_.moves.waits_in(stack):
        raise NotEntitled(
            "The cards in this pile wait to be passed; they go to their seat when all have passed."
        )


def require_no_pass_pile(stack: str) -> None:
    """Raise BadRequest for a pile that only passed cards are put into."""
    if is_pass_pile(stack):
        raise BadRequest("Cards get into the piles pass:<seat> by hand.pass only; choose another.")


def require_room_for(round_: Round, stacks: Sequence[str]) -> None:
    """Raise BadRequest if these stacks are more than the round can have."""
    new = [stack for stack in stacks if stack not in round_.stacks]
    if new and len(round_.stacks) + len(new) > STACKS_MAX:
        raise BadRequest(f"A round has at most {STACKS_MAX} stacks; use an existing pile.")


def taken(round_: Round, stack: str, count: int, where: str) -> list[int]:
    """The next `count` slots from an end of a stack, in the order in which they leave it."""
    cards = round_.stacks.get(stack, [])
    if count < 1:
        raise BadRequest("Name at least one card.")
    if count > len(cards):
        raise DeckEmpty(
            f"The stack has {amount(len(cards), 'card')} left; "
            f"{amount(count, 'was', 'were')} requested."
        )
    slots = cards[:count] if where == "bottom" else cards[: -count - 1 : -1]
    if slots[0] < 0:
        raise NotSealed("This stack was not shuffled in this round; shuffle it first.")
    return slots


def whole(round_: Round, stack: str) -> list[int]:
    """All slots of a stack, bottom first."""
    cards = list(round_.cards(stack))
    if not cards:
        raise DeckEmpty("This stack has no card.")
    if cards[0] < 0:
        raise NotSealed("This stack was not shuffled in this round; shuffle it first.")
    return cards


def chosen(
    round_: Round,
    actor: Actor,
    stack: str,
    cards: Sequence[CardRef] | None,
    count: int | None,
    *,
    all_cards: bool,
) -> list[int]:
    """The named slots, or `count` from the top (1 if None), or all; BadRequest for two of them."""
    if all_cards:
        if cards is not None or count is not None:
            raise BadRequest("Name the cards, or their count, or all of them; only one of these.")
        return whole(round_, stack)
    if cards is not None and count is not None:
        raise BadRequest("Name the cards or their count, not both.")
    if cards is not None:
        return select_named_cards(round_, actor, stack, cards)
    return taken(round_, stack, 1 if count is None else count, "top")


def select_named_cards(
    round_: Round, actor: Actor, stack: str, refs: Sequence[CardRef]
) -> list[int]:
    """Slots of the named cards. A code matches only a card that the actor may see."""
    cards = round_.cards(stack)
    present = set(cards)
    slots = [ref if isinstance(ref, int) else -1 for ref in refs]
    if any(isinstance(ref, str) for ref in refs):
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


def require_drawable(round_: Round, slots: Sequence[int]) -> None:
    """Raise NotSealed unless shuffles have reached these cards."""
    drawable = round_.drawable
    for slot in slots:
        if not drawable[slot]:
            raise NotSealed("A partial shuffle did not reach these cards; shuffle the stack again.")


def shown(round_: Round, house: RoundSecrets, slot: int) -> events.CardShown:
    """The event that opens a card to everyone."""
    return events.CardShown(round_.number, slot, round_.faces[slot] or "", house.slot_salt(slot))
