"""The commands of MANY_NODES.md that partition the events, on a real PostgreSQL."""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path

import pytest

from dealer.proof.bundle import read
from dealer.proof.verify import verify
from tests.eventlog.conftest import TemporaryPostgres
from tests.harness.cluster import skip_on_cluster
from tests.harness.postgres import Postgres, programs

from .conftest import Ask, play_and_open

DOCUMENT = Path(__file__).parents[2] / "dealer" / "cli" / "MANY_NODES.md"


def commands() -> str:
    """The SQL of the section."""
    section = DOCUMENT.read_text(encoding="utf-8").split("\n## Partitions\n")[1]
    (block,) = re.findall(r"```sql\n(.*?)```", section.split("\n## ")[0], re.DOTALL)
    return str(block)


def test_partitions_keep_every_byte_and_play_goes_on(
    ask: Ask, postgres: Postgres, tmp_path: Path
) -> None:
    skip_on_cluster(postgres, "shards divide the table already")
    database = TemporaryPostgres(postgres)
    key, folder = tmp_path / "house.key", tmp_path / "archive"
    folder.mkdir()
    at = ("--database", database.url)
    before, still_open = asyncio.run(play_and_open(database.url, key))

    def bundle(table: str) -> bytes:
        answer = ask("export", table, "--house-key", key, *at)
        assert answer.code == 0, answer.err
        return answer.out.encode()

    bundles = {table: bundle(table) for table in (before, still_open)}
    rows = database.execute("SELECT count(*) FROM event")
    psql = [f"{programs()}/psql", database.url, "-qX", "-v", "ON_ERROR_STOP=1"]
    subprocess.run(psql, input=commands(), encoding="utf-8", check=True)
    assert database.execute("SELECT count(*) FROM event") == rows
    for view in ("events", "log"):
        assert database.execute(f"SELECT count(*) FROM {view}") == rows
    assert {table: bundle(table) for table in bundles} == bundles
    database.execute("DROP TABLE event_before")

    after, _ = asyncio.run(play_and_open(database.url, key))
    assert verify(read(bundle(after))).ok
    # Four tables may all have the same hash.
    ((parts,),) = database.execute(
        "SELECT count(*) FROM pg_inherits WHERE inhparent = 'event'::regclass"
    )
    assert parts > 1
    partition = database.execute("SELECT tableoid::regclass::text FROM event LIMIT 1")[0][0]
    for name in ("event", partition):
        for statement in ("DELETE FROM {}", "UPDATE {} SET public = ''", "TRUNCATE {}"):
            with pytest.raises(Exception, match="never changed"):
                database.execute(statement.format(name))
    assert ask("rebuild", *at).code == 0
    answer = ask("tables", "archive", before, "--to", folder, *at)
    assert answer.code == 0, answer.err
    assert (folder / f"{before}.jsonl").read_bytes() == bundles[before]
