"""Addresses of SQLite databases: the file that is opened is the one that was named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dealer.analysis.open_log import open_log
from dealer.errors import ConfigurationError
from dealer.eventlog import Log
from dealer.eventlog.address import database_file, sqlite_address
from dealer.service.build import open_service


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("sqlite:///dealer.db", "dealer.db"),
        ("sqlite:////data/dealer.db", "/data/dealer.db"),
        ("sqlite:///q%3Fx.db", "q?x.db"),
        ("sqlite:///q%3fx.db", "q?x.db"),
        ("sqlite:///a%23b.db", "a#b.db"),
        ("sqlite:///100%25.db", "100%.db"),
        ("sqlite:///%2541.db", "%41.db"),
        ("sqlite:///a%20b.db", "a b.db"),
        ("sqlite:///a b.db", "a b.db"),
        ("sqlite:///a+b&c=d.db", "a+b&c=d.db"),
        ("sqlite:///ada@db:1.db", "ada@db:1.db"),
        ("sqlite:///é%C3%A9.db", "éé.db"),
        ("sqlite+aiosqlite:///x.db", "x.db"),
        ("dealer.db", "dealer.db"),
        ("./my games/100%2541?#é.db", "my games/100%2541?#é.db"),
        ("/data/a@b.db", "/data/a@b.db"),
    ],
)
def test_the_path_is_decoded(url: str, file: str) -> None:
    assert database_file(url) == Path(file)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("sqlite:///q?x.db", "no parameters: write [?] as %3F"),
        ("sqlite:///x.db?mode=ro", "no parameters: write [?] as %3F"),
        ("sqlite:///x.db?", "write [?] as %3F"),
        ("sqlite:///a#b.db", "write # as %23"),
        ("sqlite:///100%.db", "write % as %25"),
        ("sqlite:///100%zz.db", "write % as %25"),
        ("sqlite:///100%2", "write % as %25"),
        ("sqlite:///x%00.db", "control character"),
        ("sqlite:///x.db\n", "control character"),
        ("sqlite://var/lib/dealer.db", "three slashes"),
        ("sqlite://dealer.db", "three slashes"),
        ("sqlite://", "a file of its own"),
        ("sqlite:///", "a file of its own"),
        ("sqlite:///:memory:", "a file of its own"),
        ("sqlite:///%3Amemory:", "a file of its own"),
        ("sqlite:///file:x.db", "a file of its own"),
        ("sqlite:x.db", "a URL or a path: write it like sqlite:///dealer.db"),
        ("postgresql:/dealer", "a URL or a path"),
        ("dealer:secret@db/dealer", "a URL or a path"),
        (":memory:", "a file of its own"),
        ("dealer\n.db", "control character"),
        ("mysql://h/x", "SQLite or PostgreSQL"),
    ],
)
def test_what_may_name_another_file_is_refused(url: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        database_file(url)


def test_a_folder_is_refused_with_an_address_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "100%"
    folder.mkdir()
    with pytest.raises(ConfigurationError, match="is a folder") as raised:
        database_file(sqlite_address(folder))
    _, _, advice = str(raised.value).partition("like ")
    assert database_file(advice.removesuffix(".")) == folder / "dealer.db"


@pytest.mark.parametrize("given", ["q?x.db", "a#b.db", "100%41.db", "a b.db", "é.db", b"\xff.db"])
async def test_a_house_is_in_the_file_that_was_named(tmp_path: Path, given: str | bytes) -> None:
    file = tmp_path / os.fsdecode(given)
    url = sqlite_address(file)
    assert url.isascii()
    assert database_file(url) == file
    async with open_service(url) as service:
        live_table, _ = await service.open_table({})
    made = os.listdir(tmp_path)
    assert {file.name, f"{file.name}.key"} <= set(made)
    assert all(name.startswith(file.name) for name in made)
    async with await Log.open(url) as log:
        assert await log.head(live_table.id) is not None
    with open_log(file) as log:
        assert [each.table for each in log.tables()] == [live_table.table_id]
