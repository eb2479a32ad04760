"""The plain history of a game: who sat, how it was shuffled, and where every card went.

The shuffles are told without their swaps; `dealer audit` and the audit page have each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap

from dealer.errors import NoHistory
from dealer.game.cards import UNKNOWN
from dealer.game.events import CardsSwapped, EntropyClosed, RoundClosed, RoundOpened
from dealer.game.state import Round, Table
from dealer.history.printable import harmless, when
from dealer.history.story import Game, Moment
from dealer.history.words import named, told

WIDTH = 100


def write(game: Game, *, round: int | None = None) -> Iterator[str]:
    """Lines, without newlines, of the whole table or of one round of it.

    In a round that is not closed a card that not everybody has seen is `??`. Raises NoHistory
    where there is no such round.
    """
    if round is not None:
        check_round(game, round)
    yield f"Table {game.table} of the house {harmless(game.house)}"
    yield f"The house signs this table's log with the key {game.key}."
    within = 0
    for moment in game.moments():
        if round is not None and moment.round != round:
            continue
        if isinstance(moment.event, RoundOpened):
            yield from _heading(moment.event, moment)
        elif within and not moment.round:
            yield ""
        within = moment.round
        if not isinstance(moment.event, CardsSwapped):
            yield f"{when(moment.at):%Y-%m-%d %H:%M:%S}  {_sentence(game, moment)}"
        if isinstance(moment.event, RoundClosed) and moment.table.round is not None:
            yield from _left_lying(moment.table, moment.table.round)
    if game.rounds > game.closed and round in (None, game.rounds):
        yield ""
        yield f"Round {game.rounds} is not closed: a card that not everybody has seen is {UNKNOWN}."


def check_round(game: Game, round: int) -> None:
    """Raise NoHistory unless the table has this round."""
    if not 1 <= round <= game.rounds:
        raise NoHistory(f"This table has {_count(game.rounds, 'round')} and no round {round}.")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _heading(opened: RoundOpened, moment: Moment) -> Iterator[str]:
    players = sorted(moment.table.seats.items())
    seats = ", ".join(f"{seat} {harmless(player.name)}" for seat, player in players)
    yield ""
    yield f"Round {opened.round}, {when(moment.at):%Y-%m-%d %H:%M:%S} UTC"
    yield f"Seats: {seats or 'nobody sits yet'}"
    yield f"The fresh deck of {_count(len(opened.deck), 'card')}, bottom first:"
    yield from _cards(opened.deck)
    yield ""


def _sentence(game: Game, moment: Moment) -> str:
    sentence = told(moment).sentence
    if isinstance(moment.event, EntropyClosed) and moment.version in game.roots:
        return f"{sentence}: {game.roots[moment.version]}"
    return sentence


def _left_lying(table: Table, round_: Round) -> Iterator[str]:
    """Where every card was at the end."""
    yield ""
    yield "At the close there lay, top first:"
    for stack, cards in round_.stacks.items():
        if cards:
            yield f"{harmless(named(table, stack))}:"
            yield from _cards(round_.face(card) or UNKNOWN for card in reversed(cards))


def _cards(codes: Iterable[str]) -> list[str]:
    return wrap(" ".join(codes), WIDTH, initial_indent="  ", subsequent_indent="  ",
                break_long_words=False, break_on_hyphens=False)  # fmt: skip
