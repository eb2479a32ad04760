"""On PostgreSQL updates of `stream` are HOT, and a stream that is behind is found by its mark."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, Draw, OpenRound, StartShuffle, TakeSeat
from dealer.projector import lagging
from dealer.projector.lagging import LaggingStreams
from dealer.projector.runner import Projector
from dealer.service import Service
from dealer.service.build import open_service
from tests.harness.postgres import Blocking, Postgres
from tests.projector.databases import catch_up, once, projected
from tests.projector.random_games import HOST, Game, short_game

pytestmark = pytest.mark.slow

Connect = Callable[[], Blocking]

UPDATES = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'stream'"
MARKED = "SELECT id FROM stream WHERE behind"


@pytest.fixture
def connect(connect_to_postgres: Connect) -> Connect:
    return connect_to_postgres


async def play(service: Service) -> None:
    live, _ = await service.open_table({})
    await service.execute(live, TakeSeat("Ada"))
    await service.execute(live, OpenRound(HOST, STANDARD, "house", 10_000, 10_000))
    await service.execute(live, StartShuffle(HOST))
    assert service.projection is not None
    for _ in range(40):
        await service.execute(live, Draw(Actor(seat=1)))
        await service.projection.up_to_date()


async def test_updates_of_a_stream_by_appends_and_projections_are_hot(
    postgres: Postgres, tmp_path: Path
) -> None:
    database = postgres.database()
    async with open_service(postgres.url(database), house_key=tmp_path / "key") as service:
        await asyncio.gather(*(play(service) for _ in range(4)))
    # The server counts the updates of a connection after its end.
    updates = hot = 0
    while updates < 4 * 40:
        ((updates, hot),) = postgres.ask(database, UPDATES)
    assert hot >= 0.95 * updates
    postgres.drop(database)


def marked(connection: Blocking) -> int:
    return len(connection.exec_driver_sql(MARKED).fetchall())


def unmark_quiet(connection: Blocking, streams: LaggingStreams) -> None:
    """Call it as often as the marks take to be checked once."""
    for _ in range(lagging.POLLS_PER_UNMARK):
        connection.run(streams.unmark_quiet)


def test_a_mark_is_taken_back_when_the_stream_was_quiet_between_two_checks(
    connect: Connect,
) -> None:
    one = connect()
    quiet, busy, behind = (Game(name).sit("Ada") for name in "abc")
    for game in (quiet, busy):
        game.log(one)
    catch_up(one)
    behind.log(one)
    streams = LaggingStreams(events=10)
    unmark_quiet(one, streams)
    assert marked(one) == 3
    busy.sit("Bob").log(one)
    one.exec_driver_sql("UPDATE stream SET projected = version WHERE id = ?", (busy.id,))
    unmark_quiet(one, streams)
    assert sorted(one.exec_driver_sql(MARKED).fetchall()) == sorted([(busy.id,), (behind.id,)])
    unmark_quiet(one, streams)
    assert one.exec_driver_sql(MARKED).fetchall() == [(behind.id,)]


def test_an_append_marks_its_stream_again_whichever_program_writes_it(connect: Connect) -> None:
    one = connect()
    game = Game().sit("Ada")
    game.log(one)
    catch_up(one)
    one.exec_driver_sql("UPDATE stream SET behind = false")
    game.sit("Bob").log(one)
    assert marked(one) == 1
    catch_up(one)
    assert projected(one) == [(3, 3)]


def test_a_sweep_leaves_the_streams_that_a_transaction_has_locked(connect: Connect) -> None:
    one, other = connect(), connect()
    Game().log(one)
    catch_up(one)
    streams = LaggingStreams(events=10)
    unmark_quiet(one, streams)
    other.exec_driver_sql("BEGIN")
    other.exec_driver_sql("SELECT * FROM stream FOR UPDATE")
    one.exec_driver_sql("SET lock_timeout = '1s'")
    unmark_quiet(one, streams)
    other.exec_driver_sql("ROLLBACK")
    assert marked(one) == 1


def test_a_look_sweeps(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    one = connect()
    short_game().log(one)
    projector = catch_up(one, Projector())
    monkeypatch.setattr(lagging, "POLLS_PER_UNMARK", 1)
    for _ in range(2):
        projector.poll()
        once(one, projector.slice)
    assert marked(one) == 0
