"""Helpers that build rows and appends, start other processes and cancel coroutines."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Coroutine, Generator
from pathlib import Path
from types import coroutine
from typing import Any

from dealer.eventlog import Append, EventRecord

A, B, C = (letter * 16 for letter in (b"a", b"b", b"c"))
_ROOT = Path(__file__).parents[2]


def row(version: int, public: str = "{}", *, command: str | None = None) -> EventRecord:
    digest = None if command is None else b"digest of " + command.encode()
    return EventRecord(version, "Said", 1, 1000 + version, public, command=command, digest=digest)


def append(table: bytes, expected: int, *words: str, command: str | None = None) -> Append:
    """An append of one event for each word, or of one event if there are none."""
    rows = [
        row(expected + offset, word, command=command if offset == 1 else None)
        for offset, word in enumerate(words or ("{}",), 1)
    ]
    return Append(table, expected, rows)


def other_process(*arguments: str) -> subprocess.Popen[str]:
    """A process that runs the function of this name in `child_process.py`."""
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("child_process.py")), *arguments],
        env=os.environ | {"PYTHONPATH": str(_ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


async def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that another process writes."""
    assert process.stdout is not None
    return await asyncio.to_thread(process.stdout.readline)


@coroutine
def cancelled_at(work: Coroutine[Any, Any, Any], suspension: int) -> Generator[Any, Any, Any]:
    """Run `work` and cancel its task at its nth suspension, counted from 0."""
    task = asyncio.current_task()
    assert task is not None
    value, thrown, count = None, None, 0
    while True:
        try:
            awaited = work.send(value) if thrown is None else work.throw(thrown)
        except StopIteration as done:
            return done.value
        if count == suspension:
            asyncio.get_running_loop().call_soon(task.cancel)
        count += 1
        value = thrown = None
        try:
            value = yield awaited
        except BaseException as error:
            thrown = error
