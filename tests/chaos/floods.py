"""Floods of traffic that no real client sends; the game continues, and memory stays bounded.

    python tests/chaos/floods.py 300

The count is the number of connections for each kind of flood: silent connections, handshakes sent
byte by byte, giant headers, frames that claim a huge length, broken, unmasked or endlessly
fragmented frames, and text that is not UTF-8. A table is played at meanwhile. Memory is that of the
server process in MiB, after a first wave that warms it up and after all others.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.chaos.stuck import HANDSHAKE, Table
from tests.gateway.rpc_client import RpcClient
from tests.harness import process
from tests.harness.limits import NO_RATES_OPTIONS
from tests.harness.script import run
from tests.harness.server_process import PATIENT, ServerProcess

AT_ONCE = 100
"""Connections of a flood that are open at the same time."""

GROWTH = 2.0
"""Most MiB by which the process may have grown at the end."""


@dataclass
class Figures:
    """`closed_by_the_server` are the connections that the server ended."""

    connections: int = 0
    closed_by_the_server: int = 0
    draws_meanwhile: int = 0
    memory_before: float = 0.0
    memory_at_most: float = 0.0
    memory_after: float = 0.0
    faults: list[str] = field(default_factory=list)


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Flood = Callable[[Stream, random.Random], Awaitable[None]]


async def send(stream: Stream, data: bytes) -> None:
    stream[1].write(data)
    await stream[1].drain()


async def silence(stream: Stream, chance: random.Random) -> None:
    """Send nothing, and never close."""


async def slow_handshake(stream: Stream, chance: random.Random) -> None:
    for byte in HANDSHAKE.encode():
        await send(stream, bytes([byte]))
        await asyncio.sleep(0.02)


async def giant_headers(stream: Stream, chance: random.Random) -> None:
    head = HANDSHAKE.encode()[:-2]
    await send(stream, head + b"X-Flood: " + b"a" * 2**20)
    await send(stream, b"\r\n" + b"".join(b"X-%d: b\r\n" % n for n in range(10_000)))


async def garbage(stream: Stream, chance: random.Random) -> None:
    await send(stream, chance.randbytes(64 * 1024))


async def _handshake(stream: Stream) -> None:
    await send(stream, HANDSHAKE.encode())
    await stream[0].readuntil(b"\r\n\r\n")


def frame(first: int, data: bytes, *, length: int | None = None, mask: bool = True) -> bytes:
    """A frame with this first byte and a header that claims `length` bytes."""
    claimed = len(data) if length is None else length
    head = bytes([first, (0x80 if mask else 0) | 127]) + claimed.to_bytes(8, "big")
    return head + (bytes(4) if mask else b"") + data


async def huge_frames(stream: Stream, chance: random.Random) -> None:
    await _handshake(stream)
    await send(stream, frame(0x81, b"a" * 2**18, length=chance.choice((2**62, 2**31, 2**18))))


async def fragments(stream: Stream, chance: random.Random) -> None:
    await _handshake(stream)
    await send(stream, frame(0x01, b"{") + frame(0x00, b" " * chance.choice((0, 200))) * 10_000)


async def bad_frames(stream: Stream, chance: random.Random) -> None:
    await _handshake(stream)
    wrong = (
        frame(0x81, b"{}", mask=False),
        frame(0xF1, b"{}"),
        frame(0x83, b"{}"),
        frame(0x80, b"{}"),
        frame(0x09, b"a"),
        frame(0x89, b"a" * 126),
        frame(0x88, b"\x03"),
        frame(0x88, b"\x03\xe8\xff\xfe"),
        frame(0x81, b"{}", length=2**63 + 2),
    )
    await send(stream, chance.choice(wrong) * 100)


async def not_text(stream: Stream, chance: random.Random) -> None:
    await _handshake(stream)
    await send(stream, frame(0x81, b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}') * 300)
    await send(stream, frame(0x82, b"\x00" * 1000) * 10)


async def pings(stream: Stream, chance: random.Random) -> None:
    """Send ten thousand pings and read no answer."""
    await _handshake(stream)
    await send(stream, frame(0x89, b"a" * 100) * 10_000)


FLOODS: tuple[Flood, ...] = (
    silence,
    slow_handshake,
    giant_headers,
    garbage,
    huge_frames,
    fragments,
    bad_frames,
    not_text,
    pings,
)


async def flood(folder: Path, *, connections: int, seed: int) -> Figures:
    """Flood a server with this many connections of each kind, while a table is played at."""
    figures, chance = Figures(), random.Random(seed)
    limits = (*NO_RATES_OPTIONS, "closing=0.5", "opening=1", "sending=2")
    async with ServerProcess(folder, limit=(*limits, "connections_per_address=100000")) as server:
        table = Table()
        await table.sit_down(server.port)
        enough = asyncio.Event()
        playing = asyncio.create_task(play(table, enough, figures))
        watching = asyncio.create_task(watch(server, enough, figures))
        few = min(20, connections)
        await asyncio.gather(*(wave(server.port, kind, few, chance, Figures()) for kind in FLOODS))
        figures.memory_before = memory(server.pid)
        for kind in FLOODS:
            if playing.done():
                break
            before = figures.draws_meanwhile
            await wave(server.port, kind, connections, chance, figures)
            async with asyncio.timeout(PATIENT):
                # The flood runs in another process, so that the game's event loop stays free.
                while figures.draws_meanwhile == before and not playing.done():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        enough.set()
        await asyncio.gather(playing, watching)
        newcomer = await RpcClient.connect(server.port)
        await newcomer.call("ping")
        await newcomer.close()
        figures.memory_after = memory(server.pid)
        await table.player.close()
        await table.host.close()
    figures.memory_at_most = max(figures.memory_at_most, figures.memory_after)
    if figures.memory_after > GROWTH * figures.memory_before:
        figures.faults.append("the process has grown")
    if "Traceback" in server.output.read_text():
        figures.faults.append(f"{server.output} has a traceback")
    return figures


async def wave(
    port: int, kind: Flood, connections: int, chance: random.Random, figures: Figures
) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one() -> None:
        async with gate:
            figures.connections += 1
            with suppress(OSError):
                stream = await asyncio.open_connection("127.0.0.1", port)
                try:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(8):
                            await kind(stream, chance)
                            while await stream[0].read(2**16):
                                pass
                            figures.closed_by_the_server += 1
                except (ConnectionError, asyncio.IncompleteReadError):
                    figures.closed_by_the_server += 1
                finally:
                    stream[1].transport.abort()

    await asyncio.gather(*(one() for _ in range(connections)))


async def play(table: Table, enough: asyncio.Event, figures: Figures) -> None:
    while not enough.is_set():
        await table.draw()
        figures.draws_meanwhile += 1


async def watch(server: ServerProcess, enough: asyncio.Event, figures: Figures) -> None:
    while not enough.is_set():
        figures.memory_at_most = max(figures.memory_at_most, memory(server.pid))
        with suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await enough.wait()


def memory(pid: int) -> float:
    """MiB of physical memory in use (RSS), to one decimal place."""
    return round(process.rss(pid), 1)


if __name__ == "__main__":
    sys.exit(run(__doc__, flood, count="connections", default=300))
