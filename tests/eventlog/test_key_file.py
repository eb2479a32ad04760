"""Key file: it is created once, private, and must be the key of its database."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dealer.errors import HouseKeyError
from dealer.eventlog import HouseKeys, key_file, load_house_keys
from dealer.eventlog.keys import make, next_file, read_keys, require_database
from tests.eventlog.conftest import TemporarySqlite

FRESH, OTHER = b"f" * 32, b"o" * 32


@pytest.fixture
def database(sqlite_database: TemporarySqlite) -> TemporarySqlite:
    return sqlite_database


async def test_a_new_key_is_accessible_to_its_owner_only(database: TemporarySqlite) -> None:
    file = key_file(database.url)
    assert file == database.file.with_name("log.db.key")
    async with await database.open() as log:
        keys = await load_house_keys(log, file, fresh=FRESH)
        assert file.read_bytes() == FRESH
        assert file.stat().st_mode & 0o777 == 0o600
        assert await log.metadata("key") == keys.check == HouseKeys(FRESH).check
        assert [each.name for each in file.parent.glob("*.key*")] == [file.name]
        again = await load_house_keys(log, file, fresh=OTHER)
        assert again.signing_seed == keys.signing_seed
    assert FRESH not in database.file.read_bytes()


async def test_two_processes_that_create_a_key_at_once_have_the_same_one(
    database: TemporarySqlite,
) -> None:
    file = key_file(database.url)
    async with await database.open() as log, await database.open() as second:
        both = await asyncio.gather(
            load_house_keys(log, file, fresh=FRESH), load_house_keys(second, file, fresh=OTHER)
        )
    assert both[0].check == both[1].check


def test_a_key_that_is_being_written_is_not_read(
    database: TemporarySqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = key_file(database.url)
    make(file, FRESH)
    counts: list[int] = []
    link = os.link

    def count_and_link(draft: str, name: Path) -> None:
        counts.append(len(read_keys(file)))
        link(draft, name)

    monkeypatch.setattr(os, "link", count_and_link)
    # Eight characters, which may all be hex digits.
    monkeypatch.setattr(tempfile, "_get_candidate_names", lambda: iter(["0123abcd"]))
    make(next_file(file), OTHER)
    assert counts == [1]
    assert len(read_keys(file)) == 2


async def test_a_key_that_exists_before_its_database_is_used(database: TemporarySqlite) -> None:
    file = key_file(database.url)
    file.write_bytes(OTHER)
    file.chmod(0o600)
    async with await database.open() as log:
        assert (await load_house_keys(log, file, fresh=FRESH)).check == HouseKeys(OTHER).check


async def test_a_folder_that_cannot_be_listed_is_named(
    database: TemporarySqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = key_file(database.url)
    async with await database.open() as log:
        await load_house_keys(log, file, fresh=FRESH)

        def refuse(folder: Path) -> Iterator[Path]:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "iterdir", refuse)
        with pytest.raises(HouseKeyError, match=r"cannot be listed .*Permission denied"):
            await load_house_keys(log, file, fresh=OTHER)


@pytest.mark.parametrize("fault", ["missing", "another", "short", "open", "unreadable"])
async def test_an_unusable_key_is_refused_with_its_file_and_the_reason(
    database: TemporarySqlite, fault: str
) -> None:
    file = key_file(database.url)
    async with await database.open() as log:
        await load_house_keys(log, file, fresh=FRESH)
        if fault == "missing":
            file.unlink()
        elif fault == "open":
            file.chmod(0o640)
        elif fault == "unreadable":
            file.unlink()
            file.mkdir()
        else:
            file.write_bytes(OTHER if fault == "another" else FRESH[:31])
        with pytest.raises(HouseKeyError, match=file.name) as raised:
            await load_house_keys(log, file, fresh=OTHER)
        expected = {
            "missing": "restore the file from a backup",
            "another": "another house's",
            "short": "31 bytes",
            "open": "chmod 600",
            "unreadable": "cannot be read",
        }
        assert expected[fault] in str(raised.value)
        if fault in ("missing", "another", "short"):
            assert "open rounds cannot continue" in str(raised.value)
        assert not (fault == "missing" and file.exists()), "a new key was created for the old log"


async def test_a_key_that_cannot_be_created_is_an_error(database: TemporarySqlite) -> None:
    async with await database.open() as log:
        with pytest.raises(HouseKeyError, match="cannot be created"):
            await load_house_keys(log, database.file.parent / "nowhere" / "key", fresh=FRESH)
        with pytest.raises(ValueError, match="32 bytes"):
            await load_house_keys(log, key_file(database.url), fresh=b"short")
    assert list(database.file.parent.glob("*.key*")) == []


async def test_a_key_without_its_database_is_refused(tmp_path: Path) -> None:
    database = TemporarySqlite(tmp_path / "log.db")
    file = key_file(database.url)
    require_database(database.url, file)  # neither of them exists yet
    file.write_bytes(FRESH)
    with pytest.raises(HouseKeyError, match=r"its database .*log\.db is missing") as raised:
        require_database(database.url, file)
    assert "first move the key elsewhere" in str(raised.value)
    assert "dealer migrate" in str(raised.value)
    async with await database.open():
        require_database(database.url, file)
    require_database("postgresql://server/dealer", file)
