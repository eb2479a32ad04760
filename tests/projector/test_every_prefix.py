"""Random games: after every event the read models agree with the reference implementation."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import StaticPool

from dealer.projector.runner import Projector
from tests.projector.databases import catch_up, models
from tests.projector.random_games import Game, random_step
from tests.projector.reference_models import Expected, expected

pytestmark = pytest.mark.slow

CHOICES = st.lists(st.integers(0, 19 * 25 - 1), min_size=25, max_size=60)
SLOW = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def in_memory(migrated: Path) -> Connection:
    """A new log in memory, because hypothesis uses many."""
    copy = sqlite3.connect(":memory:", check_same_thread=False)
    with sqlite3.connect(migrated) as original:
        original.backup(copy)
    original.close()
    engine = create_engine("sqlite://", creator=lambda: copy, poolclass=StaticPool)
    return engine.connect().execution_options(isolation_level="AUTOCOMMIT")


def played(choices: Sequence[int], *, name: str = "a", closed: bool = True) -> Game:
    game = Game(name).sit("Ada", "Bob").open_round(shuffled=choices[0] % 5 > 0)
    for choice in choices:
        random_step(game, choice)
    if closed and game.table.round is not None:
        game.record_results()
        game.close_round()
    return game


@SLOW
@given(choices=CHOICES)
def test_read_models_are_correct_after_every_event(choices: list[int], migrated: Path) -> None:
    game = played(choices)
    with in_memory(migrated) as connection:
        projector, reference = Projector(), Expected(1, game.id)
        for version, (event, at) in enumerate(game.events, 1):
            game.log(connection, upto=version)
            reference.take(event, at)
            catch_up(connection, projector)
            assert models(connection) == reference.rows(), f"after version {version}, {event}"
        assert not projector.stopped


@SLOW
@given(games=st.lists(CHOICES, min_size=2, max_size=3), events=st.integers(1, 40))
def test_slice_size_and_lost_states_do_not_change_the_rows(
    games: list[list[int]], events: int, migrated: Path
) -> None:
    played_games = [played(one, name=str(n), closed=False) for n, one in enumerate(games)]
    with in_memory(migrated) as connection:
        projector = Projector(events=events, tables=1)
        for upto in (0.3, 0.6, 1):
            for game in played_games:
                game.log(connection, upto=max(1, int(upto * len(game.rows))))
            catch_up(connection, projector)
        assert models(connection) == expected(*played_games)
        assert not projector.stopped
