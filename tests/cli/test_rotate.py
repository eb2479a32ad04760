"""A new key for new tables, the old one for those that began under it, whatever breaks off when."""

from __future__ import annotations

import asyncio
import json
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dealer.cli.archive import archive_tables
from dealer.cli.rotate import retire_keys
from dealer.errors import Disabled, HouseKeyError
from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, CloseRound, CloseTable, Draw, OpenRound, StartShuffle
from dealer.proof.verify import verify
from dealer.service import Resident, Service
from dealer.service.closures import EVERY
from dealer.service.office import read_journal
from dealer.service.opening import open_service

from .conftest import Ask, Played

HOST = Actor(host=True)
ROOT = Path(__file__).parents[2]
POINTS = ("made", "kept", "known", "hung")
CMD = "0123456789abcdef0123456789"


async def bundle(service: Service, resident: Resident) -> bytes:
    return "\n".join([line async for line in service.bundle(resident)]).encode()


async def play_on(service: Service, table: str) -> bytes:
    """The open round of the table goes on to its end; the key it is proved under."""
    resident = await service.load(table)
    key = resident.table.key
    await service.call(resident, Draw(Actor(seat=1, since=resident.table.seats[1].since), 1))
    await service.call(resident, CloseRound(HOST))
    report = verify((await bundle(service, resident)).split(b"\n"), key=key)
    assert report.ok, report.fault
    return key


async def play_anew(service: Service) -> bytes:
    resident, _ = await service.open_table({"name": "new"})
    await service.call(resident, OpenRound(HOST, STANDARD, "house", 1000, 1000))
    await service.call(resident, StartShuffle(HOST))
    await service.call(resident, CloseRound(HOST))
    await service.call(resident, CloseTable(HOST))
    report = verify((await bundle(service, resident)).split(b"\n"), key=resident.table.key)
    assert report.ok, report.fault
    return resident.table.key


async def play_both(played: Played) -> tuple[bytes, bytes]:
    async with open_service(played.url, house="house.example") as service:
        return await play_on(service, played.open), await play_anew(service)


def test_a_rotation_without_a_reason_is_none(ask: Ask, played: Played) -> None:
    answer = ask("rotate-key", "--database", played.url)
    assert answer.code == 2
    assert "--why" in answer.err
    assert [one.name for one in played.folder.glob("*.key*")] == ["dealer.db.key"]


def test_new_tables_have_the_new_key_and_old_ones_theirs(ask: Ask, played: Played) -> None:
    before = (played.folder / "dealer.db.key").read_bytes()
    answer = ask("rotate-key", "--database", played.url, "--why", "yearly", "--operator", "Zoe")
    assert answer.code == 0, answer.err
    (old,) = played.folder.glob("dealer.db.key.*")
    assert old.read_bytes() == before
    assert (played.folder / "dealer.db.key").read_bytes() != before
    for file in played.folder.glob("dealer.db.key*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    under, anew = asyncio.run(play_both(played))
    assert under.hex() == played.key
    assert anew != under
    told = json.loads(ask("journal", "--database", played.url, "--json").lines[0])
    assert (told["what"], told["why"], told["who"]) == ("rotate-key", "yearly", "Zoe")
    assert before.hex() not in str(told)


def test_the_books_are_read_under_either_key(ask: Ask, played: Played) -> None:
    ask("rotate-key", "--why", "x", "--database", played.url)
    for table in (played.closed, played.open):
        assert ask("audit", table, "--database", played.url).code == 0


def test_tokens_and_commands_of_before_still_count(ask: Ask, played: Played) -> None:
    async def before() -> tuple[str, str]:
        async with open_service(played.url) as service:
            resident, _ = await service.open_table({}, cmd=CMD, content=b"open")
            tokens = service.tokens_of(resident.table.key)
            return resident.table_id, tokens.host(resident.id)

    async def after(table: str, token: str) -> None:
        async with open_service(played.url) as service:
            resident, _ = await service.open_table({}, cmd=CMD, content=b"open")
            assert resident.table_id == table
            tokens = service.tokens_of(resident.table.key)
            assert tokens.actor(resident.id, resident.table, token) == HOST

    told = asyncio.run(before())
    ask("rotate-key", "--why", "x", "--database", played.url)
    asyncio.run(after(*told))


def test_an_open_house_finds_a_key_that_was_made_after_it_opened(ask: Ask, played: Played) -> None:
    async def beside() -> None:
        async with open_service(played.url, house="house.example") as one:
            first = await play_anew(one)
            await asyncio.to_thread(_rotate, played)
            async with open_service(played.url, house="house.example") as other:
                resident, _ = await other.open_table({"name": "new"})
                assert resident.table.key != first
                there = await one.load(resident.table_id)
                await one.call(there, CloseTable(HOST))
                lines = (await bundle(one, there)).split(b"\n")
            assert verify(lines, key=resident.table.key).ok

    asyncio.run(beside())


def _rotate(played: Played) -> None:
    from dealer.cli.rotate import rotate

    asyncio.run(rotate(played.url, "", "test"))


def test_a_house_that_runs_on_opens_no_table_under_the_old_key(
    played: Played, caplog: pytest.LogCaptureFixture
) -> None:
    async def running() -> None:
        async with open_service(played.url, house="house.example") as service:
            await asyncio.to_thread(_rotate, played)
            for _ in range(2):
                await service.closures.look(service.log)
            with pytest.raises(Disabled, match="until it is restarted"):
                await service.open_table({})
            assert (await play_on(service, played.open)).hex() == played.key

    asyncio.run(running())
    said = [one.getMessage() for one in caplog.records if one.name == "dealer.service.closures"]
    assert said == ["restart to use the new key"]
    asyncio.run(_anew(played))


def test_a_key_that_a_table_begins_under_meanwhile_is_kept(played: Played) -> None:
    waited: list[float] = []
    (played.folder / "archive").mkdir()

    async def retire() -> list[str]:
        async with open_service(played.url, house="house.example") as one:
            await one.call(await one.load(played.open), CloseTable(HOST))
            await asyncio.to_thread(_rotate, played)
            one.closures.check = b""  # as if it had not looked yet

            async def begin(seconds: float) -> None:
                waited.append(seconds)
                await one.open_table({})

            put_away = archive_tables(played.url, played.folder / "archive", None, 0, "", "test")
            assert await put_away == (2, [])
            gone, kept = await retire_keys(played.url, "", "test", wait=begin)
            assert gone == []
            told = [(line.what, line.target) for line in await read_journal(one.log, limit=2)]
            assert told == [("keep-key", "key"), ("retire-key", "key")]
            return kept

    (kept,) = map(Path, asyncio.run(retire()))
    assert waited[0] > 2 * EVERY
    kept.unlink()
    with pytest.raises(HouseKeyError, match="missing"):
        asyncio.run(_anew(played))


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_point_every_table_goes_on(ask: Ask, played: Played, point: str) -> None:
    first = (played.folder / "dealer.db.key").read_bytes()
    died = subprocess.run(
        [sys.executable, "-m", "tests.cli.dies", "rotate", played.url, "-", "-", point],
        cwd=ROOT,
        timeout=120,
        capture_output=True,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    under, anew = asyncio.run(play_both(played))
    assert under.hex() == played.key
    assert (anew != under) == (point in ("known", "hung"))
    again = ask("rotate-key", "--why", "again", "--database", played.url)
    assert again.code == 0, again.err
    assert ("finished" in again.out) == (point == "known")
    keys = {file.read_bytes() for file in played.folder.glob("dealer.db.key*")}
    assert first in keys
    assert len(keys) == (3 if point == "hung" else 2)
    assert not (played.folder / "dealer.db.key.new").exists()
    assert asyncio.run(_anew(played)) != under


async def _anew(played: Played) -> bytes:
    async with open_service(played.url) as service:
        return await play_anew(service)


def test_an_old_key_goes_when_its_last_table_is_archived(
    ask: Ask, played: Played, tmp_path: Path
) -> None:
    ask("rotate-key", "--why", "x", "--database", played.url)
    (old,) = played.folder.glob("dealer.db.key.*")
    assert "still has tables" in ask("rotate-key", "--retire", "--database", played.url).out
    assert old.exists()

    async def close() -> None:
        async with open_service(played.url, house="house.example") as service:
            await service.call(await service.load(played.open), CloseTable(HOST))

    asyncio.run(close())
    folder = tmp_path / "archive"
    folder.mkdir()
    ask("archive", "--older-than", "0m", "--to", folder, "--database", played.url)
    assert f"{old} is deleted" in ask("rotate-key", "--retire", "--database", played.url).out
    assert not old.exists()
    asyncio.run(_anew(played))


def test_a_lost_earlier_key_is_named(ask: Ask, played: Played) -> None:
    ask("rotate-key", "--why", "x", "--database", played.url)
    (old,) = played.folder.glob("dealer.db.key.*")
    old.unlink()
    with pytest.raises(HouseKeyError, match=old.name):
        asyncio.run(_anew(played))
