"""The mark beside the key: what was committed, put down before anyone is told."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from threading import current_thread

import pytest

from dealer.errors import DatabaseError, SetupError
from dealer.eventlog import Append, Conflict, Row
from dealer.eventlog.mark import FIRST, LINE_BYTES, Line, Mark, leaf_digest, mark_file, read_marks
from tests.eventlog.conftest import House

LOG = b"\x01" * 8


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return tmp_path / "keys" / "house.key"


@pytest.fixture(autouse=True)
def folder(key: Path) -> None:
    key.parent.mkdir()


def taken(key: Path) -> Mark:
    mark = Mark.take(key)
    assert mark is not None
    return mark


def kept(key: Path) -> Mark:
    mark = taken(key)
    mark.begin(LOG, FIRST)
    return mark


def row(version: int) -> Row:
    return Row(version, "NoteAdded", 1, 1000 + version, "{}", command=f"c{version}", digest=b"d")


async def test_each_commit_is_put_down_before_its_answer(place: House, key: Path) -> None:
    table, mark = secrets.token_bytes(16), kept(key)
    async with await place.open() as log:
        log.written = mark.wrote
        for version in range(1, 4):
            await log.append(Append(table, version - 1, [row(version)]))
            expected = Line(LOG, FIRST, table, version, leaf_digest(table, row(version)))
            assert read_marks(key) == [expected]
            (stored,) = await log.read(table, after=version - 1)
            assert leaf_digest(table, stored) == expected.leaf
    mark.close()


async def test_what_was_not_written_is_not_put_down(place: House, key: Path) -> None:
    table, mark = secrets.token_bytes(16), kept(key)
    async with await place.open() as log:
        log.written = mark.wrote
        assert isinstance(await log.append(Append(table, 7, [row(8)])), Conflict)
        assert read_marks(key) == []
        await log.append(Append(table, 0, [row(1)]))
        await log.append(Append(table, 0, [row(1)]))  # known
        with pytest.raises(DatabaseError):
            await log.append(Append(table, 1, [row(2)._replace(public=None)]))  # type: ignore[arg-type]
        (line,) = read_marks(key)
        assert line.version == 1
    mark.close()


async def test_it_is_put_down_on_the_writers_thread(place: House, key: Path) -> None:
    found: list[str] = []
    async with await place.open() as log:
        log.written = lambda requests, results: found.append(current_thread().name)
        await log.append(Append(secrets.token_bytes(16), 0, [row(1)]))
    assert found == ["log writer"]


def test_each_process_has_a_file_of_its_own_and_takes_over_that_of_a_dead_one(key: Path) -> None:
    one, two = kept(key), kept(key)
    assert (one.file, two.file) == (mark_file(key, 0), mark_file(key, 1))
    assert one.file.name == "house.mark.0"
    assert one.file.stat().st_mode & 0o777 == 0o600
    one.saw(b"t" * 16, 3, "leaf", at=5)
    one.close()
    three = kept(key)
    assert three.file == one.file
    assert [line.version for line in read_marks(key)] == [3]
    for mark in (two, three):
        mark.close()


def test_what_was_seen_long_ago_does_not_displace_what_is_new(key: Path) -> None:
    mark = kept(key)
    for table, at, old, version in (
        (b"a", 500, False, 9),
        (b"b", 400, True, 9),
        (b"c", 600, True, 4),
    ):
        mark.saw(table * 16, version, "leaf", at=at, old=old)
        (line,) = read_marks(key)
        assert line.table == (b"c" if at == 600 else b"a") * 16
    mark.saw(b"d" * 16, 1, "leaf", at=1)  # a clock that went back: news is news
    assert read_marks(key)[0].table == b"d" * 16
    mark.close()


def test_a_new_generation_forgets_what_came_before(key: Path) -> None:
    mark = kept(key)
    mark.saw(b"t" * 16, 3, "leaf", at=5)
    mark.begin(LOG, b"g" * 16)
    assert read_marks(key) == []
    mark.saw(b"t" * 16, 4, "leaf", at=6)
    assert [line.generation for line in read_marks(key)] == [b"g" * 16]
    mark.close()


def test_one_in_another_folder(key: Path, tmp_path: Path) -> None:
    mark = Mark.take(key, folder=tmp_path)
    assert mark is not None
    mark.begin(LOG, FIRST)
    mark.saw(b"t" * 16, 3, "leaf", at=5)
    assert read_marks(key) == []
    assert len(read_marks(key, folder=tmp_path)) == 1
    mark.close()


def test_none_can_be_kept_in_a_folder_that_is_not_there(key: Path) -> None:
    assert Mark.take(key, folder=key / "nowhere") is None
    assert read_marks(key, folder=key / "nowhere") == []


@pytest.mark.parametrize("left", [b"", b"\0" * 100, b"\0" * 2 * LINE_BYTES])
def test_what_a_power_cut_left_of_a_new_one_is_empty(key: Path, left: bytes) -> None:
    mark_file(key, 0).write_bytes(left)
    assert read_marks(key) == []
    mark = kept(key)
    mark.saw(b"t" * 16, 3, "leaf", at=5)
    assert [line.version for line in read_marks(key)] == [3]
    mark.close()


@pytest.mark.parametrize("place", range(0, 240, 7))
def test_a_damaged_one_is_refused_with_what_to_do(key: Path, place: int) -> None:
    mark = kept(key)
    mark.saw(b"t" * 16, 3, "leaf", at=5)
    mark.close()
    data = bytearray(mark.file.read_bytes())
    data[LINE_BYTES + place] ^= 1
    mark.file.write_bytes(bytes(data))
    with pytest.raises(SetupError, match=r"is damaged.*delete the file"):
        read_marks(key)


def test_a_disk_that_fails_is_said_once(
    key: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mark = kept(key)

    def failing(*_: object) -> int:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", failing)
        for version in range(3):
            mark.saw(b"t" * 16, version, "leaf", at=5)
    mark.saw(b"t" * 16, 4, "leaf", at=5)
    assert [record.message for record in caplog.records] == ["high-water mark not written"]
    assert [line.version for line in read_marks(key)] == [4]
    mark.close()
