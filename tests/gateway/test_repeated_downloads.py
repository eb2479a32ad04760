"""Downloads of what cannot change: compressed, with an ETag, made once; and what may change."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest

from dealer.gateway.pages import histories
from dealer.gateway.pages.histories import HistoryCache
from dealer.gateway.pages.streams import compressed
from tests.gateway.http_client import get
from tests.gateway.rpc_client import eventually
from tests.gateway.tables import seat_and_shuffle

pytestmark = pytest.mark.slow


@pytest.fixture
def made(monkeypatch):
    """The histories that a process has made."""
    found, make_history = [], histories.make_history

    async def make(blocks, **options):
        found.append(options)
        return await make_history(blocks, **options)

    monkeypatch.setattr(histories, "make_history", make)
    return found


async def test_a_bundle_is_compressed_for_clients_that_accept_it(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    path = f"/tables/{table.id}/bundle.jsonl"
    plain = await get(gateway.port, path)
    assert "content-encoding" not in plain.headers
    packed = await get(gateway.port, path, Accept_Encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
    assert len(packed.body) < len(plain.body) / 2
    assert gzip.decompress(packed.body) == plain.body


async def test_what_may_change_has_no_etag(gateway, connect, made) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    for name in ("bundle.jsonl", "history.txt", "round-1.txt", "round-1.txt"):
        got = await get(gateway.port, f"/tables/{table.id}/{name}")
        assert (got.status, got.headers["cache-control"]) == (200, "no-store")
        assert "etag" not in got.headers
    assert len(made) == 3


async def test_the_history_of_a_closed_round_is_made_once(gateway, connect, made) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    await table.host.call("round.close")
    path = f"/tables/{table.id}/round-1.txt"
    first = await get(gateway.port, path)
    assert first.headers["cache-control"] == "no-cache"
    await table.host.call("round.open", entropy="house")
    packed = await get(gateway.port, path, Accept_Encoding="gzip")
    assert gzip.decompress(packed.body) == first.body
    head = await get(gateway.port, path, method="HEAD")
    assert head.headers["content-length"] == first.headers["content-length"]
    known = await get(gateway.port, path, If_None_Match=first.headers["etag"])
    assert (known.status, known.body, known.headers["etag"]) == (304, b"", first.headers["etag"])
    assert (await get(gateway.port, path, If_None_Match='W/"other"')).body == first.body
    assert len(made) == 1
    other = await get(gateway.port, f"/tables/{table.id}/round-2.txt")
    assert "etag" not in other.headers


async def test_a_closed_table_has_one_bundle_until_it_is_cosigned(
    service, gateway, connect, made
) -> None:
    """test_ranges.py has a cosignature; here only the count of them grows."""
    table = await seat_and_shuffle(connect, gateway, players=1)
    await table.host.call("round.close")
    await table.host.call("table.close")
    path, story = f"/tables/{table.id}/bundle.jsonl", f"/tables/{table.id}/history.txt"
    etag = (await get(gateway.port, path)).headers["etag"]
    assert (await get(gateway.port, path, If_None_Match=etag)).status == 304
    history = await get(gateway.port, story)
    assert history.headers["etag"] != etag

    def cosigned(connection):
        connection.exec_driver_sql("UPDATE stream SET cosigned = cosigned + 1")

    await service.log.run_in_transaction(cosigned)
    assert (await get(gateway.port, path, If_None_Match=etag)).status == 304
    again = await get(gateway.port, story, If_None_Match=history.headers["etag"])
    assert again.status == 200
    assert again.headers["etag"] != history.headers["etag"]


async def test_the_bundle_of_a_closed_table_is_measured_once(
    service, gateway, connect, monkeypatch
) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    await table.host.call("round.close")
    await table.host.call("table.close")
    bundle, made = service.bundle, []

    def counted(*arguments, **options):
        made.append(options["size"])
        return bundle(*arguments, **options)

    monkeypatch.setattr(service, "bundle", counted)
    path = f"/tables/{table.id}/bundle.jsonl"
    whole = await get(gateway.port, path)
    assert len(made) == 2
    assert (await get(gateway.port, path, Range="bytes=5-")).body == whole.body[5:]
    assert len(made) == 3
    assert (await get(gateway.port, path, If_None_Match=whole.headers["etag"])).status == 304
    assert (await get(gateway.port, path, Range=f"bytes={2**40}-")).status == 416
    assert len(made) == 3


async def test_downloads_of_a_private_table_are_not_stored(gateway, connect, made) -> None:
    """Nor compressed: the length would depend on what is secret."""
    table = await seat_and_shuffle(connect, gateway, players=1, watch="nobody")
    await table.host.call("round.close")
    token = {"Authorization": f"Bearer {table.tokens[0]}", "Accept_Encoding": "gzip"}
    for name in ("round-1.txt", "round-1.txt", "bundle.jsonl"):
        got = await get(gateway.port, f"/tables/{table.id}/{name}", **token)
        assert (got.status, got.headers["cache-control"]) == (200, "no-store")
        assert "etag" not in got.headers
        assert "content-encoding" not in got.headers
    assert len(made) == 2
    assert (await get(gateway.port, f"/tables/{table.id}/round-1.txt")).status == 401


def test_kept_histories_are_bounded(monkeypatch) -> None:
    monkeypatch.setattr(histories, "CACHED", 30)
    monkeypatch.setattr(histories, "CACHED_EACH", 10)
    cache = HistoryCache()
    for number in range(4):
        cache.put(str(number), b"x" * 10)
        assert cache.get("0") is not None
    assert cache.bytes == 30
    assert [cache.get(str(number)) is None for number in range(4)] == [False, True, False, False]
    cache.put("large", b"x" * 11)
    cache.put("", b"x")
    cache.put("3", b"y")
    assert (cache.get("large"), cache.get(""), cache.get("3")) == (None, None, b"x" * 10)


async def test_compression_takes_a_block_when_the_client_reads() -> None:
    taken = []

    async def blocks():
        for number in range(50):
            taken.append(number)
            yield b"%d" % number * 1000

    parts = compressed(blocks())
    given = []
    for number in range(50):
        given.append(await anext(parts))
        assert taken == list(range(number + 1))
    given += [part async for part in parts]
    whole = b"".join(b"%d" % number * 1000 for number in range(50))
    assert gzip.decompress(b"".join(given)) == whole


async def test_a_history_is_in_the_language_that_is_asked_for(gateway, connect, made) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    await table.host.call("round.close")
    path = f"/tables/{table.id}/round-1.txt"
    english = await get(gateway.port, path)
    by_header = await get(gateway.port, path, Accept_Language="de")
    by_query = await get(gateway.port, f"{path}?lang=de", Accept_Language="fr")
    unknown = await get(gateway.port, f"{path}?lang=xx")
    assert "The house signs" in english.text
    assert "Das Haus unterschreibt" in by_header.text
    assert by_query.body == by_header.body
    assert unknown.body == english.body
    assert english.headers["etag"] != by_header.headers["etag"] == by_query.headers["etag"]
    assert by_header.headers["vary"] == "Accept-Encoding, Accept-Language"
    assert [one["language"] for one in made] == ["en", "de"]


@pytest.mark.parametrize("closed", [False, True])
async def test_a_client_may_go_while_its_bundle_is_prepared(
    gateway, connect, monkeypatch, caplog, closed: bool
) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    if closed:
        await table.host.call("table.close")
    asked, go_on = asyncio.Event(), asyncio.Event()
    checkpoints, connections = gateway.context.service.checkpoints, gateway.registry.connections
    checkpoint, before = checkpoints.checkpoint, len(connections)

    async def slow(*arguments: Any, **options: Any) -> Any:
        asked.set()
        await go_on.wait()
        return await checkpoint(*arguments, **options)

    monkeypatch.setattr(checkpoints, "checkpoint", slow)
    _, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    head = f"GET /tables/{table.id}/bundle.jsonl HTTP/1.1\r\nHost: localhost\r\n\r\n"
    writer.write(head.encode())
    await asked.wait()
    writer.transport.abort()
    await eventually(lambda: len(connections) == before)
    go_on.set()
    path = f"/tables/{table.id}/bundle.jsonl"
    assert (await get(gateway.port, path)).status == 200
    await eventually(lambda: not gateway.context.in_flight)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
