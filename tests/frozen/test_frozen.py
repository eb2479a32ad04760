"""What each released version has written: this version opens, upgrades, serves and verifies it.

`make.py` says what the folders have. If a test fails here, the change breaks what people have: mend
the change, never a fixture.
"""

from __future__ import annotations

import asyncio
import io
import json
import lzma
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as listen

from dealer.client import connect
from dealer.client.connection import SUBPROTOCOL
from dealer.errors import HouseCheated
from dealer.gateway import serve as open_gateway
from dealer.service.build import open_service
from tests.frozen.make import FORGOTTEN, OPTIONS, verdict
from tests.harness.postgres import Postgres, in_a_thread
from tests.harness.programs import output_of
from tests.web.js_verifier import FILE, node

HERE = Path(__file__).parent
VERSIONS = sorted(path.parent.name for path in HERE.glob("*/tables.json"))
KINDS = ("open", "closed", "archived", "forgotten", "practice")
PRACTICE = 3
"""Exit code of both verifiers for a practice table without a fault."""

Where = tuple[str, Path, Path]
"""A database's URL, the file of its key, and the folder of its archive."""


@pytest.fixture(params=VERSIONS)
def frozen(request: pytest.FixtureRequest) -> Path:
    """The folder of a version."""
    return HERE / str(request.param)


def unpacked(archive: Path, to: Path) -> Path:
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(archive.read_bytes()))) as tar:
        tar.extractall(to, filter="data")
    return to


def tables(frozen: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((frozen / "tables.json").read_text("utf-8"))
    return found


def bundle(frozen: Path, kind: str) -> bytes:
    return lzma.decompress((frozen / f"{kind}.jsonl.xz").read_bytes())


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, frozen: Path, tmp_path: Path) -> Iterator[Where]:
    """A database of that version, with its key and archive, on a machine of today."""
    folder = unpacked(frozen / f"{request.param}.tar.xz", tmp_path / request.param)
    if request.param == "sqlite":
        key = folder / "dealer.db.key"
        yield f"sqlite:///{folder / 'dealer.db'}", key, folder / "archive"
        return
    server: Postgres = request.getfixturevalue("postgres")
    name = server.empty()
    url, key = server.url(name), folder / "dealer.key"
    restore(url, (folder / "dealer.sql").read_text("utf-8"))
    yield url, key, folder / "archive"
    server.drop(name)


def restore(url: str, dump: str) -> None:
    async def execute() -> None:
        import asyncpg

        connection = await asyncpg.connect(url)
        try:
            await connection.execute(dump)
        finally:
            await connection.close()

    in_a_thread(execute)


@pytest.mark.parametrize("kind", KINDS)
def test_both_verifiers_say_of_a_bundle_what_they_said(
    frozen: Path, kind: str, tmp_path: Path
) -> None:
    """The same verdict and the same swaps; of a changed bundle that it is faulty."""
    data = bundle(frozen, kind)
    assert verdict(data) == tables(frozen)["verdicts"][kind]
    file = tmp_path / "bundle.jsonl"
    for content, code in (
        (data, PRACTICE if kind == "practice" else 0),
        (data.replace(b'"TableOpened"', b'"TableOpenef"'), 1),
    ):
        file.write_bytes(content)
        for program in ((node(), FILE), (sys.executable, "-m", "dealer", "verify")):
            done = subprocess.run([*map(str, program), str(file)], capture_output=True)
            assert done.returncode == code, done.stdout + done.stderr


@pytest.mark.slow
def test_a_database_is_upgraded_rebuilt_audited_and_exported(
    where: Where, frozen: Path, tmp_path: Path
) -> None:
    url, key, archive = where
    on = ("--database", url)
    ids = tables(frozen)["sqlite" if url.startswith("sqlite") else "postgres"]

    def dealer(*arguments: object) -> str:
        return output_of(sys.executable, "-m", "dealer", *arguments)

    dealer("migrate", *on)
    assert "0 rows differed" in dealer("rebuild", *on)
    listed = [json.loads(line) for line in dealer("tables", "--json", *on).splitlines()]
    kept = {ids[kind] for kind in ("closed", "watched", "practice", "open")}
    assert {each["table"] for each in listed} >= kept
    assert "shop" in dealer("key", "list", *on)
    for kind in ("closed", "watched", "open"):
        dealer("audit", ids[kind], *on, "--house-key", key)
    for kind in ("archived", "forgotten"):
        history = dealer("history", archive / f"{ids[kind]}.jsonl")
        assert (FORGOTTEN in history) is (kind == "archived")
    if url.startswith("sqlite"):
        for kind in ("closed", "practice"):
            file = tmp_path / f"{kind}.jsonl"
            dealer("export", ids[kind], "-o", file, *on, "--house-key", key)
            assert file.read_bytes() == bundle(frozen, kind)


def test_a_database_is_served_and_its_open_table_is_played_to_the_end(
    where: Where, frozen: Path, tmp_path: Path
) -> None:
    """Its player comes back with what the client of that version kept, and its round is proved."""
    url, key, archive = where
    is_file = url.startswith("sqlite")
    ids = tables(frozen)["sqlite" if is_file else "postgres"]
    store = unpacked(frozen / "store.tar.xz", tmp_path / "store")

    async def play() -> None:
        output_of(sys.executable, "-m", "dealer", "migrate", "--database", url)
        async with (
            open_service(url, replace(OPTIONS, archive=archive), house_key=key) as service,
            open_gateway(service, port=0) as gateway,
        ):
            host = f"127.0.0.1:{gateway.port}"
            for kind in ("closed", "archived", "forgotten", "practice"):
                address = f"http://{host}/tables/{ids[kind]}/bundle.jsonl"
                served = await asyncio.to_thread(fetch, address)
                assert verdict(served)["fault"] is None
                assert not is_file or served == bundle(frozen, kind)
            if not is_file:  # the store is of a player at the other database
                return
            async with connect(f"ws://{host}/ws", store=store) as house:
                table = await house.resume(ids["open"])
                assert len(table.hand) == 2
                assert len(await table.draw(1)) == 1
                await table.round_close()
                await table.close()
                assert table.doubts == []

    asyncio.run(play())


def fetch(address: str) -> bytes:
    with urlopen(address, timeout=60) as answer:
        body: bytes = answer.read()
        return body


def test_a_session_of_a_client_is_replayed(frozen: Path) -> None:
    """The frames of that version's server; the client checks every event, swap and signed head."""
    text = lzma.decompress((frozen / "session.jsonl.xz").read_bytes()).decode()
    frames = [json.loads(line) for line in text.splitlines()]
    table_id = tables(frozen)["sqlite"]["watched"]
    version = max(versions(frames))

    async def replay(change: Callable[[str], str]) -> tuple[int, bool, list[str]]:
        async with listen(
            answers(frames, change), "127.0.0.1", 0, subprotocols=[SUBPROTOCOL]
        ) as server:
            (socket, *_) = server.sockets
            async with connect(f"ws://127.0.0.1:{socket.getsockname()[1]}/ws") as house:
                table = await house.watch(table_id)
                await table.until(lambda table: table.closed)
                return table.version, table.closed, table.doubts

    assert asyncio.run(replay(lambda text: text)) == (version, True, [])
    with pytest.raises(HouseCheated):
        asyncio.run(replay(lambda text: re.sub(r'("secret": ")..', r"\g<1>xx", text)))


def versions(frames: list[dict[str, Any]]) -> Iterator[int]:
    for frame in frames:
        params = frame.get("received", {}).get("params", {})
        yield from (event["version"] for event in params.get("list", [params]) if "type" in event)


def answers(
    frames: list[dict[str, Any]], change: Callable[[str], str]
) -> Callable[[ServerConnection], Any]:
    """A server that answers each request by the next recorded answer to its method.

    After it come the notifications up to the next recorded request.
    """

    async def serve(socket: ServerConnection) -> None:
        after: dict[str, list[list[dict[str, Any]]]] = {}
        for frame in frames:
            if "sent" in frame:
                latest: list[dict[str, Any]] = []
                after.setdefault(frame["sent"]["method"], []).append(latest)
            else:
                latest.append(frame["received"])
        async for message in socket:
            request = json.loads(message)
            known = after.get(request["method"])
            if not known:
                await socket.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {}}))
                continue
            for frame in known.pop(0):
                answer = frame | {"id": request["id"]} if "id" in frame else frame
                await socket.send(change(json.dumps(answer, ensure_ascii=False)))

    return serve
