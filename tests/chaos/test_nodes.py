"""Two nodes on PostgreSQL: nodes, the server and connections fail; nothing is lost or doubled.

The counts are small here; each trial is a script that takes larger ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos import game_under_faults
from tests.chaos.broadcasts import watch_while_killed
from tests.chaos.commits import play_while_cut
from tests.chaos.hints import play_with_bad_hints
from tests.chaos.history import check_linearizability
from tests.chaos.kills import play_while_killed
from tests.chaos.node_points import POINTS, die_on_postgres
from tests.chaos.reconnects import reconnect
from tests.chaos.stops import play_while_stopped
from tests.harness.dies_at import named
from tests.harness.postgres import on_cluster, programs

NAMES = (
    "before the statement that is its own COMMIT",
    "after COMMIT, before any notice",
    "between the read models and their mark",
)


@pytest.fixture(autouse=True)
def _installed() -> None:
    programs()


def assert_kept(figures: game_under_faults.Figures) -> None:
    assert figures.faults == []
    assert (figures.lost, figures.doubled, figures.changed, figures.snapshot_instead) == (
        0,
        0,
        0,
        0,
    )
    assert figures.acknowledged > 0


async def test_a_killed_node_loses_and_doubles_nothing(tmp_path: Path) -> None:
    figures = await play_while_killed(tmp_path, kills=3, seed=3, nodes=2)
    assert_kept(figures)
    assert figures.kills == 3
    assert figures.resumes > 0


@pytest.mark.parametrize("name", POINTS)
def test_each_point_of_a_node_is_in_the_code(name: str) -> None:
    assert callable(named(POINTS[name].function)[2])


async def test_a_node_that_dies_at_a_point_loses_and_doubles_nothing(tmp_path: Path) -> None:
    figures = await die_on_postgres(tmp_path, times=1, seed=1, names=NAMES)
    assert_kept(figures)
    assert figures.deaths == len(NAMES)


async def test_nodes_survive_a_stop_of_the_database_server(tmp_path: Path) -> None:
    figures = await play_while_stopped(tmp_path, stops=1, seed=1)
    assert_kept(figures)
    assert (figures.stops, figures.unready) == (1, 2)
    assert figures.connections >= 5


async def test_database_connections_cut_during_commits_lose_and_double_nothing(
    tmp_path: Path,
) -> None:
    if on_cluster():
        pytest.skip("on one server only: appends go to the workers, past the relay")
    figures = await play_while_cut(tmp_path, cuts=15, seed=2)
    assert_kept(figures)
    assert figures.cuts >= 15
    assert min(figures.in_the_request, figures.before_the_answer, figures.in_the_answer) > 0


async def test_lost_and_reordered_hints_lose_and_double_nothing(tmp_path: Path) -> None:
    figures = await play_with_bad_hints(tmp_path, rounds=1, seed=1, poll_seconds=0.1)
    assert_kept(figures)
    assert min(figures.hints_lost, figures.hints_mixed) > 0


async def test_clients_that_reconnect_at_two_nodes_receive_every_version_once(
    tmp_path: Path,
) -> None:
    figures = await reconnect(tmp_path, reconnects=100, seed=100, nodes=2)
    assert figures.faults == []
    assert figures.reconnects == 100
    assert figures.received > figures.events > 100


async def test_concurrent_commands_at_two_nodes_are_linearizable(tmp_path: Path) -> None:
    figures = await check_linearizability(tmp_path, commands=900, seed=900, nodes=2)
    assert figures.faults == []
    assert figures.kills >= 1
    assert min(figures.granted, figures.conflicts, figures.sent_again, figures.questions) > 0


async def test_a_broadcast_at_two_nodes_that_are_killed_shows_nothing_early(tmp_path: Path) -> None:
    figures = await watch_while_killed(tmp_path, faults=5, seed=4)
    assert figures.faults == []
    assert min(figures.kills, figures.taken_back, figures.resumed, figures.refused) > 0
    assert figures.shown >= 2 * figures.events > 200  # by both; more where one began again
