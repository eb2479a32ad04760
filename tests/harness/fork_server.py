"""Starts Python programs by forking a process that has imported the modules of `dealer`.

Imports are four fifths of the processor time of a start, and all tests together start hundreds of
servers. The process that is forked has no threads, no sockets and no event loop of its own.
"""

from __future__ import annotations

import asyncio
import os
import runpy
import signal
import sys
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path

_context = get_context("forkserver")
_context.set_forkserver_preload([__name__, "tests.harness.preloaded"])


@dataclass(frozen=True, slots=True)
class Program:
    """What `python` runs with these arguments: `-m MODULE …`, `-c CODE …` or `FILE …`.

    `variables` are set beside those of this process. What the program prints on standard output and
    standard error is appended to the file `output`.
    """

    arguments: tuple[str, ...]
    folder: Path
    variables: dict[str, str]
    output: Path


class ForkedProcess:
    """A started program."""

    def __init__(self, process: ForkServerProcess) -> None:
        assert process.pid is not None
        self.pid = process.pid
        self._process = process

    @property
    def exit_code(self) -> int | None:
        """None while it runs; -9 after SIGKILL."""
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the program has ended."""
        if self.exit_code is None:
            os.kill(self.pid, number)

    async def wait(self) -> int:
        """Wait until the program ends; its exit code."""
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._process.sentinel, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._process.sentinel)
        assert self.exit_code is not None
        return self.exit_code


def start(program: Program) -> ForkedProcess:
    """Start a program, which ends with this process if it is still running.

    The first call also starts the process that is forked, and waits for its imports.
    """
    process = _context.Process(target=_run, args=(program, dict(os.environ)), daemon=True)
    process.start()
    return ForkedProcess(process)


def _run(program: Program, environment: dict[str, str]) -> None:
    """Become the program, in the forked process."""
    output = os.open(program.output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in (1, 2):
        os.dup2(output, number)
    os.close(output)
    os.chdir(program.folder)
    os.environ.clear()
    os.environ.update(environment | program.variables)
    if not all(name.startswith("DEALER_") for name in program.variables):
        # LD_PRELOAD, for example, is read only when a program is loaded.
        os.execv(sys.executable, [sys.executable, "-u", *program.arguments])
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    kind, *rest = program.arguments
    if kind == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = [kind, *rest[1:]]
        exec(rest[0], {"__name__": "__main__"})
    else:
        sys.argv = [kind, *rest]
        runpy.run_path(kind, run_name="__main__")
