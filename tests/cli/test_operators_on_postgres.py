"""Operators' commands on PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from dealer.game.commands import CloseRound, StartShuffle
from dealer.proof.bundle import read
from dealer.proof.verify import verify
from dealer.service.build import open_service
from dealer.service.reading.past_states import no_pause
from tests.eventlog.conftest import TemporaryPostgres
from tests.harness.postgres import Postgres

from .conftest import HOST, Ask, play_and_open


def test_the_operators_commands(ask: Ask, postgres: Postgres, tmp_path: Path) -> None:
    database = TemporaryPostgres(postgres)
    key, folder = tmp_path / "house.key", tmp_path / "archive"
    folder.mkdir()
    at = ("--database", database.url)
    with_key = (*at, "--house-key", key)
    closed, still_open = asyncio.run(play_and_open(database.url, key))
    assert ask("tables", "disable", still_open, "--why", "x", *at).code == 0
    assert ask("tables", "disable", "--house", "--why", "x", *at).code == 0
    assert ask("tables", "enable", "--house", *at).code == 0
    answer = ask("tables", "archive", closed, "--to", folder, *at)
    assert answer.code == 0, answer.err
    assert verify(read((folder / f"{closed}.jsonl").read_bytes())).ok
    assert database.execute("SELECT count(*) FROM event")[0][0] == 1
    assert database.execute("SELECT count(*) FROM archived")[0][0] == 1
    assert ask("tables", *at).lines[-1].startswith("1 more is archived")
    rebuilt = ask("rebuild", *at)
    assert rebuilt.code == 0, rebuilt
    answer = ask("rotate-key", "--why", "x", *with_key)
    assert answer.code == 0, answer.err
    answer = ask("tables", "close", "--idle", "0m", "--why", "x", *with_key)
    assert (answer.code, answer.out) == (0, "1 table closed.\n"), answer.err
    assert ask("tables", "archive", "--older-than", "0m", "--to", folder, *at).code == 0
    assert "is deleted" in ask("rotate-key", "--retire", *with_key).out
    actions = [json.loads(line)["what"] for line in ask("journal", "--json", *at).lines]
    assert actions == [
        "retire-key", "archive", "close", "rotate-key", "rebuild", "archive", "enable",
        "disable", "disable", "migrate",
    ]  # fmt: skip
    for wrong in (
        "UPDATE journal SET who = ''",
        "DELETE FROM journal",
        "DELETE FROM archived",
        "TRUNCATE archived",
        "UPDATE archived SET size = 1",
    ):
        with pytest.raises(Exception, match="never changed"):
            database.execute(wrong)
    closed, still_open = asyncio.run(play_and_open(database.url, key))
    with pytest.raises(Exception, match="never changed"):
        database.execute("DELETE FROM event")
    with pytest.raises(Exception, match="only a closed"):
        database.execute(
            "INSERT INTO archived SELECT id, version, '', '', '', 0, '', 0, 0 FROM stream"
            f" WHERE id = '\\x{still_open}'"
        )


async def open_practice(url: str, key: Path, closed: str) -> str:
    """The id of a practice table of the middle of round 1 of a closed table."""
    async with open_service(url, house_key=key) as service:
        source = await service.lifecycle.load(closed)
        rules, round_ = await service.past_states.practice(source, 1, 112, pause=no_pause)
        table, _ = await service.open_table(rules, laid_out=round_)
        for command in (StartShuffle(HOST), CloseRound(HOST)):
            await service.execute(table, command)
        return table.table_id


def test_a_practice_table_is_audited_and_a_person_forgotten(
    ask: Ask, postgres: Postgres, tmp_path: Path
) -> None:
    database = TemporaryPostgres(postgres)
    key, folder = tmp_path / "house.key", tmp_path / "archive"
    folder.mkdir()
    at = ("--database", database.url)
    closed, _ = asyncio.run(play_and_open(database.url, key))
    practice = asyncio.run(open_practice(database.url, key, closed))
    audited = ask("audit", practice, *at)
    assert audited.code == 3, audited.err
    assert f"of table {closed} as they lay at version 112.\n" in audited.out
    answer = ask("tables", "archive", closed, "--to", folder, "--forget", "Ada", *at)
    assert answer.code == 0, answer.err
    archived = (folder / f"{closed}.jsonl").read_bytes()
    report = verify(read(archived))
    assert report.fault is None
    assert report.withheld_parts
    assert re.search(rb'"Ada\\?"', archived) is None  # base64 may have the letters
