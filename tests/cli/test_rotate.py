"""Key rotation: new tables get the new key, existing ones keep theirs, also after crashes."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dealer.cli.commands.tables import archive_tables
from dealer.errors import Disabled, HouseKeyError
from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, CloseRound, CloseTable, Draw, OpenRound, StartShuffle
from dealer.proof.verify import verify
from dealer.service import IdempotencyKey, LiveTable, Service
from dealer.service.build import open_service
from dealer.service.commands.maintenance import POLL_SECONDS
from dealer.service.identity.admin import read_journal
from dealer.service.operations.key_rotation import retire_keys
from dealer.service.service import ServiceOptions
from dealer.service.tables.execution import ANONYMOUS_SCOPE

from .conftest import Ask, Played

pytestmark = pytest.mark.slow

HOST = Actor(host=True)
ROOT = Path(__file__).parents[2]
DIES_AT = str(ROOT / "tests" / "harness" / "dies_at.py")
POINTS = {
    "the new key is on disk": ("dealer.service.operations.key_rotation:make", "end", "1"),
    "the old key has its second name": (
        "dealer.service.identity.admin:AdminService.add_key",
        "begin",
        "1",
    ),
    "the log has the new key": ("dealer.service.identity.admin:AdminService.add_key", "end", "1"),
    "the new key is in place": ("dealer.service.operations.key_rotation:sync_folder", "end", "2"),
}
"""Points at which the process is killed, as arguments of `tests/harness/dies_at.py`."""
CMD = "0123456789abcdef0123456789"


async def bundle(service: Service, live_table: LiveTable) -> bytes:
    return "\n".join([line async for line in service.bundle(live_table)]).encode()


async def play_on(service: Service, table: str) -> bytes:
    """Play the open round of the table to its end; the key of its checkpoints."""
    live_table = await service.lifecycle.load(table)
    key = live_table.table.key
    await service.execute(
        live_table, Draw(Actor(seat=1, taken_at=live_table.table.seats[1].taken_at), 1)
    )
    await service.execute(live_table, CloseRound(HOST))
    report = verify((await bundle(service, live_table)).split(b"\n"), key=key)
    assert report.ok, report.fault
    return key


async def play_new_table(service: Service) -> bytes:
    live_table, _ = await service.open_table({"name": "new"})
    await service.execute(live_table, OpenRound(HOST, STANDARD, "house", 1000, 1000))
    await service.execute(live_table, StartShuffle(HOST))
    await service.execute(live_table, CloseRound(HOST))
    await service.execute(live_table, CloseTable(HOST))
    report = verify((await bundle(service, live_table)).split(b"\n"), key=live_table.table.key)
    assert report.ok, report.fault
    return live_table.table.key


async def play_both(played: Played) -> tuple[bytes, bytes]:
    async with open_service(played.url, ServiceOptions(house="house.example")) as service:
        return await play_on(service, played.open), await play_new_table(service)


def test_a_rotation_needs_a_reason(ask: Ask, played: Played) -> None:
    answer = ask("rotate-key", "--database", played.url)
    assert answer.code == 2
    assert "--why" in answer.err
    assert [one.name for one in played.folder.glob("*.key*")] == ["dealer.db.key"]


def test_a_link_to_the_key_is_not_replaced(ask: Ask, played: Played, tmp_path: Path) -> None:
    key = played.folder / "dealer.db.key"
    master, real = key.read_bytes(), tmp_path / "secret"
    shutil.move(key, real)
    key.symlink_to(real)
    answer = ask("rotate-key", "--database", played.url, "--why", "yearly")
    assert (answer.code, f"is a link to {real}" in answer.err) == (1, True)
    assert (key.readlink(), real.read_bytes()) == (real, master)
    assert ask("audit", played.closed, "--database", played.url).code == 0


def test_new_tables_have_the_new_key_and_old_ones_keep_theirs(ask: Ask, played: Played) -> None:
    before = (played.folder / "dealer.db.key").read_bytes()
    answer = ask("rotate-key", "--database", played.url, "--why", "yearly", "--operator", "Zoe")
    assert answer.code == 0, answer.err
    (old,) = played.folder.glob("dealer.db.key.*")
    assert old.read_bytes() == before
    assert (played.folder / "dealer.db.key").read_bytes() != before
    for file in played.folder.glob("dealer.db.key*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    old_key, new_key = asyncio.run(play_both(played))
    assert old_key.hex() == played.key
    assert new_key != old_key
    entry = json.loads(ask("journal", "--database", played.url, "--json").lines[0])
    assert (entry["what"], entry["why"], entry["who"]) == ("rotate-key", "yearly", "Zoe")
    assert before.hex() not in str(entry)


def test_tables_under_either_key_are_audited(ask: Ask, played: Played) -> None:
    ask("rotate-key", "--why", "x", "--database", played.url)
    for table in (played.closed, played.open):
        assert ask("audit", table, "--database", played.url).code == 0


def test_earlier_tokens_and_commands_stay_valid(ask: Ask, played: Played) -> None:
    async def before() -> tuple[str, str]:
        async with open_service(played.url) as service:
            live_table, _ = await service.open_table(
                {}, key=IdempotencyKey(ANONYMOUS_SCOPE, CMD, b"open")
            )
            tokens = service.tokens.of(live_table.table.key)
            return live_table.table_id, tokens.host(live_table.id)

    async def after(table: str, token: str) -> None:
        async with open_service(played.url) as service:
            live_table, _ = await service.open_table(
                {}, key=IdempotencyKey(ANONYMOUS_SCOPE, CMD, b"open")
            )
            assert live_table.table_id == table
            tokens = service.tokens.of(live_table.table.key)
            assert tokens.actor(live_table.id, live_table.table, token) == HOST

    opened = asyncio.run(before())
    ask("rotate-key", "--why", "x", "--database", played.url)
    asyncio.run(after(*opened))


def test_a_running_server_finds_a_key_made_after_its_start(ask: Ask, played: Played) -> None:
    async def rotate_while_running() -> None:
        async with open_service(played.url, ServiceOptions(house="house.example")) as one:
            first = await play_new_table(one)
            await asyncio.to_thread(_rotate, played)
            async with open_service(played.url, ServiceOptions(house="house.example")) as other:
                live_table, _ = await other.open_table({"name": "new"})
                assert live_table.table.key != first
                loaded = await one.lifecycle.load(live_table.table_id)
                await one.execute(loaded, CloseTable(HOST))
                lines = (await bundle(one, loaded)).split(b"\n")
            assert verify(lines, key=live_table.table.key).ok

    asyncio.run(rotate_while_running())


def _rotate(played: Played) -> None:
    from dealer.service.operations.key_rotation import rotate

    asyncio.run(rotate(played.url, "", "test"))


def test_a_running_server_takes_the_new_key_once_its_file_is_there(
    played: Played, caplog: pytest.LogCaptureFixture
) -> None:
    """As on another machine, to which the key files are copied."""
    caplog.set_level("INFO", "dealer.service.commands.maintenance")
    key, elsewhere = played.folder / "dealer.db.key", played.folder / "elsewhere"

    async def keep_running() -> None:
        async with open_service(
            played.url, ServiceOptions(house="house.example"), house_key=copied
        ) as service:
            tokens = service.tokens.of(b"")
            await asyncio.to_thread(_rotate, played)
            for _ in range(2):
                await service.maintenance.refresh(service.log)
            with pytest.raises(Disabled, match="copy all key files"):
                await service.open_table({})
            shutil.copy(key, f"{copied}.new")
            await service.maintenance.refresh(service.log)
            live_table, _ = await service.open_table({})
            assert live_table.table.key == service.keys.public_key
            assert live_table.table.key.hex() != played.key
            assert service.tokens.of(b"") is not tokens
            assert (await play_new_table(service)) == service.keys.public_key
            assert (await play_on(service, played.open)).hex() == played.key

    elsewhere.mkdir()
    copied = Path(shutil.copy(key, elsewhere / "key"))
    asyncio.run(keep_running())
    messages = [
        one.getMessage()
        for one in caplog.records
        if one.name == "dealer.service.commands.maintenance"
    ]
    assert messages == ["new key missing", "new key in use"]
    asyncio.run(_play_new_table(played))


def test_a_key_is_kept_if_a_table_is_opened_under_it_during_its_deletion(played: Played) -> None:
    waited: list[float] = []
    (played.folder / "archive").mkdir()

    async def retire() -> list[str]:
        async with open_service(played.url, ServiceOptions(house="house.example")) as one:
            await one.execute(await one.lifecycle.load(played.open), CloseTable(HOST))
            await asyncio.to_thread(_rotate, played)
            one.maintenance._keys = None  # as if it had not polled yet

            async def begin(seconds: float) -> None:
                waited.append(seconds)
                await one.open_table({})

            archiving = archive_tables(played.url, played.folder / "archive", None, 0, "", "test")
            assert await archiving == (2, [])
            gone, kept = await retire_keys(played.url, "", "test", wait=begin)
            assert gone == []
            entries = [(line.what, line.target) for line in await read_journal(one.log, limit=2)]
            assert entries == [("keep-key", "key"), ("retire-key", "key")]
            return kept

    (kept,) = map(Path, asyncio.run(retire()))
    assert waited[0] > 2 * POLL_SECONDS
    assert kept.exists()


@pytest.mark.parametrize("point", POINTS)
def test_all_tables_stay_playable_when_the_process_is_killed(
    ask: Ask, played: Played, point: str
) -> None:
    first = (played.folder / "dealer.db.key").read_bytes()
    command = [sys.executable, DIES_AT, *POINTS[point], "rotate-key", "--why", "x"]
    command += ["--database", played.url]
    died = subprocess.run(command, cwd=ROOT, timeout=120, capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    old_key, new_key = asyncio.run(play_both(played))
    assert old_key.hex() == played.key
    assert (new_key != old_key) == (point in ("the log has the new key", "the new key is in place"))
    again = ask("rotate-key", "--why", "again", "--database", played.url)
    assert again.code == 0, again.err
    assert ("finished" in again.out) == (point == "the log has the new key")
    keys = {file.read_bytes() for file in played.folder.glob("dealer.db.key*")}
    assert first in keys
    assert len(keys) == (3 if point == "the new key is in place" else 2)
    assert not (played.folder / "dealer.db.key.new").exists()
    assert asyncio.run(_play_new_table(played)) != old_key


async def _play_new_table(played: Played) -> bytes:
    async with open_service(played.url) as service:
        return await play_new_table(service)


def test_an_old_key_is_deleted_when_its_last_table_is_archived(
    ask: Ask, played: Played, tmp_path: Path
) -> None:
    ask("rotate-key", "--why", "x", "--database", played.url)
    (old,) = played.folder.glob("dealer.db.key.*")
    assert "still has tables" in ask("rotate-key", "--retire", "--database", played.url).out
    assert old.exists()

    async def close() -> None:
        async with open_service(played.url, ServiceOptions(house="house.example")) as service:
            await service.execute(await service.lifecycle.load(played.open), CloseTable(HOST))

    asyncio.run(close())
    folder = tmp_path / "archive"
    folder.mkdir()
    ask("tables", "archive", "--older-than", "0m", "--to", folder, "--database", played.url)
    assert f"{old} is deleted" in ask("rotate-key", "--retire", "--database", played.url).out
    assert not old.exists()
    asyncio.run(_play_new_table(played))


def test_without_an_earlier_key_only_its_tables_are_unavailable(
    ask: Ask, played: Played, caplog: pytest.LogCaptureFixture
) -> None:
    """Until a start that has the key again."""
    ask("rotate-key", "--why", "x", "--database", played.url)
    (old,) = played.folder.glob("dealer.db.key.*")
    kept = old.rename(played.folder / "kept")

    async def play() -> None:
        async with open_service(played.url, ServiceOptions(house="house.example")) as service:
            await play_new_table(service)
            for restored in (False, True):
                if restored:
                    kept.rename(old)
                with pytest.raises(HouseKeyError, match="restore that file"):
                    await service.lifecycle.load(played.open)

    asyncio.run(play())
    (missing,) = (one for one in caplog.records if one.getMessage() == "house key missing")
    assert old.name in vars(missing)["fields"]["file"]
    asyncio.run(_play_new_table(played))

    async def play_again() -> bytes:
        async with open_service(played.url, ServiceOptions(house="house.example")) as service:
            return await play_on(service, played.open)

    assert asyncio.run(play_again()).hex() == played.key


def test_a_table_without_its_key_that_a_restore_should_close_is_closed_later(
    ask: Ask, played: Played
) -> None:
    """The first start that has the key closes it: the house would sign a second history."""
    ask("rotate-key", "--why", "x", "--database", played.url)
    (old,) = played.folder.glob("dealer.db.key.*")
    database, backup = played.folder / "dealer.db", played.folder / "backup"
    shutil.copy(database, backup)

    async def is_closed() -> bool:
        async with open_service(played.url, ServiceOptions(house="house.example")) as service:
            await play_new_table(service)
            return (await service.lifecycle.load(played.open)).table.closed

    async def play() -> None:
        async with open_service(played.url, ServiceOptions(house="house.example")) as service:
            await play_on(service, played.open)

    asyncio.run(play())
    backup.rename(database)
    kept = old.rename(played.folder / "kept")
    for _ in range(2):
        with pytest.raises(HouseKeyError, match="restore that file"):
            asyncio.run(is_closed())
    kept.rename(old)
    assert asyncio.run(is_closed())


@pytest.mark.parametrize("more", [("--why", "x"), ("--retire",)])
def test_a_house_without_a_key_gets_none_from_a_rotation(
    ask: Ask, tmp_path: Path, more: tuple[str, ...]
) -> None:
    database = f"sqlite:///{tmp_path / 'new.db'}"
    assert ask("migrate", "--database", database).code == 0
    answer = ask("rotate-key", *more, "--database", database)
    assert answer.code == 1
    assert "no key yet; `dealer serve` makes the first" in answer.err
    assert list(tmp_path.glob("new.db.key*")) == []
