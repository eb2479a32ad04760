"""A long round that closes is folded over several slices."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection

from dealer.eventlog import EventRecord
from dealer.game.commands import Deal
from dealer.projector.rebuild import PREFIX, Rebuild
from dealer.projector.runner import Projector
from dealer.projector.stream_projector import StreamProjector
from tests.harness.postgres import Blocking
from tests.projector.databases import (
    add_raw,
    catch_up,
    models,
    once,
    projected,
    roll_back,
    stream_of,
)
from tests.projector.random_games import HOST, Game, short_game
from tests.projector.reference_models import expected

CLOSED_EVENTS = 20
"""Events of closed rounds that the projectors of these tests fold per slice."""


def long_game(name: str = "a") -> Game:
    """A round with more events than several slices fold."""
    game = Game(name).sit("Ada", "Bob").open_round()
    for _ in range(10):
        game.shuffle()
    game.do(Deal(HOST, 2))
    return game


def projector_of_few() -> Projector:
    projector = Projector()
    projector._streams = StreamProjector(tables=10, events=CLOSED_EVENTS)
    return projector


def delete_event(connection: Connection, *, version: int) -> None:
    """Delete it as an owner of the database can, after dropping the trigger."""
    on_sqlite = not isinstance(connection, Blocking)
    trigger = "event_refuses_delete" if on_sqlite else "event_refuses_change ON event"
    connection.exec_driver_sql(f"DROP TRIGGER {trigger}")
    connection.exec_driver_sql("DELETE FROM event WHERE version = ?", (version,))


def test_a_slice_writes_no_more_than_its_share_of_the_round(connection: Connection) -> None:
    game = long_game()
    game.log(connection)
    projector = catch_up(connection, projector_of_few())
    game.close_round().log(connection)
    swaps = slices = 0
    last = len(game.rows)
    while once(connection, projector.slice) and projected(connection) != [(last, last)]:
        slices += 1
        before, swaps = swaps, len(models(connection)["swaps"])
        assert before < swaps <= before + CLOSED_EVENTS
        assert projected(connection) == [(last, last - 1)]
    assert slices >= 4
    assert models(connection) == expected(game)


def test_rounds_that_close_together_are_folded_one_after_the_other(
    connection: Connection,
) -> None:
    games = [long_game("a").close_round(), short_game("b"), long_game("c").close_round()]
    for game in games:
        game.log(connection)
    projector = catch_up(connection, projector_of_few())
    assert projector.stopped == {}
    for version, done in projected(connection):
        assert version == done
    assert models(connection) == expected(*games)


@pytest.mark.parametrize("slices", [1, 2, 3])
@pytest.mark.parametrize("restarted", [False, True])
def test_after_a_rollback_or_a_crash_every_swap_is_written(
    connection: Connection, slices: int, restarted: bool
) -> None:
    game = long_game().close_round()
    game.log(connection)
    projector = projector_of_few()
    for _ in range(slices):
        assert once(connection, projector.slice)
    roll_back(connection, projector)
    if restarted:
        projector = projector_of_few()
    else:
        projector.rolled_back()
    catch_up(connection, projector)
    assert models(connection) == expected(game)


def test_a_missing_event_of_the_round_stops_the_table(connection: Connection) -> None:
    game = long_game()
    game.log(connection)
    catch_up(connection)
    game.close_round().log(connection)
    delete_event(connection, version=len(game.rows) - 1)
    projector = catch_up(connection, projector_of_few())
    ((_, stopped),) = projector.stopped.items()
    assert stopped.version == len(game.rows) - 1
    assert "is missing" in stopped.sentence


def test_a_fault_behind_a_long_round_stops_the_table_after_the_round(
    connection: Connection,
) -> None:
    game = long_game().close_round()
    game.log(connection)
    last = len(game.rows)
    add_raw(connection, 1, EventRecord(last + 1, "SeatLeft", 1, 0, '{"seat":9}'))
    add_raw(
        connection, 1, EventRecord(last + 2, "StackCut", 1, 0, '{"at":1,"round":1,"stack":"deck"}')
    )
    projector = catch_up(connection, projector_of_few())
    assert [stopped.version for stopped in projector.stopped.values()] == [last + 1]
    assert projected(connection) == [(last + 2, last + 1)]
    assert models(connection)["swaps"] == expected(game)["swaps"]
    assert models(connection)["rounds"] == expected(game)["rounds"]


def test_an_unreadable_event_of_the_open_round_stops_its_table_and_no_other(
    connection: Connection,
) -> None:
    damaged, sound = Game("damaged").sit("Ada").open_round(), short_game("sound")
    damaged.log(connection)
    sound.log(connection)
    catch_up(connection)
    on_sqlite = not isinstance(connection, Blocking)
    trigger = "event_refuses_update" if on_sqlite else "event_refuses_change ON event"
    connection.exec_driver_sql(f"DROP TRIGGER {trigger}")
    connection.exec_driver_sql(
        "UPDATE event SET public = 'not JSON' WHERE stream = ? AND version = 4",
        (stream_of(connection, 1),),
    )
    for game in (damaged, sound):
        game.sit("Eve")
        game.log(connection)
    projector = catch_up(connection)
    assert [stopped.table for stopped in projector.stopped.values()] == [damaged.id.hex()]
    assert projected(connection)[1] == (len(sound.rows), len(sound.rows))


def test_a_rebuild_folds_it_in_slices_as_well(connection: Connection) -> None:
    game = long_game().close_round()
    game.log(connection)
    catch_up(connection)
    rebuild = Rebuild(events=40)
    rebuild._streams = StreamProjector(tables=1, events=CLOSED_EVENTS)
    slices = 0
    while once(connection, rebuild.slice):
        slices += 1
        assert len(models(connection, PREFIX)["swaps"]) <= slices * CLOSED_EVENTS
    assert slices >= 4
    assert (rebuild.different, rebuild.stopped) == (0, {})
    assert models(connection) == expected(game)
