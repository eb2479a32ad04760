"""Histories are made by a process of their own, `python -m dealer.history`.

Verifying a bundle takes seconds of CPU and two kilobytes of memory an event, for a request that
any client may send: the process neither delays players nor leaves the server any larger.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from dealer.errors import DatabaseDamaged, NoHistory, Unavailable

SECONDS = 120.0
"""How long a process may take."""

NICENESS = 10
"""Its priority: players come first."""

_PACKAGES = str(Path(__file__).parents[2])

NO_HISTORY = 1
"""Its exit code where there is no such history; standard error says why."""


async def make_history(blocks: AsyncIterator[bytes], *, form: str, round: int | None) -> bytes:
    """The history of the bundle that `blocks` make up, gzipped.

    `form` is text or phh. Raises NoHistory where there is none, DatabaseDamaged if the bundle does
    not hold, Unavailable if it took too long. When it is cancelled the process ends, too.
    """
    arguments = [form] if round is None else [form, str(round)]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "dealer.history", *arguments),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={"PYTHONPATH": _PACKAGES},  # and no password of ours
    )
    reading = asyncio.gather(_read(process.stdout), _read(process.stderr))
    try:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        async with asyncio.timeout(SECONDS):
            await _feed(process, blocks)
            made, said = await reading
            code = await process.wait()
    except TimeoutError:
        raise Unavailable("This history took too long to make; try again later.") from None
    finally:
        await _end(process)
        await asyncio.gather(reading, return_exceptions=True)
    if code == NO_HISTORY:
        raise NoHistory(said.decode())
    if code:
        raise DatabaseDamaged(said.decode(errors="replace")[-1000:])
    return made


async def _feed(process: Process, blocks: AsyncIterator[bytes]) -> None:
    assert process.stdin is not None
    # A process that ended early says why itself.
    with suppress(ConnectionError):
        async for block in blocks:
            process.stdin.write(block)
            await process.stdin.drain()
    process.stdin.close()


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    assert stream is not None
    return await stream.read()


async def _end(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
