"""Runs a document as its reader does: its commands in terminals, its programs as files.

A block of `sh` is typed into the terminal that its first line names (`# Terminal 2`), or into the
first one. A block of `text` after it is what the reader sees: `…` stands for any text, and every
line must be printed in this order. A block without one must end, and succeed. A block of `python`
is saved under the name that the sentence before it has in backticks.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from tests.harness.ports import unused_port
from tests.harness.server_process import PATIENT, ROOT

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TERMINAL = re.compile(r"# Terminal (\d+)\n")
_FILE = re.compile(r"[Ss]ave this(?: receiver)? as `([\w.]+)`")


class Block(NamedTuple):
    """A fenced block: `before` is the text since the block before it."""

    language: str
    text: str
    before: str


def blocks(document: str) -> list[Block]:
    """The fenced blocks of a document."""
    found, at = [], 0
    for match in _BLOCK.finditer(document):
        found.append(Block(match[1], match[2], document[at : match.start()]))
        at = match.end()
    return found


class Reader:
    """Works through a document in a folder; its terminals end with it.

    Ports of the document are replaced by unused ones.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {"8080": str(unused_port()), "8081": str(unused_port())}
        self._terminals: dict[int, Terminal] = {}

    async def __aenter__(self) -> Reader:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number in sorted(self._terminals, reverse=True):
            await self._terminals[number].close()

    async def follow(self, document: str) -> None:
        """Do everything that the document says. AssertionError if it comes out differently."""
        found = blocks(document)
        for block, after in zip(found, [*found[1:], None], strict=True):
            if block.language == "python":
                self._save(block)
            elif block.language == "sh":
                await self.type(
                    block.text, after.text if after and after.language == "text" else None
                )

    def _save(self, block: Block) -> None:
        (name,) = _FILE.findall(block.before)
        (self.folder / name).write_text(self.with_ports(block.text), encoding="utf-8")

    async def type(self, text: str, shown: str | None = None) -> str:
        """Type a block and wait for what it shows, or for its end; what it has printed so far."""
        text = self.with_ports(text)
        match = _TERMINAL.match(text)
        number = int(match[1]) if match else 1
        if number not in self._terminals:
            self._terminals[number] = await Terminal.open(self.folder, self._environment())
        terminal = self._terminals[number]
        await terminal.type(text)
        if shown is None:
            assert await terminal.ended() == 0, f"{text}\n{terminal.output}"
        else:
            await terminal.shows(self.with_ports(shown))
        return terminal.output

    async def close_terminal(self, number: int) -> None:
        """Close a terminal, and end what runs in it; the next block there opens another."""
        await self._terminals.pop(number).close()

    @property
    def page(self) -> str:
        """The address of the server's pages."""
        return f"http://127.0.0.1:{self.ports['8080']}/"

    @property
    def url(self) -> str:
        """The address of its WebSocket."""
        return f"ws://127.0.0.1:{self.ports['8080']}/ws"

    def with_ports(self, text: str) -> str:
        """The text with the ports that are used."""
        for port, used in self.ports.items():
            text = re.sub(rf"(?<=[:= ]){port}(?=\D)", used, text)
        return text

    def _environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {name: one for name, one in os.environ.items() if not name.startswith("DEALER_")}
        own |= {"PATH": path, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        return own | {"DEALER_PORT": self.ports["8080"], "DEALER_OPS_PORT": "0"}


class Terminal:
    """A bash to which blocks are typed; `output` is what it has printed since the last one."""

    def __init__(self, process: Process) -> None:
        self.output = ""
        self._process = process
        self._typed = 0

    @classmethod
    async def open(cls, folder: Path, environment: dict[str, str]) -> Terminal:
        command = ("bash", "--noprofile", "--norc", "-o", "pipefail")
        return cls(
            await asyncio.create_subprocess_exec(
                *command, cwd=folder, env=environment, start_new_session=True,
                stdin=PIPE, stdout=PIPE, stderr=STDOUT,
            )
        )  # fmt: skip

    async def type(self, text: str) -> None:
        """Run a block after those before it; a command of it does not read what is typed next."""
        assert self._process.stdin is not None
        self._typed += 1
        self.output = ""
        block = f"{{\n{text}}} </dev/null\nprintf '\\n[ended {self._typed}: %s]\\n' $?\n"
        self._process.stdin.write(block.encode())
        await self._process.stdin.drain()

    async def ended(self) -> int:
        """Wait until the block ends; its exit code."""
        while (code := self._code()) is None:
            await self._read("the end")
        return code

    async def shows(self, expected: str) -> None:
        """Wait until these lines were printed, in their order. AssertionError if they are not."""
        lines = [re.escape(" ".join(line.split())) for line in expected.splitlines()]
        patterns = [line.replace("…", "[^\\n]+?").replace(r"\ ", " +") for line in lines]
        compiled = re.compile(r".*\n(?:.*\n)*?.*?".join(patterns))
        while not compiled.search(self.output.partition(f"\n[ended {self._typed}")[0]):
            assert self._code() is None, f"{self.output}\nwithout\n{expected}"
            await self._read(expected)

    def _code(self) -> int | None:
        """The exit code of the block that was typed last, if it has ended."""
        found = re.search(rf"^\[ended {self._typed}: (\d+)\]$", self.output, re.MULTILINE)
        return None if found is None else int(found[1])

    async def _read(self, awaited: str) -> None:
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(PATIENT):
                read = await self._process.stdout.read(65536)
        except TimeoutError:
            read = b""
        assert read, f"{self.output}\nwithout {awaited}"
        self.output += read.decode()

    async def close(self) -> None:
        """End the shell and what runs in it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        async with asyncio.timeout(PATIENT):
            await self._process.communicate()
