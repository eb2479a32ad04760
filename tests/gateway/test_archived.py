"""A table that was archived while guests were on it, and one that not everybody may see."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dealer.cli.archive import archive_tables
from dealer.gateway import Gateway, serve
from dealer.service.opening import open_service
from tests.gateway.asking import get
from tests.gateway.conftest import EAGER
from tests.gateway.guest import Refusal
from tests.gateway.tables import Seated, shuffled


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    folder = tmp_path / "archive"
    folder.mkdir()
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    async with (
        open_service(url, archive=folder) as service,
        serve(service, host="127.0.0.1", port=0, limits=EAGER) as gateway,
    ):
        yield gateway


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
