"""The key on its hook: made once, kept private, and never mistaken for another's."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import pytest

from dealer.errors import HouseKeyError
from dealer.eventlog import HouseKeys, key_file, open_house
from dealer.eventlog.house import make, next_file, read_keys, require_database
from tests.eventlog.conftest import SqliteHouse

FRESH, OTHER = b"f" * 32, b"o" * 32


@pytest.fixture
def place(file_place: SqliteHouse) -> SqliteHouse:
    return file_place


async def test_on_the_first_day_a_key_is_made_for_its_owner_alone(place: SqliteHouse) -> None:
    file = key_file(place.url)
    assert file == place.file.with_name("log.db.key")
    async with await place.open() as log:
        house = await open_house(log, file, fresh=FRESH)
        assert file.read_bytes() == FRESH
        assert file.stat().st_mode & 0o777 == 0o600
        assert await log.house("key") == house.check == HouseKeys(FRESH).check
        assert [each.name for each in file.parent.glob("*.key*")] == [file.name]
        again = await open_house(log, file, fresh=OTHER)
        assert again.signing_seed == house.signing_seed
    assert FRESH not in place.file.read_bytes()


async def test_two_at_once_have_the_same_key(place: SqliteHouse) -> None:
    file = key_file(place.url)
    async with await place.open() as log, await place.open() as second:
        houses = await asyncio.gather(
            open_house(log, file, fresh=FRESH), open_house(second, file, fresh=OTHER)
        )
    assert houses[0].check == houses[1].check


def test_a_key_that_is_being_made_is_none_yet(
    place: SqliteHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = key_file(place.url)
    make(file, FRESH)
    found: list[int] = []
    link = os.link

    def linking(draft: str, name: Path) -> None:
        found.append(len(read_keys(file)))
        link(draft, name)

    monkeypatch.setattr(os, "link", linking)
    # Eight characters, which may all be hex digits.
    monkeypatch.setattr(tempfile, "_get_candidate_names", lambda: iter(["0123abcd"]))
    make(next_file(file), OTHER)
    assert found == [1]
    assert len(read_keys(file)) == 2


async def test_a_key_that_is_there_before_the_database_is_used(place: SqliteHouse) -> None:
    file = key_file(place.url)
    file.write_bytes(OTHER)
    file.chmod(0o600)
    async with await place.open() as log:
        assert (await open_house(log, file, fresh=FRESH)).check == HouseKeys(OTHER).check


@pytest.mark.parametrize("fault", ["missing", "another", "short", "open", "unreadable"])
async def test_a_key_that_does_not_serve_is_named_with_what_it_means(
    place: SqliteHouse, fault: str
) -> None:
    file = key_file(place.url)
    async with await place.open() as log:
        await open_house(log, file, fresh=FRESH)
        if fault == "missing":
            file.unlink()
        elif fault == "open":
            file.chmod(0o640)
        elif fault == "unreadable":
            file.unlink()
            file.mkdir()
        else:
            file.write_bytes(OTHER if fault == "another" else FRESH[:31])
        with pytest.raises(HouseKeyError, match=file.name) as told:
            await open_house(log, file, fresh=OTHER)
        expected = {
            "missing": "put the file back from a backup",
            "another": "another house's",
            "short": "31 bytes",
            "open": "chmod 600",
            "unreadable": "cannot be read",
        }
        assert expected[fault] in str(told.value)
        if fault in ("missing", "another", "short"):
            assert "rounds in play cannot go on" in str(told.value)
        assert not (fault == "missing" and file.exists()), "a new key was made over the old log"


async def test_a_folder_that_takes_no_key_is_told(place: SqliteHouse) -> None:
    async with await place.open() as log:
        with pytest.raises(HouseKeyError, match="cannot be made"):
            await open_house(log, place.file.parent / "nowhere" / "key", fresh=FRESH)
        with pytest.raises(ValueError, match="32 bytes"):
            await open_house(log, key_file(place.url), fresh=b"short")
    assert list(place.file.parent.glob("*.key*")) == []


async def test_a_key_without_its_database_is_refused(tmp_path: Path) -> None:
    house = SqliteHouse(tmp_path / "log.db")
    file = key_file(house.url)
    require_database(house.url, file)  # the first day: neither is there
    file.write_bytes(FRESH)
    with pytest.raises(HouseKeyError, match=r"its database .*log\.db is missing") as told:
        require_database(house.url, file)
    assert "move the key elsewhere" in str(told.value)
    assert "dealer migrate" in str(told.value)
    async with await house.open():
        require_database(house.url, file)
    require_database("postgresql://server/dealer", file)
