"""Requests with a body or with more bytes after them, written to a socket: each is answered."""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from dealer.gateway.clients import _select_subprotocol
from dealer.gateway.net.http import CHUNKED, EarlyAnswer, HttpExchange
from dealer.gateway.net.responses import response
from dealer.gateway.net.websocket import new_protocol, usual_answer
from tests.gateway.http_client import HttpResponse
from tests.gateway.rpc_client import HANDSHAKE

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
CLOSE = Frame(Opcode.CLOSE, b"").serialize(mask=True)


async def answer_to(port: int, *pieces: bytes) -> HttpResponse:
    """The answer to the end of the connection; each piece is sent on its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    async with asyncio.timeout(30):
        raw = await reader.read()  # raises ConnectionResetError if the answer is cut off
    writer.close()
    return HttpResponse(raw)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ((HEAD + b"Content-Length: 5\r\n\r\nhello",), 400),
        ((HEAD + b"Content-Length: 5\r\n\r\n", b"hello"), 400),
        ((HEAD + b"content-length:5\r\n\r\n",), 400),
        ((HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",), 400),
        ((HEAD + b"Content-Length: -1\r\n\r\n",), 400),
        ((HEAD + b"Content-Length: 1000000\r\n\r\n" + b"x" * 1_000_000,), 413),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",), 400),
        ((HEAD + b"Content-Length: 0\r\n\r\n",), 200),
        ((HEAD + b"\r\n" + HEAD + b"\r\n",), 200),
        ((HEAD + b"\r\ntrailing bytes",), 200),
        ((HEAD[:20], HEAD[20:], b"\r", b"\n"), 200),
        ((b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n",), 405),
        ((b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",), 405),
        ((b"PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",), 405),
        ((HEAD.replace(b"/ ", b"/ws ") + b"Content-Length: 5\r\n\r\nhello",), 400),
    ],
)
@pytest.mark.parametrize("operator", [False, True])
async def test_a_request_with_a_body_is_answered(
    open_gateway, request_, status: int, operator: bool
) -> None:
    gateway = await open_gateway(ops_port=0)
    port = gateway.ops_port if operator else gateway.port
    if operator:
        request_ = tuple(piece.replace(b"GET / ", b"GET /healthz ") for piece in request_)
        status = {413: 400}.get(status, status)
    got = await answer_to(port, *request_)
    assert got.status == status
    assert got.headers["connection"] == "close"
    if status == 405:
        assert got.headers["allow"] == "GET, HEAD"
    assert len(got.body) == int(got.headers["content-length"])


async def test_frames_before_the_handshake_is_answered_are_not_lost(gateway) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    text = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'
    writer.write(HANDSHAKE + Frame(Opcode.TEXT, text).serialize(mask=True))
    async with asyncio.timeout(30):
        await reader.readuntil(b"\r\n\r\n")
        assert b'"id":7,' in await reader.readuntil(b"}")
    writer.close()


HOST = b"Host: localhost\r\n"
NOT_VALID = {
    "bare LF": b"%bHTTP/1.1\nHost: localhost\n\n",
    "bare LF after a header": b"%bHTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n",
    "bare LF at the end": b"%bHTTP/1.1\r\nHost: localhost\n\n",
    "bare LF before": b"\n%bHTTP/1.1\r\n" + HOST + b"\r\n",
    "bare CR": b"%bHTTP/1.1\r\nHost: localhost\rX: y\r\n\r\n",
    "another version": b"%bHTTP/2.0\r\n" + HOST + b"\r\n",
    "no version": b"%b\r\n\r\n",
    "small letters": b"%bhttp/1.1\r\n" + HOST + b"\r\n",
    "a tab": b"%b\tHTTP/1.1\r\n" + HOST + b"\r\n",
    "two spaces": b"%b HTTP/1.1\r\n" + HOST + b"\r\n",
    "a space at the end": b"%bHTTP/1.1 \r\n" + HOST + b"\r\n",
    "another path": b"%b/\xc3\xa9 HTTP/1.1\r\n" + HOST + b"\r\n",
    "no request line": b"hello there\r\n",
    "the beginning of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a folded line": b"%bHTTP/1.1\r\n" + HOST + b"X: y\r\n z\r\n\r\n",
    "a folded Host": b"%bHTTP/1.1\r\nHost:\r\n localhost\r\n\r\n",
    "a space before a colon": b"%bHTTP/1.1\r\nHost : localhost\r\n\r\n",
    "no colon": b"%bHTTP/1.1\r\n" + HOST + b"X\r\n\r\n",
    "NUL": b"%bHTTP/1.1\r\n" + HOST + b"X: \0\r\n\r\n",
    "no Host": b"%bHTTP/1.1\r\n\r\n",
    "chunks in HTTP/1.0": b"%bHTTP/1.0\r\n" + HOST + b"Content-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("what", NOT_VALID)
async def test_a_head_that_is_not_valid_is_400(open_gateway, what: str) -> None:
    gateway = await open_gateway(ops_port=0)
    doors = [(gateway.port, door) for door in (b"GET / ", b"POST /rpc ", b"GET /api/deck/new/ ")]
    for port, door in (*doors, (gateway.ops_port, b"GET /healthz ")):
        head = NOT_VALID[what].replace(b"%b", door)
        for pieces in ((head,), (head[:12], head[12:])):
            got = await answer_to(port, *pieces)
            assert (got.status, got.headers["connection"]) == (400, "close")
            assert len(got.body) == int(got.headers["content-length"]) > 0
    assert not list(gateway.context.service.tables)


@pytest.mark.parametrize("pieces", [(b"\r\n",), (b"\r", b"\n"), (b"\r\n", b"\r\n")])
@pytest.mark.parametrize("operator", [False, True])
async def test_empty_lines_before_a_request_are_skipped(
    open_gateway, pieces: tuple[bytes, ...], operator: bool
) -> None:
    gateway = await open_gateway(ops_port=0)
    port, path = (gateway.ops_port, b"/healthz") if operator else (gateway.port, b"/")
    assert (await answer_to(port, *pieces, HEAD.replace(b"/", path, 1) + b"\r\n")).status == 200
    if not operator:
        assert (await answer_to(port, *pieces, HANDSHAKE + CLOSE)).status == 101


@pytest.mark.parametrize("operator", [False, True])
async def test_a_head_has_a_bounded_length(open_gateway, operator: bool) -> None:
    gateway = await open_gateway(ops_port=0)
    port = gateway.ops_port if operator else gateway.port
    for line in (b"X: " + b"x" * 40_000, b"X: y\r\n" * 7_000):
        assert (await answer_to(port, HEAD + line)).status == 431


@pytest.mark.parametrize(
    ("headers", "length"),
    [
        (b"", 0),
        (b"Content-Length: 0\r\n", 0),
        (b"content-LENGTH:\t17 \r\n", 17),
        (b"Content-Length: 17\r\ncontent-length: 17\r\n", 17),
        (b"Transfer-Encoding: chunked\r\n", CHUNKED),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", CHUNKED),
        (b"X-Content-Length: 3\r\nX: Content-Length: 4\r\n", 0),
    ],
)
def test_the_length_of_a_body_is_read_from_its_headers(headers: bytes, length: int) -> None:
    exchange = HttpExchange(100, "/")
    assert exchange.receive_head(HEAD + headers + b"Accept: */*\r\n\r\n")
    assert exchange.body_length == length


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 17\r\nContent-Length: 0\r\n",
        b"Content-Length: 1" + b"0" * 30 + b"\r\n",
        b"Content-Length: five\r\n",
        b"Transfer-Encoding: gzip\r\nContent-Length: 3\r\n",
    ],
)
def test_a_length_that_is_none_is_refused(headers: bytes) -> None:
    with pytest.raises(EarlyAnswer) as early:
        HttpExchange(100, "/").receive_head(HEAD + headers + b"\r\n")
    assert early.value.answer.status_code in (400, 501)


@given(st.binary(max_size=60), st.integers(0, 120))
def test_a_head_in_two_pieces_is_as_good_as_whole(left: bytes, cut: int) -> None:
    data = HEAD + b"Content-Length: 3\r\n\r\nabc" + left
    exchange = HttpExchange(100, "/")
    complete = exchange.receive_head(data[:cut])
    if not complete:
        assert exchange.receive_head(data[cut:])
        rest = b""
    else:
        rest = data[cut:]
    assert exchange.receive_body(rest)
    assert bytes(exchange.body) == b"abc"
    assert left.startswith(exchange.left)


USUAL = {
    "Host": "localhost",
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
}
VARIANTS: dict[str, list[str | None]] = {
    "Upgrade": ["WebSocket", "h2c", "websocket, h2c", None],
    "Connection": ["keep-alive, Upgrade", "close", "upgrade,close", None],
    "Sec-WebSocket-Key": ["dGhlIHNhbXBsZSBub25jZR==", "c2hvcnQ=", "", "x" * 22 + "==", None],
    "Sec-WebSocket-Version": ["8", "13, 8", None],
    "Sec-WebSocket-Protocol": ["dealer.v1", "dealer.v1, other", "other", ""],
    "Sec-WebSocket-Extensions": ["permessage-deflate", ";;"],
    "Origin": ["http://localhost"],
}


@given(
    changes=st.fixed_dictionaries(
        {}, optional={name: st.sampled_from(values) for name, values in VARIANTS.items()}
    ),
    twice=st.sampled_from((None, *VARIANTS)),
    left=st.binary(max_size=4),
)
def test_a_handshake_is_read_and_answered_as_the_libraries_do(
    changes: dict[str, str | None], twice: str | None, left: bytes
) -> None:
    lines = [(name, value) for name, value in (USUAL | changes).items() if value is not None]
    lines += [line for line in lines if line[0] == twice]
    head = "GET /ws HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines)
    exchange = HttpExchange(100, "/")
    assert exchange.receive_head(head.encode() + b"\r\n" + left)
    assert exchange.receive_body(b"")
    request = exchange.request
    by_h11 = HttpExchange(100, "/")
    with patch("dealer.gateway.net.http._is_plain_upgrade", return_value=False):
        assert by_h11.receive_head(head.encode() + b"\r\n" + left)
    assert by_h11.receive_body(b"")
    assert repr(request) == repr(by_h11.request)
    assert exchange.left == by_h11.left == left
    refusal = response(HTTPStatus.BAD_REQUEST, "no")
    assert request is not None
    answer = new_protocol(100, _select_subprotocol).accept(request)
    usual = usual_answer(request, "dealer.v1")
    if usual is not None:
        assert re.sub(rb"Date: [^\r]+", b"", usual) == re.sub(
            rb"Date: [^\r]+", b"", answer.serialize()
        )
    if not changes and twice is None:
        assert usual is not None
    assert exchange.answer(refusal, close=True) == by_h11.answer(refusal, close=True)
