"""Every command says the same of a database that Citus distributes only in part, and fails."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from dealer.cli.main import app
from dealer.eventlog.backends import migrate_database
from tests.harness.cluster import Cluster, execute, own_cluster

from .conftest import Ask, play_and_open
from .test_shared_options import commands

LINES = {
    "audit": "TABLE",
    "backup": "FOLDER",
    "demo": "",
    "export": "TABLE --output FOLDER/x.jsonl",
    "history": "TABLE",
    "journal": "",
    "key add": "shop --may read",
    "key list": "",
    "key revoke": "shop --why x",
    "lab table": "--all",
    "migrate": "",
    "rebuild": "",
    "restore": "FOLDER",
    "rotate-key": "--why x",
    "serve": "--port 0 --ops-port 0",
    "state": "TABLE",
    "tables": "",
    "tables archive": "--to FOLDER --older-than 0m",
    "tables close": "--idle 0m --why x",
    "tables disable": "--house --why x",
    "tables enable": "--house",
    "webhook add": "https://example.org/ --key shop",
    "webhook enable": "1",
    "webhook list": "",
    "webhook remove": "1",
    "webhook replay": "1 --from 0",
}
"""Arguments of each command with --database, but of `config`, which opens none."""

DUMP = b"PGDMP"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with own_cluster() as found:
        yield found


@pytest.fixture(scope="module")
def house(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, str]:
    """A played database of which one SQL table is distributed, its house key, and a table."""
    url = cluster.url(cluster.empty())
    key = tmp_path_factory.mktemp("house") / "key"
    asyncio.run(migrate_database(url))
    closed, _ = asyncio.run(play_and_open(url, key))
    execute(url, "SELECT create_distributed_table('stream', 'id')")
    return url, key, closed


def test_each_command_is_here() -> None:
    taking = {name for name, options in commands(app) if "--database" in options}
    assert taking | {"tables"} == LINES.keys() | {"config"}


@pytest.mark.parametrize("command", LINES)
def test_a_database_that_is_distributed_in_part_is_refused(
    ask: Ask, house: tuple[str, Path, str], tmp_path: Path, command: str
) -> None:
    url, key, table = house
    (tmp_path / "dealer.dump").write_bytes(DUMP)
    if command == "restore":
        (tmp_path / "SHA256SUMS").write_text(f"{sha256(DUMP).hexdigest()}  dealer.dump\n")
    arguments = LINES[command].replace("FOLDER", str(tmp_path)).replace("TABLE", table).split()
    with_key = ["--house-key", key] if "--house-key" in _options(command) else []
    answer = ask(*command.split(), *arguments, "--database", url, *with_key)
    assert answer.code in (1, 2)
    assert answer.out == ""
    assert "is distributed in part: not archived, checkpoint" in answer.err
    assert "run `dealer migrate --shards N`" in answer.err


def _options(command: str) -> set[str]:
    return dict(commands(app)).get(command, set())
