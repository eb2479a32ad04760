"""Downloads of bundles that are resumed, over real sockets, and what may change has no ranges."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from websockets.datastructures import Headers
from websockets.http11 import Request

from dealer.cli.commands.tables import archive_tables
from dealer.gateway import Gateway
from dealer.gateway.pages.bundles import Measured, first_byte
from dealer.proof.checkpoint import Cosigner
from dealer.proof.verify import verify
from dealer.service.build import open_service
from dealer.service.service import ServiceOptions
from tests.gateway.conftest import TEST_LIMITS, serving
from tests.gateway.http_client import HttpResponse, get
from tests.gateway.rpc_client import eventually
from tests.gateway.tables import SeatedTable, seat_and_shuffle
from tests.gateway.test_slow_clients import shuffle_until, watched_table
from tests.harness.installed import program

pytestmark = pytest.mark.slow

COSIGNER = Cosigner(bytes(range(32)))
TAG = '"abc"'
SHOE = {"decks": 8}


BUNDLE = Measured(TAG, 100)


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ("bytes=0-", 0),
        ("bytes=10-", 10),
        ("Bytes=0010-", 10),
        ("bytes=100-", 100),
        (f"bytes={'9' * 5000}-", None),
        ("bytes=0-0", None),
        ("bytes=-1", None),
        ("bytes=10-,20-", None),
        ("bytes=-", None),
        ("bytes 10-", None),
        ("bytes=a-", None),
        ("bytes=\xb2-", None),
        ("lines=0-", None),
        ("", None),
    ],
)
def test_the_rest_of_a_bundle_is_a_range_and_others_are_ignored(
    given: str, first: int | None
) -> None:
    assert first_byte(Request("/", Headers(Range=given)), BUNDLE) == first
    assert first_byte(Request("/", Headers(Range=given), "HEAD"), BUNDLE) is None
    twice = Headers([("Range", given), ("Range", "bytes=2-")])
    assert first_byte(Request("/", twice), BUNDLE) is None


@pytest.mark.parametrize(
    ("condition", "partial"),
    [
        (TAG, True),
        (f" {TAG} ", True),
        (f"W/{TAG}", False),
        ('"abd"', False),
        ("abc", False),
        ("*", False),
        ("Thu, 01 Jan 2099 00:00:00 GMT", False),
        ("", False),
    ],
)
def test_the_rest_of_something_else_is_the_whole(condition: str, partial: bool) -> None:
    request = Request("/", Headers(Range="bytes=5-"))
    request.headers["If-Range"] = condition
    assert first_byte(request, BUNDLE) == (5 if partial else None)


@pytest.fixture
async def archiving(tmp_path: Path) -> AsyncIterator[Gateway]:
    """A gateway on `dealer.db` that serves the folder `archive`."""
    folder = tmp_path / "archive"
    folder.mkdir()
    async with serving(
        open_service(f"sqlite:///{tmp_path / 'dealer.db'}", ServiceOptions(archive=folder))
    ) as one:
        yield one


async def archive(tmp_path: Path, table: SeatedTable) -> None:
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    assert await archive_tables(url, tmp_path / "archive", table.id, None, "", "test") == (1, [])


async def closed(connect: Any, gateway: Any, **rules: Any) -> SeatedTable:
    table = await seat_and_shuffle(connect, gateway, players=1, **rules)
    await table.host.call("round.close")
    await table.host.call("table.close")
    return table


def without_framing(answer: HttpResponse) -> dict[str, str]:
    return {name: text for name, text in answer.headers.items() if name != "transfer-encoding"}


async def test_a_download_of_the_bundle_of_a_closed_table_goes_on(gateway, connect) -> None:
    table = await closed(connect, gateway)
    path = f"/tables/{table.id}/bundle.jsonl"
    whole = await get(gateway.port, path)
    assert (whole.status, verify(whole.text.splitlines()).fault) == (200, None)
    assert whole.headers["accept-ranges"] == "bytes"
    assert whole.headers["content-length"] == str(len(whole.body))
    assert whole.headers["vary"] == "Accept-Encoding"
    etag, total = whole.headers["etag"], len(whole.body)
    assert etag.startswith('"')
    for first in (0, 1, 7001, total - 1):
        asked = {"Range": f"bytes={first}-", "Accept_Encoding": "gzip", "If_Range": etag}
        rest = await get(gateway.port, path, **asked)
        assert (rest.status, rest.body) == (206, whole.body[first:])
        assert rest.headers["etag"] == etag
        assert rest.headers["content-range"] == f"bytes {first}-{total - 1}/{total}"
        assert rest.headers["content-length"] == str(len(rest.body))
        assert "content-encoding" not in rest.headers
    beyond = await get(gateway.port, path, Range=f"bytes={total}-")
    assert (beyond.status, beyond.headers["content-range"]) == (416, f"bytes */{total}")
    for headers in ({"Range": "bytes=0-1"}, {"Range": "bytes=1-", "If_Range": '"other"'}):
        again = await get(gateway.port, path, **headers)
        assert (again.status, again.body) == (200, whole.body)


async def test_head_has_the_headers_of_get(gateway, connect) -> None:
    table = await closed(connect, gateway)
    other = await seat_and_shuffle(connect, gateway, players=1)
    hidden = await closed(connect, gateway, watch="nobody")
    token = {"Authorization": f"Bearer {hidden.tokens[0]}"}
    for path, headers in (
        (f"/tables/{table.id}/bundle.jsonl", {}),
        (f"/tables/{table.id}/bundle.jsonl", {"Accept_Encoding": "gzip"}),
        (f"/tables/{table.id}/history.txt", {}),
        (f"/tables/{table.id}/round-1.txt", {"Accept_Encoding": "gzip"}),
        (f"/tables/{other.id}/bundle.jsonl", {}),
        (f"/tables/{other.id}/bundle.jsonl", {"Accept_Encoding": "gzip"}),
        (f"/tables/{other.id}/history.txt", {}),
        (f"/tables/{hidden.id}/bundle.jsonl", token),
        ("/verify.js", {}),
        ("/verify.js", {"Accept_Encoding": "gzip"}),
        ("/openrpc.json", {}),
        ("/", {}),
    ):
        whole = await get(gateway.port, path, **headers)
        head = await get(gateway.port, path, method="HEAD", **headers)
        assert (head.status, head.body) == (200, b""), path
        assert without_framing(head) == without_framing(whole), path
        ranged = await get(gateway.port, path, method="HEAD", Range="bytes=1-", **headers)
        assert (ranged.status, ranged.headers) == (200, head.headers), path


async def test_compressed_bytes_have_a_weak_tag_of_the_same_content(gateway, connect) -> None:
    table = await closed(connect, gateway)
    for path in (
        f"/tables/{table.id}/bundle.jsonl",
        f"/tables/{table.id}/history.txt",
        "/verify.js",
    ):
        plain = await get(gateway.port, path)
        packed = await get(gateway.port, path, Accept_Encoding="gzip")
        etag = plain.headers["etag"]
        assert packed.headers["etag"] == f"W/{etag}"
        assert gzip.decompress(packed.body) == plain.body
        for known in (etag, f"W/{etag}", f'"other", W/{etag}', "*"):
            for encoding in ("gzip", "identity"):
                headers = {"If_None_Match": known, "Accept_Encoding": encoding}
                assert (await get(gateway.port, path, **headers)).status == 304
        assert (await get(gateway.port, path, If_None_Match=etag[1:-1])).status == 200
        ranged = {"Range": "bytes=1-", "If_Range": packed.headers["etag"]}
        assert (await get(gateway.port, path, **ranged)).body == plain.body


async def test_the_bundle_of_an_open_table_has_a_fixed_one(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    path = f"/tables/{table.id}/bundle.jsonl"
    growing = await get(gateway.port, path, Range="bytes=5-")
    assert (growing.status, growing.headers["accept-ranges"]) == (200, "none")
    assert not {"etag", "content-range"} & growing.headers.keys()
    fixed = urljoin(path, growing.headers["content-location"])
    assert fixed.startswith(f"{path}?size=")
    await table.host.call("deck.shuffle")
    first = await get(gateway.port, fixed)
    assert (first.status, first.headers["accept-ranges"]) == (200, "bytes")
    await table.host.call("deck.shuffle")
    rest = await get(gateway.port, fixed, Range="bytes=1000-", If_Range=first.headers["etag"])
    assert rest.status == 206
    assert first.body[:1000] + rest.body == first.body == growing.body
    assert (await get(gateway.port, path)).body != growing.body


async def test_a_size_must_be_one_that_the_house_has_signed(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    path = f"/tables/{table.id}/bundle.jsonl"
    size = int((await get(gateway.port, path)).headers["content-location"].split("=")[1])
    for wrong in ("", "0", "-1", "1.5", "x", "9" * 40, f"{size}&size={size}"):
        got = await get(gateway.port, f"{path}?size={wrong}")
        assert (got.status, "number of events" in got.text) == (400, True), wrong
    got = await get(gateway.port, f"{path}?size={size + 1}")
    assert (got.status, got.text.endswith(f"the last one before is at {size}.\n")) == (404, True)
    assert (await get(gateway.port, f"{path}?size=2")).status == 404
    assert (await get(gateway.port, f"{path}?size={size}")).status == 200


async def test_a_private_table_has_ranges_for_those_who_may_read_it(gateway, connect) -> None:
    table = await closed(connect, gateway, watch="nobody")
    path = f"/tables/{table.id}/bundle.jsonl"
    token = {"Authorization": f"Bearer {table.tokens[0]}"}
    whole = await get(gateway.port, path, Accept_Encoding="gzip", **token)
    assert "content-encoding" not in whole.headers
    assert whole.headers["cache-control"] == "no-store"
    got = await get(gateway.port, path, Range="bytes=100-", **token)
    assert (got.status, got.body) == (206, whole.body[100:])
    known = {"If_None_Match": whole.headers["etag"]}
    for headers in ({}, {"Range": "bytes=100-"}, known):
        for query in ("", "?size=1"):
            assert (await get(gateway.port, path + query, **headers)).status == 401


async def test_a_cosignature_makes_another_bundle(gateway, connect, monkeypatch) -> None:
    host = await connect(gateway)
    opened = await host.call("table.open")
    ann = await connect(gateway)
    key = COSIGNER.public_key.hex()
    await ann.call("table.join", table=opened["table"], name="Ann", key=key)
    await host.call("table.close")
    service = gateway.context.service
    _, note = await service.checkpoints.checkpoint(await service.lifecycle.load(opened["table"]))
    path = f"/tables/{opened['table']}/bundle.jsonl"
    before = await get(gateway.port, path)
    await ann.call("table.cosign", cosignature=COSIGNER.cosign(note, time=1_800_000_000))
    ranged = {"Range": "bytes=100-", "If_Range": before.headers["etag"]}

    async def none(*_: Any) -> int:
        """The count of cosignatures when the download began."""
        return 0

    with monkeypatch.context() as begun:
        begun.setattr("dealer.gateway.pages.streams.cosigned", none)
        assert (await get(gateway.port, path)).body == before.body
        rest = await get(gateway.port, path, **ranged)
        assert (rest.status, rest.body) == (206, before.body[100:])
    after = await get(gateway.port, path, **ranged)
    assert (after.status, len(after.body) > len(before.body)) == (200, True)
    assert after.headers["etag"] != before.headers["etag"]


async def test_an_archived_bundle_goes_on_where_that_of_the_table_ended(
    archiving, connect, tmp_path
) -> None:
    gateway = archiving
    table, hidden = await closed(connect, gateway), await closed(connect, gateway, watch="nobody")
    path = f"/tables/{table.id}/bundle.jsonl"
    size = await signed_size(gateway, table)
    names = (path, f"{path}?size={size}")
    whole = [await get(gateway.port, name) for name in names]
    token = {"Authorization": f"Bearer {hidden.tokens[0]}"}
    private = await get(gateway.port, f"/tables/{hidden.id}/bundle.jsonl", **token)
    await archive(tmp_path, table)
    await archive(tmp_path, hidden)
    for name, then in zip(names, whole, strict=True):
        rest = await get(gateway.port, name, Range="bytes=1000-")
        assert (rest.status, rest.body) == (206, then.body[1000:])
        now = await get(gateway.port, name)
        head = await get(gateway.port, name, method="HEAD")
        assert (now.body, now.headers, head.headers) == (then.body, then.headers, now.headers)
    assert (await get(gateway.port, f"{path}?size=2")).status == 404
    hidden_path = f"/tables/{hidden.id}/bundle.jsonl"
    assert (await get(gateway.port, hidden_path, Range="bytes=9-")).status == 401
    rest = await get(gateway.port, hidden_path, Range="bytes=9-", Accept_Encoding="gzip", **token)
    assert (rest.status, rest.body) == (206, private.body[9:])
    assert rest.headers["cache-control"] == "no-store"


async def signed_size(gateway: Any, table: SeatedTable) -> int:
    """A size below the last one for which there is a checkpoint."""
    sizes = sorted(await gateway.context.service.log.signed_sizes(bytes.fromhex(table.id)))
    return int(sizes[-2])


async def test_histories_and_static_files_have_no_ranges(gateway, connect) -> None:
    table = await closed(connect, gateway)
    for path in (f"/tables/{table.id}/round-1.txt", "/verify.js", "/openrpc.json", "/"):
        whole = await get(gateway.port, path)
        assert (whole.status, whole.headers.get("accept-ranges", "none")) == (200, "none")
        again = await get(gateway.port, path, Range="bytes=1-", If_Range=whole.headers["etag"])
        assert (again.status, again.body, again.headers) == (200, whole.body, whole.headers)
    other = await get(gateway.port, f"/web/{'0' * 16}/verify.js")
    assert (other.status, "etag" in other.headers) == (200, False)


async def test_curl_goes_on_with_a_file_that_was_cut(gateway, connect, tmp_path) -> None:
    curl = program("curl")
    table = await closed(connect, gateway)
    path = f"/tables/{table.id}/bundle.jsonl"
    whole = await get(gateway.port, path)
    for length in (0, 1, 5000, len(whole.body) - 1):
        file = tmp_path / f"{length}.jsonl"
        file.write_bytes(whole.body[:length])
        url = f"http://127.0.0.1:{gateway.port}{path}"
        done = await asyncio.create_subprocess_exec(curl, "-sSf", "-C", "-", "-o", file, url)
        assert await done.wait() == 0
        assert file.read_bytes() == whole.body


async def paused_download(port: int, path: str) -> tuple[asyncio.StreamReader, Any]:
    """A client with a small buffer that has requested a download, and reads nothing."""
    own = socket.socket()
    own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    own.setblocking(False)
    await asyncio.get_running_loop().sock_connect(own, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=own, limit=1024)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return reader, writer


async def long_table(gateway: Any, connect: Any) -> SeatedTable:
    """A closed table whose bundle does not fit into the buffers between server and client."""
    table = await seat_and_shuffle(connect, gateway, players=1)
    await table.host.call("round.close")
    await table.host.call("round.open", entropy="house", deck=SHOE)
    for _ in range(6):
        await table.host.call("deck.shuffle")
    await table.host.call("round.close")
    await table.host.call("table.close")
    return table


def downloading(gateway: Any) -> list[Any]:
    return [one for one in gateway.registry.connections if one.receiver is None and one.paused]


async def test_a_reader_of_a_bundle_may_pause(open_gateway, connect, monkeypatch) -> None:
    """Longer than another client may that does not read, and nothing is read meanwhile."""
    gateway = await open_gateway(limits=replace(TEST_LIMITS, sending=0.5, idle=60.0, closing=0.1))
    table = await long_table(gateway, connect)
    path = f"/tables/{table.id}/bundle.jsonl"
    whole = await get(gateway.port, path)
    read, rows = gateway.context.service.log.read, []

    async def counted(*arguments: Any, **options: Any) -> Any:
        rows.extend(found := await read(*arguments, **options))
        return found

    monkeypatch.setattr(gateway.context.service.log, "read", counted)
    reader, writer = await paused_download(gateway.port, path)
    await eventually(lambda: downloading(gateway))
    (connection,) = downloading(gateway)
    begun = len(rows)
    other, slow = await watched_table(gateway, connect)
    metrics = gateway.metrics
    await shuffle_until(gateway, other, lambda: metrics.slowed > 0 or metrics.closed[4508] > 0)
    rows.clear()
    await eventually(lambda: metrics.closed[4508] == 1)
    assert downloading(gateway) == [connection]
    assert connection.transport.get_write_buffer_size() < 4 * gateway.context.limits.buffer
    assert begun < whole.body.count(b"\n") / 2
    assert HttpResponse(await reader.read()).body == whole.body
    assert rows
    slow.socket.transport.abort()
    await slow.wait_closed()
    writer.close()


async def test_a_reader_that_does_not_come_back_is_disconnected(open_gateway, connect) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, sending=60.0, idle=0.5, buffer=512))
    table = await long_table(gateway, connect)
    reader, writer = await paused_download(gateway.port, f"/tables/{table.id}/bundle.jsonl")
    await eventually(lambda: downloading(gateway))
    await eventually(lambda: not downloading(gateway))
    await eventually(lambda: len(gateway.registry.connections) == 2)
    data = b""
    with suppress(ConnectionError):
        while part := await reader.read(2**16):
            data += part
    cut = HttpResponse(data)
    assert len(cut.body) < int(cut.headers["content-length"])
    writer.close()


async def test_slow_readers_of_archived_bundles_keep_no_other_from_one(
    archiving, connect, tmp_path
) -> None:
    gateway = archiving
    table = await long_table(gateway, connect)
    await archive(tmp_path, table)
    path = f"/tables/{table.id}/bundle.jsonl"
    writers: list[Any] = []
    for _ in range(6):
        # One after the other: of those that open the file at once, one address may have few.
        _, writer = await paused_download(gateway.port, path)
        writers.append(writer)
        await eventually(lambda: len(downloading(gateway)) == len(writers))
    assert (await get(gateway.port, path)).status == 200
    for writer in writers:
        writer.transport.abort()
