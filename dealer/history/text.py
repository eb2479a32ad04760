"""Plain text history of a round or table: seats, shuffles and every card movement.

Swaps are omitted; `dealer audit` and the audit page show each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap

from dealer.errors import HistoryUnavailable
from dealer.game.cards import UNKNOWN
from dealer.game.events import CardsSwapped, EntropyClosed, RoundClosed, RoundOpened
from dealer.game.state import Round, Table
from dealer.history.printable import escape_control, utc
from dealer.history.replay import Game, ReplayStep
from dealer.history.sentences import describe, named

WIDTH = 100


def write(game: Game, *, round: int | None = None) -> Iterator[str]:
    """Lines, without newlines, of the whole table or of one round of it.

    In an open round a card that is not public is `??`. Raises HistoryUnavailable if there is no
    such round.
    """
    if round is not None:
        check_round(game, round)
    yield f"Table {game.table} of the house {escape_control(game.house)}"
    yield f"The house signs this table's log with the key {game.key}."
    within = 0
    for step in game.steps():
        if round is not None and step.round != round:
            continue
        if isinstance(step.event, RoundOpened):
            yield from _heading(step.event, step)
        elif within and not step.round:
            yield ""
        within = step.round
        if not isinstance(step.event, CardsSwapped):
            yield f"{utc(step.at):%Y-%m-%d %H:%M:%S}  {_sentence(game, step)}"
        if isinstance(step.event, RoundClosed) and step.table.round is not None:
            yield from _final_stacks(step.table, step.table.round)
    if game.rounds > game.closed and round in (None, game.rounds):
        yield ""
        yield f"Round {game.rounds} is not closed: {UNKNOWN} is a card that is not public."


def check_round(game: Game, round: int) -> None:
    """Raise HistoryUnavailable unless the table has this round."""
    if not 1 <= round <= game.rounds:
        raise HistoryUnavailable(
            f"This table has {_count(game.rounds, 'round')} and no round {round}."
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _heading(opened: RoundOpened, step: ReplayStep) -> Iterator[str]:
    players = sorted(step.table.seats.items())
    seats = ", ".join(f"{seat} {escape_control(player.name)}" for seat, player in players)
    yield ""
    yield f"Round {opened.round}, {utc(step.at):%Y-%m-%d %H:%M:%S} UTC"
    yield f"Seats: {seats or 'none taken'}"
    yield f"The fresh deck of {_count(len(opened.deck), 'card')}, bottom first:"
    yield from _cards(opened.deck)
    yield ""


def _sentence(game: Game, step: ReplayStep) -> str:
    sentence = describe(step).sentence
    if isinstance(step.event, EntropyClosed) and step.version in game.roots:
        return f"{sentence}: {game.roots[step.version]}"
    return sentence


def _final_stacks(table: Table, round_: Round) -> Iterator[str]:
    """The stacks with all cards at the end of the round."""
    yield ""
    yield "Stacks at the end of the round, top first:"
    for stack, cards in round_.stacks.items():
        if cards:
            yield f"{escape_control(named(table, stack))}:"
            yield from _cards(round_.face(card) or UNKNOWN for card in reversed(cards))


def _cards(codes: Iterable[str]) -> list[str]:
    return wrap(" ".join(codes), WIDTH, initial_indent="  ", subsequent_indent="  ",
                break_long_words=False, break_on_hyphens=False)  # fmt: skip
