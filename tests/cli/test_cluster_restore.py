"""A cluster is restored to one moment by base backups and archived logs, as OPERATING.md says."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from dealer.game.commands import Actor, CloseTable, Draw
from dealer.service.build import open_service
from dealer.service.service import Service
from tests.harness.cluster import Cluster, execute, own_cluster
from tests.harness.postgres import OwnServer
from tests.service.tables import shuffled_table

from .conftest import HOST, Ask

pytestmark = pytest.mark.slow

DOCUMENT = (Path(__file__).parents[2] / "dealer/cli/OPERATING.md").read_text(encoding="utf-8")
SECTION = DOCUMENT.partition("\n### A cluster\n")[2].partition("\n## ")[0]

ARCHIVE = "../archive"  # of each server, next to its data
ARCHIVING = (
    "archive_mode=on",
    f"archive_command=mkdir -p {ARCHIVE} && cp %p {ARCHIVE}/%f",
)
RECOVERY = f"""
restore_command = 'cp {ARCHIVE}/%f %p'
recovery_target_name = 'monday'
recovery_target_action = 'promote'
"""
VERSIONS = "SELECT encode(id, 'hex'), version FROM stream ORDER BY id"


@pytest.mark.timeout(180)
def test_a_cluster_is_restored_to_one_moment(ask: Ask, tmp_path: Path) -> None:
    with own_cluster(safe=True, settings=ARCHIVING) as cluster:
        name = cluster.database()
        url, key = cluster.url(name), tmp_path / "house.key"
        closed, played = asyncio.run(_play(url, key))
        for server in cluster.servers:
            server.back_up(server.folder / "base")
        asyncio.run(_play(url, key))
        before = cluster.ask(name, VERSIONS)
        (block,) = re.findall(r"```sql\n(.*?)```", SECTION, re.DOTALL)
        for statement in re.findall(r"SELECT [^;]*", block):
            execute(url, statement)
        asyncio.run(_draw(url, key, played))
        assert cluster.ask(name, VERSIONS) != before
        _restore(cluster)
        assert cluster.ask(name, VERSIONS) == before
        assert cluster.ask(name, "SELECT recover_prepared_transactions()") == [(0,)]
        assert asyncio.run(_play_on(url, key, played))
        at = ("--database", url, "--house-key", key)
        assert ask("audit", closed, *at).code == 0
        assert ask("rebuild", *at).code == 0


async def _play(url: str, key: Path) -> tuple[str, str]:
    """A closed table and an open one of several that are played, at all workers."""
    async with open_service(url, house_key=key) as service:
        tables = [await shuffled_table(service) for _ in range(8)]
        for table in tables[:4]:
            await service.execute(table, CloseTable(HOST))
        return tables[0].table_id, tables[-1].table_id


async def _draw(url: str, key: Path, table: str) -> None:
    async with open_service(url, house_key=key) as service:
        await service.execute(await service.lifecycle.load(table), Draw(Actor(seat=1)))
        await _new_table(service)


async def _play_on(url: str, key: Path, table: str) -> bool:
    """Play at a new table; whether this one, which was open, is closed."""
    async with open_service(url, house_key=key) as service:
        await _new_table(service)
        return bool((await service.lifecycle.load(table)).table.closed)


async def _new_table(service: Service) -> None:
    await service.execute(await shuffled_table(service), Draw(Actor(seat=1)))


def _restore(cluster: Cluster) -> None:
    names = ("recovery.signal", *re.findall(r"^\w+", RECOVERY, re.MULTILINE))
    assert [name for name in names if name not in SECTION] == []
    cluster.stop("immediate")  # what is not archived is lost
    for server in cluster.workers:
        _put_back(server)
        server.start()
    _put_back(cluster)
    OwnServer.start(cluster)


def _put_back(server: OwnServer) -> None:
    shutil.rmtree(server.folder / "data")
    (server.folder / "base").rename(server.folder / "data")
    (server.folder / "data" / "recovery.signal").touch()
    with (server.folder / "data" / "postgresql.auto.conf").open("a") as settings:
        settings.write(RECOVERY)
