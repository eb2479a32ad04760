"""The commands of an operator, over a database on a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dealer.eventlog.migrate import revisions
from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, CloseRound, Deal, OpenRound, StartShuffle, TakeSeat
from dealer.service.opening import open_service
from tests.postgres import Postgres, asked

from .conftest import Ask, Serving

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
        resident, _ = await service.open_table({"name": "On a server"})
        for wish in (
            TakeSeat("Ann"),
            TakeSeat("Bob"),
            OpenRound(HOST, STANDARD, "house", 1000, 1000),
            StartShuffle(HOST),
            Deal(HOST, 2),
            CloseRound(HOST),
            TakeSeat("Cy"),
        ):
            await service.call(resident, wish)
    return resident.table_id


def test_a_schema_is_made_when_told_to_and_then_every_command_works(
    ask: Ask, url: str, key: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DEALER_DATABASE_URL", url)
    old = ask("tables")
    assert old.code == 1
    assert "is empty; run `dealer migrate" in old.err
    assert ask("migrate").out == f"The schema was empty and is now {revisions()[-1]}.\n"
    assert "nothing was to be done" in ask("migrate").out
    table = asyncio.run(_play(url, key))
    (listed,) = [json.loads(line) for line in ask("tables", "--json").lines]
    assert (listed["table"], listed["name"], listed["seated"]) == (table, "On a server", 3)
    assert ask("log", table[:8]).lines[-1].split()[3] == "SeatTaken"
    cut_short = ask("export", table[:8], "-o", tmp_path / "cut.jsonl")
    assert "its key was not named with --house-key" in cut_short.err
    monkeypatch.setenv("DEALER_HOUSE_KEY_FILE", str(key))
    whole = ask("export", table[:8], "-o", tmp_path / "whole.jsonl")
    assert "ends at version" not in whole.err
    assert ask("verify", tmp_path / "whole.jsonl").code == 0
    assert "51" in ask("audit", table).out
    assert "0 rows differed" in ask("rebuild").out
    asked(url, "UPDATE swaps SET card_i = 'none' WHERE step = 3")
    meddled = json.loads(ask("rebuild", "--json").out)
    assert meddled["different"] == 2
    assert meddled["differences"][0]["row"][0] == table
    assert ask("rebuild").code == 0


def test_a_demonstration_may_use_it(ask: Ask, url: str, key: Path) -> None:
    ask("migrate", "--database", url)
    without = ask("demo", "--database", url)
    assert without.code == 2
    assert "--house-key" in without.err
    answer = ask("demo", "--database", url, "--house-key", key)
    assert answer.code == 0
    assert "rebuild: yes" in answer.out


def test_a_house_says_what_it_lacks_and_shows_no_password(
    serve: object, url: str, key: Path
) -> None:
    secret = url.replace("//dealer@", "//dealer:s3cret@")

    def ended(*arguments: object) -> tuple[int, str]:
        ports = ("--port", 0, "--ops-port", 0)
        found: Serving = serve("--database", secret, *ports, *arguments)  # type: ignore[operator]
        answer = found.ended()
        assert "s3cret" not in answer.out + answer.err
        return answer.code, answer.err

    code, said = ended()
    assert code == 2
    assert "--house-key" in said
    code, said = ended("--house-key", key)
    assert code == 1
    assert "run `dealer migrate" in said


def test_two_houses_share_a_database_and_need_one_key(
    serve: object, ask: Ask, url: str, key: Path, tmp_path: Path
) -> None:
    ask("migrate", "--database", url)
    common = ("--database", url, "--port", 0, "--ops-port", 0, "--house-key")
    houses = [serve(*common, key) for _ in range(2)]  # type: ignore[operator]
    assert len({house.address for house in houses}) == 2
    stranger = serve(*common, tmp_path / "another.key").ended()  # type: ignore[operator]
    assert stranger.code == 1
    assert "house key" in stranger.err
    for house in houses:
        assert house.end().code == 0
