"""A closed round as a poker hand history (PHH), the file that poker programs study hands from.

The format (phh.readthedocs.io) is TOML, and wants money, of which this dealer knows nothing. So the
file has the least stakes that the format takes, stacks of unknown size (`inf`) and no bet. Players
are numbered in the order in which their first cards came.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from dealer.errors import NoHistory
from dealer.game.events import RoundOpened
from dealer.history import variants
from dealer.history.deeds import deeds_of
from dealer.history.hand import Hand
from dealer.history.printable import harmless, when
from dealer.history.story import Game, Moment
from dealer.history.text import check_round
from dealer.history.variants import Variant

KIND = "application/toml; charset=utf-8"
NOTE = (
    "The house deals cards and knows no bets: the stakes are the least that this format takes, a "
    "check or call says only that a player stayed in, and a fold that a hand was put away. Burned "
    "cards, and cards shown before the showdown, are commentary."
)


def write(game: Game, *, round: int) -> str:
    """The PHH file of one round.

    Raises NoHistory for a round that is not there, that is not closed, or that was not dealt as the
    game of `variants.GAMES` which the table's rules name as `game`.
    """
    check_round(game, round)
    if round > game.closed:
        raise NoHistory(f"Round {round} is not closed, and its cards are not known before it is.")
    moments = (moment for moment in game.moments() if moment.round == round)
    opening = next(moments)
    variant = _variant(opening)
    hand = Hand(variant, list(deeds_of(moments)), round=round)
    return "".join(f"{line}\n" for line in _lines(game, opening, variant, hand))


def _variant(opening: Moment) -> Variant:
    word = opening.table.rules.given.get("game")
    variant = variants.find(word)
    if variant is None:
        said = f"call it {word!r}" if isinstance(word, str) else "name no game"
        raise NoHistory(
            f"The table's rules {harmless(said)}, and this format knows: "
            f"{', '.join(variants.GAMES)}. The plain text history is there for all."
        )
    deck = opening.event.deck if isinstance(opening.event, RoundOpened) else ()
    if frozenset(deck) != variant.deck:
        raise NoHistory(
            f"Round {opening.round} was not played with the {len(variant.deck)} cards of "
            f"{variant.name}."
        )
    return variant


def _lines(game: Game, opening: Moment, variant: Variant, hand: Hand) -> Iterator[str]:
    players, at = len(hand.players), when(opening.at)
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
    """A TOML basic string, of which a printable text's JSON string is one."""
    return json.dumps(harmless(text), ensure_ascii=False)
