"""Requests: hostile and broken receivers, and connections that are used again."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator

import pytest

from dealer.webhooks import requests
from dealer.webhooks.addresses import Target, parse_url
from dealer.webhooks.requests import HttpPoster, RequestFailed
from tests.webhooks.receiver import (
    Receiver,
    Respond,
    answer,
    chunked,
    cut,
    early_hints,
    endless_head,
    flood,
    hang,
    not_http,
)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as receiver:
        yield receiver


@pytest.fixture
async def poster(receiver: Receiver) -> AsyncIterator[HttpPoster]:
    poster = HttpPoster(parse_url(receiver.url, allow_private=True), allow_private=True)
    yield poster
    poster.close()


async def test_a_request_as_it_is_sent(receiver: Receiver, poster: HttpPoster) -> None:
    assert await poster.post({"webhook-id": "7"}, "ü".encode()) == 204
    (request,) = receiver.requests
    assert request.line == "POST /hook?x=1 HTTP/1.1"
    assert request.headers["host"] == receiver.url.split("/")[2]
    assert (request.headers["webhook-id"], request.body) == ("7", "ü".encode())


@pytest.mark.parametrize(
    ("respond", "connections"),
    [
        (answer(204), 1),
        (answer(200, body=b"thanks"), 1),
        (answer(500, body=b"x" * 10_000), 1),
        (answer(200, more="Connection: close\r\n"), 2),
        (chunked, 1),
        (answer(200, body=b"x" * 20_000), 2),
    ],
)
async def test_a_connection_is_used_again(
    receiver: Receiver, poster: HttpPoster, respond: Respond, connections: int
) -> None:
    receiver.respond = respond
    for _ in range(2):
        await poster.post({}, b"{}")
    assert receiver.connections == connections


async def test_a_connection_that_was_closed_meanwhile_is_replaced(
    receiver: Receiver, poster: HttpPoster
) -> None:
    await poster.post({}, b"{}")
    await receiver.stop()
    await receiver.start()
    assert await poster.post({}, b"{}") == 204


async def test_interim_answers_are_skipped(receiver: Receiver, poster: HttpPoster) -> None:
    receiver.respond = early_hints
    for _ in range(2):
        assert await poster.post({}, b"{}") == 202
    assert receiver.connections == 1


async def test_redirects_are_not_followed(receiver: Receiver, poster: HttpPoster) -> None:
    async with Receiver() as other:
        receiver.respond = answer(307, more=f"Location: {other.url}\r\n")
        assert await poster.post({}, b"{}") == 307
        assert other.connections == 0


@pytest.mark.parametrize(
    ("respond", "problem"),
    [
        (hang, "no answer within"),
        (endless_head, "not HTTP, or its head is too long"),
        (cut, "closed without an answer"),
        (not_http, "not HTTP"),
    ],
)
async def test_receivers_that_do_not_answer(
    receiver: Receiver,
    poster: HttpPoster,
    monkeypatch: pytest.MonkeyPatch,
    respond: Respond,
    problem: str,
) -> None:
    monkeypatch.setattr(requests, "DEADLINE_SECONDS", 0.3)
    receiver.respond = respond
    with pytest.raises(RequestFailed, match=problem):
        await poster.post({}, b"{}")


async def test_of_a_gigabyte_only_the_head_is_read(receiver: Receiver, poster: HttpPoster) -> None:
    receiver.respond = flood
    read = 0
    feed_data = asyncio.StreamReader.feed_data

    def counted(self: asyncio.StreamReader, data: bytes) -> None:
        nonlocal read
        if data.startswith(b"POST") is False:
            read += len(data)
        feed_data(self, data)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(asyncio.StreamReader, "feed_data", counted)
        assert await poster.post({}, b"{}") == 200
    assert read < 1_000_000


async def test_nothing_listens(receiver: Receiver, poster: HttpPoster) -> None:
    await receiver.stop()
    with pytest.raises(RequestFailed, match="refused"):
        await poster.post({}, b"{}")


async def test_certificates_are_verified() -> None:
    """The context for TLS checks the certificate and the name, and the name is the URL's."""
    context = requests._tls()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert Target(True, "shop.example.org", 443, "/").authority == "shop.example.org"
