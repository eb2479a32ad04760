"""Child process that makes a history: `python -m dealer.history`.

Verifying a bundle takes seconds of processor time and two kilobytes of memory per event, for a
request that any client may send: a child process neither delays players nor enlarges the server.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from dealer.errors import DatabaseDamaged, HistoryUnavailable, Unavailable

SECONDS = 120.0
"""Timeout of the process."""

NICENESS = 10
"""Niceness of the process, so that it does not slow the server down."""

_PACKAGES = str(Path(__file__).parents[3])

NO_HISTORY = 1
"""Exit code where there is no such history; standard error has the reason."""


async def make_history(
    blocks: AsyncIterator[bytes], *, form: str, language: str, round: int | None
) -> bytes:
    """The history of the bundle that consists of `blocks`, compressed with gzip.

    `form` is text or phh, `language` the tag of a language. Raises HistoryUnavailable where there
    is none, DatabaseDamaged if the bundle fails verification, Unavailable after `SECONDS`.
    Cancelling it ends the process.
    """
    arguments = [form, language, *([] if round is None else [str(round)])]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "dealer.history", *arguments),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={"PYTHONPATH": _PACKAGES},  # without the secrets in ours
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
        raise HistoryUnavailable(said.decode())
    if code:
        raise DatabaseDamaged(said.decode(errors="replace")[-1000:])
    return made


async def _feed(process: Process, blocks: AsyncIterator[bytes]) -> None:
    assert process.stdin is not None
    # A process that ended early reports the reason itself.
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
