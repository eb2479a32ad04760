"""Writes what this version has written into a folder of its own, for every later version to read.

    .venv/bin/python -m tests.frozen.make

makes `tests/frozen/<version>/`, once, before a release (.github/RELEASING.md). It needs the
programs of PostgreSQL. The folder has

- `sqlite.tar.xz`: an SQLite database with its key, its marks and its folder `archive`;
- `postgres.tar.xz`: a PostgreSQL database as SQL (`dealer.sql`), with its key and archive;
- `open.jsonl.xz`, `closed.jsonl.xz`, `archived.jsonl.xz`, `forgotten.jsonl.xz` and
  `practice.jsonl.xz`: a bundle of each kind, of the SQLite database;
- `store.tar.xz`: what the client of a player at the open table keeps, for `connect(store=…)`;
- `session.jsonl.xz`: each request and each frame of a client that watches the table `watched`;
- `tables.json`: the ids of the tables by kind, and the verdict on each bundle.
"""

from __future__ import annotations

import asyncio
import io
import json
import lzma
import sys
import tarfile
import tempfile
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any

from dealer.cli.demo_game import play
from dealer.client import House, RemoteTable, connect
from dealer.client.requests import PendingRequest
from dealer.gateway import Limits
from dealer.gateway import serve as open_gateway
from dealer.proof.bundle import read
from dealer.proof.verify import verify
from dealer.service.build import open_service
from dealer.service.service import ServiceOptions
from dealer.version import __version__
from tests.harness.limits import NO_RATES
from tests.harness.postgres import migrated, own_server, programs
from tests.harness.programs import output_of

HERE = Path(__file__).parent
OPTIONS = ServiceOptions(house="frozen.example")
FORGOTTEN = "Cleo"
"""The player of the demo game whose name the table `forgotten` withholds."""
FREE = {"preset": "free"}

Frames = list[dict[str, Any]]


def main() -> None:
    target = HERE / __version__
    target.mkdir()  # a frozen version is never made again
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = folder / "sqlite"
        files.mkdir()
        frames: Frames = []
        url, key = f"sqlite:///{files / 'dealer.db'}", files / "dealer.db.key"
        tables = asyncio.run(play_tables(url, key, folder / "store", frames))
        maintain(url, key, files / "archive", tables)
        bundles = export(url, key, files / "archive", tables, folder)
        pack(target / "sqlite.tar.xz", files)
        pack(target / "store.tar.xz", folder / "store")
        lines = "".join(json.dumps(frame) + "\n" for frame in frames)
        (target / "session.jsonl.xz").write_bytes(lzma.compress(lines.encode(), preset=9))
        for kind, bundle in bundles.items():
            (target / f"{kind}.jsonl.xz").write_bytes(lzma.compress(bundle, preset=9))
        verdicts = {kind: verdict(bundle) for kind, bundle in bundles.items()}
        on_postgres = freeze_postgres(folder, target)
        found = {"sqlite": tables, "postgres": on_postgres, "verdicts": verdicts}
        (target / "tables.json").write_text(json.dumps(found, indent=2) + "\n", "utf-8")


def freeze_postgres(folder: Path, target: Path) -> dict[str, str]:
    """The same tables on a PostgreSQL server, dumped as SQL; their ids."""
    files = folder / "postgres"
    files.mkdir()
    with own_server() as server:
        name = server.empty()
        url, key = server.url(name), files / "dealer.key"
        migrated(url)
        tables = asyncio.run(play_tables(url, key, folder / "unused", []))
        maintain(url, key, files / "archive", tables)
        options = ("--no-owner", "--no-privileges", "--no-comments", "--rows-per-insert=100")
        dump = output_of(programs() / "pg_dump", *options, "-d", url)
    # What only psql reads, and settings that another release of the server may not know.
    kept = [line for line in dump.splitlines() if not line.startswith(("\\", "SET ", "--"))]
    (files / "dealer.sql").write_text("\n".join(kept) + "\n", "utf-8")
    # The marks name this server: on any other its tables would be closed, as those of a copy.
    for mark in files.glob("*.mark.*"):
        mark.unlink()
    pack(target / "postgres.tar.xz", files)
    return tables


async def play_tables(url: str, key: Path, store: Path, frames: Frames) -> dict[str, str]:
    """Play a table of each kind; the ids by kind. `frames` gets the session of a spectator."""
    async with (
        open_service(url, OPTIONS, house_key=key) as service,
        open_gateway(service, port=0, limits=Limits(**NO_RATES)) as gateway,
        AsyncExitStack() as stack,
    ):
        address = f"ws://127.0.0.1:{gateway.port}/ws"
        tables = {name: await play(address, lambda _: None) for name in ("closed", "archived")}
        tables["forgotten"] = await play(address, lambda _: None)

        houses = connect(address, name="Ada", store=store), connect(address), connect(address)
        record(houses[2], frames)
        ada, bob, eve = [await stack.enter_async_context(house) for house in houses]
        watched = await ada.join(await ada.open(deck="52", seats=2, rules=FREE))
        tables["watched"] = watched.id
        seen = await eve.watch(watched.id)
        await a_round(watched, await bob.join(watched.id, name="Bob"))
        await watched.close()
        await seen.until(lambda table: table.closed)
        await seen.sealed()
        source = {"table": tables["closed"], "round": 1}
        practice = await ada.join(await ada.open(from_=source))
        await practice.note("said", "What if?")
        await practice.close()
        tables["practice"] = practice.id
        still = await ada.join(await ada.open(deck="52", seats=2, rules=FREE))
        await begin(still, await bob.join(still.id, name="Bob"))
        tables["open"] = still.id
        await service.projection.up_to_date()
    return tables


async def begin(ada: RemoteTable, bob: RemoteTable) -> None:
    """A round with a proved shuffle, and two cards in the hand of each."""
    await ada.round_open()
    await ada.shuffle()
    await ada.draw(2)
    await bob.draw(2)


async def a_round(ada: RemoteTable, bob: RemoteTable) -> None:
    """A round with moves of several kinds, played to its end."""
    await begin(ada, bob)
    await ada.note("said", "Good luck – bonne chance!")
    await ada.discard(ada.hand[:1])
    await bob.play(bob.hand[:1])
    await bob.draw(1, end="random")
    await ada.show(ada.hand)
    await ada.round_close()


def record(house: House, frames: Frames) -> None:
    """Keep what this client sends and receives, in order."""
    connection = house._connection
    send, receive = connection._send, connection._receive

    def sending(request: PendingRequest) -> None:
        before = request.sent
        send(request)
        if request.sent and not before:
            frames.append({"sent": request.frame()})

    def received(text: str | bytes) -> None:
        frames.append({"received": json.loads(text)})
        receive(text)

    connection._send = sending  # type: ignore[method-assign]
    connection._receive = received  # type: ignore[method-assign]


def dealer(*arguments: object) -> str:
    return output_of(sys.executable, "-m", "dealer", *arguments)


def maintain(url: str, key: Path, archive: Path, tables: dict[str, str]) -> None:
    """What an operator has done: a key of a service, a disabled table, two archived ones."""
    archive.mkdir()
    on, why = ("--database", url), ("--why", "frozen")
    dealer("key", "add", "shop", "--may", "open,read", *on)
    dealer("tables", "disable", tables["open"], *why, *on)
    dealer("tables", "archive", tables["archived"], "--to", archive, *on)
    forget = ("--forget", FORGOTTEN)
    dealer("tables", "archive", tables["forgotten"], "--to", archive, *forget, *why, *on)


def export(
    url: str, key: Path, archive: Path, tables: dict[str, str], folder: Path
) -> dict[str, bytes]:
    """A bundle of each kind."""
    bundles = {}
    for kind in ("open", "closed", "practice"):
        file = folder / f"{kind}.jsonl"
        dealer("export", tables[kind], "-o", file, "--database", url, "--house-key", key)
        bundles[kind] = file.read_bytes()
    for kind in ("archived", "forgotten"):
        bundles[kind] = (archive / f"{tables[kind]}.jsonl").read_bytes()
    return bundles


def verdict(bundle: bytes) -> dict[str, Any]:
    """What the verifier says, with a digest of every swap that it recomputed."""
    report = verify(read(bundle))
    swaps = sha256(repr([(swap.version, swap.i, swap.j) for swap in report.swaps]).encode())
    return {
        "fault": None if report.fault is None else str(report.fault),
        "practice": report.practice is not None,
        "swaps": len(report.swaps),
        "swaps_digest": swaps.hexdigest(),
        "withheld": len(report.withheld_parts),
    }


def pack(archive: Path, folder: Path) -> None:
    """An archive of a folder's files, without their times and owners."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = tarfile.TarInfo(str(path.relative_to(folder)))
                entry.size, entry.mode = path.stat().st_size, path.stat().st_mode & 0o777
                tar.addfile(entry, io.BytesIO(path.read_bytes()))
    archive.write_bytes(lzma.compress(stream.getvalue(), preset=9))


if __name__ == "__main__":
    main()
