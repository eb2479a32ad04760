"""A network that begins to drop packets: the connection stays open, and nothing comes any more.

The server and the program run in a network of their own, a Linux namespace, whose only interface is
taken away and given back.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import subprocess
import sys
from fcntl import ioctl
from pathlib import Path
from struct import pack

import pytest

from dealer.errors import DatabaseUnavailable, OutcomeUnknown
from dealer.eventlog import Appended, Log
from dealer.eventlog.postgres import database
from tests.eventlog.requests import A, append
from tests.harness.ports import unused_port
from tests.harness.postgres import own_server

NEW_NETWORK = 0x40000000  # CLONE_NEWNET of sched.h
SET_FLAGS, UP = 0x8914, 0x1  # SIOCSIFFLAGS of sockios.h, IFF_UP of if.h

SILENT = 4
"""Seconds of silence after which a connection ends, in place of the program's 20."""


def network(*, up: bool) -> None:
    """Set the only interface of this process's network up, or take it down."""
    with socket.socket() as any_socket:
        ioctl(any_socket, SET_FLAGS, pack("16sH14x", b"lo", UP * up))


async def trial() -> None:
    """Reads and appends of which no packet arrives, and the same when packets arrive again."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_NETWORK):
        sys.exit(f"no network of its own: {os.strerror(ctypes.get_errno())}")
    network(up=True)
    database.SILENT_SECONDS = SILENT
    with own_server(port=unused_port()) as server:
        async with await Log.open(server.url(server.database()), busy_seconds=1.0) as log:
            await log.append(append(A, 0, "1"))
            await log.fetch("SELECT 1")
            network(up=False)
            with pytest.raises(DatabaseUnavailable):
                await log.fetch("SELECT 1")
            with pytest.raises(OutcomeUnknown):
                await log.append(append(A, 1, "2"))
            network(up=True)
            assert isinstance(await log.append(append(A, 1, "2", "3")), Appended)
            assert await log.fetch("SELECT 1") == [(1,)]


def test_a_connection_without_packets_ends_and_the_next_one_serves() -> None:
    program = [sys.executable, "-m", __name__]
    # Twenty times as long as it needs; without the program's limit it would take 15 minutes.
    done = subprocess.run(
        program, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=240
    )
    if "no network of its own" in done.stderr:
        pytest.skip(f"{done.stderr.strip()}; root may make one")
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    asyncio.run(trial())
