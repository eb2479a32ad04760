"""A process dies, and its players are not here any more for those of another process."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest

from tests.gateway.guest import Guest
from tests.postgres import programs
from tests.whole.house import PATIENT, HouseProcess
from tests.whole.nodes import Nodes


@pytest.mark.parametrize("database", ["one file", "a server"])
async def test_presence_of_a_node_that_is_killed_expires(tmp_path: Path, database: str) -> None:
    async with AsyncExitStack() as stack:
        first, second = await two_processes(stack, tmp_path, database)
        ann, bob = await Guest.arrive(first.port), await Guest.arrive(second.port)
        stack.push_async_callback(ann.leave)
        stack.push_async_callback(bob.leave)
        table = (await ann.ask("table.open"))["table"]
        await ann.ask("table.join", table=table, name="Ann")
        await bob.ask("table.join", table=table, name="Bob")
        asked = await ann.ask("table.presence", table=table)

        def here() -> dict[int, bool]:
            latest = [asked, *ann.notices("presence")][-1]
            return {seat["seat"]: seat["here"] for seat in latest["seats"]}

        async def sees(wanted: dict[int, bool]) -> None:
            async with asyncio.timeout(PATIENT):
                while here() != wanted:
                    with suppress(TimeoutError):
                        await ann.until(lambda: here() == wanted)

        await sees({1: True, 2: True})
        await second.kill()
        await sees({1: True, 2: False})
        asked = await ann.ask("table.presence")
        assert asked["seats"][1]["since"] is not None


async def two_processes(
    stack: AsyncExitStack, folder: Path, database: str
) -> tuple[HouseProcess, HouseProcess]:
    if database == "a server":
        programs()
        first, second = (await stack.enter_async_context(Nodes(folder))).nodes
        return first, second
    first = await stack.enter_async_context(HouseProcess(folder, name="one"))
    return first, await stack.enter_async_context(HouseProcess(folder, name="two"))
