"""A server whose memory is limited (`ulimit -v`): not ready, and no request waits permanently."""

from __future__ import annotations

import asyncio
import json
import resource
from http.client import HTTPException
from pathlib import Path
from typing import Any

from dealer.proof.bundle import read
from dealer.proof.verify import verify
from tests.e2e.test_damaged_tables import Table, get
from tests.gateway.rpc_client import Refusal
from tests.harness.ports import unused_port
from tests.harness.process import MIB, virtual
from tests.harness.server_process import PATIENT, ServerProcess

UNLIMITED = resource.RLIM_INFINITY


def leave(server: ServerProcess, room: float) -> None:
    """Let the process take this many MiB more than it has."""
    limit = int((virtual(server.pid) + room) * MIB)
    resource.prlimit(server.pid, resource.RLIMIT_AS, (limit, UNLIMITED))


async def until_ready(ops: int, status: int) -> str:
    """Wait until `/readyz` has this status; what it says."""
    async with asyncio.timeout(PATIENT):
        while True:
            found, said = await get(ops, "/readyz")
            if found == status:
                return said
            await asyncio.sleep(0.1)


async def test_a_server_without_a_reserve_is_not_ready_until_it_has_one(tmp_path: Path) -> None:
    ops = unused_port()
    options: dict[str, Any] = {"ops-port": ops}
    async with ServerProcess(tmp_path, **options) as server:
        await until_ready(ops, 200)
        leave(server, 8)
        assert "memory" in await until_ready(ops, 503)
        resource.prlimit(server.pid, resource.RLIMIT_AS, (UNLIMITED, UNLIMITED))
        await until_ready(ops, 200)


async def test_every_request_is_answered_or_its_connection_closed(tmp_path: Path) -> None:
    """Libraries may end the process: then all are closed, and the log has what was acknowledged."""
    server = ServerProcess(tmp_path)
    await server.open()
    tables = [await Table.open(server) for _ in range(12)]
    outcomes: set[str] = set()

    async def ask(table: Table) -> None:
        for method in 20 * ("deck.draw", "table.state", "deck.shuffle"):
            try:
                async with asyncio.timeout(PATIENT):
                    done = await table.host.call(method)
                table.version = done.get("version", table.version)
            except Refusal as refusal:
                outcomes.add(str(refusal.reason or refusal.code))
            except asyncio.CancelledError:
                outcomes.add("closed")
                return

    async def download() -> None:
        for _ in range(10):
            try:
                status, _ = await get(server.port, "/openrpc.json")
            except HTTPException:  # it broke off
                status = 0
            outcomes.add(str(status))

    leave(server, 1)
    async with asyncio.TaskGroup() as group:
        for table in tables:
            group.create_task(ask(table))
        group.create_task(download())
    assert outcomes & {"closed", "0", "500", "unavailable", "-32603"}
    await server.kill()
    await server.open()
    for table in tables:
        lines = list(read(await server.bundle(table.id)))
        assert verify(lines).ok
        assert max(json.loads(line).get("version", 0) for line in lines) >= table.version
    await server.close()
