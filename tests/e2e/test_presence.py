"""When a process is killed, players at another process see its players as absent."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest

from tests.gateway.rpc_client import RpcClient
from tests.harness.nodes import Nodes
from tests.harness.postgres import programs
from tests.harness.server_process import PATIENT, ServerProcess


@pytest.mark.parametrize("database", ["one file", "a server"])
async def test_presence_of_a_node_that_is_killed_expires(tmp_path: Path, database: str) -> None:
    async with AsyncExitStack() as stack:
        first, second = await two_processes(stack, tmp_path, database)
        ann, bob = await RpcClient.connect(first.port), await RpcClient.connect(second.port)
        stack.push_async_callback(ann.close)
        stack.push_async_callback(bob.close)
        table = (await ann.call("table.open"))["table"]
        await ann.call("table.join", table=table, name="Ann")
        await bob.call("table.join", table=table, name="Bob")
        answer = await ann.call("table.presence", table=table)

        def present() -> dict[int, bool]:
            latest = [answer, *ann.notices("presence")][-1]
            return {seat["seat"]: seat["here"] for seat in latest["seats"]}

        async def until_presence_is(wanted: dict[int, bool]) -> None:
            async with asyncio.timeout(PATIENT):
                while present() != wanted:
                    with suppress(TimeoutError):
                        await ann.until(lambda: present() == wanted)

        await until_presence_is({1: True, 2: True})
        await second.kill()
        await until_presence_is({1: True, 2: False})
        answer = await ann.call("table.presence")
        assert answer["seats"][1]["since"] is not None


async def two_processes(
    stack: AsyncExitStack, folder: Path, database: str
) -> tuple[ServerProcess, ServerProcess]:
    if database == "a server":
        programs()
        first, second = (await stack.enter_async_context(Nodes(folder))).nodes
        return first, second
    one, two = ServerProcess(folder, name="one"), ServerProcess(folder, name="two")
    return await stack.enter_async_context(one), await stack.enter_async_context(two)
