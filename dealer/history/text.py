"""Plain text history of a round or table: seats, shuffles and every card movement.

Swaps are omitted; `dealer audit` and the audit page show each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap

from dealer.errors import HistoryUnavailable
from dealer.game.cards import UNKNOWN
from dealer.game.events import CardsSwapped, EntropyClosed, RoundClosed, RoundOpened
from dealer.game.names import safe_text
from dealer.game.state import Round, Table
from dealer.history.pile_titles import NO_GAMES, GameTitles, Titles, titles_at
from dealer.history.replay import Game, ReplayStep
from dealer.history.sentences import describe, named
from dealer.history.times import utc
from dealer.languages.language import Language, english

WIDTH = 100


def write(
    game: Game,
    *,
    round: int | None = None,
    language: Language | None = None,
    games: GameTitles = NO_GAMES,
) -> Iterator[str]:
    """Lines, without newlines, of the whole table or of one round, in a language or in English.

    `games` are titles of piles in that language by their plain names, by the name of the game. In
    an open round a card that is not public is `??`. Raises HistoryUnavailable if there is no such
    round.
    """
    texts = language or english()
    if round is not None:
        check_round(game, round, texts)
    yield texts.text("history.table", table=game.table, house=safe_text(game.house))
    yield texts.text("history.key", key=game.key)
    within = 0
    for step in game.steps():
        if round is not None and step.round != round:
            continue
        if isinstance(step.event, RoundOpened):
            yield from _heading(step.event, step, texts)
        elif within and not step.round:
            yield ""
        within = step.round
        titles = titles_at(step.table, games)
        if not isinstance(step.event, CardsSwapped):
            yield f"{utc(step.at):%Y-%m-%d %H:%M:%S}  {_sentence(game, step, texts, titles)}"
        if isinstance(step.event, RoundClosed) and step.table.round is not None:
            yield from _final_stacks(step.table, step.table.round, texts, titles)
    if game.rounds > game.closed and round in (None, game.rounds):
        yield ""
        yield texts.text("history.openRound", round=game.rounds, unknown=UNKNOWN)


def check_round(game: Game, round: int, language: Language | None = None) -> None:
    """Raise HistoryUnavailable unless the table has this round."""
    if not 1 <= round <= game.rounds:
        texts = language or english()
        raise HistoryUnavailable(texts.text("history.noRound", rounds=game.rounds, round=round))


def _heading(opened: RoundOpened, step: ReplayStep, texts: Language) -> Iterator[str]:
    players = sorted(step.table.seats.items())
    seats = ", ".join(f"{seat} {safe_text(player.name)}" for seat, player in players)
    time = f"{utc(step.at):%Y-%m-%d %H:%M:%S}"
    yield ""
    yield texts.text("history.round", round=opened.round, time=time)
    yield texts.text("history.seats", seats=seats) if seats else texts.text("history.noSeats")
    yield texts.text("history.freshDeck", cards=len(opened.deck))
    yield from _cards(opened.deck)
    yield ""


def _sentence(game: Game, step: ReplayStep, texts: Language, titles: Titles) -> str:
    sentence = describe(step, texts, titles).sentence
    if isinstance(step.event, EntropyClosed) and step.version in game.roots:
        return texts.text("history.signed", sentence=sentence, root=game.roots[step.version])
    return sentence


def _final_stacks(table: Table, round_: Round, texts: Language, titles: Titles) -> Iterator[str]:
    """The stacks with all cards at the end of the round."""
    yield ""
    yield texts.text("history.finalStacks")
    for stack, cards in round_.stacks.items():
        if cards:
            yield f"{named(table, stack, texts, titles)}:"
            yield from _cards(round_.face(card) or UNKNOWN for card in reversed(cards))


def _cards(codes: Iterable[str]) -> list[str]:
    return wrap(" ".join(codes), WIDTH, initial_indent="  ", subsequent_indent="  ",
                break_long_words=False, break_on_hyphens=False)  # fmt: skip
