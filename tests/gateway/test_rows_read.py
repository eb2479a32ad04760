"""No statement reads many more rows than its answer has, whatever the statistics say.

A game with every message is played at a database of many tables. PostgreSQL writes down how it
carried out each statement of the server, with the rows that it read; SQLite says how it would.
Commands that read all tables are left out: rebuild, check, archive, close, rotate-key, tables.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dealer.gateway import Gateway
from dealer.projector.models import MODELS
from dealer.service.build import open_service
from dealer.service.operations.close_tables import AutoClose
from tests.gateway import recorded_game
from tests.gateway.conftest import serving
from tests.gateway.http_client import get
from tests.gateway.rpc_client import RpcClient
from tests.harness.empty_log import empty_log
from tests.harness.large_log import copies
from tests.harness.postgres import OwnServer, migrated, own_server
from tests.harness.service_keys import add_key, with_key
from tests.harness.statements import watch_direct

pytestmark = pytest.mark.slow

TABLES = 5000
EVENTS = 200_000
MARKED = 500
"""So many tables had new events in the last minute."""

MORE = 20
"""The tables of the game itself, about."""

# Which of the marked tables are behind is in no index, and neither is the slot of a move: appends
# and moves would have to change it.
MORE_ROWS = {
    "FROM stream WHERE behind": MARKED + MORE,
    "stream.behind AND": MARKED + MORE,
    "s.last > coalesce(h.last, 0)": 6 * (MARKED + MORE),  # one of each SQL table, each half minute
    "UPDATE moves SET card": 100,  # the moves of a round
    # The end of a round, and its beginning: its events are read next.
    "SELECT min(version) FROM event WHERE stream": 100,
    "type IN ('RoundOpened', 'RoundClosed') ORDER BY version DESC": 100,
}
"""Parts of statements: how many more rows these may read."""

TIMES = 10
"""How many rows may be read for each of the answer."""

OF_TABLES = (
    "e",
    "s",
    "event",
    "stream",
    "checkpoint",
    "feed",
    "opener",
    "service_table",
    *(model.name for model in MODELS),
)
"""What grows with the tables of the game, by its name or the one that it has in a statement."""

AUTO_EXPLAIN = (
    "session_preload_libraries=auto_explain",
    "auto_explain.log_analyze=on",
    "auto_explain.log_timing=off",
    "auto_explain.log_nested_statements=on",
    "auto_explain.log_format=json",
    "autovacuum=off",
)


@pytest.fixture(scope="module")
def server() -> Iterator[OwnServer]:
    with own_server(settings=AUTO_EXPLAIN) as server:
        yield server


async def play(url: str, folder: Path) -> None:
    """A game with every message, requests for tables that there are not, lists, and histories."""
    async with serving(open_service(url, house_key=folder / "house.key")) as gateway:
        await _read_and_list(gateway)
        await recorded_game.play(gateway)


async def _read_and_list(gateway: Gateway) -> None:
    service, port = gateway.context.service, gateway.port
    for _ in range(2):
        for path in ("", "/bundle.jsonl", "/history.txt", "/audit"):
            await get(port, f"/tables/{'0' * 32}{path}")
    key = await add_key(service, "reader", "open", "seat", "read", "close", "admin")
    shop = await RpcClient.connect(port, **with_key(key))
    for _ in range(2):
        table = (await shop.call("table.open", cmd="once", ref="game 1"))["table"]
    await shop.call("round.open", entropy="house")
    await shop.call("deck.shuffle", cmd="shuffle once")
    await shop.call("deck.shuffle", cmd="shuffle once")
    await shop.call("round.close")
    await service.feed.scheduler.up_to_date()
    for path in (
        f"/tables/{table}/bundle.jsonl",
        f"/tables/{table}/history.txt",
        f"/tables/{table}/round-1.txt",
        f"/feed?wait=0&table={table}",
    ):
        assert (await get(port, path, Authorization=f"Bearer {key}")).status == 200
    await shop.call("table.list")
    await shop.call("table.list", ref="game 1")
    await AutoClose(service, empty_ms=10**12, idle_ms=10**12).slice()
    await shop.socket.close()


def plans(log: str) -> Iterator[dict[str, Any]]:
    """What PostgreSQL carried out: objects with `Query Text` and `Plan`."""
    decoder = json.JSONDecoder()
    for found in re.finditer(r"duration: [\d.]+ ms  plan:\n", log):
        yield decoder.raw_decode(log[found.end() :].replace("\n\t", "\n").lstrip())[0]


def rows_read(node: dict[str, Any]) -> float:
    """The rows of tables that a node of a plan and those below it read."""
    own = 0.0
    if "Relation Name" in node and node["Node Type"] != "ModifyTable":
        removed = node.get("Rows Removed by Filter", 0)
        removed += node.get("Rows Removed by Index Recheck", 0)
        own = (node["Actual Rows"] + removed) * node["Actual Loops"]
    return own + sum(map(rows_read, node.get("Plans", ())))


def answered(plan: dict[str, Any]) -> float:
    while plan["Node Type"] in ("ModifyTable", "LockRows") and plan.get("Plans"):
        plan = plan["Plans"][0]
    return float(plan["Actual Rows"] * plan["Actual Loops"])


@pytest.mark.parametrize("statistics", ["fresh", "outdated"])
async def test_postgres_reads_few_rows(server: OwnServer, tmp_path: Path, statistics: str) -> None:
    database = server.empty()
    url = server.url(database)
    migrated(url)
    server.ask(database, "ANALYZE")
    await play(url, tmp_path)
    for statement in copies(TABLES):
        server.ask(database, statement)
    ((tables, events),) = server.ask(
        database, "SELECT (SELECT count(*) FROM stream), (SELECT count(*) FROM event)"
    )
    assert (tables > TABLES, events > EVENTS) == (True, True)
    server.ask(
        database,
        "UPDATE stream SET behind = id IN (SELECT id FROM stream ORDER BY id LIMIT $1)",
        MARKED,
    )
    server.ask(database, "DELETE FROM service_key")  # the next game adds keys of these names
    if statistics == "fresh":
        server.ask(database, "ANALYZE")
    log = server.folder / "log"
    before = log.stat().st_size
    server.ask(database, f"ALTER DATABASE {database} SET auto_explain.log_min_duration = 0")
    await play(url, tmp_path)
    found: dict[str, tuple[float, float]] = {}
    for each in plans(log.read_bytes()[before:].decode()):
        text = " ".join(each["Query Text"].split())
        read, answer = rows_read(each["Plan"]), answered(each["Plan"])
        if read > TIMES * max(answer, 1) + max(
            (rows for part, rows in MORE_ROWS.items() if part in text), default=0
        ):
            found[text] = max(found.get(text, (0.0, 0.0)), (read, answer))
    assert not found, json.dumps(found, indent=1)


async def test_sqlite_searches_by_indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no statistics that could be outdated: a plan depends on the schema alone."""
    url = empty_log(tmp_path / "dealer.db")
    statements: set[str] = set()

    def note(sql: str) -> None:
        statements.add(" ".join(sql.split()))

    watch_direct("before", note, patch=monkeypatch.setattr)
    await play(url, tmp_path)
    with closing(sqlite3.connect(tmp_path / "dealer.db")) as database:
        (analyzed,) = database.execute(
            "SELECT count(*) FROM sqlite_master WHERE name = 'sqlite_stat1'"
        ).fetchone()
        scans = [
            (plan[3], sql)
            for sql in sorted(statements)
            if sql.startswith(("SELECT", "WITH", "INSERT", "UPDATE", "DELETE"))
            for plan in database.execute(f"EXPLAIN QUERY PLAN {sql}", [None] * sql.count("?"))
        ]
    assert not analyzed
    assert len(statements) > 80
    assert [
        (plan, sql)
        for plan, sql in scans
        if re.match(rf"SCAN ({'|'.join(OF_TABLES)})\b", plan) and "LIMIT" not in sql
    ] == []
