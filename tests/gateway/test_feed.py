"""The feed over HTTP and on WebSockets: forms, keys, filters, flow, and its ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from httpx_sse import aconnect_sse

from dealer.errors import DatabaseUnavailable
from dealer.game.commands import Actor, AddNote, Draw
from dealer.game.events import TYPES
from dealer.gateway import Gateway
from dealer.gateway.pages import feed as http_feed
from dealer.gateway.push import feeds
from dealer.gateway.rate_limit.budgets import MAX_CONCURRENT
from dealer.service import LiveTable
from dealer.service.build import open_service
from tests.gateway.conftest import Connect, serving
from tests.gateway.http_client import HttpResponse, get
from tests.gateway.rpc_client import eventually, reason_of
from tests.harness.service_keys import add_key, give_table, revoke_key, with_key
from tests.service.tables import shuffled_table


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with serving(open_service(f"sqlite:///{tmp_path / 'dealer.db'}")) as gateway:
        yield gateway


async def table_of(gateway: Gateway, *, key: int = 1, ref: str = "t-1", **rules: Any) -> LiveTable:
    """A shuffled table that this key opened; to be called before the first key that may read."""
    service = gateway.context.service
    live_table = await shuffled_table(service)
    await give_table(service.log, live_table.table_id, key=key, ref=ref)
    return live_table


async def table_and_key(gateway: Gateway) -> tuple[LiveTable, str]:
    return await table_of(gateway), await add_key(gateway.context.service)


async def draw(gateway: Gateway, live_table: LiveTable) -> None:
    await gateway.context.service.execute(live_table, Draw(Actor(seat=1)))


async def feed(gateway: Gateway, key: str, query: str = "wait=0", **headers: str) -> HttpResponse:
    return await get(gateway.port, f"/feed?{query}", Authorization=f"Bearer {key}", **headers)


def objects(answer: HttpResponse) -> list[dict[str, Any]]:
    assert answer.status == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


class Line:
    """An open answer of NDJSON; `read` waits for the next object, and raises EOFError at a cut."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self.head = b""
        self._rest = b""

    async def read(self) -> dict[str, Any] | None:
        """The next object; None at the end of the answer."""
        while True:
            line, found, rest = self._rest.partition(b"\n")
            if found:
                self._rest = rest
                if line:
                    return dict(json.loads(line))
                continue
            head = await asyncio.wait_for(self._reader.readline(), 30)
            if not head:
                raise EOFError("the answer was cut")
            size = int(head, 16)
            data = await self._reader.readexactly(size + 2)
            if not size:
                return None
            self._rest += data[:-2]


@asynccontextmanager
async def following(gateway: Gateway, key: str, query: str = "") -> AsyncIterator[Line]:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    head = f"GET /feed?{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n"
    writer.write(head.encode())
    line = Line(reader, writer)
    line.head = await reader.readuntil(b"\r\n\r\n")
    try:
        yield line
    finally:
        writer.transport.abort()


# Keys


async def test_a_key_with_the_right_to_read_is_needed(gateway: Gateway) -> None:
    await table_of(gateway)
    for headers in ({}, {"Authorization": "Bearer dk_" + "A" * 43}, {"Authorization": "Basic x"}):
        answer = await get(gateway.port, "/feed?wait=0", **headers)
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "service key" in answer.text
    opens = await add_key(gateway.context.service, "opens", "open")
    answer = await feed(gateway, opens)
    assert (answer.status, "`read`" in answer.text) == (403, True)


async def test_only_the_tables_of_the_key_appear(gateway: Gateway) -> None:
    mine, other = await table_of(gateway), await table_of(gateway, key=2, ref="t-2")
    service = gateway.context.service
    key = await add_key(service)
    second = await add_key(service, "second")
    admin = await add_key(service, "operator", "admin")
    assert {each["table"] for each in objects(await feed(gateway, key))} == {mine.table_id}
    assert {each["table"] for each in objects(await feed(gateway, second))} == {other.table_id}
    assert len({each["table"] for each in objects(await feed(gateway, admin))}) == 2
    answer = await feed(gateway, key, f"wait=0&table={other.table_id}")
    assert (answer.status, answer.text) == (404, "This key has no such table.\n")
    assert (await feed(gateway, admin, f"wait=0&table={other.table_id}")).status == 200


# Requests


async def test_filters(gateway: Gateway) -> None:
    live_table, other = await table_of(gateway), await table_of(gateway, ref="t-2")
    key = await add_key(gateway.context.service)
    for table in (live_table, other):
        await draw(gateway, table)
    query = f"wait=0&type=CardDrawn,DeckSealed&type=SeatTaken&table={other.table_id}"
    types = [each["type"] for each in objects(await feed(gateway, key, query))]
    assert types == ["SeatTaken", "SeatTaken", "DeckSealed", "CardDrawn"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("type=Drawn", f"There is no event type 'Drawn'; there are {', '.join(sorted(TYPES))}."),
        ("after=57", "`after` is not a position."),
        ("wait=yes", "`wait` is 0 or 1."),
        ("since=5", "The parameters of /feed are after, table, type and wait."),
    ],
)
async def test_invalid_parameters(gateway: Gateway, query: str, text: str) -> None:
    key = await add_key(gateway.context.service)
    answer = await feed(gateway, key, query)
    assert (answer.status, answer.text) == (400, text + "\n")


async def test_a_position_that_a_restore_has_lost_is_gone(gateway: Gateway) -> None:
    key = await add_key(gateway.context.service)
    answer = await feed(gateway, key, "after=0badcafe-5-0")
    assert answer.status == 410
    assert "older backup" in answer.text


async def test_it_goes_on_after_a_position(gateway: Gateway) -> None:
    _, key = await table_and_key(gateway)
    whole = objects(await feed(gateway, key))
    rest = objects(await feed(gateway, key, f"wait=0&after={whole[9]['position']}"))
    assert rest == whole[10:]
    assert objects(await feed(gateway, key, "wait=0&after=now")) == []


# Streams


async def test_line_readers_get_whole_lines(gateway: Gateway) -> None:
    live_table, key = await table_and_key(gateway)
    service = gateway.context.service
    await service.execute(live_table, AddNote(Actor(seat=1), "chat", "a\u2028b\u2029c"))
    authorized = {"Authorization": f"Bearer {key}"}
    address = f"http://127.0.0.1:{gateway.port}/feed?wait=0"
    async with httpx.AsyncClient(headers=authorized, trust_env=False) as client:
        async with client.stream("GET", address) as answer:
            lines = [json.loads(line) async for line in answer.aiter_lines()]
        async with aconnect_sse(client, "GET", address) as source:
            events = [event.json() async for event in source.aiter_sse()]
    assert [each["version"] for each in lines] == list(range(1, live_table.committed + 1))
    assert lines[-1]["opened"]["part"]["text"] == "a\u2028b\u2029c"
    assert events == lines


async def test_ndjson_stays_open_for_what_comes(gateway: Gateway) -> None:
    live_table, key = await table_and_key(gateway)
    async with following(gateway, key, "after=now") as line:
        assert b"application/x-ndjson" in line.head
        for _ in range(3):
            await draw(gateway, live_table)
            found = await line.read()
            assert found is not None
            assert (found["version"], found["ref"]) == (live_table.committed, "t-1")


async def test_an_idle_stream_has_heartbeats(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_feed, "HEARTBEAT_SECONDS", 0.01)
    live_table, key = await table_and_key(gateway)
    headers = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
    url = f"http://127.0.0.1:{gateway.port}/feed?type=RoundClosed"
    async with httpx.AsyncClient() as client, client.stream("GET", url, headers=headers) as answer:
        lines = answer.aiter_lines()
        assert await anext(lines) == "retry: 2000"
        assert [await anext(lines) for _ in range(2)] == [": heartbeat"] * 2
    async with following(gateway, key, "after=now") as line:
        await asyncio.wait_for(line._reader.readuntil(b"\r\n\n\r\n"), 30)
        await draw(gateway, live_table)
        assert (await line.read() or {})["type"] == "CardDrawn"


async def test_server_sent_events_go_on_after_the_last_event_id(gateway: Gateway) -> None:
    live_table, key = await table_and_key(gateway)
    whole = objects(await feed(gateway, key))
    url = f"http://127.0.0.1:{gateway.port}/feed"
    headers = {"Authorization": f"Bearer {key}"}
    seen: list[Any] = []
    async with httpx.AsyncClient(headers=headers, timeout=30) as client:
        while len(seen) < len(whole):
            more = {"Last-Event-ID": seen[-1].id} if seen else {}
            async with aconnect_sse(client, "GET", url, headers=more) as source:
                assert source.response.headers["Content-Type"] == "text/event-stream"
                count = 0
                async for event in source.aiter_sse():
                    seen.append(event)
                    count += 1
                    if count == 7 or len(seen) == len(whole):
                        break
    assert [json.loads(event.data) for event in seen] == whole
    assert [event.id for event in seen] == [each["position"] for each in whole]
    assert seen[0].retry == 2000
    assert live_table.committed == len(whole)


async def test_a_revoked_key_ends_its_streams(gateway: Gateway) -> None:
    _, key = await table_and_key(gateway)
    async with following(gateway, key, "after=now") as line:
        await revoke_key(gateway.context.service, at_once=False)
        with pytest.raises(EOFError):
            await line.read()
    assert (await feed(gateway, key)).status == 401


async def test_the_streams_of_a_key_are_bounded(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_feed, "STREAMS", 1)
    monkeypatch.setattr(http_feed, "HEARTBEAT_SECONDS", 0.01)
    key = await add_key(gateway.context.service)
    async with following(gateway, key, "after=now"):
        refused = await feed(gateway, key)
        assert (refused.status, refused.headers["retry-after"]) == (429, "10")
        assert "follows 1 feeds" in refused.text
    head = gateway.context.service.feed.head
    await eventually(lambda: head.followers == 0)
    assert (await feed(gateway, key)).status == 200


async def test_a_client_that_went_away_is_no_follower(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_feed, "HEARTBEAT_SECONDS", 0.01)
    key = await add_key(gateway.context.service)
    head = gateway.context.service.feed.head
    async with following(gateway, key, "after=now"):
        await eventually(lambda: head.followers == 1)
    await eventually(lambda: head.followers == 0)


async def test_a_drain_ends_open_streams(gateway: Gateway) -> None:
    _, key = await table_and_key(gateway)
    async with following(gateway, key, "after=now") as line:
        draining = asyncio.create_task(gateway.drain())
        assert await line.read() is None
        await draining


async def test_a_client_that_does_not_read_gets_everything_later(gateway: Gateway) -> None:
    """Nothing is queued for it: it is read from the log when the client reads on."""
    live_table, key = await table_and_key(gateway)
    async with following(gateway, key) as line:
        transport = cast("asyncio.Transport", line.writer.transport)
        transport.pause_reading()
        for _ in range(30):
            await draw(gateway, live_table)
        transport.resume_reading()
        seen = [(await line.read() or {})["version"] for _ in range(live_table.committed)]
    assert seen == list(range(1, live_table.committed + 1))


# WebSocket


async def test_following_on_a_websocket(gateway: Gateway, connect: Connect) -> None:
    live_table, key = await table_and_key(gateway)
    whole = objects(await feed(gateway, key))
    client = await connect(gateway, **with_key(key))
    answer = await client.call("feed.follow", after=whole[1]["position"])
    assert answer == {"position": whole[1]["position"]}
    await client.until(lambda: len(client.notices("feed")) == len(whole) - 2)
    assert client.notices("feed") == whole[2:]
    assert '"result"' in client.frames[0]
    await draw(gateway, live_table)
    await client.until(lambda: client.notices("feed")[-1]["version"] == live_table.committed)
    assert client.notices("feed")[-1]["type"] == "CardDrawn"


async def test_following_again_replaces_the_first(gateway: Gateway, connect: Connect) -> None:
    live_table, key = await table_and_key(gateway)
    client = await connect(gateway, **with_key(key))
    await client.call("feed.follow", after="now")
    await client.call("feed.follow", after="now", type=["CardDrawn"])
    assert gateway.context.service.feed.head.followers == 1
    await draw(gateway, live_table)
    await client.until(lambda: client.notices("feed"))
    assert [each["type"] for each in client.notices("feed")] == ["CardDrawn"]
    await client.close()
    await eventually(lambda: gateway.context.service.feed.head.followers == 0)


async def test_a_follower_that_waits_for_the_database_holds_no_permit(
    gateway: Gateway, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, key = await table_and_key(gateway)
    reads = 0

    async def unavailable(*_: object, **__: object) -> None:
        nonlocal reads
        reads += 1
        raise DatabaseUnavailable("The database is away.")

    monkeypatch.setattr(feeds, "RETRY_SECONDS", 3600)
    monkeypatch.setattr(gateway.context.service.feed.reader, "read", unavailable)
    for _ in range(MAX_CONCURRENT + 1):
        await (await connect(gateway, **with_key(key))).call("feed.follow")
    await eventually(lambda: reads == MAX_CONCURRENT + 1)


async def test_following_needs_a_key(gateway: Gateway, connect: Connect) -> None:
    client = await connect(gateway)
    assert await reason_of(client.call("feed.follow")) == "not_entitled"


async def test_after_the_key_is_revoked_nothing_is_pushed(
    gateway: Gateway, connect: Connect
) -> None:
    _, key = await table_and_key(gateway)
    client = await connect(gateway, **with_key(key))
    await client.call("feed.follow", after="now")
    assert gateway.context.service.feed.head.followers == 1
    await revoke_key(gateway.context.service, at_once=False)
    await eventually(lambda: gateway.context.service.feed.head.followers == 0)
