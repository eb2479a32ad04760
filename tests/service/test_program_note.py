"""Before a round a server notes what it runs: once a process and table, in the round's append."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dealer.errors import BadRequest
from dealer.game.commands import AddNote, CloseRound, TakeSeat
from dealer.history.sentences import describe_all
from dealer.proof.verify import verify
from dealer.service import LiveTable, Service
from dealer.service.build import open_service
from dealer.service.reading.past_states import no_pause
from dealer.service.service import ServiceOptions
from tests.harness.empty_log import empty_log
from tests.service.tables import HOST, OPEN_ROUND, bundle_of

TEXT = "dealer 1.2.3, manifest 00"


@pytest.fixture
def database(tmp_path: Path) -> str:
    return empty_log(tmp_path / "dealer.db")


async def play(service: Service, live_table: LiveTable, rounds: int) -> None:
    for _ in range(rounds):
        await service.execute(live_table, OPEN_ROUND)
        await service.execute(live_table, CloseRound(HOST))


async def events_of(service: Service, live_table: LiveTable) -> list[tuple[str, Any]]:
    """Type of each event, and of a note the kind, the seat and the text."""
    entries = await service.log.read(live_table.id)
    notes = {row.version: row.members() for row in entries if row.type == "NoteAdded"}
    return [
        (row.type, tuple(notes[row.version].values()) if row.version in notes else None)
        for row in entries
    ]


NOTE = ("NoteAdded", ("program", 0, TEXT))
ROUND = [("RoundOpened", None), ("RoundClosed", None)]


async def test_each_process_notes_it_once_before_its_first_round(database: str) -> None:
    async with open_service(database, ServiceOptions(program=TEXT)) as service:
        live_table, _ = await service.open_table({})
        assert await events_of(service, live_table) == [("TableOpened", None)]
        await play(service, live_table, 2)
        assert live_table.table.round_versions == [3, 5]
    async with open_service(database, ServiceOptions(program=TEXT)) as service:
        live_table = await service.lifecycle.load(live_table.table_id)
        await play(service, live_table, 2)
        expected = [("TableOpened", None), NOTE, *ROUND, *ROUND, NOTE, *ROUND, *ROUND]
        assert await events_of(service, live_table) == expected
        lines = await bundle_of(service, live_table)
    sentences = [step.sentence for step in describe_all([line.encode() for line in lines], ())]
    assert sentences[1] == sentences[6] == f"the house says that it runs {TEXT}"


async def test_a_service_that_is_no_program_notes_nothing(database: str) -> None:
    async with open_service(database) as service:
        live_table, _ = await service.open_table({})
        await play(service, live_table, 1)
        assert await events_of(service, live_table) == [("TableOpened", None), *ROUND]


async def test_a_note_of_a_lost_append_is_added_again(database: str) -> None:
    async with (
        open_service(database, ServiceOptions(program=TEXT)) as one,
        open_service(database) as two,
    ):
        here, _ = await one.open_table({})
        there = await two.lifecycle.load(here.table_id)
        await two.execute(there, TakeSeat("Dan"))
        await play(one, here, 2)
        expected = [("TableOpened", None), ("SeatTaken", None), NOTE, *ROUND, *ROUND]
        assert await events_of(one, here) == expected
        await two.lifecycle.catch_up(there)
        await two.execute(there, TakeSeat("Eve"))
        await play(one, here, 1)
        assert (await events_of(one, here))[len(expected) :] == [("SeatTaken", None), *ROUND]


async def test_a_practice_table_has_it_before_its_first_round(database: str) -> None:
    async with open_service(database, ServiceOptions(program=TEXT)) as service:
        source, _ = await service.open_table({})
        await play(service, source, 1)
        past = service.past_states
        rules, round_ = await past.practice(source, 1, 3, pause=no_pause)
        table, _ = await service.open_table(rules, laid_out=round_)
        await service.execute(table, CloseRound(HOST))
        await play(service, table, 1)
        found = await events_of(service, table)
        assert found[:3] == [("TableOpened", None), NOTE, ("RoundOpened", None)]
        assert found.count(NOTE) == 1
        report = verify(await bundle_of(service, table), source=await bundle_of(service, source))
        assert report.fault is None
        assert report.practice is not None
        assert report.practice.source == "proved"


async def test_only_the_server_writes_it(database: str) -> None:
    async with open_service(database, ServiceOptions(program=TEXT)) as service:
        live_table, _ = await service.open_table({})
        with pytest.raises(BadRequest, match=r"server writes .* round\.open"):
            await service.execute(live_table, AddNote(HOST, "program", "another one"))
