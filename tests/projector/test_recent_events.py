"""Projection of events in memory writes the rows that the log gives, without reading the log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from sqlalchemy import Connection, Row

from dealer.errors import ConcurrentUpdate
from dealer.eventlog import EventRecord
from dealer.eventlog.recent import RecentEvents
from dealer.game.commands import Actor, Deal, Draw
from dealer.game.events import CardShown, Event, SeatLeft
from dealer.game.state import Table, evolve
from dealer.projector.lagging import LaggingStreams
from dealer.projector.runner import Due, Projector
from dealer.projector.stream_projector import StreamProjector, records
from dealer.proof.codec import decode
from tests.projector.databases import catch_up, models, once, projected, roll_back
from tests.projector.random_games import HOST, Game, short_game
from tests.projector.reference_models import expected
from tests.projector.test_every_prefix import CHOICES, SLOW, in_memory, played
from tests.projector.test_long_rounds import delete_event


def commit(
    connection: Connection, game: Game, recent: RecentEvents, *, upto: int | None = None
) -> None:
    """Write the game's next events to the log and hand them to the projector."""
    after = game.logged
    game.log(connection, upto=upto)
    if game.logged > after:
        recent.add(game.id, events_of(game)[after : game.logged], keep=False)


def record(version: int, at: int, event: Event) -> EventRecord:
    return EventRecord(version, type(event).__name__, 1, at, "{}", event=event)


def events_of(game: Game) -> list[EventRecord]:
    return [record(version, at, event) for version, (event, at) in enumerate(game.events, 1)]


@pytest.fixture
def recent() -> RecentEvents:
    return RecentEvents()


@pytest.fixture
def projector(connection: Connection, recent: RecentEvents) -> Projector:
    """A projector that has searched the log once."""
    return catch_up(connection, Projector(recent=recent))


@pytest.fixture
def no_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every read of events fail, also of those of a round that is closed."""

    def refuse(*arguments: object, **named: object) -> None:
        raise AssertionError("the log was read")

    monkeypatch.setattr("dealer.projector.stream_projector._public_state", refuse)
    monkeypatch.setattr("dealer.projector.stream_projector.records", refuse)
    monkeypatch.setattr(LaggingStreams, "next", refuse)


@pytest.mark.usefixtures("no_reads")
def test_games_are_projected_without_a_read(connection: Connection) -> None:
    recent = RecentEvents()
    projector = Projector(recent=recent)
    projector._due = Due.NOTHING
    games = [short_game("a"), short_game("b").open_round()]
    for step in range(5, len(games[1].rows) + 5, 5):
        for game in games:
            commit(connection, game, recent, upto=min(step, len(game.rows)))
        catch_up(connection, projector)
    assert models(connection) == expected(*games)
    assert all(version == done for version, done in projected(connection))


@pytest.mark.usefixtures("no_reads")
def test_a_long_round_is_replayed_over_several_slices(connection: Connection) -> None:
    recent = RecentEvents()
    projector = Projector(recent=recent)
    projector._due = Due.NOTHING
    projector._streams = StreamProjector(tables=10, events=20)
    game = Game("long").sit("Ada", "Bob").open_round()
    for _ in range(10):
        game.shuffle()
    game.do(Deal(HOST, 2))
    game.close_round()
    game.sit("Cid")
    commit(connection, game, recent)
    slices = 1
    while once(connection, projector.slice):
        slices += 1
    assert slices > 4
    assert models(connection) == expected(game)


def test_of_more_open_rounds_than_are_kept_the_oldest_are_read_from_the_log(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    recent, reads = RecentEvents(), []
    projector = catch_up(connection, Projector(recent=recent))
    games = [short_game(name) for name in "abc"]
    opened = [
        next(v for v, row in enumerate(game.rows) if row.type == "RoundClosed") for game in games
    ]
    monkeypatch.setattr("dealer.projector.stream_projector.KEPT_EVENTS", 2 * opened[0])

    def read(rows: Sequence[Row[Any]]) -> list[EventRecord]:
        reads.append(len(rows))
        return records(rows)

    for game, upto in zip(games, opened, strict=True):
        commit(connection, game, recent, upto=upto)
        catch_up(connection, projector)
    monkeypatch.setattr("dealer.projector.stream_projector.records", read)
    for game in games:
        commit(connection, game, recent)
        catch_up(connection, projector)
    assert len(reads) == 1
    assert models(connection) == expected(*games)


def test_events_that_are_not_in_memory_are_read_from_the_log(
    connection: Connection, recent: RecentEvents, projector: Projector
) -> None:
    game = short_game()
    game.log(connection, upto=12)  # as another process would
    commit(connection, game, recent)
    catch_up(connection, projector)
    assert models(connection) == expected(game)


def test_too_many_events_are_dropped_and_read_from_the_log(connection: Connection) -> None:
    recent = RecentEvents(bound=5000)  # of 250 bytes and the leaf, which is empty here
    projector = catch_up(connection, Projector(recent=recent))
    games = [short_game("a"), short_game("b")]
    for game in games:
        commit(connection, game, recent, upto=15)
    assert not recent.waiting
    catch_up(connection, projector)
    for game in games:
        commit(connection, game, recent)
        catch_up(connection, projector)
    assert models(connection) == expected(*games)


def test_a_slice_that_is_rolled_back_is_read_from_the_log(
    connection: Connection, recent: RecentEvents, projector: Projector
) -> None:
    game = short_game()
    commit(connection, game, recent, upto=20)
    roll_back(connection, projector)
    projector.rolled_back()
    assert projected(connection) == [(20, 0)]
    commit(connection, game, recent)
    catch_up(connection, projector)
    assert models(connection) == expected(game)


def test_a_stream_that_another_process_projects_is_found_again(
    connection: Connection, recent: RecentEvents, projector: Projector
) -> None:
    game = short_game()
    commit(connection, game, recent, upto=10)
    catch_up(connection, projector)
    commit(connection, game, recent, upto=20)
    catch_up(connection)  # another process, which reads the log
    with pytest.raises(ConcurrentUpdate):
        once(connection, projector.slice)
    projector.rolled_back()
    commit(connection, game, recent)
    catch_up(connection, projector)
    assert models(connection) == expected(game)


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("own", ["nothing more", "the close"])
def test_a_round_is_closed_that_another_process_opened_and_projected(
    connection: Connection, recent: RecentEvents, projector: Projector, own: str, rounds: int
) -> None:
    """What this process has in memory is of an earlier round, whose close it has not projected."""
    game = Game().sit("Ada").open_round()
    commit(connection, game, recent)
    catch_up(connection, projector)
    for _ in range(rounds):
        game.close_round().open_round().do(Draw(Actor(seat=1)))
    game.log(connection)
    catch_up(connection)  # the other process
    game.close_round()
    if own == "the close":
        commit(connection, game, recent)
    else:
        game.log(connection)
        projector.catch_up()
    with suppress(ConcurrentUpdate):
        catch_up(connection, projector)
    projector.rolled_back()
    catch_up(connection, projector)
    assert not projector.stopped
    assert models(connection) == expected(game)


def test_a_table_that_another_process_has_archived_meanwhile_is_not_stopped(
    connection: Connection, recent: RecentEvents, projector: Projector
) -> None:
    game = short_game()
    last = len(game.rows)
    game.log(connection, upto=last - 2)
    projector.catch_up()
    catch_up(connection, projector)
    commit(connection, game, recent, upto=last - 1)
    catch_up(connection, projector)
    commit(connection, game, recent)
    delete_event(connection, version=last - 3)
    connection.exec_driver_sql("UPDATE stream SET projected = version")
    with pytest.raises(ConcurrentUpdate):
        once(connection, projector.slice)
    projector.rolled_back()
    assert recent.bytes == 0  # no slice would take them
    catch_up(connection, projector)
    assert not projector.stopped


@pytest.mark.parametrize("missing", [3, 9, 14])
def test_an_event_that_another_process_wrote_between_those_in_memory_is_read_from_the_log(
    connection: Connection, recent: RecentEvents, projector: Projector, missing: int
) -> None:
    game = short_game()
    game.log(connection)
    events = events_of(game)
    for part in (events[: missing - 1], events[missing:]):
        recent.add(game.id, part, keep=False)
    catch_up(connection, projector)
    assert not projector.stopped
    assert models(connection) == expected(game)


def test_the_streams_of_a_dead_process_are_projected_after_two_searches(
    connection: Connection, projector: Projector
) -> None:
    game = short_game()
    game.log(connection, upto=10)
    projector.poll()
    catch_up(connection, projector)
    assert projected(connection) == [(10, 0)], "its own process may still do it"
    projector.poll()
    catch_up(connection, projector)
    assert projected(connection) == [(10, 10)]


def test_a_stream_that_advances_between_two_searches_is_left_to_its_process(
    connection: Connection, projector: Projector
) -> None:
    game = short_game()
    other = Projector()
    for version in (5, 10, 15):
        catch_up(connection, other)
        game.log(connection, upto=version)
        projector.poll()
        catch_up(connection, projector)
    assert projected(connection) == [(15, 10)]


def test_a_search_is_not_delayed_by_recent_events_without_end(
    connection: Connection, recent: RecentEvents, projector: Projector
) -> None:
    busy, other = Game("busy"), short_game("other")
    other.log(connection)
    projector.catch_up()
    for number in range(6):
        busy.sit(f"player {number}")
        commit(connection, busy, recent)
        once(connection, projector.slice)
    versions = dict(projected(connection))
    assert versions[len(other.rows)] == len(other.rows)


def test_what_a_search_has_projected_causes_no_other_search(
    connection: Connection, recent: RecentEvents, projector: Projector
) -> None:
    game = short_game()
    commit(connection, game, recent, upto=10)
    projector.catch_up()
    once(connection, projector.slice)
    assert projected(connection) == [(10, 10)]
    commit(connection, game, recent, upto=15)
    once(connection, projector.slice)
    assert not projector._due
    assert projected(connection) == [(15, 15)]


def test_a_stopped_stream_is_no_reason_to_search(
    connection: Connection, recent: RecentEvents, projector: Projector
) -> None:
    game = short_game()
    commit(connection, game, recent, upto=4)
    catch_up(connection, projector)
    game.log(connection, upto=6)
    shown = CardShown(9, 9, "a", b"")
    recent.add(game.id, [record(5, 0, SeatLeft(9)), record(6, 0, shown)], keep=False)
    catch_up(connection, projector)
    assert [stopped.version for stopped in projector.stopped.values()] == [5]
    assert projected(connection) == [(6, 5)]
    recent.add(game.id, events_of(game)[5:6], keep=False)
    for _ in range(3):
        projector.poll()
        catch_up(connection, projector)
    assert projected(connection) == [(6, 5)]


def test_a_stopped_stream_that_another_process_projects_is_projected_again(
    connection: Connection, recent: RecentEvents, projector: Projector
) -> None:
    game = Game().sit("Ada")
    commit(connection, game, recent)
    catch_up(connection, projector)
    game.sit("Bob")
    game.log(connection)
    recent.add(game.id, [record(3, 0, CardShown(9, 9, "a", b""))], keep=False)
    catch_up(connection, projector)
    assert projector.stopped
    catch_up(connection)  # another process, or a rebuild
    game.sit("Cid")
    commit(connection, game, recent)
    projector.poll()
    catch_up(connection, projector)
    assert not projector.stopped
    game.sit("Di")
    commit(connection, game, recent)
    catch_up(connection, projector)
    for _ in range(2):
        projector.poll()
        catch_up(connection, projector)
    assert models(connection) == expected(game)


@pytest.mark.slow
@SLOW
@given(choices=CHOICES)
def test_the_public_state_is_what_a_reader_of_the_log_has(choices: Sequence[int]) -> None:
    game, state, read = played(choices), Table(), Table()
    for row, (event, at) in zip(game.rows, game.events, strict=True):
        evolve(state, event, at, public=True)
        evolve(read, decode(row.type, row.schema, json.loads(row.public), {}), at)
        assert state == read


@pytest.mark.slow
@SLOW
@given(choices=CHOICES)
def test_any_game_gives_the_rows_that_the_log_gives(choices: Sequence[int], migrated: Path) -> None:
    game = played(choices)
    recent = RecentEvents()
    with in_memory(migrated) as connection:
        projector = catch_up(connection, Projector(recent=recent, events=10))
        for upto in [
            *range(1 + choices[0] % 7, len(game.rows), 1 + choices[1] % 9),
            len(game.rows),
        ]:
            commit(connection, game, recent, upto=max(upto, game.logged))
            if upto % 3:
                catch_up(connection, projector)
        catch_up(connection, projector)
        assert models(connection) == expected(game)
