"""The projector: slices are atomic, and a failure of one table does not affect the others."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, Engine, event

from dealer.errors import ConcurrentUpdate
from dealer.eventlog import EventRecord, schema
from dealer.game.commands import CloseTable, Deal
from dealer.projector.changes import Changes, ReadModelWriter
from dealer.projector.lagging import LaggingStreams
from dealer.projector.models import DeckRow
from dealer.projector.runner import Projector
from tests.harness.database_check import check_schema
from tests.projector.conftest import Connect
from tests.projector.databases import (
    add_raw,
    catch_up,
    models,
    on,
    once,
    projected,
    roll_back,
    stream_of,
    url_of,
)
from tests.projector.random_games import HOST, Game, short_game
from tests.projector.reference_models import expected

MOVES_POSITION = re.compile("UPDATE stream SET projected|advance_streams")


def test_the_migrations_create_the_declared_tables(connection: Connection) -> None:
    on(connection, check_schema)


def test_read_models_are_the_same_after_a_downgrade_and_an_upgrade(connection: Connection) -> None:
    from alembic import command

    game = short_game()
    game.log(connection)
    catch_up(connection)
    before = models(connection)
    on(connection, lambda it: command.downgrade(schema.alembic_config(it), "0001"))
    on(connection, lambda it: command.upgrade(schema.alembic_config(it), "head"))
    catch_up(connection)
    assert models(connection) == before


def test_a_slice_projects_a_bounded_number_of_events_and_reports_whether_more_remain(
    connection: Connection,
) -> None:
    game = Game().sit("Ada", "Bob").open_round()
    game.log(connection)
    projector = Projector(events=10)
    slices = 1
    while once(connection, projector.slice):
        slices += 1
        assert projected(connection) == [(len(game.rows), min(10 * (slices - 1), len(game.rows)))]
    assert slices == len(game.rows) // 10 + 1
    assert projector.done == len(game.rows)
    assert models(connection) == expected(game)


def test_a_long_table_does_not_delay_the_others(connection: Connection) -> None:
    long, short = Game("long").open_round(deck=[f"{n:03}" for n in range(200)]), Game("short")
    long.log(connection)
    short.log(connection)
    projector = Projector(events=20)
    once(connection, projector.slice)
    once(connection, projector.slice)
    (one, other) = projected(connection)
    assert one[1] < one[0]
    assert other[1] == other[0]
    catch_up(connection, projector)
    assert all(version == done for version, done in projected(connection))


def test_no_row_has_a_hidden_face_before_the_round_closes(connection: Connection) -> None:
    deck = [f"face{n}" for n in range(8)]
    game = Game().sit("Ada", "Bob").open_round(deck=deck)
    game.do(Deal(HOST, 2))
    game.log(connection)
    catch_up(connection)
    assert "face" not in repr(models(connection))
    game.close_round().log(connection)
    catch_up(connection)
    assert all(face in repr(models(connection)) for face in deck)


def test_a_slice_that_is_rolled_back_leaves_no_rows_and_is_repeated(connection: Connection) -> None:
    game = short_game()
    game.log(connection, upto=20)
    projector = catch_up(connection)
    before = models(connection)
    game.log(connection)
    roll_back(connection, projector)
    assert models(connection) == before
    assert projected(connection) == [(len(game.rows), 20)]
    catch_up(connection, projector)
    assert models(connection) == expected(game)


def test_each_of_two_projectors_continues_where_the_other_stopped(connect: Connect) -> None:
    one, other = connect(), connect()
    first, second = Projector(events=7), Projector(events=5)
    games = [short_game("a"), short_game("b")]
    for game in games:
        game.log(one)
    more = True
    while more:
        more = once(one, first.slice) | once(other, second.slice)
    assert models(one) == expected(*games)
    assert first.done + second.done == sum(len(game.rows) for game in games)


def test_a_projector_that_loses_a_race_writes_nothing(connection: Connection) -> None:
    game = short_game()
    game.log(connection, upto=20)
    projector = catch_up(connection)
    before = models(connection)
    game.log(connection)

    def overtake(conn: Connection, cursor: Any, sql: str, *_: object, **__: object) -> None:
        if MOVES_POSITION.search(sql):
            cursor.execute("UPDATE stream SET projected = 25")

    event.listen(Engine, "before_cursor_execute", overtake)
    try:
        with pytest.raises(ConcurrentUpdate):
            once(connection, projector.slice)
    finally:  # it would move the positions of other tests
        event.remove(Engine, "before_cursor_execute", overtake)
    assert models(connection) == before
    catch_up(connection, projector)
    assert models(connection) == expected(game)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (EventRecord(6, "CardsBurnt", 1, 0, "{}"), "newer version wrote it"),
        (EventRecord(6, "SeatLeft", 2, 0, '{"seat":1}'), "newer version wrote it"),
        (EventRecord(6, "SeatLeft", 1, 0, '{"chair":1}'), "members of its type"),
        (EventRecord(6, "SeatLeft", 1, 0, "not JSON"), "cannot be read"),
        (
            EventRecord(6, "DeckSealed", 1, 0, '{"first":0,"k":0,"round":1,"slots":[]}'),
            "does not fit",
        ),
        (
            EventRecord(6, "CardDrawn", 1, 0, '{"from":"deck","round":1,"seat":1,"slot":0}'),
            "does not fit",
        ),
        (EventRecord(7, "SeatLeft", 1, 0, '{"seat":1}'), "Version 6 is missing"),
    ],
)
def test_an_event_that_cannot_be_projected_stops_its_table_and_no_other(
    row: EventRecord, why: str, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    damaged, sound = Game("damaged").sit("Ada", "Bob", "Cy"), short_game("sound")
    damaged.sit("Di")
    assert len(damaged.rows) == 5
    damaged.log(connection)
    add_raw(connection, 1, row)
    sound.log(connection)
    projector = catch_up(connection)
    (stopped,) = projector.stopped.values()
    assert stopped.table == damaged.id.hex()
    assert stopped.version == 5
    assert why in stopped.sentence
    assert [vars(record)["fields"]["table"] for record in caplog.records] == [stopped.table]
    assert why in vars(caplog.records[0])["fields"]["says"]
    assert projected(connection) == [(row.version, 5), (len(sound.rows), len(sound.rows))]
    assert models(connection) == expected(damaged, sound)
    # The damaged table stays as it is, and events of other tables are still projected.
    sound.sit("Eve")
    sound.log(connection)
    catch_up(connection, projector)
    assert projected(connection)[1] == (len(sound.rows), len(sound.rows))
    assert len(caplog.records) == 1


def test_a_table_whose_newest_rows_are_missing_is_stopped_and_not_searched_for_again(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    damaged, sound = short_game("damaged"), short_game("sound")
    damaged.log(connection)
    connection.exec_driver_sql("UPDATE stream SET version = version + 1")
    sound.log(connection)
    projector = catch_up(connection, catch_up(connection))
    (stopped,) = projector.stopped.values()
    assert (stopped.table, stopped.version) == (damaged.id.hex(), len(damaged.rows))
    assert f"Version {stopped.version + 1} is missing" in stopped.sentence
    assert models(connection) == expected(damaged, sound)
    assert len(caplog.records) == 1
    lagging = LaggingStreams(events=100)
    for _ in range(2):
        stuck = on(connection, lambda it: lagging.is_stuck(it, without=projector.stopped))
        assert not stuck


def test_a_table_whose_rows_are_in_the_archive_is_not_stopped(connection: Connection) -> None:
    """They are deleted before the position of the read models is moved."""
    game = short_game()
    game.do(CloseTable(HOST))
    game.log(connection)
    connection.exec_driver_sql(
        "INSERT INTO archived (stream, root, house_key, file, length, sha256, closed_at, at, size)"
        " SELECT id, ?, ?, 'f', 0, ?, 0, 0, version FROM stream",
        (b"", b"", b""),
    )
    connection.exec_driver_sql("UPDATE stream SET version = version + 1")
    assert catch_up(connection, catch_up(connection)).stopped == {}


def test_an_altered_hidden_part_stops_the_table_at_the_close_of_its_round(
    connection: Connection,
) -> None:
    game = short_game()
    swap = next(n for n, row in enumerate(game.rows) if row.type == "CardsSwapped")
    game.rows[swap] = replace(game.rows[swap], hidden=game.rows[swap + 1].hidden)
    game.log(connection)
    (stopped,) = catch_up(connection).stopped.values()
    assert stopped.version == len(game.rows) - 1
    assert "altered" in stopped.sentence
    assert models(connection) == expected(game, upto=-1)


def test_the_later_of_two_rows_with_one_key_is_kept(connection: Connection) -> None:
    game = Game()
    game.log(connection)
    stream = stream_of(connection, 1)
    changes = Changes()
    for card in ("a", "b"):
        changes.add(DeckRow(stream, 1, 0, None, card))
    on(connection, lambda it: ReadModelWriter().write(it, changes))
    assert models(connection)["deck"] == {(1, 1, 0, None, "b")}


@pytest.mark.slow
@pytest.mark.parametrize("at", [MOVES_POSITION.pattern, "COMMIT"], ids=["position", "COMMIT"])
def test_a_kill_between_rows_and_position_leaves_both_or_neither(
    at: str, connection: Connection
) -> None:
    game = short_game()
    game.log(connection, upto=20)
    catch_up(connection)
    before = models(connection)
    game.log(connection)
    here = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.projector.dying_projector", url_of(connection), at]
    died = subprocess.run(command, cwd=here, timeout=60, check=False)
    assert died.returncode == -signal.SIGKILL
    assert models(connection) == before
    assert projected(connection) == [(len(game.rows), 20)]
    catch_up(connection)
    assert models(connection) == expected(game)
