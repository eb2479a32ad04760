"""The server raises its limit of open files."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from tests.gateway.rpc_client import RpcClient
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.slow

FEW = (
    "import resource, sys; _, hard = resource.getrlimit(resource.RLIMIT_NOFILE);"
    " resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard)); from dealer.cli import main; main()"
)


async def test_a_low_soft_limit_is_raised(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    server.program = ("-c", FEW)
    async with server:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        assert open_files(server.pid) == (hard, hard)
        players = [await RpcClient.connect(server.port) for _ in range(45)]
        for player in players:
            await player.call("ping")
        for player in players:
            await player.close()


def open_files(pid: int) -> tuple[int, int]:
    """The soft and the hard limit of a process."""
    limits = Path(f"/proc/{pid}/limits").read_text()
    (line,) = (one for one in limits.splitlines() if one.startswith("Max open files"))
    soft, hard = map(int, line.split()[3:5])
    return soft, hard
