"""The states that a projector keeps in memory take a bounded number of bytes."""

from __future__ import annotations

from dealer.game.size import size_of
from dealer.projector.runner import Projector
from dealer.projector.stream_projector import StreamProjector
from tests.projector.databases import catch_up
from tests.projector.random_games import Game


def test_states_in_memory_are_bounded_by_bytes(connection) -> None:
    games = [Game(f"{number}").sit("Ada", "Bob").open_round() for number in range(20)]
    for game in games:
        game.log(connection)
    bound = 5 * size_of(games[0].table)
    projector = Projector()
    projector._streams = StreamProjector(tables=1000, bound=bound)
    catch_up(connection, projector)
    kept = projector._streams._cached
    assert 1 <= len(kept) <= 6
    assert projector._streams.bytes == sum(cached.size for cached in kept.values()) <= bound
    for game in games:
        game.log(connection)
    catch_up(connection, projector)
    assert projector.done == sum(len(game.rows) for game in games)


def test_one_state_is_kept_however_large_it_is(connection) -> None:
    game = Game("a").sit("Ada").open_round()
    game.log(connection)
    projector = Projector()
    projector._streams = StreamProjector(tables=1000, bound=1)
    catch_up(connection, projector)
    assert len(projector._streams._cached) == 1
