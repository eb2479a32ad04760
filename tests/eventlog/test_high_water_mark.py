"""High-water mark: the newest committed event, written before the commit is acknowledged."""

from __future__ import annotations

import os
import secrets
from contextlib import closing
from pathlib import Path
from threading import current_thread

import pytest
from msgspec.structs import replace

from dealer.errors import ConfigurationError, DatabaseError
from dealer.eventlog import Append, Conflict, EventRecord
from dealer.eventlog.high_water_mark import (
    FIRST,
    LINE_BYTES,
    HighWaterMark,
    MarkRecord,
    leaf_digest,
    mark_file,
    read_marks,
)
from tests.eventlog.conftest import TemporaryDatabase

LOG = b"\x01" * 8


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return tmp_path / "keys" / "house.key"


@pytest.fixture(autouse=True)
def folder(key: Path) -> None:
    key.parent.mkdir()


def new_mark(key: Path) -> HighWaterMark:
    """A mark of a file that no other process uses, for the first generation of `LOG`."""
    mark = HighWaterMark.take(key, fresh=secrets.token_bytes(16))
    assert mark is not None
    mark.begin(LOG, FIRST)
    return mark


def row(version: int) -> EventRecord:
    return EventRecord(
        version, "NoteAdded", 1, 1000 + version, "{}", command=f"c{version}", digest=b"d"
    )


async def test_each_commit_is_marked_before_it_is_acknowledged(
    database: TemporaryDatabase, key: Path
) -> None:
    table, mark = secrets.token_bytes(16), new_mark(key)
    async with await database.open() as log:
        log.writer.written_listeners.append(mark.wrote)
        for version in range(1, 4):
            await log.append(Append(table, version - 1, [row(version)]))
            expected = MarkRecord(LOG, FIRST, table, version, leaf_digest(table, row(version)))
            assert read_marks(key).records == [expected]
            (stored,) = await log.read(table, after=version - 1)
            assert leaf_digest(table, stored) == expected.leaf
    mark.close()


async def test_appends_that_are_not_written_are_not_marked(
    database: TemporaryDatabase, key: Path
) -> None:
    table, mark = secrets.token_bytes(16), new_mark(key)
    async with await database.open() as log:
        log.writer.written_listeners.append(mark.wrote)
        assert isinstance(await log.append(Append(table, 7, [row(8)])), Conflict)
        assert read_marks(key).records == []
        await log.append(Append(table, 0, [row(1)]))
        await log.append(Append(table, 0, [row(1)]))  # known
        with pytest.raises(DatabaseError):
            await log.append(Append(table, 1, [replace(row(2), public=None)]))
        (line,) = read_marks(key).records
        assert line.version == 1
    mark.close()


async def test_the_mark_is_written_on_the_thread_that_commits(
    database: TemporaryDatabase, key: Path
) -> None:
    threads: list[str] = []
    async with await database.open() as log:
        log.writer.written_listeners.append(
            lambda requests, results: threads.append(current_thread().name)
        )
        await log.append(Append(secrets.token_bytes(16), 0, [row(1)]))
        if database.commit == "thread":
            assert threads == ["log writer"]
        else:
            while threads[-1] != "MainThread":  # the thread may not be idle yet
                await log.append(Append(secrets.token_bytes(16), 0, [row(1)]))


def test_each_process_has_its_own_file_and_takes_over_that_of_a_dead_one(key: Path) -> None:
    one, two = new_mark(key), new_mark(key)
    assert (one.file, two.file) == (mark_file(key, 0), mark_file(key, 1))
    assert one.file.name == "house.mark.0"
    assert one.file.stat().st_mode & 0o777 == 0o600
    one.saw(b"t" * 16, 3, "leaf", at=5)
    one.close()
    three = new_mark(key)
    assert three.file == one.file
    assert [line.version for line in read_marks(key).records] == [3]
    for mark in (two, three):
        mark.close()


def test_a_folder_has_one_id_for_each_key(key: Path, tmp_path: Path) -> None:
    one, two = new_mark(key), new_mark(key)
    other = HighWaterMark.take(key.with_name("other.key"), fresh=secrets.token_bytes(16))
    elsewhere = HighWaterMark.take(key, folder=tmp_path, fresh=secrets.token_bytes(16))
    assert other is not None
    assert elsewhere is not None
    assert one.folder == two.folder
    assert len({one.folder, other.folder, elsewhere.folder}) == 3
    for mark in (one, two, other, elsewhere):
        mark.close()
    again = new_mark(key)
    assert again.folder == one.folder
    again.close()
    key.with_name("house.mark.id").write_bytes(bytes(16))  # after a power cut
    again = new_mark(key)
    assert again.folder != bytes(16).hex()
    again.close()


def test_an_older_event_does_not_replace_a_newer_one(key: Path) -> None:
    mark = new_mark(key)
    for table, at, old, version in (
        (b"a", 500, False, 9),
        (b"b", 400, True, 9),
        (b"c", 600, True, 4),
    ):
        mark.saw(table * 16, version, "leaf", at=at, old=old)
        (line,) = read_marks(key).records
        assert line.table == (b"c" if at == 600 else b"a") * 16
    mark.saw(b"d" * 16, 1, "leaf", at=1)  # the clock was set back: a new event counts
    assert read_marks(key).records[0].table == b"d" * 16
    mark.close()


def test_a_new_generation_discards_the_earlier_mark(key: Path) -> None:
    mark = new_mark(key)
    mark.saw(b"t" * 16, 3, "leaf", at=5)
    mark.begin(LOG, b"g" * 16)
    assert read_marks(key).records == []
    mark.saw(b"t" * 16, 4, "leaf", at=6)
    assert [line.generation for line in read_marks(key).records] == [b"g" * 16]
    mark.close()


def test_a_mark_may_be_in_another_folder(key: Path, tmp_path: Path) -> None:
    mark = HighWaterMark.take(key, folder=tmp_path, fresh=secrets.token_bytes(16))
    assert mark is not None
    mark.begin(LOG, FIRST)
    mark.saw(b"t" * 16, 3, "leaf", at=5)
    assert read_marks(key).records == []
    assert len(read_marks(key, folder=tmp_path).records) == 1
    mark.close()


def test_there_is_no_mark_in_a_missing_folder(key: Path) -> None:
    assert HighWaterMark.take(key, folder=key / "nowhere", fresh=secrets.token_bytes(16)) is None
    assert read_marks(key, folder=key / "nowhere").records == []


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"\0" * 2 * LINE_BYTES])
def test_a_new_file_after_a_power_cut_counts_as_empty(key: Path, content: bytes) -> None:
    mark_file(key, 0).write_bytes(content)
    assert read_marks(key).records == []
    mark = new_mark(key)
    mark.saw(b"t" * 16, 3, "leaf", at=5)
    assert [line.version for line in read_marks(key).records] == [3]
    mark.close()


@pytest.mark.parametrize("offset", range(0, 240, 7))
def test_a_damaged_mark_is_refused_with_instructions(key: Path, offset: int) -> None:
    mark = new_mark(key)
    mark.saw(b"t" * 16, 3, "leaf", at=5)
    mark.close()
    data = bytearray(mark.file.read_bytes())
    data[LINE_BYTES + offset] ^= 1
    mark.file.write_bytes(bytes(data))
    with pytest.raises(ConfigurationError, match=r"is damaged.*delete the file"):
        read_marks(key)


def test_a_failing_disk_is_logged_once(
    key: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mark = new_mark(key)

    def fail(*_: object) -> int:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fail)
        for version in range(3):
            mark.saw(b"t" * 16, version, "leaf", at=5)
    mark.saw(b"t" * 16, 4, "leaf", at=5)
    assert [record.message for record in caplog.records] == ["high-water mark not written"]
    assert [line.version for line in read_marks(key).records] == [4]
    mark.close()


def test_the_database_in_use_is_kept_by_each_process(key: Path) -> None:
    """A new generation clears the events, and not where they were; a damaged line is refused."""
    with closing(new_mark(key)) as one, closing(new_mark(key)) as two:
        for mark, database in ((one, "7/1/2/00000001"), (two, "7/1/2/00000002")):
            mark.uses("7/1/2/00000000")
            mark.uses(database)
            mark.begin(LOG, FIRST)
        one.begin(LOG, b"g" * 16)
        assert read_marks(key).databases == ["7/1/2/00000001", "7/1/2/00000002"]
        data = bytearray(one.file.read_bytes())
        data[2 * LINE_BYTES + 20] ^= 1
        one.file.write_bytes(bytes(data))
        with pytest.raises(ConfigurationError, match=r"is damaged.*delete the file"):
            read_marks(key)
