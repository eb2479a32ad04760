"""Projectors of several nodes on one PostgreSQL database: each claims the tables it projects."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from sqlalchemy import Connection

from dealer.errors import ConcurrentUpdate
from dealer.projector import lagging
from dealer.projector.lagging import LaggingStreams
from dealer.projector.rebuild import Rebuild
from dealer.projector.runner import Projector
from tests.harness.postgres import Blocking
from tests.projector.databases import catch_up, models, once, projected, rebuilt
from tests.projector.random_games import Game, short_game
from tests.projector.reference_models import expected
from tests.projector.test_long_rounds import long_game, projector_of_few

Connect = Callable[[], Blocking]


@pytest.fixture
def connect(connect_to_postgres: Connect) -> Connect:
    return connect_to_postgres


def test_two_concurrent_projectors_take_different_tables(connect: Connect) -> None:
    one, other = connect(), connect()
    games = [short_game(name) for name in "abcd"]
    for game in games:
        game.log(one)
    first, second = Projector(events=2), Projector(events=2)
    one.exec_driver_sql("BEGIN")
    assert one.run(first.slice)
    other.exec_driver_sql("BEGIN")
    assert other.run(second.slice)
    one.exec_driver_sql("COMMIT")
    other.exec_driver_sql("COMMIT")
    assert first.done == second.done == 2
    catch_up(one)
    assert all(version == done for version, done in projected(one))
    found = models(one)
    again = connect()
    again.exec_driver_sql("UPDATE stream SET projected = 0")
    for model in found:
        again.exec_driver_sql(f"DELETE FROM {model}")
    catch_up(again)
    assert models(again) == found


def test_a_table_that_another_projector_claimed_is_skipped(connect: Connect) -> None:
    one, other = connect(), connect()
    Game().sit("Ada").log(one)
    one.exec_driver_sql("BEGIN")
    one.run(Projector().slice)
    second = Projector()
    assert not once(other, second.slice)
    assert second.done == 0
    one.exec_driver_sql("COMMIT")
    assert projected(other) == [(2, 2)]


def test_appends_do_not_wait_for_a_projector(connect: Connect) -> None:
    one, other = connect(), connect()
    game = Game().sit("Ada")
    game.log(one)
    one.exec_driver_sql("BEGIN")
    lagging_streams = LaggingStreams(events=10)
    one.run(lambda it: lagging_streams.next(it, without=(), first=None))
    other.exec_driver_sql("SET lock_timeout = '1s'")
    game.sit("Bob").log(other)
    one.exec_driver_sql("COMMIT")
    assert projected(other) == [(3, 0)]


def test_a_projector_that_is_overtaken_without_a_claim_writes_nothing(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim only avoids duplicate work; the conditional update ensures correctness."""
    unclaimed = lagging._CLAIM.replace("pg_try_advisory_xact_lock(", "0 <> (")
    monkeypatch.setattr(lagging, "_CLAIM", unclaimed)
    one, other = connect(), connect()
    short_game().log(one)
    first, second = Projector(events=10), Projector(events=20)
    one.exec_driver_sql("BEGIN")
    rows = one.run(lambda it: first._lagging.next(it, without=(), first=None))
    once(other, second.slice)
    monkeypatch.setattr(first._lagging, "next", lambda *arguments, **named: rows)
    with pytest.raises(ConcurrentUpdate):
        one.run(first.slice)
    one.exec_driver_sql("ROLLBACK")
    assert projected(other)[0][1] == 24


def test_a_table_that_a_frozen_process_has_locked_delays_no_other(connect: Connect) -> None:
    one, other = connect(), connect()
    games = [short_game(name) for name in "abc"]
    for game in games:
        game.log(one)
    ((held,),) = one.exec_driver_sql("SELECT id FROM stream ORDER BY id LIMIT 1").fetchall()
    other.exec_driver_sql("BEGIN")
    other.exec_driver_sql("SELECT * FROM stream WHERE id = ? FOR UPDATE", (held,))
    one.exec_driver_sql("SET lock_timeout = '20s'")
    projector = Projector()
    with pytest.raises(ConcurrentUpdate):
        once(one, projector.slice)
    assert once(one, projector.slice), "more work: the locked table is tried again"
    lagging_rows = "SELECT id FROM stream WHERE version > projected"
    assert one.exec_driver_sql(lagging_rows).fetchall() == [(held,)]
    with pytest.raises(ConcurrentUpdate):
        once(one, projector.slice)
    other.exec_driver_sql("ROLLBACK")
    catch_up(one, projector)
    assert one.exec_driver_sql(lagging_rows).fetchall() == []
    found = models(one)
    one.exec_driver_sql("UPDATE stream SET projected = 0")
    for model in found:
        one.exec_driver_sql(f"DELETE FROM {model}")
    catch_up(one)
    assert models(one) == found


def test_a_slice_locks_no_more_tables_than_it_reads(connect: Connect) -> None:
    """PostgreSQL has room for some thousand locks, too few for all tables that may lag."""
    one = connect()
    for number in range(40):
        Game(str(number)).log(one)
    one.exec_driver_sql("BEGIN")
    assert one.run(Projector(events=10).slice)
    ((locks,),) = one.exec_driver_sql(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
        " AND objsubid = 1"  # those of Citus have other numbers
    ).fetchall()
    one.exec_driver_sql("COMMIT")
    assert locks == 10


def test_a_long_round_whose_first_swaps_a_rebuild_has_replaced_is_replayed_again(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rebuild has read the log before the close, and replaces the tables after it."""
    one, other = connect(), connect()
    game = long_game()
    game.log(one)
    projector = catch_up(other, projector_of_few())
    rebuild = Rebuild()
    swap = rebuild._swap

    def begin_replay() -> None:
        game.close_round().log(other)
        assert once(other, projector.slice)
        assert len(models(other)["swaps"]) > 0

    def swap_late(connection: Connection) -> None:
        with ThreadPoolExecutor(1) as thread:  # this one runs the other connection's loop
            thread.submit(begin_replay).result()
        swap(connection)

    monkeypatch.setattr(rebuild, "_swap", swap_late)
    rebuilt(one, rebuild)
    with suppress(ConcurrentUpdate):
        catch_up(other, projector)
    projector.rolled_back()
    catch_up(other, projector)
    assert models(other) == expected(game)


@pytest.mark.slow
def test_twenty_thousand_tables_without_statistics_catch_up(connect: Connect) -> None:
    """They are more than PostgreSQL has locks for, and the planner has no statistics of them."""
    one = connect()
    (opened,) = Game().rows
    one.exec_driver_sql("BEGIN")
    one.exec_driver_sql(
        "INSERT INTO stream (id, version, projected)"
        " SELECT decode(md5(CAST(n AS text)), 'hex'), 1, 0 FROM generate_series(1, 20000) AS n"
    )
    one.exec_driver_sql(
        "INSERT INTO event (stream, version, type, schema, at, public)"
        " SELECT id, 1, CAST(? AS text), CAST(? AS int), CAST(? AS bigint), CAST(? AS text)"
        " FROM stream",
        (opened.type, opened.schema, opened.at, opened.public),
    )
    one.exec_driver_sql("COMMIT")
    assert catch_up(one).done == 20_000
    assert one.exec_driver_sql("SELECT count(*) FROM tables").fetchall() == [(20_000,)]
