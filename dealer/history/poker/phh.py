"""Poker Hand History (PHH) of a closed round, a format that poker programs read.

The format (phh.readthedocs.io) is TOML and requires stakes, which the log does not contain.
Therefore the file has the lowest stakes that the format allows, stacks of unknown size (`inf`) and
no bets. Players are numbered in the order of their first cards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from dealer.errors import HistoryUnavailable
from dealer.game.events import RoundOpened
from dealer.game.names import safe_text
from dealer.history.poker import variants
from dealer.history.poker.actions import actions_of
from dealer.history.poker.hand import Hand
from dealer.history.poker.variants import Variant
from dealer.history.printable import utc
from dealer.history.replay import Game, ReplayStep
from dealer.history.text import check_round

KIND = "application/toml; charset=utf-8"
NOTE = (
    "The log contains cards but no bets: the stakes are the lowest that this format allows, a "
    "check or call means only that a player stayed in, and a fold that a hand was discarded. "
    "Burned cards, and cards shown before the showdown, are comments."
)


def write(game: Game, *, round: int) -> str:
    """The PHH file of one round, as TOML text.

    Raises HistoryUnavailable for a round that does not exist, is not closed, or was not dealt as
    the game of `variants.GAMES` that the table's rules name as `game`.
    """
    check_round(game, round)
    if round > game.closed:
        raise HistoryUnavailable(
            f"Round {round} is not closed; its cards are known only after it is closed."
        )
    steps = (step for step in game.steps() if step.round == round)
    opening = next(steps)
    variant = _variant(opening)
    hand = Hand(variant, list(actions_of(steps)), round=round)
    return "".join(f"{line}\n" for line in _lines(game, opening, variant, hand))


def _variant(opening: ReplayStep) -> Variant:
    word = opening.table.rules.given.get("game")
    variant = variants.find(word)
    if variant is None:
        named = f"name the game {word!r}" if isinstance(word, str) else "name no game"
        raise HistoryUnavailable(
            f"The table's rules {safe_text(named)}; this format supports "
            f"{', '.join(variants.GAMES)}. Use the plain text history for other games."
        )
    deck = opening.event.deck if isinstance(opening.event, RoundOpened) else ()
    if frozenset(deck) != variant.deck:
        raise HistoryUnavailable(
            f"Round {opening.round} was not played with the {len(variant.deck)} cards of "
            f"{variant.name}."
        )
    return variant


def _lines(game: Game, opening: ReplayStep, variant: Variant, hand: Hand) -> Iterator[str]:
    players, at = len(hand.players), utc(opening.at)
    rules = opening.table.rules
    name = rules.given.get("name")
    yield f"variant = {_text(variant.code)}"
    yield f"antes = {[0 if variant.stud else 1] * players}"
    if not variant.stud:
        yield f"blinds_or_straddles = {[0] * players}"
    for stake, amount in variant.stakes.items():
        yield f"{stake} = {amount}"
    yield f"starting_stacks = [{', '.join(['inf'] * players)}]"
    yield "actions = ["
    for action in hand.actions:
        yield f"  {_text(action)},"
    yield "]"
    if isinstance(name, str) and name:
        yield f"event = {_text(name)}"
    yield f"venue = {_text(game.house)}"
    yield f"time = {at:%H:%M:%S}"
    yield 'time_zone = "UTC"'
    yield f"day = {at.day}"
    yield f"month = {at.month}"
    yield f"year = {at.year}"
    yield f"hand = {opening.round}"
    yield f"seats = {list(hand.players)}"
    yield f"seat_count = {rules.seats}"
    yield f"table = {_text(game.table)}"
    yield f"players = [{', '.join(map(_text, hand.players.values()))}]"
    yield f"_table_key = {_text(game.key)}"
    yield f"_note = {_text(NOTE)}"


def _text(text: str) -> str:
    """A TOML basic string; the JSON string of a printable text is a valid one."""
    return json.dumps(safe_text(text), ensure_ascii=False)
