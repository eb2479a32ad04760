"""A disabled table, or disabled tables of a whole server: open rounds continue, on every node."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from pathlib import Path

import pytest

from dealer.errors import Disabled
from tests.e2e.test_two_servers import two_servers
from tests.harness.server_process import PATIENT, ServerProcess
from tests.harness.table_of_clients import RecordedClient, client


async def refused(work: Awaitable[object]) -> str:
    with pytest.raises(Disabled) as caught:
        await work
    assert caught.value.temporary
    return str(caught.value)


async def wait_for_lobby(
    server: ServerProcess, viewer: RecordedClient, table: str, *, listed: bool
) -> None:
    """Wait until the lobby of this server lists the table, or lists it no longer."""
    async with asyncio.timeout(PATIENT):
        while listed != (table in [one["table"] for one in await viewer.house.tables()]):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def wait_for_log_line(*servers: ServerProcess, event: str) -> None:
    """Wait until each of these processes has logged the event."""
    async with asyncio.timeout(PATIENT):
        while not all(f"  {event}  target=" in one.output.read_text() for one in servers):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_a_disabled_table_plays_its_round_to_the_end(tmp_path: Path) -> None:
    async with (
        two_servers(tmp_path) as (one, two),
        client(one.url, "Ada") as ada,
        client(two.url, "Bob") as bob,
        client(two.url, "Cleo") as cleo,
    ):
        opened = await ada.house.open(seats=4)
        ada.table = await ada.house.join(opened.id)
        bob.table = await bob.house.join(opened.id)
        await ada.table.round_open(entropy="house")
        await ada.table.shuffle()
        await wait_for_lobby(two, bob, opened.id, listed=True)
        output = await one.run_command("tables", "disable", opened.id[:12], "--why", "seat 3")
        assert output == f"Table {opened.id} is disabled.\n"
        assert "already disabled" in await one.run_command(
            "tables", "disable", opened.id, "--why", "again"
        )
        await wait_for_lobby(two, bob, opened.id, listed=False)
        await wait_for_log_line(one, two, event="disabled")
        assert "no new players" in await refused(cleo.house.join(opened.id))
        await bob.table.draw(2)
        await ada.table.round_close()
        await refused(ada.table.round_open(entropy="house"))
        other = await ada.house.open(seats=2)
        await two.kill()
        await two.open()
        assert "no new players" in await refused(cleo.house.join(opened.id))
        await cleo.house.join(other.id)
        await one.run_command("tables", "enable", opened.id)
        await wait_for_lobby(two, bob, opened.id, listed=True)
        await wait_for_log_line(one, two, event="enabled")
        await ada.table.round_open(entropy="house")
        await cleo.house.join(opened.id)
        journal = [
            json.loads(line) for line in (await one.run_command("journal", "--json")).splitlines()
        ]
        assert [line["what"] for line in journal] == ["enable", "disable", "migrate"]
        assert (journal[1]["target"], journal[1]["why"]) == (opened.id, "seat 3")


async def test_a_disabled_server_opens_no_table_and_no_round(server: ServerProcess) -> None:
    async with client(server.url, "Ada") as ada, client(server.url, "Bob") as bob:
        opened = await ada.house.open(seats=4)
        ada.table = await ada.house.join(opened.id)
        await server.run_command("tables", "disable", "--house", "--why", "moving")
        await wait_for_log_line(server, event="disabled")
        assert "no tables" in await refused(bob.house.open(seats=2))
        await refused(bob.house.join(opened.id))
        await refused(ada.table.round_open(entropy="house"))
        await ada.table.leave()
        await server.run_command("tables", "enable", "--house")
        await wait_for_log_line(server, event="enabled")
        await bob.house.join(opened.id)
