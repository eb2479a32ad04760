"""POST /rpc over real sockets: answers, statuses, and requests that are wrong in every way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Self

import pytest

from dealer.gateway.observe.exposition import exposition
from dealer.gateway.session.methods import METHODS
from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.http_client import get
from tests.gateway.rpc_client import HANDSHAKE, eventually
from tests.gateway.tables import seat_and_shuffle, seat_players
from tests.harness.service_keys import add_key, revoke_key

JSON = "application/json"


class Answer:
    """A response as it was sent."""

    def __init__(self, head: bytes, body: bytes) -> None:
        first, *lines = head.decode().rstrip().split("\r\n")
        self.status = int(first.split(" ")[1])
        self.headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
        self.text = body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Post:
    """A connection that is kept, for one request after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, port: int) -> Self:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> Answer:
        async with asyncio.timeout(20):
            head = await self.reader.readuntil(b"\r\n\r\n")
            answer = Answer(head, b"")
            length = int(answer.headers.get("content-length", 0))
            return Answer(head, await self.reader.readexactly(length))

    async def ask(self, body: bytes | str, **more: Any) -> Answer:
        self.write(post(body, **more))
        return await self.answer()

    async def call(self, method: str, *, key: str | None = None, **params: Any) -> Any:
        answer = await self.ask(request(method, **params), key=key)
        assert answer.status == 200
        return answer.json.get("result") or answer.json["error"]

    async def closed(self) -> bytes:
        """What arrives until the server closes."""
        async with asyncio.timeout(20):
            return await self.reader.read()


def request(method: str, id: Any = 1, **params: Any) -> str:
    given = {name.rstrip("_"): value for name, value in params.items()}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": given})


def post(
    body: bytes | str,
    *,
    key: str | None = None,
    kind: str | None = JSON,
    path: str = "/rpc",
    method: str = "POST",
    version: str = "1.1",
    headers: tuple[str, ...] = (),
    length: int | None = None,
) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    lines = [f"{method} {path} HTTP/{version}", "Host: localhost", *headers]
    lines += [f"Authorization: Bearer {key}"] * (key is not None)
    lines += [f"Content-Type: {kind}"] * (kind is not None)
    if not any(one.startswith("Transfer-Encoding") for one in headers):
        lines.append(f"Content-Length: {len(data) if length is None else length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


@pytest.fixture
async def posts(gateway) -> AsyncIterator[Any]:
    opened: list[Post] = []

    async def connect(other: Any = None) -> Post:
        opened.append(await Post.connect((other or gateway).port))
        return opened[-1]

    yield connect
    for one in opened:
        one.writer.close()


async def test_a_game_without_a_websocket(service, gateway, connect, posts) -> None:
    key = await add_key(service)
    http = await posts()
    opened = await http.call("table.open", key=key, rules={"watch": "nobody"}, ref="m1")
    table = opened["table"]
    assert opened["ref"] == "m1"
    joined = await http.call("table.join", table=table, name="ann")
    assert joined["seat"] == 1
    await http.call("round.open", key=key, table=table, entropy="house")
    await http.call("deck.shuffle", key=key, table=table)
    drawn = await http.call("deck.draw", table=table, token=joined["token"], count=2)
    assert len(drawn["cards"]) == 2
    state = await http.call("table.state", key=key, table=table)
    assert state["version"] == drawn["version"]
    assert state["state"]["round"]["cards"] == []
    bundle = await http.call("audit.bundle", key=key, table=table)
    refused = await get(gateway.port, bundle["url"])
    assert refused.status == 401
    read = await get(gateway.port, bundle["url"], Authorization=f"Bearer {key}")
    assert read.status == 200
    assert '"type":"TableOpened"' in read.text
    assert (await http.call("table.leave", table=table, token=joined["token"]))["version"]
    await http.call("table.close", key=key, table=table)


async def test_nothing_of_a_request_is_kept_for_the_next(service, gateway, posts) -> None:
    """The next request on the connection may be of another client of the same proxy."""
    key = await add_key(service)
    http = await posts()
    table = (await http.call("table.open", key=key, rules={"watch": "nobody"}))["table"]
    joined = await http.call("table.join", table=table, name="ann")
    for params in ({"table": table}, {}):
        refused = await http.call("table.state", **params)
        assert refused["data"]["reason"] in ("not_entitled", "bad_request")
    assert (await http.call("deck.draw", table=table))["data"]["reason"] == "not_entitled"
    state = await http.call("table.state", table=table, token=joined["token"])
    assert state["version"] == 2


async def test_a_player_on_a_websocket_is_not_superseded(gateway, connect, posts) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    player, token = table.players[0], table.tokens[0]
    http = await posts()
    drawn = await http.call("deck.draw", table=table.id, token=token)
    await player.until_version(drawn["version"])
    assert "private" in player.events[-1]
    assert await player.call("ping")


async def test_a_join_over_http_reads_no_events(gateway, connect, posts, monkeypatch) -> None:
    table = await seat_players(connect, gateway, players=1)
    monkeypatch.delattr(type(gateway.context.backlog), "start")
    http = await posts()
    assert (await http.call("table.join", table=table.id, name="bob"))["seat"] == 2


@pytest.mark.parametrize("method", [name for name, one in METHODS.items() if one.pushes])
async def test_methods_that_push_need_a_websocket(service, gateway, posts, method: str) -> None:
    given: dict[str, Any] = {"token": "x", "after": 0} if method == "table.resume" else {}
    refused = await (await posts()).call(method, key=await add_key(service), **given)
    assert refused["data"]["reason"] == "bad_request"
    assert "WebSocket" in refused["message"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("", -32700),
        ("{", -32700),
        (b"\xff{}", -32700),
        ('{"id":' * 2000, -32700),
        ("[]", -32600),
        ("[" + request("ping") + "]", -32600),
        ("1", -32600),
        ('{"method": "ping", "id": 1}', -32600),
        (request("no.such"), -32601),
        (request("ping", what=1), -32602),
        (request("table.state", table=1), -32602),
    ],
)
async def test_a_wrong_body_is_an_error_of_json_rpc(posts, gateway, body, code) -> None:
    http = await posts()
    for _ in range(2):  # the connection is kept
        answer = await http.ask(body)
        assert answer.status == 200
        assert answer.headers["content-type"] == JSON
        assert answer.json["error"]["code"] == code
        assert set(answer.json) == {"jsonrpc", "id", "error"}


async def test_a_notification_has_no_answer(service, gateway, connect, posts) -> None:
    key = await add_key(service)
    http = await posts()
    table = (await http.call("table.open", key=key))["table"]
    body = json.loads(request("round.open", table=table, entropy="house"))
    del body["id"]
    for sent in (body, {**body, "method": "no.such"}, {**body, "params": {"table": table}}):
        answer = await http.ask(json.dumps(sent), key=key)
        assert (answer.status, answer.text) == (204, "")
        assert "content-length" not in answer.headers
    state = await http.call("table.state", table=table)
    assert state["state"]["rounds"] == 1


@pytest.mark.parametrize(
    "kind",
    [None, "text/plain", "application/jsonp", "application/json; charset=latin-1", "x", ""],
)
async def test_another_content_type_is_415(posts, gateway, kind) -> None:
    http = await posts()
    answer = await http.ask(request("ping"), kind=kind)
    assert answer.status == 415
    assert answer.headers["accept"] == JSON
    for kind in ("Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"'):
        assert (await http.ask(request("ping"), kind=kind)).status == 200
    gzip = await http.ask(request("ping"), headers=("Content-Encoding: gzip",))
    assert gzip.status == 415


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH"])
async def test_another_method_is_405(gateway, method: str) -> None:
    answer = await get(gateway.port, "/rpc", method=method)
    assert answer.status == 405
    assert answer.headers["allow"] == "POST"
    assert (answer.text == "") == (method == "HEAD")


async def test_options_allow_no_other_origin(gateway) -> None:
    origin = "https://elsewhere.example"
    answer = await get(gateway.port, "/rpc", method="OPTIONS", Origin=origin)
    assert answer.status == 204
    assert answer.headers["allow"] == "POST, OPTIONS"
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_post_elsewhere_is_405(posts, gateway) -> None:
    for path in ("/", "/rpc/", "/rpcs", "/ws"):
        http = await posts()
        answer = await http.ask(request("ping"), path=path)
        assert answer.status == 405, path


async def test_pages_of_other_origins_are_refused(posts, gateway) -> None:
    http = await posts()
    refused = await http.ask(request("ping"), headers=("Origin: https://elsewhere.example",))
    assert refused.status == 403
    own = await http.ask(request("ping"), headers=("Origin: http://localhost",))
    assert own.status == 200


async def test_another_host_is_421(posts, gateway) -> None:
    http = await posts()
    http.write(post(request("ping")).replace(b"Host: localhost", b"Host: evil.example"))
    assert (await http.answer()).status == 421


async def test_a_key_that_is_not_valid_is_401(service, gateway, posts) -> None:
    key = await add_key(service)
    http = await posts()
    assert "error" not in await http.call("table.open", key=key)
    await revoke_key(service)
    for given in (key, "dk_" + "x" * 43, "dk_"):
        http = await posts()
        answer = await http.ask(request("ping"), key=given)
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.text == "This service key is not valid, or was revoked.\n"
        assert (await http.ask(request("ping"))).status == 200  # the connection is kept


async def test_revocation_ends_a_kept_connection(service, gateway, posts) -> None:
    http = await posts()
    await http.call("ping", key=await add_key(service))
    await revoke_key(service)
    assert await http.closed() == b""


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_body_in_pieces(posts, gateway, size: int) -> None:
    http = await posts()
    data = post(request("ping"))
    for at in range(0, len(data), size):
        http.write(data[at : at + size])
        await asyncio.sleep(0)
    assert (await http.answer()).json["result"]["at"]


async def test_a_chunked_body(posts, gateway) -> None:
    http = await posts()
    body = request("ping").encode()
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    for _ in range(2):
        answer = await http.ask(chunks, headers=("Transfer-Encoding: chunked",))
        assert answer.json["result"]["at"]


async def test_pipelined_requests_are_answered_in_order(service, gateway, posts) -> None:
    """Also those that wait for the log, and more than there is depth of recursion."""
    key = await add_key(service)
    http = await posts()
    requests = [post(request("table.open", id=0), key=key)]
    requests += [post(request("ping", id=number)) for number in range(1, 1500)]
    requests.append(post(request("table.open", id=1500), key=key))
    http.write(b"".join(requests))
    for number in range(1501):
        answer = await http.answer()
        assert answer.json["id"] == number


async def test_an_empty_line_after_a_body_is_skipped(gateway, posts) -> None:
    http = await posts()
    http.write(post(request("ping")) + b"\r\n" + post(request("ping")))
    for _ in range(2):
        assert (await http.answer()).status == 200
    http.write(b"\r\n")
    assert (await http.ask(request("ping"))).status == 200


async def test_answers_wait_for_a_client_that_does_not_read(service, gateway, posts) -> None:
    """Pipelined requests are run no faster than their answers are read."""
    http = await posts()
    http.reader._transport.pause_reading()
    http.write(post(request("rpc.discover")) * 400)
    connection = None

    def paused() -> bool:
        nonlocal connection
        connection = next(iter(gateway.registry.connections), None)
        return connection is not None and connection.paused

    await eventually(paused)
    assert connection is not None
    one = len(gateway.context.document().__repr__())
    for _ in range(50):
        await asyncio.sleep(0)
        assert connection.transport.get_write_buffer_size() < gateway.context.limits.buffer + one
    http.reader._transport.resume_reading()
    for _ in range(400):
        assert (await http.answer()).status == 200


async def test_a_kept_connection_becomes_any_other(gateway, posts) -> None:
    http = await posts()
    await http.call("ping")
    http.write(HANDSHAKE)
    head = await http.reader.readuntil(b"\r\n\r\n")
    assert b"101 Switching" in head
    http = await posts()
    await http.call("ping")
    http.write(b"GET /openrpc.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (await http.answer()).json["openrpc"]


async def test_a_connection_is_closed_where_the_client_wants_it(gateway, posts) -> None:
    for more in ({"headers": ("Connection: close",)}, {"version": "1.0"}):
        http = await posts()
        answer = await http.ask(request("ping"), **more)
        assert answer.status == 200
        assert await http.closed() == b""


async def test_expect_100_continue(service, gateway, posts) -> None:
    http = await posts()
    body = request("ping")
    expect = ("Expect: 100-continue",)
    http.write(post("", headers=expect, length=len(body)))
    assert await http.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 \r\n\r\n"
    http.write(body.encode())
    assert (await http.answer()).status == 200
    http.write(post("", headers=expect, length=len(body), key="dk_wrong"))
    assert (await http.answer()).status == 401  # before the body
    assert await http.closed() == b""


async def test_a_body_that_is_too_long_is_413(gateway, posts) -> None:
    limit = gateway.context.limits.message
    padded = request("ping") + " " * limit
    http = await posts()
    assert (await http.ask(padded[:limit])).status == 200
    answer = await http.ask(padded)
    assert answer.status == 413
    assert answer.headers["connection"] == "close"
    http = await posts()
    http.write(post("", length=limit + 1))
    assert (await http.answer()).status == 413  # before the body
    http = await posts()
    chunks = (b"400\r\n" + b" " * 1024 + b"\r\n") * 30
    assert (await http.ask(chunks, headers=("Transfer-Encoding: chunked",))).status == 413


async def test_a_client_that_still_sends_reads_the_answer(gateway, posts) -> None:
    """A connection that is closed with unread data is reset, and the answer lost."""
    http = await posts()
    http.reader._transport.pause_reading()
    http.write(post("", length=2**20))
    await eventually(lambda: gateway.metrics.posts["413"])
    for _ in range(20):
        http.write(b" " * 4096)
        await asyncio.sleep(0)
    http.reader._transport.resume_reading()
    assert (await http.answer()).status == 413


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /rpc HTTP/1.1\r\n\r\n", 400),  # no Host
        (b"POST /rpc HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400),
        (b"POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST /rpc HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (
            b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        (b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400),
        (b"POST /rpc HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400),
        (b"POST /rpc HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n", 400),
        (b"POST /rpc HTTP/1.1\r\nHost: localhost\nContent-Length: 2\n\n{}\r\n\r\n", 400),
    ],
)
async def test_a_request_that_is_not_http(gateway, posts, head: bytes, status: int) -> None:
    http = await posts()
    http.write(head)
    answer = await http.answer()
    assert answer.status == status
    assert await http.closed() == b""


async def test_a_body_has_a_bounded_number_of_chunks(gateway, posts) -> None:
    headers = ("Transfer-Encoding: chunked",)
    body = request("ping") + " " * 300
    for most, status in ((256, 200), (257, 413)):
        chunks = [body[: len(body) - most + 1], *body[len(body) - most + 1 :]]
        assert len(chunks) == most
        sent = "".join(f"{len(one):x}\r\n{one}\r\n" for one in chunks) + "0\r\n\r\n"
        http = await posts()
        assert (await http.ask(sent, headers=headers)).status == status


async def test_a_head_has_a_bounded_number_of_lines(gateway, posts) -> None:
    for count, status in ((100, 200), (200, 431)):
        http = await posts()
        headers = tuple(f"X-{number}: x" for number in range(count))
        assert (await http.ask(request("ping"), headers=headers)).status == status


async def test_the_time_of_reading_a_request_is_charged(open_gateway) -> None:
    limits = replace(TEST_LIMITS, address_cpu=1e-9, address_cpu_burst=1e-9)
    gateway = await open_gateway(limits=limits)
    http = await Post.connect(gateway.port)
    http.write(post("", length=10))
    await eventually(lambda: gateway.context.budgets.client("127.0.0.1", 0.0).busy(0.0))
    http.writer.close()
    other = await Post.connect(gateway.port)
    assert (await other.ask(request("ping"))).status == 429
    other.writer.close()


async def test_a_slow_body_is_408(open_gateway, posts) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, opening=0.2))
    http = await posts(gateway)
    http.write(post("", length=10))
    answer = await http.answer()
    assert answer.status == 408
    assert await http.closed() == b""


async def test_a_slow_head_and_an_idle_connection_are_closed(open_gateway, posts) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, opening=0.2, idle=0.2))
    http = await posts(gateway)
    http.write(b"POST /rpc HTTP/1.1\r\n")
    assert await http.closed() == b""
    http = await posts(gateway)
    await http.call("ping")
    assert await http.closed() == b""
    http = await posts(gateway)
    await http.call("ping")
    http.write(b"POST")
    assert await http.closed() == b""
    await eventually(lambda: not gateway.registry.connections)


async def test_a_client_that_leaves_during_its_request(service, gateway, posts) -> None:
    http = await posts()
    http.write(post(request("table.open"), key=await add_key(service)) * 3)
    await http.writer.drain()
    http.writer.transport.abort()
    await eventually(lambda: not gateway.registry.connections and not gateway.context.in_flight)


async def test_a_rate_is_429_with_the_time_to_wait(service, open_gateway, posts) -> None:
    limits = replace(TEST_LIMITS, rate=0.1, burst=2.0, patience=2.0)
    gateway = await open_gateway(limits=limits)
    http = await posts(gateway)
    answers = [await http.ask(request("ping")) for _ in range(4)]
    assert [one.status for one in answers] == [200, 200, 429, 429]
    assert answers[2].json["error"]["data"]["reason"] == "rate_limited"
    assert 0 < int(answers[2].headers["retry-after"]) <= 10
    last = await http.ask(request("ping"))
    assert (last.status, last.headers["connection"]) == (429, "close")
    assert await http.closed() == b""
    other = await posts(gateway)
    assert (await other.ask(request("ping"))).status == 429  # a new connection helps nothing


async def test_a_key_that_floods_does_not_starve_players(service, open_gateway, connect) -> None:
    limits = replace(TEST_LIMITS, key_rate=1.0, key_burst=5.0)
    gateway = await open_gateway(limits=limits)
    key = await add_key(service)
    http = await Post.connect(gateway.port)
    statuses = [(await http.ask(request("ping"), key=key)).status for _ in range(6)]
    assert statuses[:3] == [200] * 3
    assert statuses[-1] == 429
    assert (await http.ask(request("ping"))).status == 200  # without the key
    player = await connect(gateway)
    assert await player.call("ping")
    http.writer.close()


async def test_clients_behind_a_proxy_have_their_own_limits(open_gateway) -> None:
    limits = replace(TEST_LIMITS, address_rate=0.01, address_burst=1.5)
    gateway = await open_gateway(limits=limits, trusted_proxies=["127.0.0.1"])
    http = await Post.connect(gateway.port)
    statuses = []
    for client in ("203.0.113.1", "203.0.113.2", "203.0.113.1"):
        headers = (f"X-Forwarded-For: {client}",)
        statuses.append((await http.ask(request("ping"), headers=headers)).status)
    assert statuses == [200, 200, 429]
    http.writer.close()
    await eventually(lambda: not gateway.registry.connections)
    for address in ("203.0.113.1", "203.0.113.2", "127.0.0.1"):
        assert gateway.context.budgets.client(address, 0.0).connections == 0


async def test_draining_closes_kept_connections(service, gateway, posts) -> None:
    http = await posts()
    await http.call("ping")
    draining = asyncio.create_task(gateway.drain())
    assert await http.closed() == b""
    await draining


async def test_a_request_while_draining_is_503(gateway, posts) -> None:
    http = await posts()
    await http.call("ping")
    gateway.context.draining = True
    answer = await http.ask(request("ping"))
    assert answer.status == 503
    assert answer.headers["retry-after"]
    assert await http.closed() == b""
    gateway.context.draining = False


async def test_posts_are_counted(service, gateway, posts) -> None:
    http = await posts()
    await http.ask(request("ping"))
    await http.ask(request("ping"), kind="x")
    page = exposition(gateway.metrics).decode()
    assert 'dealer_posts_total{status="200"} 1.0' in page
    assert 'dealer_posts_total{status="415"} 1.0' in page
    assert 'dealer_calls_total{method="ping",outcome="ok"} 1.0' in page


async def test_tokens_work_without_a_key(gateway, connect, posts) -> None:
    table = await seat_players(connect, gateway, players=1)
    http = await posts()
    assert (await http.call("round.open", table=table.id))["data"]["reason"] == "not_entitled"
    opened = await http.call("round.open", table=table.id, token=table.host_token, entropy="house")
    assert opened["round"] == 1
