"""Power cuts under a PostgreSQL server; nothing that was acknowledged is lost.

    python tests/consistency/powercut_postgres.py 20

A node plays with real clients. At a random moment the newest version that a client has is noted,
then how far the server has synced its log; all its processes are stopped and its files copied. The
disk after the cut is made of that copy and of one from the last checkpoint: of each sector that
was written since, either may be there, as nothing but the log had to be synced, and of the log
beyond what was synced any sector may be missing. A page of 8 KiB is so torn into parts. A server
recovers from that disk, and the log that it then has is compared with what the clients had.

Every fourth cut is repeated with full_page_writes=off, which shows that pages are really torn.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.chaos.feeds import read_leaves
from tests.chaos.game_under_faults import play
from tests.harness.nodes import Nodes
from tests.harness.ports import unused_port
from tests.harness.postgres import OwnServer, own_server, programs
from tests.harness.script import run
from tests.harness.table_of_clients import Clients, connect_clients

SECTOR = 512
EVENTS_MOST = 400
"""Events between a checkpoint and a cut."""

SETTINGS = (
    "checkpoint_timeout=1d",
    "max_wal_size=4GB",
    "wal_recycle=off",
    "shared_buffers=1MB",
    "bgwriter_delay=10ms",
    "bgwriter_lru_maxpages=1000",
    "bgwriter_lru_multiplier=10",
)
"""No checkpoint but those of the trial; so few buffers that pages are written between them."""

LOOSE = "full_page_writes=off"


@dataclass
class Figures:
    """`torn` counts pages with sectors of both copies; the others are of cuts.

    `damaged_without` are the cuts after which a server without full pages in its log did not have
    what was acknowledged, or did not start.
    """

    cuts: int = 0
    events: int = 0
    unacknowledged: int = 0
    torn: int = 0
    lost: int = 0
    cuts_without_full_pages: int = 0
    damaged_without: int = 0
    faults: list[str] = field(default_factory=list)


async def cut_postgres(folder: Path, *, cuts: int, seed: int) -> Figures:
    """Cut the power this often, and a quarter as often without full pages."""
    figures, chance = Figures(), random.Random(seed)
    await _trial(folder / "full", cuts, chance, figures, SETTINGS)
    loose = Figures()
    figures.cuts_without_full_pages = max(2, cuts // 4)
    await _trial(
        folder / "loose", figures.cuts_without_full_pages, chance, loose, (*SETTINGS, LOOSE)
    )
    figures.damaged_without = len(loose.faults)
    return figures


async def _trial(
    folder: Path, cuts: int, chance: random.Random, figures: Figures, settings: tuple[str, ...]
) -> None:
    await asyncio.to_thread(folder.mkdir)
    with (
        own_server(safe=True, port=unused_port(), settings=settings) as server,
        tempfile.TemporaryDirectory(prefix="dealer-cut-") as disk,
    ):
        os.chmod(disk, 0o755)  # the server does not run as root
        name = await asyncio.to_thread(server.database)
        async with (
            Nodes(folder, count=1, place=(server, server.url(name))) as nodes,
            connect_clients(nodes.url) as clients,
        ):
            await clients.sit_down(seats=len(clients.players))
            enough = asyncio.Event()
            playing = asyncio.create_task(play(clients, enough))
            for number in range(cuts):
                where = f"cut {number}"
                await _cut(server, name, clients, Path(disk), chance, figures, where, settings)
            enough.set()
            await playing


async def _cut(
    server: OwnServer,
    name: str,
    clients: Clients,
    place: Path,
    chance: random.Random,
    figures: Figures,
    where: str,
    settings: tuple[str, ...],
) -> None:
    await asyncio.to_thread(server.ask, "postgres", "CHECKPOINT")
    old, new = place / "old", place / "new"
    for left in (old, place / "data"):
        shutil.rmtree(left, ignore_errors=True)
    await asyncio.to_thread(_copy_stopped, server, old)
    table = clients.spectator.table
    upto = table.version + chance.randrange(1, EVENTS_MOST)
    await table.until(lambda table: table.version >= upto)
    known = max(client.table.version for client in clients.clients)
    ((segment, offset),) = await asyncio.to_thread(
        server.ask,
        "postgres",
        "SELECT * FROM pg_walfile_name_offset(pg_current_wal_flush_lsn())",
    )
    await asyncio.to_thread(_copy_stopped, server, new)
    figures.torn += await asyncio.to_thread(_merge, old, new, segment, offset, chance)
    figures.cuts += 1
    figures.events += known
    try:
        found = await _recovered(new, name, clients.id, settings)
    except Exception as error:
        figures.faults.append(f"{where}: the server does not recover: {error!r}")
        return
    figures.unacknowledged += max(0, len(found) - known)
    if len(found) < known:
        figures.lost += 1
        figures.faults.append(f"{where}: {known} events acknowledged, {len(found)} found")
    bundle = {leaf: version for version, leaf in found.items()}
    if len(bundle) != len(found) or sorted(found) != list(range(1, len(found) + 1)):
        figures.faults.append(f"{where}: the log has a gap")


def _copy_stopped(server: OwnServer, into: Path) -> None:
    """The files as they are at one moment: no process of the server runs meanwhile."""
    numbers = [server.pid, *_children(server.pid)]
    for number in numbers:
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGSTOP)
    try:
        shutil.copytree(server.folder / "data", into, symlinks=True)
    finally:
        for number in numbers:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGCONT)
    (into / "postmaster.pid").unlink(missing_ok=True)


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _merge(old: Path, new: Path, segment: str, offset: int, chance: random.Random) -> int:
    """Make `new` a disk that the cut may leave; the number of torn pages."""
    kept = chance.choice((0.0, 0.2, 0.5, 0.8, 1.0))
    torn = 0
    for file in sorted(new.rglob("*")):
        relative = file.relative_to(new)
        top = relative.parts[0]
        if not file.is_file() or top in ("global", "pg_stat", "pg_notify", "pg_dynshmem"):
            continue
        if top == "pg_wal":
            _cut_log(file, segment, offset, kept, chance)
        elif top in ("base", "pg_xact"):
            torn += _mix(old / relative, file, kept, chance)
    return torn


def _cut_log(file: Path, segment: str, offset: int, kept: float, chance: random.Random) -> None:
    """Drop sectors of the log beyond what was synced."""
    if len(file.name) != 24 or file.name < segment:
        return
    content = bytearray(file.read_bytes())
    first = -(-offset // SECTOR) * SECTOR if file.name == segment else 0
    for at in range(first, len(content), SECTOR):
        if chance.random() >= kept:
            content[at : at + SECTOR] = bytes(SECTOR)
    file.write_bytes(content)


def _mix(old: Path, new: Path, kept: float, chance: random.Random) -> int:
    """Of each sector that differs take one of the two; a file that is new may be short."""
    before = old.read_bytes() if old.exists() else b""
    after = bytearray(new.read_bytes())
    if before == after:
        return 0
    pages: dict[int, set[bool]] = {}
    for at in range(0, len(after), SECTOR):
        earlier = before[at : at + SECTOR]
        if after[at : at + SECTOR] != earlier and len(earlier) == SECTOR:
            stays = chance.random() < kept
            pages.setdefault(at // 8192, set()).add(stays)
            if not stays:
                after[at : at + SECTOR] = earlier
    new.write_bytes(after)
    return sum(len(kinds) == 2 for kinds in pages.values())


async def _recovered(
    data: Path, name: str, table: str, settings: tuple[str, ...]
) -> dict[int, str]:
    """The leaves that a server finds on this disk, by version."""

    def place() -> Any:
        server = OwnServer(
            data.parent, programs(), safe=True, port=unused_port(), settings=settings
        )
        target = data.parent / "data"
        data.rename(target)
        user = server.user_of_process()
        if user:
            for each in (target, *target.rglob("*")):
                os.chown(each, user["user"], user["group"], follow_symlinks=False)
        target.chmod(0o700)
        server.start()
        return server

    server = await asyncio.to_thread(place)
    try:
        leaves = await read_leaves(server.url(name))
        return leaves[table]
    finally:
        await asyncio.to_thread(server.stop)


if __name__ == "__main__":
    sys.exit(run(__doc__, cut_postgres, count="cuts", default=20))
