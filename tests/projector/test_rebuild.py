"""A rebuild from the log writes the same rows and reports the differences."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine
from sqlalchemy.event import listen, remove

from dealer.errors import ConcurrentUpdate
from dealer.eventlog import EventRecord
from dealer.projector.rebuild import Difference, Rebuild
from dealer.projector.runner import Projector
from tests.harness.database_check import check_schema
from tests.projector.conftest import Connect
from tests.projector.databases import (
    catch_up,
    drain,
    models,
    on,
    once,
    projected,
    rebuilt,
    reported,
)
from tests.projector.random_games import Game, short_game
from tests.projector.reference_models import expected
from tests.projector.test_every_prefix import CHOICES, SLOW, in_memory, played
from tests.projector.test_projector import add_raw

pytestmark = pytest.mark.slow


@SLOW
@given(games=st.lists(CHOICES, min_size=1, max_size=3), events=st.integers(1, 400))
def test_a_rebuild_of_correct_read_models_finds_no_difference(
    games: list[list[int]], events: int, migrated: Path
) -> None:
    with in_memory(migrated) as connection:
        projector = Projector()
        for number, choices in enumerate(games):
            game = played(choices, name=str(number), closed=False)
            game.log(connection, upto=len(game.rows) // 2)
            catch_up(connection, projector)
            game.log(connection)
        rebuild = rebuilt(connection, Rebuild(events=events))
        assert rebuild.differences == []
        assert rebuild.different == 0
        assert rebuild.done == rebuild.total
        found = models(connection)
        assert all(version == done for version, done in projected(connection))
        again = rebuilt(connection)
        assert (again.differences, models(connection)) == ([], found)


def test_a_rebuild_writes_the_rows_that_the_projector_writes(
    connect: Connect, migrated: Path
) -> None:
    connection = connect()
    games = [short_game("a"), short_game("b")]
    with in_memory(migrated) as other:
        for game in games:
            game.log(connection)
            game.logged = 0
            game.log(other)
        catch_up(connection)
        rebuilt(other)
        assert models(other) == models(connection)
        assert projected(other) == projected(connection)


def test_readers_see_either_the_old_rows_or_the_new_ones(connect: Connect) -> None:
    writer, reader = connect(), connect()
    short_game("a").log(writer)
    short_game("b").log(writer)
    catch_up(writer)
    true = models(writer)
    writer.exec_driver_sql("UPDATE moves SET card = 'Z'")
    false = models(writer)
    draws = "SELECT count(*), min(card) FROM draws"
    rebuild = Rebuild(events=9)
    while once(writer, rebuild.slice):
        assert models(reader) == false
        assert tuple(reader.exec_driver_sql(draws).one()) == (10, "Z")
    assert models(reader) == true
    assert tuple(reader.exec_driver_sql(draws).one())[1] != "Z"
    on(writer, check_schema)


@pytest.mark.parametrize(
    "statement",
    ["DROP TABLE seats", "RENAME TO piles", "CREATE VIEW draws", "UPDATE stream SET projected"],
)
def test_a_replacement_that_fails_is_rolled_back(connect: Connect, statement: str) -> None:
    writer, reader = connect(), connect()
    short_game().log(writer)
    catch_up(writer)
    true = models(writer)
    writer.exec_driver_sql("UPDATE moves SET card = 'Z'")
    false, places = models(reader), projected(reader)
    draws = reader.exec_driver_sql("SELECT * FROM draws").fetchall()

    def fail_at_statement(conn: object, cursor: object, sql: str, *_: object) -> None:
        if statement in sql:
            raise MemoryError

    listen(Engine, "before_cursor_execute", fail_at_statement)
    try:
        with pytest.raises(MemoryError):
            rebuilt(writer)
    finally:
        remove(Engine, "before_cursor_execute", fail_at_statement)
    assert (models(reader), projected(reader)) == (false, places)
    assert reader.exec_driver_sql("SELECT * FROM draws").fetchall() == draws
    rebuilt(writer)
    assert models(reader) == true
    on(writer, check_schema)


def test_differences_are_reported(connection: Connection) -> None:
    game = short_game()
    game.log(connection)
    catch_up(connection)
    execute = connection.exec_driver_sql
    swap = reported(execute("SELECT * FROM swaps WHERE step = 3").one())
    execute("UPDATE swaps SET card_i = 'Z' WHERE step = 3")
    execute("DELETE FROM hands WHERE seat = 2 AND place = 0")
    unknown = b"n" * 16 if connection.dialect.name == "postgresql" else 77
    execute("INSERT INTO deck VALUES (?, 1, 0, 5, 'a')", (unknown,))
    rebuild = rebuilt(connection)
    assert rebuild.different == 4
    assert [(d.model, d.in_old) for d in rebuild.differences] == [
        ("swaps", True), ("swaps", False), ("hands", False), ("deck", True),
    ]  # fmt: skip
    assert rebuild.differences[1] == Difference("swaps", swap, False)
    assert rebuild.differences[3].row == reported((unknown, 1, 0, 5, "a"))
    again = rebuilt(connection)
    assert again.different == 0


def test_many_differences_are_counted_and_the_first_are_listed(connection: Connection) -> None:
    Game().open_round(deck=[f"{n:03}" for n in range(300)]).log(connection)
    catch_up(connection)
    connection.exec_driver_sql("UPDATE deck SET slot = slot + 1")
    rebuild = rebuilt(connection)
    assert rebuild.different == 600
    assert len(rebuild.differences) == 100


def test_tables_are_played_and_projected_during_a_rebuild(connect: Connect) -> None:
    rebuilding, serving = connect(), connect()
    games = [Game(name).sit("Ada", "Bob").open_round() for name in "abc"]
    projector = Projector(events=5)
    for game in games:
        game.log(serving)
    once(serving, projector.slice)
    rebuild = Rebuild(events=4)
    turn = 0
    while once(rebuilding, rebuild.slice):
        turn += 1
        if turn < 12:
            games[turn % 3].sit(f"player {turn}")
            games[turn % 3].log(serving)
            once(serving, projector.slice)
    assert turn >= 12
    assert rebuild.different == 0
    assert all(version == done for version, done in projected(serving))
    games[0].close_round().log(serving)
    catch_up(serving, projector)
    check = rebuilt(serving)
    assert check.different == 0
    assert not projector.stopped


def test_the_first_of_two_concurrent_rebuilds_fails(connect: Connect) -> None:
    one, other = connect(), connect()
    short_game().log(one)
    first, second = Rebuild(events=5), Rebuild(events=5)
    once(one, first.slice)
    once(other, second.slice)
    with pytest.raises(ConcurrentUpdate, match="try again"):
        drain(one, first.slice)
    drain(other, second.slice)
    assert second.done == second.total
    on(one, check_schema)


@pytest.mark.parametrize("altered", [-1, 1000])
def test_a_position_that_was_altered_does_not_keep_a_rebuild_from_its_end(
    connection: Connection, altered: int
) -> None:
    """It says nothing of the log: no event is missing after the last one."""
    game = short_game()
    game.log(connection)
    connection.exec_driver_sql(f"UPDATE stream SET projected = {altered}")
    rebuild = rebuilt(connection)
    assert (rebuild.done, rebuild.stopped) == (len(game.rows), {})
    assert projected(connection) == [(len(game.rows), len(game.rows))]
    assert models(connection) == expected(game)


def test_a_table_that_cannot_be_projected_is_reported_and_the_others_are_rebuilt(
    connection: Connection,
) -> None:
    damaged, sound = Game("damaged"), short_game("sound")
    damaged.log(connection)
    add_raw(connection, 1, EventRecord(2, "CardsBurnt", 1, 0, "{}"))
    sound.log(connection)
    catch_up(connection)
    rebuild = rebuilt(connection, Rebuild(events=7))
    assert [(one.table, one.version) for one in rebuild.stopped.values()] == [(damaged.id.hex(), 1)]
    assert rebuild.different == 0
    assert projected(connection) == [(2, 1), (len(sound.rows), len(sound.rows))]


def test_progress_is_reported_in_events(connection: Connection) -> None:
    game = short_game()
    game.log(connection)
    calls: list[tuple[int, int]] = []
    rebuild = Rebuild(events=10, progress=lambda done, total: calls.append((done, total)))
    drain(connection, rebuild.slice)
    total = len(game.rows)
    counts = [done for done, _ in calls]
    assert {of for _, of in calls} == {total}
    assert 0 < counts[0] <= 10
    assert all(0 <= after - before <= 10 for before, after in pairwise(counts))
    assert counts[-1] == total
