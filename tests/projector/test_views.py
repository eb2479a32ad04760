"""The views for people: what they show of a game on both databases, also after a rebuild."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from sqlalchemy import Connection

from dealer.game.commands import Actor, Draw, LeaveSeat, Move, Show
from dealer.projector.models import VIEWS
from dealer.projector.rebuild import create_tables, swap_tables
from tests.projector.databases import catch_up, on
from tests.projector.random_games import Game, short_game

TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}")


def select(connection: Connection, sql: str) -> list[Any]:
    return [tuple(row) for row in connection.exec_driver_sql(sql).fetchall()]


def test_a_game_as_people_see_it(connection: Connection) -> None:
    game = short_game()
    game.log(connection)
    catch_up(connection)
    ((table_id,),) = select(connection, "SELECT table_id FROM tables")

    log = select(connection, "SELECT version, type, who, card, public FROM log ORDER BY version")
    assert [(row[0], row[1]) for row in log] == [(row.version, row.type) for row in game.rows]
    assert [row[4] for row in log] == [row.public for row in game.rows]
    assert {row[2] for row in log if row[1] == "CardDrawn"} == {"Ada", "Bob"}

    swaps = select(connection, "SELECT * FROM swaps ORDER BY k, step")
    shown = select(connection, "SELECT * FROM shuffle_swaps ORDER BY shuffle, step")
    assert len(shown) == len(swaps) > 0
    assert {(row[0], row[1]) for row in shown} == {(table_id, 1)}
    assert [row[2:8] for row in shown] == [row[2:4] + row[5:9] for row in swaps]
    assert [row[3] for row in log if row[1] == "CardsSwapped"] == [row[6] for row in shown]

    held: Counter[tuple[int, str]] = Counter()
    for seat, change, card in select(connection, "SELECT seat, change, card FROM hand_changes"):
        held[seat, card] += 1 if change == "+" else -1
    assert {one for one, count in held.items() if count} == {
        (seat, card) for seat, card in select(connection, "SELECT seat, card FROM hands")
    }
    assert set(held.values()) <= {0, 1}
    if connection.dialect.name == "sqlite":
        unordered = [row[1] for row in select(connection, "SELECT * FROM hand_changes")]
        assert unordered == sorted(unordered), "as they happened"
    changes = select(connection, "SELECT * FROM hand_changes ORDER BY version")
    assert {(row[3], row[4]) for row in changes} == {("Ada", 1), ("Bob", 2)}
    assert changes[0][5:] == ("+", changes[0][6], "deck", "hand:1", 1)


def test_only_what_changes_a_hand_is_a_change_of_it(connection: Connection) -> None:
    """A card that is shown in a hand stays there; a new player of the seat finds it there."""
    ada, second = Actor(seat=1), Actor(seat=2)
    game = Game().sit("Ada", "Bob").open_round()
    game.do(Draw(ada))
    game.do(Show(ada, "hand:1"))
    game.do(Show(ada, "hand:1", to=2))
    game.do(Move(ada, "give", "hand:1", "hand:2", count=1))
    game.do(Show(second, "hand:2"))
    game.do(LeaveSeat(second))
    game.sit("Cleo")
    game.do(Move(second, "discard", "hand:2", "pile:discard", count=1))
    game.log(connection)
    catch_up(connection)
    found = select(
        connection,
        'SELECT player, seat, change, "from", "to", round FROM hand_changes'
        " ORDER BY version, change DESC",
    )
    assert found == [
        ("Ada", 1, "+", "deck", "hand:1", 1),
        ("Ada", 1, "-", "hand:1", "hand:2", 1),
        ("Bob", 2, "+", "hand:1", "hand:2", 1),
        ("Cleo", 2, "-", "hand:2", "pile:discard", 1),
    ]


def test_the_views_have_no_bytes_and_name_table_and_time(connection: Connection) -> None:
    short_game().log(connection)
    catch_up(connection)
    for view in ("log", "shuffle_swaps", "hand_changes"):
        for row in connection.exec_driver_sql(f"SELECT * FROM {view}").mappings():
            assert re.fullmatch("[0-9a-f]{32}", row["table_id"])
            assert TIME.fullmatch(row["time"])
            assert not [value for value in row.values() if isinstance(value, bytes | memoryview)]


def test_a_rebuild_keeps_the_views(connection: Connection) -> None:
    short_game().log(connection)
    catch_up(connection)
    before = {view: sorted(select(connection, f"SELECT * FROM {view}"), key=str) for view in VIEWS}
    assert all(before.values())

    def rebuild(connection: Connection) -> None:
        create_tables(connection)
        for name in ("tables", "seats", "swaps", "moves"):
            connection.exec_driver_sql(f"INSERT INTO rebuilt_{name} SELECT * FROM {name}")
        swap_tables(connection)

    on(connection, rebuild)
    after = {view: sorted(select(connection, f"SELECT * FROM {view}"), key=str) for view in VIEWS}
    assert after == before
