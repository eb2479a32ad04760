"""Each request that is a wish at a table: the command it becomes, and what answers it.

`build(actor, params, table)` makes the command of the game; `answer(done)` the result. Who acts
comes from the session's tokens, never from the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from msgspec import Struct, ValidationError, convert

from dealer.errors import BadRequest
from dealer.game import cards as decks
from dealer.game.commands import (
    Actor,
    CloseRound,
    CloseTable,
    Command,
    CommitEntropy,
    Cut,
    Deal,
    Draw,
    DrawAtRandom,
    Move,
    OpenRound,
    RevealEntropy,
    Show,
    StartShuffle,
)
from dealer.game.decide.permission import seated
from dealer.game.events import CardDrawn, RoundClosed, RoundOpened, ShuffleStarted
from dealer.game.stacks import BURN, DECK, hand, is_stack, pile, seat_of
from dealer.game.state import Table
from dealer.gateway import params as p
from dealer.gateway import results as r
from dealer.service import Done

Build = Callable[[Actor, Any, Table], Command]
Answer = Callable[[Done], Struct]


class Wish(NamedTuple):
    """One method; `role` is whose command it is where somebody is host and has a seat."""

    params: type[p.Params]
    result: type[Struct]
    build: Build
    answer: Answer
    role: Literal["host", "seat"] = "seat"
    automatic: bool = False


def deck_codes(given: object) -> tuple[str, ...]:
    """The codes that a deck spec means, bottom first.

    "52", "54", a list of codes, or {"decks", "jokers", "cards"} as a dict or a Shoe.
    """
    match given:
        case "52" | None:
            return decks.build()
        case "54":
            return decks.build(jokers=2)
        case p.Shoe(decks=number, jokers=jokers, cards=cards):
            return decks.build(cards=cards, decks=number, jokers=jokers)
        case list():
            return decks.build(cards=given)
        case Mapping():
            with suppress(ValidationError):
                return deck_codes(convert(given, p.Shoe))
    raise BadRequest('A deck is "52", "54", a list of codes, or {"decks", "jokers", "cards"}.')


def stack_named(text: str) -> str:
    """The pile that a name means, with or without `pile:` before it."""
    return text if text.startswith("pile:") else pile(text)


def _stack(text: str, actor: Actor, table: Table) -> str:
    if text == "hand":
        return hand(seated(table, actor))
    if text == DECK:
        return text
    if text.startswith("hand:"):
        if not is_stack(text):
            raise BadRequest("A hand is named hand:<seat>, with the seat's number, or hand.")
        return text
    return stack_named(text)


def _open_round(actor: Actor, q: p.RoundOpen, table: Table) -> Command:
    rules = table.rules.given
    deck = deck_codes(rules.get("deck") if q.deck is None else q.deck)
    entropy = rules.get("entropy", "players") if q.entropy is None else q.entropy
    return OpenRound(actor, deck, str(entropy), q.commit_ms, q.reveal_ms)


def _shuffle_deck(actor: Actor, q: p.DeckShuffle, table: Table) -> Command:
    stack = DECK if q.stack == DECK else stack_named(q.stack)
    return StartShuffle(actor, stack, q.algorithm, q.steps)


def _shuffle_pile(actor: Actor, q: p.PileShuffle, table: Table) -> Command:
    return StartShuffle(actor, stack_named(q.pile), q.algorithm, q.steps)


def _commit(actor: Actor, q: p.EntropyCommit, table: Table) -> Command:
    return CommitEntropy(actor, q.round, q.k, bytes.fromhex(q.digest))


def _reveal(actor: Actor, q: p.EntropyReveal, table: Table) -> Command:
    return RevealEntropy(actor, q.round, q.k, bytes.fromhex(q.nonce))


def _deal(actor: Actor, q: p.DeckDeal, table: Table) -> Command:
    return Deal(actor, q.each, None if q.seats is None else tuple(q.seats))


def _draw(actor: Actor, q: p.DeckDraw, table: Table) -> Command:
    if q.source == "random":
        return DrawAtRandom(actor, q.count)
    return Draw(actor, q.count, DECK, q.source)


def _draw_pile(actor: Actor, q: p.PileDraw, table: Table) -> Command:
    source = stack_named(q.pile)
    if q.cards is not None:
        return Draw(actor, len(q.cards), source, cards=tuple(q.cards))
    if q.source == "random":
        return DrawAtRandom(actor, q.count, source)
    return Draw(actor, q.count, source, q.source)


def _burn(actor: Actor, q: p.DeckBurn, table: Table) -> Command:
    return Move(actor, "burn", DECK, BURN, count=q.count)


def _cut(actor: Actor, q: p.DeckCut, table: Table) -> Command:
    return Cut(actor, q.at)


def _return(actor: Actor, q: p.DeckReturn, table: Table) -> Command:
    source = _stack(q.source, actor, table)
    action = "pile" if seat_of(source) is None else "return"
    return Move(actor, action, source, DECK, _refs(q.cards), q.count, q.where)


def _from_hand(
    actor: Actor, table: Table, action: str, to: str, cards: p.Cards, where: p.Where, face: p.Face
) -> Command:
    source = hand(seated(table, actor))
    return Move(actor, action, source, to, tuple(cards), where=where, face=face)


def _discard(actor: Actor, q: p.HandDiscard, table: Table) -> Command:
    return _from_hand(actor, table, "discard", stack_named(q.pile), q.cards, "top", q.face)


def _play(actor: Actor, q: p.HandPlay, table: Table) -> Command:
    return _from_hand(actor, table, "play", stack_named(q.pile), q.cards, "top", q.face)


def _give(actor: Actor, q: p.HandGive, table: Table) -> Command:
    return _from_hand(actor, table, "give", hand(q.to), q.cards, "top", "down")


def _return_from_hand(actor: Actor, q: p.HandReturn, table: Table) -> Command:
    return _from_hand(actor, table, "return", DECK, q.cards, q.where, "down")


def _show(actor: Actor, q: p.HandShow, table: Table) -> Command:
    return Show(actor, hand(seated(table, actor)), tuple(q.cards), q.to)


def _turn(actor: Actor, q: p.PileTurn, table: Table) -> Command:
    return Show(actor, stack_named(q.pile), _refs(q.cards))


def _move_pile(actor: Actor, q: p.PileMove, table: Table) -> Command:
    if (q.pile is None) == (q.source is None):
        raise BadRequest("Name where the cards are with pile, or any stack with from, not both.")
    source = stack_named(q.pile) if q.pile is not None else _stack(q.source or "", actor, table)
    to = _stack(q.to, actor, table)
    return Move(actor, "pile", source, to, _refs(q.cards), q.count, q.where, q.face)


def _refs(cards: list[str | int] | None) -> tuple[str | int, ...] | None:
    return None if cards is None else tuple(cards)


def _changed(done: Done) -> Struct:
    return r.Changed(version=done.version)


def _drawn(done: Done) -> Struct:
    drawn = [event for event in done.events if isinstance(event, CardDrawn)]
    return r.Drawn(
        cards=[event.card or "" for event in drawn],
        slots=[event.slot for event in drawn],
        version=done.version,
    )


def _dealt(done: Done) -> Struct:
    return r.Dealt(version=done.version, dealt=len(done.events))


def _shuffling(done: Done) -> Struct:
    k = next(event.k for event in done.events if isinstance(event, ShuffleStarted))
    return r.Shuffling(k=k, version=done.version)


def _begun(done: Done) -> Struct:
    (event,) = (event for event in done.events if isinstance(event, RoundOpened))
    return r.RoundBegun(round=event.round, commitment=event.commitment.hex(), version=done.version)


def _ended(done: Done) -> Struct:
    (event,) = (event for event in done.events if isinstance(event, RoundClosed))
    return r.RoundEnded(version=done.version, round=event.round, secret=event.secret.hex())


def _close_table(actor: Actor, q: p.Command, table: Table) -> Command:
    return CloseTable(actor)


def _close_round(actor: Actor, q: p.Command, table: Table) -> Command:
    return CloseRound(actor)


WISHES: dict[str, Wish] = {
    "table.close": Wish(p.Command, r.Changed, _close_table, _changed, "host"),
    "round.open": Wish(p.RoundOpen, r.RoundBegun, _open_round, _begun, "host"),
    "round.close": Wish(p.Command, r.RoundEnded, _close_round, _ended, "host"),
    "deck.shuffle": Wish(p.DeckShuffle, r.Shuffling, _shuffle_deck, _shuffling, "host"),
    "deck.deal": Wish(p.DeckDeal, r.Dealt, _deal, _dealt, "host"),
    "deck.draw": Wish(p.DeckDraw, r.Drawn, _draw, _drawn),
    "deck.burn": Wish(p.DeckBurn, r.Changed, _burn, _changed),
    "deck.cut": Wish(p.DeckCut, r.Changed, _cut, _changed),
    "deck.return": Wish(p.DeckReturn, r.Changed, _return, _changed),
    "hand.discard": Wish(p.HandDiscard, r.Changed, _discard, _changed),
    "hand.play": Wish(p.HandPlay, r.Changed, _play, _changed),
    "hand.give": Wish(p.HandGive, r.Changed, _give, _changed),
    "hand.show": Wish(p.HandShow, r.Changed, _show, _changed),
    "hand.return": Wish(p.HandReturn, r.Changed, _return_from_hand, _changed),
    "pile.draw": Wish(p.PileDraw, r.Drawn, _draw_pile, _drawn),
    "pile.move": Wish(p.PileMove, r.Changed, _move_pile, _changed),
    "pile.shuffle": Wish(p.PileShuffle, r.Shuffling, _shuffle_pile, _shuffling, "host"),
    "pile.turn": Wish(p.PileTurn, r.Changed, _turn, _changed),
    "entropy.commit": Wish(p.EntropyCommit, r.Changed, _commit, _changed, automatic=True),
    "entropy.reveal": Wish(p.EntropyReveal, r.Changed, _reveal, _changed, automatic=True),
}
