"""A table that was archived while guests were on it, and one that not everybody may see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dealer.cli.archive import archive_tables
from dealer.game.commands import CloseTable
from dealer.gateway.askers import ASKERS_OF_ADDRESS
from dealer.service import Service, lookout
from dealer.service.opening import open_service
from tests.gateway.asking import get
from tests.gateway.guest import Refusal, eventually
from tests.gateway.tables import Seated, shuffled
from tests.service.test_service import HOST


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    folder = tmp_path / "archive"
    folder.mkdir()
    async with open_service(f"sqlite:///{tmp_path / 'dealer.db'}", archive=folder) as service:
        yield service


async def put_away(tmp_path: Path, table: Seated) -> None:
    await table.host.ask("round.close")
    await table.host.ask("table.close")
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    assert await archive_tables(url, tmp_path / "archive", table.id, None, "", "test") == (1, [])


async def test_who_comes_back_is_told_so(gateway, arrive, tmp_path) -> None:
    table = await shuffled(arrive, gateway, players=1)
    await put_away(tmp_path, table)
    for guest, method, params in (
        (await arrive(gateway), "table.resume", {"token": table.tokens[0], "after": 1}),
        (await arrive(gateway), "table.watch", {}),
        (await arrive(gateway), "table.join", {"name": "Eve"}),
    ):
        with pytest.raises(Refusal) as caught:
            await guest.ask(method, table=table.id, **params)
        assert caught.value.reason == "table_archived", method
    assert (await get(gateway.port, f"/tables/{table.id}")).status == 410
    again = await arrive(gateway)
    assert (await again.ask("table.open", name="another"))["table"] != table.id


async def test_who_listens_while_others_close_and_archive_a_table_is_let_go(
    gateway, arrive, tmp_path, monkeypatch, caplog
) -> None:
    """Both between two looks at the log: nobody here is told of the closing."""
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    table = await shuffled(arrive, gateway, players=1)
    idle = await shuffled(arrive, gateway, players=1)
    await idle.host.leave()
    await idle.players[0].leave()
    monkeypatch.setattr(lookout, "LOOK_SECONDS", 3600)
    async with open_service(url) as other:
        for each in (table, idle):
            await other.call(await other.load(each.id), CloseTable(HOST))
            await archive_tables(url, tmp_path / "archive", each.id, None, "", "test")
    paths = [f"/tables/{each.id}" for each in (idle, table)]
    async with asyncio.timeout(20):
        assert [(await get(gateway.port, path)).status for path in paths] == [410, 410]
        assert await table.players[0].gone() == 1013
    assert "the log was put back" not in caplog.messages


async def test_so_many_read_archived_bundles_at_one_time_and_no_more(
    gateway, arrive, tmp_path, monkeypatch
) -> None:
    table = await shuffled(arrive, gateway, players=1)
    await put_away(tmp_path, table)
    shelf = gateway.floor.service.shelf
    read, may_read = shelf.open, asyncio.Event()

    async def slowly(kept):
        await may_read.wait()
        return await read(kept)

    monkeypatch.setattr(shelf, "open", slowly)
    path = f"/tables/{table.id}/bundle.jsonl"
    asking = [asyncio.create_task(get(gateway.port, path)) for _ in range(ASKERS_OF_ADDRESS + 3)]
    await eventually(lambda: sum(one.done() for one in asking) == 3)
    may_read.set()
    statuses = sorted([(await one).status for one in asking])
    assert statuses == [200] * ASKERS_OF_ADDRESS + [503] * 3
    assert (await get(gateway.port, path)).status == 200


async def test_a_private_bundle_stays_private(gateway, arrive, tmp_path) -> None:
    table = await shuffled(arrive, gateway, players=2, watch="nobody")
    await table.players[1].ask("table.leave")
    await put_away(tmp_path, table)
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


async def test_what_was_played_is_told_as_before(gateway, arrive, tmp_path) -> None:
    table = await shuffled(arrive, gateway, players=2, game="holdem")
    await table.host.ask("deck.deal", each=2)
    await table.host.ask("round.close")
    await table.host.ask("table.close")
    what = (
        "history.txt", "round-1.txt", "round-1.phh", "round-2.txt", "round-2.phh",
        "round-0.phh", "round-1.pdf",
    )  # fmt: skip
    paths = [f"/tables/{table.id}/{one}" for one in what]
    before = [await get(gateway.port, path) for path in paths]
    assert [one.status for one in before] == [200] * 3 + [404] * 4
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    await archive_tables(url, tmp_path / "archive", table.id, None, "", "test")
    for path, then in zip(paths, before, strict=True):
        now = await get(gateway.port, path)
        assert (now.status, now.headers, now.body) == (then.status, then.headers, then.body), path
        head = await get(gateway.port, path, method="HEAD")
        assert (head.status, head.headers, head.body) == (then.status, then.headers, b""), path


async def test_a_private_table_is_told_of_to_who_sat_there(gateway, arrive, tmp_path) -> None:
    table = await shuffled(arrive, gateway, players=1, watch="nobody")
    await put_away(tmp_path, table)
    for what in ("history.txt", "round-1.txt", "bundle.jsonl"):
        path = f"/tables/{table.id}/{what}"
        for method in ("GET", "HEAD"):
            assert (await get(gateway.port, path, method=method)).status == 401
            told = {"Authorization": f"Bearer {table.tokens[0]}"}
            assert (await get(gateway.port, path, method=method, **told)).status == 200


async def test_nobodys_file_is_read_before_it_is_their_turn(
    gateway, service, arrive, tmp_path, monkeypatch
) -> None:
    table = await shuffled(arrive, gateway, players=1)
    await put_away(tmp_path, table)
    path = f"/tables/{table.id}/history.txt"
    read, reading, go = service.shelf.open, 0, asyncio.Event()

    async def slowly(kept: Any) -> Any:
        nonlocal reading
        reading += 1
        await go.wait()
        return await read(kept)

    monkeypatch.setattr(service.shelf, "open", slowly)
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(get(gateway.port, path)) for _ in range(5)]
        await eventually(lambda: any(one.done() for one in asked))
        assert reading == 1
        go.set()
    assert sorted(one.result().status for one in asked) == [200] * 4 + [503]


async def test_a_file_that_is_gone_is_no_history(gateway, arrive, tmp_path) -> None:
    table = await shuffled(arrive, gateway, players=1)
    await put_away(tmp_path, table)
    (tmp_path / "archive" / f"{table.id}.jsonl").unlink()
    for what in ("history.txt", "bundle.jsonl", "audit"):
        got = await get(gateway.port, f"/tables/{table.id}/{what}")
        assert (got.status, "not here" in got.text) == (410, True)


async def test_the_id_of_an_archived_table_opens_no_other(gateway, arrive, tmp_path) -> None:
    cmd = "0123456789abcdef0123456789"
    host = await arrive(gateway)
    opened = await host.ask("table.open", name="once", cmd=cmd)
    await host.ask("table.close")
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    await archive_tables(url, tmp_path / "archive", opened["table"], None, "", "test")
    with pytest.raises(Refusal) as caught:
        await (await arrive(gateway)).ask("table.open", name="once", cmd=cmd)
    assert caught.value.reason == "table_archived"
