"""Methods that are commands at a table: parameters to a game command, its events to a result.

The dispatcher takes the sender of a command, the `actor`, from the connection's membership.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct, ValidationError, convert

from dealer.errors import BadRequest
from dealer.game import cards as decks
from dealer.game import commands
from dealer.game.decide.permission import require_seat
from dealer.game.events import CardDrawn, CardShown, RoundClosed, RoundOpened, ShuffleStarted
from dealer.game.stacks import BURN, DECK, hand, is_stack, pile, seat_of
from dealer.game.state import Table
from dealer.gateway.wire import params as p
from dealer.gateway.wire import results as r
from dealer.service import CommandResult

Build = Callable[[commands.Actor, Any, Table], commands.Command]
"""Makes a method's command, from its sender, its parameters and the table."""

Answer = Callable[[CommandResult], Struct]
"""Makes a method's result, of the type that it returns, from the events of its command."""


def deck_codes(given: object) -> tuple[str, ...]:
    """The codes of a deck, bottom first, from its specification.

    That is "52", "54", a list of codes, or {"decks", "jokers", "cards"} as a dict or a Shoe. Raises
    BadRequest for anything else.
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
    raise BadRequest(
        'A deck is "52", "54", a list of codes, or an object of '
        f'"decks" (1 to {decks.SHOE_MAX}), "jokers" (0 to {len(decks.JOKERS)}) and "cards" (codes).'
    )


def stack_named(text: str) -> str:
    """The stack of a pile's name, with or without the prefix `pile:`."""
    return text if text.startswith("pile:") else pile(text)


def _stack(text: str, actor: commands.Actor, table: Table) -> str:
    if text == "hand":
        return hand(require_seat(table, actor))
    if text == DECK:
        return text
    if text.startswith("hand:"):
        if not is_stack(text):
            raise BadRequest("Name a hand as hand:<seat>, with its number, or your own as hand.")
        return text
    return stack_named(text)


def open_round(actor: commands.Actor, q: p.RoundOpen, table: Table) -> commands.Command:
    """Open a round with a fresh deck; the house commits to its secret."""
    rules = table.rules.given
    deck = deck_codes(rules.get("deck") if q.deck is None else q.deck)
    entropy = rules.get("entropy", "players") if q.entropy is None else q.entropy
    commit_ms = table.rules.wait_ms("commit_ms") if q.commit_ms is None else q.commit_ms
    reveal_ms = table.rules.wait_ms("reveal_ms") if q.reveal_ms is None else q.reveal_ms
    return commands.OpenRound(actor, deck, str(entropy), commit_ms, reveal_ms)


def shuffle_deck(actor: commands.Actor, q: p.DeckShuffle, table: Table) -> commands.Command:
    """Shuffle the deck, or a pile, or only its topmost cards."""
    stack = DECK if q.stack == DECK else stack_named(q.stack)
    return commands.StartShuffle(actor, stack, q.algorithm, q.steps)


def shuffle_pile(actor: commands.Actor, q: p.PileShuffle, table: Table) -> commands.Command:
    """Shuffle a pile."""
    return commands.StartShuffle(actor, stack_named(q.pile), q.algorithm, q.steps)


def commit_entropy(actor: commands.Actor, q: p.EntropyCommit, table: Table) -> commands.Command:
    """Commit to random bytes for a shuffle by their digest; clients send it automatically."""
    return commands.CommitEntropy(actor, q.round, q.k, bytes.fromhex(q.digest))


def reveal_entropy(actor: commands.Actor, q: p.EntropyReveal, table: Table) -> commands.Command:
    """Reveal the committed bytes; clients send it after the checkpoint of EntropyClosed."""
    return commands.RevealEntropy(actor, q.round, q.k, bytes.fromhex(q.nonce))


def deal(actor: commands.Actor, q: p.DeckDeal, table: Table) -> commands.Command:
    """Deal to each seat in turn, one card at a time, and then to piles."""
    piles = [
        commands.DealtPile(stack_named(pile.name), pile.count, pile.face) for pile in q.piles or ()
    ]
    return commands.Deal(actor, q.each, None if q.seats is None else tuple(q.seats), tuple(piles))


def draw(actor: commands.Actor, q: p.DeckDraw, table: Table) -> commands.Command:
    """Draw from the deck into one's own hand."""
    if q.source == "random":
        return commands.DrawAtRandom(actor, count=q.count)
    # On the wire `from` is an end of the deck; the command's `source` is a stack.
    return commands.Draw(actor, count=q.count, source=DECK, where=q.source)


def draw_from_pile(actor: commands.Actor, q: p.PileDraw, table: Table) -> commands.Command:
    """Draw from a pile into one's own hand."""
    source = stack_named(q.pile)
    if q.all:
        if q.cards is not None or q.count != 1 or q.source != "top":
            raise BadRequest("Draw all cards of the pile, or name which; not both.")
        return commands.Draw(actor, source=source, whole=True)
    if q.cards is not None:
        return commands.Draw(actor, count=len(q.cards), source=source, cards=tuple(q.cards))
    if q.source == "random":
        return commands.DrawAtRandom(actor, count=q.count, source=source)
    return commands.Draw(actor, count=q.count, source=source, where=q.source)


def burn(actor: commands.Actor, q: p.DeckBurn, table: Table) -> commands.Command:
    """Move the deck's topmost cards to the burn pile, face down."""
    return commands.Move(actor, "burn", DECK, BURN, count=q.count)


def cut(actor: commands.Actor, q: p.DeckCut, table: Table) -> commands.Command:
    """Cut the deck at a place: the cards from there on move to the bottom."""
    return commands.Cut(actor, q.at)


def return_to_deck(actor: commands.Actor, q: p.DeckReturn, table: Table) -> commands.Command:
    """Return cards to the deck."""
    source = _stack(q.source, actor, table)
    action = "pile" if seat_of(source) is None else "return"
    return commands.Move(actor, action, source, DECK, _refs(q.cards), q.count, q.where)


def _from_hand(
    actor: commands.Actor,
    table: Table,
    action: str,
    to: str,
    cards: p.Cards,
    where: p.Where,
    face: p.Face,
) -> commands.Command:
    source = hand(require_seat(table, actor))
    return commands.Move(actor, action, source, to, tuple(cards), where=where, face=face)


def discard(actor: commands.Actor, q: p.HandDiscard, table: Table) -> commands.Command:
    """Discard cards of one's hand to the discard pile, or to another pile."""
    return _from_hand(actor, table, "discard", stack_named(q.pile), q.cards, "top", q.face)


def play(actor: commands.Actor, q: p.HandPlay, table: Table) -> commands.Command:
    """Play cards of one's hand, by default face up."""
    return _from_hand(actor, table, "play", stack_named(q.pile), q.cards, "top", q.face)


def give(actor: commands.Actor, q: p.HandGive, table: Table) -> commands.Command:
    """Give cards of one's hand to another seat."""
    return _from_hand(actor, table, "give", hand(q.to), q.cards, "top", "down")


def pass_cards(actor: commands.Actor, q: p.HandPass, table: Table) -> commands.Command:
    """Pass cards of one's hand to another seat; all are delivered when all seats have passed.

    Without cards it delivers what was passed, if no seat is awaited or the sender is the host.
    """
    return commands.Pass(actor, _refs(q.cards), q.to)


def take_back(actor: commands.Actor, q: p.Command, table: Table) -> commands.Command:
    """Take back one's last move, or one's pass, if it showed no card to anyone."""
    return commands.TakeBack(actor)


def return_from_hand(actor: commands.Actor, q: p.HandReturn, table: Table) -> commands.Command:
    """Return cards of one's hand to the deck."""
    return _from_hand(actor, table, "return", DECK, q.cards, q.where, "down")


def show(actor: commands.Actor, q: p.HandShow, table: Table) -> commands.Command:
    """Show cards of one's hand to all, or to one seat."""
    own = hand(require_seat(table, actor))
    return commands.Show(actor, own, _refs(q.cards), q.to, q.all)


def turn(actor: commands.Actor, q: p.PileTurn, table: Table) -> commands.Command:
    """Turn cards of a pile face up."""
    return commands.Show(actor, stack_named(q.pile), _refs(q.cards), whole=q.all)


def move(actor: commands.Actor, q: p.PileMove, table: Table) -> commands.Command:
    """Move cards from one stack to another."""
    if (q.pile is None) == (q.source is None):
        raise BadRequest("Name the stack of the cards with either pile or from, not both.")
    source = stack_named(q.pile) if q.pile is not None else _stack(q.source or "", actor, table)
    to = _stack(q.to, actor, table)
    return commands.Move(actor, "pile", source, to, _refs(q.cards), q.count, q.where, q.face, q.all)


def vacate_seat(actor: commands.Actor, q: p.SeatVacate, table: Table) -> commands.Command:
    """Remove the player of a seat, or free the seat of an absent player; its hand stays."""
    return commands.VacateSeat(actor, q.seat, q.reason)


def move_seat(actor: commands.Actor, q: p.SeatMove, table: Table) -> commands.Command:
    """Move to a free seat, with the same token; or, as host, ask the player of a seat to move."""
    return commands.MoveSeat(actor, q.to, q.seat)


def transfer_host(actor: commands.Actor, q: p.TableTransferHost, table: Table) -> commands.Command:
    """Make the player of a seat the host; any player oneself, when the host is away."""
    return commands.TransferHost(actor, q.seat)


def note(actor: commands.Actor, q: p.TableNote, table: Table) -> commands.Command:
    """Add a text to the log for everyone: a bet, a question, chat. It moves no card."""
    return commands.AddNote(actor, q.kind, q.text)


def close_table(actor: commands.Actor, q: p.Command, table: Table) -> commands.Command:
    """Close the table permanently."""
    return commands.CloseTable(actor)


def close_round(actor: commands.Actor, q: p.Command, table: Table) -> commands.Command:
    """Close the round; the house reveals its secret, and the whole round can be verified."""
    return commands.CloseRound(actor)


def _refs(cards: list[str | int] | None) -> tuple[str | int, ...] | None:
    return None if cards is None else tuple(cards)


def changed(done: CommandResult) -> r.Changed:
    return r.Changed(version=done.version)


def drawn(done: CommandResult) -> r.Drawn:
    cards, slots = [], []
    for event in done.events:
        if isinstance(event, CardDrawn):
            cards.append(event.card or "")
            slots.append(event.slot)
    return r.Drawn(cards=cards, slots=slots, version=done.version)


def dealt(done: CommandResult) -> r.Dealt:
    dealt = sum(not isinstance(event, CardShown) for event in done.events)
    return r.Dealt(version=done.version, dealt=dealt)


def shuffling(done: CommandResult) -> r.Shuffling:
    k = next(event.k for event in done.events if isinstance(event, ShuffleStarted))
    return r.Shuffling(k=k, version=done.version)


def round_begun(done: CommandResult) -> r.RoundBegun:
    (event,) = (event for event in done.events if isinstance(event, RoundOpened))
    return r.RoundBegun(round=event.round, commitment=event.commitment.hex(), version=done.version)


def round_ended(done: CommandResult) -> r.RoundEnded:
    (event,) = (event for event in done.events if isinstance(event, RoundClosed))
    return r.RoundEnded(version=done.version, round=event.round, secret=event.secret.hex())
