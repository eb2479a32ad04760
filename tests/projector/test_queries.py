"""SQL queries of auditors and of the lobby, and their results."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection

from dealer.eventlog.protocols import Dialect
from dealer.game.commands import Actor, CloseTable, Deal, Draw, LeaveSeat, TakeSeat
from dealer.projector.models import MODELS
from dealer.projector.queries import LOBBY, newest_tables
from tests.projector.databases import catch_up
from tests.projector.random_games import HOST, Game, short_game


def query(connection: Connection, sql: str, *values: object) -> list[tuple[Any, ...]]:
    return list(map(tuple, connection.exec_driver_sql(sql, values)))


def test_every_model_joins_with_the_tables_and_no_name_is_ambiguous() -> None:
    tables, *others = MODELS
    for model in others:
        assert {*model.columns} & {*tables.columns} == {"stream"}


def test_the_swaps_of_a_round_turn_its_deck_into_the_sealed_order(connection: Connection) -> None:
    game = short_game()
    other = short_game("b")
    game.log(connection)
    other.log(connection)
    catch_up(connection)
    swaps = query(
        connection,
        "SELECT step, i, j, card_i, card_j FROM swaps JOIN tables USING (stream)"
        " WHERE table_id = ? AND round = 1 ORDER BY k, step",
        game.id.hex(),
    )
    order = list("abcdefgh")
    for step, (number, i, j, card_i, card_j) in enumerate(swaps):
        assert (number, i) == (step, 7 - step)
        assert (order[i], order[j]) == (card_i, card_j)
        order[i], order[j] = order[j], order[i]
    assert len(swaps) == 7
    drawn = query(
        connection, "SELECT slot, card FROM draws WHERE table_id = ? ORDER BY version",
        game.id.hex(),
    )  # fmt: skip
    assert drawn == [(slot, order[slot]) for slot in (7, 6, 5, 4, 3)]


def test_draws_have_player_card_and_time(connection: Connection) -> None:
    game = Game().sit("Ada", "Bob").open_round()
    game.do(Draw(Actor(seat=2)))
    first = game.now
    game.do(LeaveSeat(Actor(seat=2)))
    game.do(TakeSeat("Cy", 2))
    game.do(Draw(Actor(seat=2), where="bottom"))
    game.log(connection)
    catch_up(connection)
    sql = "SELECT at, player, seat, source, place, card FROM draws WHERE table_id = ?"
    assert query(connection, sql, game.id.hex()) == [
        (first, "Bob", 2, "deck", 7, None),
        (game.now, "Cy", 2, "deck", 0, None),
    ]


@pytest.mark.parametrize("closed", [False, True])
def test_the_lobby_lists_open_tables_with_the_number_of_players(
    closed: bool, connection: Connection
) -> None:
    game = Game().sit("Ada", "Bob")
    game.do(LeaveSeat(Actor(seat=1)))
    if closed:
        game.do(CloseTable(HOST))
    game.log(connection)
    catch_up(connection)
    opened = game.events[0][1]
    row = (game.id.hex(), "table a", 0, len(game.rows), opened, 1, None, None)
    assert query(connection, LOBBY, 2**60, 2**60, "", 10) == ([] if closed else [row])


def test_the_lobby_is_read_in_pages_without_a_scan(
    connection: Connection,
) -> None:
    games = [Game(name) for name in "abcdefg"]
    for game in games:
        game.log(connection)
    catch_up(connection)
    seen, at, table = [], 2**60, ""
    while rows := query(connection, LOBBY, at, at, table, 3):
        seen += [row[0] for row in rows]
        at, table = rows[-1][4], rows[-1][0]
    expected = sorted(games, key=lambda game: (-game.events[0][1], game.id))
    assert seen == [game.id.hex() for game in expected]
    if connection.dialect.name == "sqlite":
        plan = query(connection, f"EXPLAIN QUERY PLAN {LOBBY}", at, at, table, 3)
        # Each page begins where the one before ended.
        assert "SEARCH t USING INDEX ix_tables_opened_at (opened_at<?)" in [row[-1] for row in plan]


def test_the_newest_tables_are_listed_without_a_scan_of_the_events(connection: Connection) -> None:
    games = [Game(name, now=10**12 + 1000 * n).sit("Ada") for n, name in enumerate("abcdefg")]
    games[5].open_round()
    games[6].do(CloseTable(HOST))
    for game in games[:3]:
        game.log(connection)
    catch_up(connection)
    for game in games[3:]:
        game.log(connection)
    dialect: Dialect = "sqlite" if connection.dialect.name == "sqlite" else "postgresql"
    key = "table_id" if dialect == "sqlite" else "id"
    archived = f"INSERT INTO stream ({key}, version, projected) VALUES (?, 9, 9)"
    connection.exec_driver_sql(archived, (bytes(16),))
    expected = games[::-1]
    for projected in (False, True):
        for limit in (1, 3, 100):
            sql, parameters = newest_tables(dialect, limit)
            rows = query(connection, sql, *parameters)
            assert [bytes(row[1]) for row in rows] == [game.id for game in expected[:limit]]
        assert {bytes(row[1]): row[7] for row in rows} == {
            game.id: not projected and number > 2 for number, game in enumerate(games)
        }
        catch_up(connection)
    found = {bytes(row[1]): tuple(row[4:7]) for row in query(connection, sql, *parameters)}
    assert found[games[4].id] == (False, 1, 0)
    assert found[games[5].id] == (False, 1, 1)
    assert found[games[6].id] == (True, 1, 0)
    if dialect == "sqlite":
        plan = [row[-1] for row in query(connection, f"EXPLAIN QUERY PLAN {sql}", *parameters)]
        assert [line for line in plan if line.startswith("SCAN")] == [
            "SCAN stream", "SCAN newest", "SCAN last",
        ]  # fmt: skip


def test_every_card_of_a_round_is_in_one_stack(connection: Connection) -> None:
    game = Game().sit("Ada", "Bob").open_round()
    game.do(Deal(HOST, 3))
    game.close_round().log(connection)
    catch_up(connection)
    sql = """
    SELECT card FROM deck JOIN tables USING (stream) WHERE table_id = ? AND round = 1
    UNION ALL SELECT card FROM hands JOIN tables USING (stream) WHERE table_id = ?
    UNION ALL SELECT card FROM piles JOIN tables USING (stream) WHERE table_id = ?"""
    found = connection.exec_driver_sql(sql, (game.id.hex(),) * 3).scalars()
    assert sorted(found) == list("abcdefgh")
