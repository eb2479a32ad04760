"""Commands with a PostgreSQL database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dealer.eventlog.schema import revisions
from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, CloseRound, Deal, OpenRound, StartShuffle, TakeSeat
from dealer.service.build import open_service
from tests.harness.postgres import Postgres, query

from .conftest import Ask, Serve

HOST = Actor(host=True)


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    name = postgres.empty()
    yield postgres.url(name)
    postgres.drop(name)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return tmp_path / "house.key"


async def _play(url: str, key: Path) -> str:
    async with open_service(url, house_key=key) as service:
        live_table, _ = await service.open_table({"name": "On a server"})
        for command in (
            TakeSeat("Ann"),
            TakeSeat("Bob"),
            OpenRound(HOST, STANDARD, "house", 1000, 1000),
            StartShuffle(HOST),
            Deal(HOST, 2),
            CloseRound(HOST),
            TakeSeat("Cy"),
        ):
            await service.execute(live_table, command)
    return live_table.table_id


def test_every_command_works_after_migrate(
    ask: Ask, url: str, key: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DEALER_DATABASE_URL", url)
    old = ask("tables")
    assert old.code == 1
    assert "is empty; run `dealer migrate" in old.err
    assert ask("migrate").out == f"The schema was empty and is now {revisions()[-1]}.\n"
    assert "nothing was changed" in ask("migrate").out
    table = asyncio.run(_play(url, key))
    (listed,) = [json.loads(line) for line in ask("tables", "--json").lines]
    assert (listed["table"], listed["name"], listed["seated"]) == (table, "On a server", 3)
    assert ask("audit", "--events", table[:8]).lines[-1].split()[3] == "SeatTaken"
    cut_short = ask("export", table[:8], "-o", tmp_path / "cut.jsonl")
    assert "its key was not named with --house-key" in cut_short.err
    monkeypatch.setenv("DEALER_HOUSE_KEY_FILE", str(key))
    whole = ask("export", table[:8], "-o", tmp_path / "whole.jsonl")
    assert "ends at version" not in whole.err
    assert ask("verify", tmp_path / "whole.jsonl").code == 0
    assert "51" in ask("audit", table).out
    assert "0 rows differed" in ask("rebuild").out
    query(url, "UPDATE swaps SET card_i = 'none' WHERE step = 3")
    meddled = json.loads(ask("rebuild", "--json").out)
    assert meddled["different"] == 2
    assert meddled["differences"][0]["row"]["table_id"] == table
    assert ask("rebuild").code == 0


def test_a_demo_can_use_it(ask: Ask, url: str, key: Path) -> None:
    ask("migrate", "--database", url)
    without = ask("demo", "--database", url)
    assert without.code == 2
    assert "--house-key" in without.err
    answer = ask("demo", "--database", url, "--house-key", key)
    assert answer.code == 0
    assert "passed: The SQL tables agree with the log (rebuild)" in answer.out


def test_missing_prerequisites_are_reported_without_the_password(
    serve: Serve, url: str, key: Path
) -> None:
    secret = url.replace("//dealer@", "//dealer:s3cret@")

    def ended(*arguments: object) -> tuple[int, str]:
        ports = ("--port", 0, "--ops-port", 0)
        answer = serve("--database", secret, *ports, *arguments).ended()
        assert "s3cret" not in answer.out + answer.err
        return answer.code, answer.err

    code, output = ended()
    assert code == 2
    assert "--house-key" in output
    code, output = ended("--house-key", key)
    assert code == 1
    assert "run `dealer migrate" in output


def test_two_servers_share_a_database_and_need_one_key(
    serve: Serve, ask: Ask, url: str, key: Path, tmp_path: Path
) -> None:
    ask("migrate", "--database", url)
    common = ("--database", url, "--port", 0, "--ops-port", 0, "--house-key")
    servers = [serve(*common, key) for _ in range(2)]
    assert len({server.address for server in servers}) == 2
    stranger = serve(*common, tmp_path / "another.key").ended()
    assert stranger.code == 1
    assert "house key" in stranger.err
    for server in servers:
        assert server.end().code == 0
