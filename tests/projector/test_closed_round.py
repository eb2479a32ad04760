"""A closed round is folded as a whole, live and in a rebuild, and each row is made once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection

from dealer.eventlog import EventRecord
from dealer.game.commands import StartShuffle
from dealer.game.events import RoundOpened
from dealer.game.state import Table
from dealer.projector import closed_round
from dealer.projector.changes import Changes, FaceShown, StreamKey
from dealer.projector.fold import TimedEvent, fold
from dealer.projector.models import MODEL_OF
from dealer.projector.rebuild import Rebuild
from dealer.projector.runner import Projector
from tests.projector.databases import catch_up, drain, models, projected, rebuilt
from tests.projector.random_games import HOST, Game, short_game
from tests.projector.reference_models import expected


def closed_games(count: int) -> list[Game]:
    return [short_game(name).open_round().close_round() for name in "abcdef"[:count]]


def between_rounds(stream: StreamKey, table: Table, timed_events: list[TimedEvent]) -> Changes:
    assert table.round is None
    assert not any(isinstance(event, RoundOpened) for event, _ in timed_events)
    return fold(stream, table, timed_events)


def test_closed_rounds_are_not_folded_event_by_event(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    games = closed_games(3)
    for game in games:
        game.log(connection)
    monkeypatch.setattr("dealer.projector.stream_projector.fold", between_rounds)
    rebuild = rebuilt(connection)
    assert models(connection) == expected(*games)
    assert rebuild.done == sum(len(game.rows) for game in games)


def test_each_row_of_a_closed_round_is_written_once(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    games = closed_games(3)
    for game in games:
        game.log(connection)
    rebuild = Rebuild()
    written: dict[str, int] = {}
    write = rebuild._writer.write

    def count(it: Connection, changes: Changes) -> None:
        for kind, rows in changes.added.items():
            model = MODEL_OF[kind].name
            written[model] = written.get(model, 0) + len(rows)
        assert not changes.shortened
        assert FaceShown not in changes.updated
        write(it, changes)

    monkeypatch.setattr(rebuild._writer, "write", count)
    drain(connection, rebuild.slice)
    assert written == {model: len(rows) for model, rows in models(connection).items()}


def test_a_round_that_is_longer_than_a_slice_is_rebuilt(connection: Connection) -> None:
    games = [
        short_game("a"),
        Game("long").sit("Ada").open_round(deck=[f"{n:03}" for n in range(90)]),
    ]
    games[1].close_round().open_round()
    for game in games:
        game.log(connection)
    catch_up(connection)
    rebuild = rebuilt(connection, Rebuild(events=64))
    assert (rebuild.different, rebuild.stopped) == (0, {})
    assert models(connection) == expected(*games)


def swap_hidden(rows: list[EventRecord], one: int, other: int) -> None:
    rows[one] = replace(rows[one], hidden=rows[other].hidden)


def first(game: Game, kind: str) -> int:
    return next(n for n, row in enumerate(game.rows) if row.type == kind)


def alter_swap(game: Game) -> None:
    swap_hidden(game.rows, first(game, "CardsSwapped"), first(game, "CardsSwapped") + 1)


def alter_draw(game: Game) -> None:
    swap_hidden(game.rows, first(game, "CardDrawn"), first(game, "CardDrawn") + 1)


def drop_hidden(game: Game) -> None:
    swap = first(game, "CardsSwapped")
    game.rows[swap] = replace(game.rows[swap], hidden=None)


def alter_public(game: Game) -> None:
    draw = first(game, "CardDrawn")
    game.rows[draw] = replace(game.rows[draw], public="{")


def raise_schema(game: Game) -> None:
    draw = first(game, "CardDrawn")
    game.rows[draw] = replace(game.rows[draw], schema=2)


def remove_seal(game: Game) -> None:
    """Close the round after swaps that no seal follows."""
    seal = first(game, "DeckSealed")
    close = game.rows[first(game, "RoundClosed")]
    game.rows[seal:] = [replace(close, version=seal + 1)]


@pytest.mark.parametrize(
    "alter", [alter_swap, alter_draw, drop_hidden, alter_public, raise_schema, remove_seal]
)
def test_an_altered_round_stops_the_table_as_the_projector_stops(
    alter: Callable[[Game], None], connection: Connection
) -> None:
    sound, damaged = short_game("a"), short_game("b")
    alter(damaged)
    sound.log(connection)
    damaged.log(connection)
    (stopped,) = catch_up(connection).stopped.values()
    before, positions = models(connection), projected(connection)
    rebuild = rebuilt(connection)
    assert list(rebuild.stopped.values()) == [stopped]
    assert models(connection) == before
    assert projected(connection) == positions


def test_a_shuffle_that_was_voided_is_part_of_a_closed_round(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = Game().sit("Ada", "Bob").open_round(entropy="players", shuffled=False)
    game.do(StartShuffle(HOST))
    game.commit()
    game.record_results(silent=(1,))
    game.shuffle()
    game.close_round().log(connection)
    assert first(game, "ShuffleVoided")
    monkeypatch.setattr("dealer.projector.stream_projector.fold", between_rounds)
    rebuilt(connection)
    assert models(connection) == expected(game)


def test_swaps_and_draws_of_an_earlier_schema_give_the_same_rows(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed_round, "_SWAP", ("CardsSwapped", 2))
    monkeypatch.setattr(closed_round, "_DRAW", ("CardDrawn", 2))
    game = short_game("a").open_round().close_round()
    game.log(connection)
    catch_up(connection)
    assert models(connection) == expected(game)


def test_the_end_of_a_round_replaces_what_was_written_while_it_was_open(
    connection: Connection,
) -> None:
    game = short_game("a")
    end = len(game.rows)
    for upto in range(1, end + 1, 3):
        game.log(connection, upto=upto)
        catch_up(connection)
    game.log(connection)
    catch_up(connection)
    assert models(connection) == expected(game)


def test_a_closed_round_that_lags_is_not_written_while_it_was_open(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dealer.projector.stream_projector.fold", between_rounds)
    games = closed_games(2)
    for game in games:
        game.log(connection)
    catch_up(connection, Projector(events=5))
    assert models(connection) == expected(*games)
