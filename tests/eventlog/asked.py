"""Short ways to say what the tests ask of a log."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Coroutine, Generator
from pathlib import Path
from types import coroutine
from typing import Any

from dealer.eventlog import Append, Row

A, B, C = (letter * 16 for letter in (b"a", b"b", b"c"))
_ROOT = Path(__file__).parents[2]


def row(version: int, public: str = "{}", *, command: str | None = None) -> Row:
    digest = None if command is None else b"digest of " + command.encode()
    return Row(version, "Said", 1, 1000 + version, public, command=command, digest=digest)


def append(table: bytes, expected: int, *words: str, command: str | None = None) -> Append:
    """An append of one event for each word, or of one event."""
    rows = [
        row(expected + place, word, command=command if place == 1 else None)
        for place, word in enumerate(words or ("{}",), 1)
    ]
    return Append(table, expected, rows)


def other_process(*arguments: str) -> subprocess.Popen[str]:
    """Another process of the house, doing what `other_process.py` calls by that name."""
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("other_process.py")), *arguments],
        env=os.environ | {"PYTHONPATH": str(_ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@coroutine
def cancelled_at(work: Coroutine[Any, Any, Any], suspension: int) -> Generator[Any, Any, Any]:
    """`work` in a task that is cancelled while it waits for the nth time, counted from 0."""
    task = asyncio.current_task()
    assert task is not None
    given, thrown, count = None, None, 0
    while True:
        try:
            waits_for = work.send(given) if thrown is None else work.throw(thrown)
        except StopIteration as done:
            return done.value
        if count == suspension:
            asyncio.get_running_loop().call_soon(task.cancel)
        count += 1
        given = thrown = None
        try:
            given = yield waits_for
        except BaseException as error:
            thrown = error
