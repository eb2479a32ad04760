"""`dealer.open_log`: events, past states, shuffles and bundles of a recorded game, read-only."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path

import pytest

import dealer
from dealer.analysis.open_bundle import Viewer, past_table
from dealer.analysis.open_log import AsyncLog, OpenLog
from dealer.errors import (
    BadRequest,
    ConfigurationError,
    DatabaseDamaged,
    DatabaseReadOnly,
    DealerError,
    HouseKeyError,
    ProofFault,
    UnknownEvent,
    UnknownTable,
)
from dealer.eventlog.backends import copy_file
from dealer.game import events
from dealer.game.state import Table, evolve
from dealer.proof.verify import verify
from tests.analysis.conftest import Recorded
from tests.analysis.recorded import START
from tests.harness.programs import output_of
from tests.proof.log_builder import note_of


@pytest.fixture
def log(recorded: Recorded) -> Iterator[OpenLog]:
    with dealer.open_log(recorded.url) as opened:
        yield opened


@pytest.fixture
def with_key(recorded: Recorded) -> Iterator[OpenLog]:
    with dealer.open_log(recorded.url, house_key=recorded.key) as opened:
        yield opened


def hides(event: events.Event) -> bool:
    """Whether an event is without its hidden part."""
    match event:
        case events.CardDrawn(card=hidden) | events.CardsSwapped(j=hidden):
            return hidden is None
    return False


def test_tables(log: OpenLog) -> None:
    assert [(one.name, one.version, one.closed) for one in log.tables()] == [
        ("Friday", 213, False), ("Saturday", 174, True),
    ]  # fmt: skip
    assert log.tables()[0].opened_at == START


def test_events_are_typed_and_complete(log: OpenLog, with_key: OpenLog) -> None:
    friday, saturday = (one.table for one in log.tables())
    found = list(log.events(friday))
    assert [one.version for one in found] == list(range(1, 214))
    assert {one.type for one in found} == {type(one.event).__name__ for one in found}
    assert [one.event for one in found[81:84]] == [
        events.NoteAdded(3, "x.bye", "Good night"), events.SeatLeft(3), events.SeatTaken(3, "Dora"),
    ]  # fmt: skip
    drawn = {one.version: one.event for one in found if isinstance(one.event, events.CardDrawn)}
    # The open round is the third one.
    assert all(hides(event) == (event.round == 3) for event in drawn.values())
    known = list(with_key.events(friday))
    assert not [one for one in known if hides(one.event)]
    assert [one.event for one in known if one.round != 3] == [
        one.event for one in found if one.round != 3
    ]
    assert [one.round for one in found if one.type == "SeatTaken"] == [0] * 4
    assert found[65].command == "host/command 12"
    assert list(log.events(friday, after=80, upto=90)) == found[80:90]
    # The first of these is in the middle of the open round.
    assert list(with_key.events(friday, after=210)) == known[210:]
    assert len(list(log.events(saturday))) == 174


def test_a_past_state_is_the_fold_of_the_events(with_key: OpenLog) -> None:
    friday, table = with_key.tables()[0].table, Table()
    for logged in with_key.events(friday):
        evolve(table, logged.event, logged.at)
        if logged.version % 2 or (logged.type == "CardsSwapped" and logged.version % 20):
            continue
        viewers: list[Viewer] = ["house", *list(table.seats)[-1:]]
        for viewer in viewers:
            expected = past_table(friday, table, viewer, secret_known=True)
            assert with_key.state(friday, logged.version, viewer=viewer) == expected


def test_a_seat_sees_what_its_player_saw(log: OpenLog) -> None:
    friday = log.tables()[0].table
    ada, bob, dora = (log.state(friday, 85, viewer=seat) for seat in (1, 2, 3))
    assert (ada.hands[1], bob.hands[2]) == (["As", "Qs"], ["Th", "Kh", "Jh"])
    assert ada.hand(2) == ["??"] * 3
    assert bob.hand(1) == ["As", "??"]  # Ada has shown him one
    # She took the seat with its hand, but not what Cleo had discarded.
    assert dora.hand(3) == ["6h", "8s", "4s"]
    assert dora.piles == {"board": ["3d"], "discard": ["??"], "table": ["8h"]}
    cleo = log.state(friday, 81, viewer=3)
    assert (cleo.seats[3], dora.seats[3]) == ("Cleo", "Dora")
    assert cleo.piles["discard"] == ["9d"]
    everyone = log.state(friday, 85)
    assert everyone == log.state(friday, 85, viewer="public")
    assert set(chain(*everyone.hands.values())) == {"??"}
    house = log.state(friday, 85, viewer="house")
    assert "??" not in list(chain(*house.stacks.values()))
    assert sorted(chain(*house.stacks.values())) == sorted(house.members["round"]["deck"])
    assert (house.deck_count, house.stacks["deck"][-1]) == (41, "3s")
    assert log.state(friday, 86).stacks == {}


@pytest.mark.slow
def test_a_bundle_has_the_past_states_of_the_log(log: OpenLog, tmp_path: Path) -> None:
    friday = log.tables()[0].table
    file = tmp_path / "game.jsonl"
    file.write_text("".join(f"{line}\n" for line in log.bundle(friday)))
    bundle = dealer.open_bundle(file)
    compared = set()
    for at in range(1, len(bundle.game.leaves) + 1, 3):
        everyone = bundle.state(at)
        viewers: list[Viewer] = [None, "house", *everyone.seats]
        for viewer in viewers:
            seen = bundle.state(at, viewer=viewer)
            assert seen == log.state(friday, at, viewer=viewer)
            compared.add((seen.round, seen.complete))
    assert compared == {(None, True), (1, True), (2, True), (3, True), (3, False)}
    assert bundle.state(85, viewer=2).hand(2) == ["Th", "Kh", "Jh"]


def test_what_a_bundle_refuses(log: OpenLog, tmp_path: Path) -> None:
    friday = log.tables()[0].table
    lines, file = log.bundle(friday), tmp_path / "game.jsonl"
    file.write_text("\n".join(lines))
    bundle = dealer.open_bundle(file, key=json.loads(lines[0])["key"], saved=[note_of(lines[-1])])
    with pytest.raises(BadRequest, match="has no version 1000: its versions are 1 to "):
        bundle.state(1000)
    with pytest.raises(BadRequest, match="Seat 3 was free"):
        bundle.state(83, viewer=3)
    with pytest.raises(ProofFault, match="not the one that you gave"):
        dealer.open_bundle(file, key=bytes(32))
    file.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    assert dealer.open_bundle(file).game.leaves == bundle.game.leaves
    file.write_text("\n".join(lines)[:-300])
    with pytest.raises(ProofFault, match="The file is cut at line"):
        dealer.open_bundle(file)
    file.write_text("\n".join(lines).replace('"Ada"', '"Eve"'))
    with pytest.raises(ProofFault):
        dealer.open_bundle(file)


def test_the_open_round_needs_the_key(log: OpenLog, with_key: OpenLog) -> None:
    friday = log.tables()[0].table
    assert log.state(friday).complete
    viewers: tuple[Viewer, ...] = (1, "house")
    for viewer in viewers:
        without, known = (one.state(friday, viewer=viewer) for one in (log, with_key))
        assert (without.complete, known.complete) == (False, True)
        assert without.hand(1) == ["??"] * 3
        assert known.hand(1) == ["4c", "5h", "Jc"]
    assert with_key.state(friday, viewer=1).hand(2) == ["??"] * 2


def test_rounds_and_shuffles(log: OpenLog) -> None:
    friday, saturday = (one.table for one in log.tables())
    assert [(one.opened, one.closed, one.entropy) for one in log.rounds(friday)] == [
        (5, 86, "players"), (87, 151, "house"), (152, None, "house"),
    ]  # fmt: skip
    assert [one.secret is None for one in log.rounds(friday)] == [False, False, True]
    shuffles = log.shuffles(friday)
    assert [(one.round, one.k, one.outcome, len(one.swaps)) for one in shuffles] == [
        (1, 0, "sealed", 51), (2, 0, "sealed", 51), (2, 1, "sealed", 1), (3, 0, "sealed", 0),
    ]  # fmt: skip
    assert shuffles[0].committed == shuffles[0].revealed == (1, 2, 3)
    assert log.shuffles(friday, round=2) == shuffles[1:3]
    swaps = [swap for one in shuffles for swap in one.swaps]
    assert swaps == list(log.verify(friday).swaps)
    assert all(swap.words for swap in swaps)
    assert [len(one.swaps) for one in log.shuffles(saturday)] == [51, 51, 51]


def test_bundles_are_verified(log: OpenLog, with_key: OpenLog) -> None:
    friday, saturday = (one.table for one in log.tables())
    for table in (friday, saturday):
        assert log.verify(table).ok
        assert with_key.verify(table).ok
    # Without the key the bundle ends at the newest signed version.
    versions = [sum(b'"version":' in line for line in map(str.encode, one.bundle(friday)))
                for one in (log, with_key)]  # fmt: skip
    assert versions == [212, 219]
    assert verify(with_key.bundle(friday)).ok


def test_moments_have_a_table_each(log: OpenLog) -> None:
    game = log.game(log.tables()[0].table)
    moments, table = list(game.moments()), Table()
    for moment in moments:
        assert moment.table == table
        assert moment.table is not table
        evolve(table, moment.event, moment.at)
    assert len({id(moment.table) for moment in moments}) == len(moments) == 206
    assert len({id(step.table) for step in game.steps()}) == 1


async def test_the_same_without_threads(recorded: Recorded, log: OpenLog) -> None:
    async with dealer.open_log(recorded.url) as opened:
        assert isinstance(opened, AsyncLog)
        tables = await opened.tables()
        table = tables[0].table
        assert tables == log.tables()
        assert [one async for one in opened.events(table)] == list(log.events(table))
        assert await opened.rounds(table) == log.rounds(table)
        assert await opened.shuffles(table) == log.shuffles(table)
        assert await opened.state(table, 85, viewer=2) == log.state(table, 85, viewer=2)
        assert await opened.bundle(table) == log.bundle(table)
        assert (await opened.verify(table)).ok
        sql = "SELECT card FROM draws WHERE version = ? AND table_id = ?"
        assert await opened.query(sql, 66, table) == log.query(sql, 66, table) == [{"card": "As"}]


def test_nothing_can_be_written(log: OpenLog) -> None:
    for sql in (
        "DELETE FROM swaps",
        "INSERT INTO house (name, value) VALUES ('x', ?)",
        "UPDATE stream SET version = 1",
        "CREATE TABLE x (y INTEGER)",
        "SET default_transaction_read_only = off",
        "-- a comment\nVACUUM",
        "WITH x AS (SELECT 1) DELETE FROM swaps",
    ):
        with pytest.raises(BadRequest):
            log.query(sql, *[b"x"] * sql.count("?"))
    assert log.query("SELECT count(*) AS n FROM swaps")[0]["n"] > 200


async def test_no_other_file_can_be_written(on_sqlite: Recorded, tmp_path: Path) -> None:
    """SQLite's mode for reading would allow these, which `query` refuses by their first word."""
    async with dealer.open_log(on_sqlite.url) as log:
        for write in ("ATTACH DATABASE '%s' AS x", "VACUUM INTO '%s'"):
            with pytest.raises(DatabaseReadOnly):
                await log._log.fetch(write % (tmp_path / "other.db"))
    assert not (tmp_path / "other.db").exists()


def test_what_is_not_there(log: OpenLog, recorded: Recorded, tmp_path: Path) -> None:
    friday = log.tables()[0].table
    with pytest.raises(BadRequest, match="no version 214: its versions are 1 to 213"):
        log.state(friday, 214)
    with pytest.raises(BadRequest, match="no version 0"):
        log.state(friday, 0)
    with pytest.raises(BadRequest, match="Seat 3 was free at version 83"):
        log.state(friday, 83, viewer=3)
    with pytest.raises(BadRequest, match="'everyone'"):
        log.state(friday, 83, viewer="everyone")  # type: ignore[arg-type]
    with pytest.raises(UnknownTable, match="Several tables"):
        log.rounds("01a19")
    for wrong in ("02", "x", "", "0" * 33):
        with pytest.raises(UnknownTable):
            list(log.events(wrong))
    other = tmp_path / "other.key"
    other.write_bytes(bytes(32))
    other.chmod(0o600)
    for key in (other, tmp_path / "missing.key"):
        with pytest.raises(HouseKeyError), dealer.open_log(recorded.url, house_key=key):
            pass
    with pytest.raises(ConfigurationError):
        dealer.open_log(tmp_path / "missing.db").tables()
    assert not (tmp_path / "missing.db").exists()


async def test_a_log_is_open_in_one_way(recorded: Recorded) -> None:
    log = dealer.open_log(recorded.url)
    async with log:
        with pytest.raises(DealerError, match="async with"):
            log.tables()
    assert len(log.tables()) == 2
    with pytest.raises(DealerError, match="open already"):
        async with log:
            pass
    log.close()
    log.close()
    assert len(log.tables()) == 2
    log.close()


@pytest.mark.slow
def test_a_program_ends_without_closing_the_log(on_sqlite: Recorded) -> None:
    """And `import dealer` alone loads no database."""
    program = f"""\
import sys, dealer
print("sqlalchemy" in sys.modules)
print(len(dealer.open_log({on_sqlite.url!r}).tables()))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n2\n", "")


async def all_events(log: AsyncLog, table: str) -> list[object]:
    return [event async for event in log.events(table)]


@pytest.mark.parametrize(
    ("statement", "reads"),
    [
        ("UPDATE event SET public = '[' WHERE version = 1", ("tables", "events")),
        ("UPDATE event SET public = '[]' WHERE version = 1", ("tables", "events")),
        ("UPDATE event SET public = '{}' WHERE version = 1", ("events",)),
        ("""UPDATE event SET public = '{"rules":7}' WHERE version = 1""", ("events",)),
        ("UPDATE event SET public = x'ff' WHERE version = 1", ("tables", "events")),
        ("UPDATE event SET at = 'noon' WHERE version = 1", ("tables",)),
        ("UPDATE event SET public = '{}' WHERE type = 'RoundOpened'", ("rounds", "events")),
        ("UPDATE event SET public = '{}' WHERE type = 'RoundClosed'", ("rounds", "events")),
        ("UPDATE event SET type = 'X' WHERE type = 'RoundOpened'", ("rounds", "events")),
        ("UPDATE event SET public = '[1,2]' WHERE type = 'D'", ("events",)),
    ],
)
async def test_a_row_that_was_altered_is_damage(
    on_sqlite: Recorded, tmp_path: Path, statement: str, reads: tuple[str, ...]
) -> None:
    copy = tmp_path / "copy.db"
    copy_file(on_sqlite.url, copy)
    with closing(sqlite3.connect(copy)) as connection:
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in triggers.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        ((table,),) = connection.execute("SELECT hex(table_id) FROM stream LIMIT 1").fetchall()
        assert connection.execute(statement).rowcount
        connection.commit()
    async with dealer.open_log(f"sqlite:///{copy}", house_key=on_sqlite.key) as log:
        works: dict[str, Callable[[], Awaitable[object]]] = {
            "tables": log.tables,
            "rounds": partial(log.rounds, table),
            "events": partial(all_events, log, table),
        }
        for read in reads:
            with pytest.raises((DatabaseDamaged, UnknownEvent)):
                await works[read]()


def test_without_the_packages_of_the_server_the_sentence_says_what_to_install() -> None:
    code = """
import sys
sys.modules["msgspec"] = None
import dealer
for name in ("open_log", "open_bundle"):
    try:
        getattr(dealer, name)
    except dealer.ConfigurationError as error:
        print(error)
"""
    first, *_ = output_of(sys.executable, "-c", code, cwd=Path(__file__).parents[2]).splitlines()
    assert first.startswith("dealer.open_log needs the package of the server, of which msgspec")
    assert "`pip install .`" in first
