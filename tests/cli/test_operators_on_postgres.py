"""What operators do to a house, on PostgreSQL: the same commands, the same guards."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dealer.cli.play import play
from dealer.gateway import serve as open_gateway
from dealer.proof.bundle import read
from dealer.proof.verify import verify
from dealer.service.opening import open_service
from tests.eventlog.conftest import PostgresHouse
from tests.postgres import Postgres

from .conftest import Ask


async def make(url: str, key: Path) -> tuple[str, str]:
    async with open_service(url, house="house.example", house_key=key) as service:
        async with open_gateway(service, port=0) as gateway:
            closed = await play(f"ws://127.0.0.1:{gateway.port}/ws", lambda _: None)
        resident, _ = await service.open_table({"name": "open"})
        return closed, resident.table_id


def test_the_operators_commands(ask: Ask, postgres: Postgres, tmp_path: Path) -> None:
    house, key, folder = PostgresHouse(postgres), tmp_path / "house.key", tmp_path / "archive"
    folder.mkdir()
    at = ("--database", house.url)
    under = (*at, "--house-key", key)
    closed, still_open = asyncio.run(make(house.url, key))
    assert ask("disable", still_open, "--why", "x", *at).code == 0
    assert ask("disable", "--house", "--why", "x", *at).code == 0
    assert ask("enable", "--house", *at).code == 0
    answer = ask("archive", closed, "--to", folder, *at)
    assert answer.code == 0, answer.err
    assert verify(read((folder / f"{closed}.jsonl").read_bytes())).ok
    assert house.ask("SELECT count(*) FROM event")[0][0] == 1
    assert house.ask("SELECT count(*) FROM archived")[0][0] == 1
    assert ask("tables", *at).lines[-1].startswith("1 more is archived")
    rebuilt = ask("rebuild", *at)
    assert rebuilt.code == 0, rebuilt
    answer = ask("rotate-key", "--why", "x", *under)
    assert answer.code == 0, answer.err
    answer = ask("close", "--idle", "0m", "--why", "x", *under)
    assert (answer.code, answer.out) == (0, "1 table closed.\n"), answer.err
    assert ask("archive", "--older-than", "0m", "--to", folder, *at).code == 0
    assert "is deleted" in ask("rotate-key", "--retire", *under).out
    told = [json.loads(line)["what"] for line in ask("journal", "--json", *at).lines]
    assert told == [
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
            house.ask(wrong)
    closed, still_open = asyncio.run(make(house.url, key))
    with pytest.raises(Exception, match="never changed"):
        house.ask("DELETE FROM event")
    with pytest.raises(Exception, match="only a closed"):
        house.ask(
            "INSERT INTO archived SELECT id, version, '', '', '', 0, '', 0, 0 FROM stream"
            f" WHERE id = '\\x{still_open}'"
        )
