"""A server in its own process, which a test can kill and restart."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.request import urlopen

from tests.harness import fork_server
from tests.harness.fork_server import ForkedProcess, Program
from tests.harness.limits import NO_RATES_OPTIONS
from tests.harness.ports import unused_port
from tests.harness.programs import output_of

ROOT = Path(__file__).parents[2]
PATIENT = 60.0
"""Seconds after which an awaited condition counts as never met."""

_OPEN_AT = re.compile(rb"The server is running at http://127\.0\.0\.1:(\d+)/")


class ServerProcess:
    """`dealer serve` on an SQLite file; the port stays the same after a restart.

    `program` is what Python runs instead of `dealer`, `environment` its additional variables.
    `output` is a file with the standard output and the log of all its processes.
    """

    def __init__(self, folder: Path, *, name: str = "server", **options: Any) -> None:
        self.database = folder / "dealer.db"
        self.output = folder / f"{name}.log"
        self.port = unused_port()
        self.program: tuple[str, ...] = ("-m", "dealer")
        self.environment: dict[str, str] = {}
        self.options = {"limit": (*NO_RATES_OPTIONS, "closing=0.5")} | options
        self._process: ForkedProcess | None = None
        self._printed = 0

    async def __aenter__(self) -> ServerProcess:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    @property
    def address(self) -> str:
        """The database URL."""
        return f"sqlite:///{self.database}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None

    async def open(self) -> None:
        """Start the process and wait until it prints its address."""
        await self.start()
        await self.ready()

    async def start(self) -> None:
        """Start the process without waiting."""
        arguments = ["--database", self.address]
        for option, value in ({"port": self.port, "ops-port": 0} | self.options).items():
            for one in value if isinstance(value, tuple) else (value,):
                arguments += [f"--{option}", str(one)]
        self.output.touch()
        self._printed = self.output.stat().st_size
        self._process = fork_server.start(
            Program(
                (*self.program, "serve", *arguments),
                folder=ROOT,
                variables=self.environment,
                output=self.output,
            )
        )

    def environment_of_process(self) -> dict[str, str]:
        """All environment variables of the process."""
        return os.environ | self.environment

    async def run_command(self, *arguments: str) -> str:
        """What `dealer` prints with these arguments and this server's database."""
        command = [sys.executable, "-m", "dealer", *arguments, "--database", self.address]
        return await asyncio.to_thread(output_of, *command, cwd=ROOT, timeout=PATIENT)

    async def ready(self) -> None:
        """Wait until the process prints its address."""
        process = self._process
        assert process is not None
        async with asyncio.timeout(PATIENT):
            while process.exit_code is None:
                if found := _OPEN_AT.search(self.output.read_bytes()[self._printed :]):
                    self.port = int(found[1])
                    return
                await asyncio.sleep(0.01)
        raise AssertionError(f"the server did not start: {self.output.read_text()}")

    async def kill(self) -> None:
        """Send SIGKILL: nothing is finished or flushed."""
        await self._end(signal.SIGKILL)

    async def close(self) -> None:
        """Send SIGTERM and wait until the process has shut down."""
        await self._end(signal.SIGTERM)

    def terminate(self) -> None:
        """Send SIGTERM without waiting."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    async def ended(self) -> int:
        """Wait until the process exits; its exit code, which is -9 after SIGKILL."""
        assert self._process is not None
        async with asyncio.timeout(PATIENT):
            code = await self._process.wait()
        self._process = None
        return code

    async def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        await self.ended()

    async def projected(self) -> None:
        """Wait until the read models have the newest version of every table."""
        async with asyncio.timeout(PATIENT):
            while self._lagging():  # noqa: ASYNC110  another process is waited for
                await asyncio.sleep(0.02)

    def _lagging(self) -> int:
        with closing(sqlite3.connect(self.database)) as database:
            sql = "SELECT count(*) FROM stream WHERE projected < version"
            (count,) = database.execute(sql).fetchone()
            return int(count)

    async def fetch(self, path: str) -> bytes:
        """The body of a GET of this server."""
        return await asyncio.to_thread(self._fetch, path)

    def _fetch(self, path: str) -> bytes:
        with urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=PATIENT) as answer:
            body: bytes = answer.read()
            return body

    async def bundle(self, table: str) -> bytes:
        return await self.fetch(f"/tables/{table}/bundle.jsonl")
