"""Archived tables: requests of clients that were at them, and downloads of private ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dealer.cli.commands.tables import archive_tables
from dealer.game.commands import CloseTable
from dealer.gateway.pages.streams import MAX_CONCURRENT_PER_ADDRESS
from dealer.service import Service
from dealer.service.build import open_service
from dealer.service.nodes import head_poller
from dealer.service.service import ServiceOptions
from tests.gateway.http_client import get
from tests.gateway.rpc_client import eventually, reason_of
from tests.gateway.tables import SeatedTable, seat_and_shuffle
from tests.service.tables import HOST

pytestmark = pytest.mark.slow


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    """A service that does not look what another process writes."""
    monkeypatch.setattr(head_poller, "POLL_SECONDS", 3600)
    folder = tmp_path / "archive"
    folder.mkdir()
    async with open_service(
        f"sqlite:///{tmp_path / 'dealer.db'}", ServiceOptions(archive=folder)
    ) as service:
        yield service


async def archive(tmp_path: Path, table: str) -> None:
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    assert await archive_tables(url, tmp_path / "archive", table, None, "", "test") == (1, [])


async def close_and_archive(tmp_path: Path, table: SeatedTable) -> None:
    await table.host.call("round.close")
    await table.host.call("table.close")
    await archive(tmp_path, table.id)


async def test_every_request_for_an_archived_table_is_refused(gateway, connect, tmp_path) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    await close_and_archive(tmp_path, table)
    for client, method, params in (
        (await connect(gateway), "table.resume", {"token": table.tokens[0], "after": 1}),
        (await connect(gateway), "table.watch", {}),
        (await connect(gateway), "table.join", {"name": "Eve"}),
    ):
        assert await reason_of(client.call(method, table=table.id, **params)) == "table_archived", (
            method
        )
    assert (await get(gateway.port, f"/tables/{table.id}")).status == 410
    again = await connect(gateway)
    assert (await again.call("table.open", name="another"))["table"] != table.id


async def test_subscribers_of_a_table_archived_elsewhere_are_disconnected(
    gateway, connect, tmp_path, caplog
) -> None:
    """Another process closes and archives it between two polls, so TableClosed is never pushed."""
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    table = await seat_and_shuffle(connect, gateway, players=1)
    idle = await seat_and_shuffle(connect, gateway, players=1)
    await idle.host.close()
    await idle.players[0].close()
    async with open_service(url) as other:
        for each in (table, idle):
            await other.execute(await other.lifecycle.load(each.id), CloseTable(HOST))
            await archive(tmp_path, each.id)
    paths = [f"/tables/{each.id}" for each in (idle, table)]
    async with asyncio.timeout(20):
        assert [(await get(gateway.port, path)).status for path in paths] == [410, 410]
        assert await table.players[0].wait_closed() == 1013
    assert "log rewound" not in caplog.messages


async def test_concurrent_downloads_of_archived_bundles_are_limited(
    gateway, connect, tmp_path, monkeypatch
) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    await close_and_archive(tmp_path, table)
    folder = gateway.context.service.archive
    open_file, may_open = folder.open, asyncio.Event()

    async def open_later(record):
        await may_open.wait()
        return await open_file(record)

    monkeypatch.setattr(folder, "open", open_later)
    path = f"/tables/{table.id}/bundle.jsonl"
    requests = [
        asyncio.create_task(get(gateway.port, path)) for _ in range(MAX_CONCURRENT_PER_ADDRESS + 3)
    ]
    await eventually(lambda: sum(request.done() for request in requests) == 3)
    may_open.set()
    statuses = sorted([(await request).status for request in requests])
    assert statuses == [200] * MAX_CONCURRENT_PER_ADDRESS + [503] * 3
    assert (await get(gateway.port, path)).status == 200


async def test_the_bundle_of_a_private_table_stays_private(gateway, connect, tmp_path) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2, watch="nobody")
    await table.players[1].call("table.leave")
    await close_and_archive(tmp_path, table)
    path = f"/tables/{table.id}/bundle.jsonl"
    assert (await get(gateway.port, path)).status == 401
    for token, status in (
        (table.host_token, 200),
        (table.tokens[0], 200),
        (table.tokens[1], 401),
        ("nonsense", 401),
    ):
        answer = await get(gateway.port, path, Authorization=f"Bearer {token}")
        assert answer.status == status
        assert ("TableClosed" in answer.text) == (status == 200)


async def test_histories_are_the_same_after_the_archiving(gateway, connect, tmp_path) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2, game="holdem")
    await table.host.call("deck.deal", each=2)
    await table.host.call("round.close")
    await table.host.call("table.close")
    names = ("history.txt", "round-1.txt", "round-2.txt", "round-0.txt", "round-1.pdf")
    paths = [f"/tables/{table.id}/{name}" for name in names]
    before = [await get(gateway.port, path) for path in paths]
    assert [one.status for one in before] == [200] * 2 + [404] * 3
    await archive(tmp_path, table.id)
    for path, then in zip(paths, before, strict=True):
        now = await get(gateway.port, path)
        head = await get(gateway.port, path, method="HEAD")
        for got in (then, now, head):  # only the database knows, without reading all, what is final
            got.headers.pop("etag", None)
            got.headers.pop("cache-control")
        assert (now.status, now.headers, now.body) == (then.status, then.headers, then.body), path
        assert (head.status, head.headers, head.body) == (then.status, then.headers, b""), path


async def test_players_of_a_private_table_get_its_histories(gateway, connect, tmp_path) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1, watch="nobody")
    await close_and_archive(tmp_path, table)
    for name in ("history.txt", "round-1.txt", "bundle.jsonl"):
        path = f"/tables/{table.id}/{name}"
        for method in ("GET", "HEAD"):
            assert (await get(gateway.port, path, method=method)).status == 401
            token = {"Authorization": f"Bearer {table.tokens[0]}"}
            assert (await get(gateway.port, path, method=method, **token)).status == 200


async def test_files_for_histories_are_read_one_at_a_time(
    gateway, service, connect, tmp_path, monkeypatch
) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    await close_and_archive(tmp_path, table)
    path = f"/tables/{table.id}/history.txt"
    open_file, opened, may_open = service.archive.open, 0, asyncio.Event()

    async def open_later(record: Any) -> Any:
        nonlocal opened
        opened += 1
        await may_open.wait()
        return await open_file(record)

    monkeypatch.setattr(service.archive, "open", open_later)
    async with asyncio.TaskGroup() as group:
        requests = [group.create_task(get(gateway.port, path)) for _ in range(5)]
        await eventually(lambda: any(request.done() for request in requests))
        assert opened == 1
        may_open.set()
    assert sorted(request.result().status for request in requests) == [200] * 4 + [503]


async def test_a_missing_archive_file_is_reported(gateway, connect, tmp_path) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    await close_and_archive(tmp_path, table)
    (tmp_path / "archive" / f"{table.id}.jsonl").unlink()
    for name in ("history.txt", "bundle.jsonl", "audit"):
        got = await get(gateway.port, f"/tables/{table.id}/{name}")
        assert (got.status, "not here" in got.text) == (410, True)


async def test_the_command_id_of_an_archived_table_opens_no_other(
    gateway, connect, tmp_path
) -> None:
    cmd = "0123456789abcdef0123456789"
    host = await connect(gateway)
    opened = await host.call("table.open", name="once", cmd=cmd)
    await host.call("table.close")
    await archive(tmp_path, opened["table"])
    refused = (await connect(gateway)).call("table.open", name="once", cmd=cmd)
    assert await reason_of(refused) == "table_archived"
