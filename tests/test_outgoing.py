"""Outgoing connections: names with several addresses, for webhooks, issuers and commands."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from dealer import outgoing, urls
from dealer.cli.commands.verify import from_house
from dealer.errors import HouseUnreachable
from dealer.gateway.identity import FetchFailed, fetch_json
from dealer.outgoing import ADDRESSES, CONNECT_SECONDS, Attempts, NotConnected
from dealer.webhooks import requests
from dealer.webhooks.addresses import Target, parse_url
from dealer.webhooks.requests import HttpPoster, RequestFailed
from tests.webhooks.receiver import Receiver

NAME = "house.example.org"
REFUSING = ("127.0.0.2", "127.0.0.3")
"""Addresses of this machine at which nothing listens, as ::1 often."""


def resolve_to(*addresses: str) -> Callable[..., Any]:
    """A resolver for webhooks."""

    async def resolve(host: str, port: int) -> list[str]:
        assert host == NAME
        return list(addresses)

    return resolve


@pytest.fixture
def resolving(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Gives `localhost` these addresses for blocking connections."""
    real = socket.getaddrinfo

    def set_addresses(*addresses: str) -> None:
        def getaddrinfo(host: str, port: int, *given: Any, **named: Any) -> Any:
            if host != "localhost":
                return real(host, port, *given, **named)
            return [found for each in addresses for found in real(each, port, *given, **named)]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    return set_addresses


@contextmanager
def server(address: str = "127.0.0.1") -> Iterator[int]:
    """An HTTP server at this address only, which answers with JSON; its port."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"keys": []}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer((address, 0), Answers) as listening:
        thread = Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield listening.server_port
        finally:
            listening.shutdown()
            thread.join()


# The order, and the time for each


def seconds_of(addresses: list[str], monkeypatch: pytest.MonkeyPatch, *, used: float) -> list[Any]:
    """What each attempt gets of 6 seconds, if each uses this part of it."""
    now = [100.0]
    monkeypatch.setattr(outgoing, "monotonic", lambda: now[0])
    given = []
    for address, seconds in Attempts(addresses, seconds=6.0):
        given.append((address, round(seconds, 3)))
        now[0] += seconds * used
    return given


def test_no_address_takes_the_time_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seconds_of(["a"], monkeypatch, used=1) == [("a", 6)]
    assert seconds_of(["a", "b"], monkeypatch, used=1) == [("a", CONNECT_SECONDS), ("b", 4)]
    assert seconds_of(["a", "b"], monkeypatch, used=0) == [("a", CONNECT_SECONDS), ("b", 6)]
    six = seconds_of(list("abcdef"), monkeypatch, used=1)
    assert six == [(each, 1) for each in "abcdef"]
    many = [str(number) for number in range(100)]
    found = seconds_of(many, monkeypatch, used=1)
    assert [each for each, _ in found] == many[:ADDRESSES]
    assert sum(seconds for _, seconds in found) == pytest.approx(6)


def test_a_failure_names_what_was_tried() -> None:
    attempts = Attempts(["::1", "192.0.2.1", "192.0.2.2"], seconds=1)
    invalid = ssl.SSLCertVerificationError(1, "x")
    invalid.verify_message = "it has expired"
    for address, error in (
        ("::1", ConnectionRefusedError()),
        ("192.0.2.1", TimeoutError()),
        ("192.0.2.2", invalid),
    ):
        attempts.failed(address, error)
    assert str(attempts.failure()) == (
        "no connection to ::1: the connection was refused; 192.0.2.1: no answer in time; "
        "192.0.2.2: the certificate is not valid: it has expired"
    )


# Webhooks


def poster_of(receiver: Receiver, *addresses: str) -> HttpPoster:
    url = receiver.url.replace("127.0.0.1", NAME)
    target = parse_url(url, allow_private=True)
    return HttpPoster(target, allow_private=True, resolve=resolve_to(*addresses))


async def test_a_webhook_is_delivered_to_the_address_that_listens() -> None:
    async with Receiver() as receiver:
        for addresses in (("::1", "127.0.0.1"), (*REFUSING, "127.0.0.1"), ("127.0.0.1", "::1")):
            poster = poster_of(receiver, *addresses)
            assert await poster.post({}, b"{}") == 204
            poster.close()
        assert {each.headers["host"] for each in receiver.requests} == {
            receiver.url.split("/")[2].replace("127.0.0.1", NAME)
        }


async def test_a_webhook_that_no_address_takes_says_what_was_tried() -> None:
    async with Receiver() as receiver:
        poster = poster_of(receiver, *REFUSING)
        with pytest.raises(RequestFailed) as raised:
            await poster.post({}, b"{}")
    assert str(raised.value) == "no connection to " + "; ".join(
        f"{each}: the connection was refused" for each in REFUSING
    )


async def test_an_address_that_does_not_answer_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the handshake of TLS: there the connection has been accepted."""
    tried = list[str]()

    async def open_connection(host: str, *_: object, **named: object) -> object:
        tried.append(host)
        if len(tried) == 3:
            raise ConnectionRefusedError
        return await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "open_connection", open_connection)
    monkeypatch.setattr(requests, "CONNECTED_SECONDS", 0.03)
    target = Target(True, NAME, 443, "/")
    addresses = ("192.0.2.1", "192.0.2.2", "192.0.2.3")
    poster = HttpPoster(target, allow_private=True, resolve=resolve_to(*addresses))
    with pytest.raises(RequestFailed, match=r"192.0.2.2: no answer in time; 192.0.2.3: .*refused"):
        await poster.post({}, b"{}")
    assert tried == list(addresses)


# Documents and bundles


def test_keys_are_read_from_the_address_that_listens(resolving: Callable[..., None]) -> None:
    resolving("::1", *REFUSING, "127.0.0.1")
    with server() as port:
        assert fetch_json(f"http://localhost:{port}/keys") == {"keys": []}
    resolving(*REFUSING)
    with pytest.raises(FetchFailed) as raised:
        fetch_json(f"http://localhost:{port}/keys")
    assert str(raised.value) == (
        f"http://localhost:{port}/keys: no connection to "
        "127.0.0.2: the connection was refused; 127.0.0.3: the connection was refused"
    )


def test_so_is_a_bundle(resolving: Callable[..., None]) -> None:
    resolving(*REFUSING, "127.0.0.1")
    with server() as port:
        assert from_house(f"http://localhost:{port}/", "0" * 32) == [b'{"keys": []}']
    resolving(*REFUSING)
    with pytest.raises(HouseUnreachable, match=r"no connection to 127\.0\.0\.2: .*127\.0\.0\.3"):
        from_house(f"http://localhost:{port}/", "0" * 32)


def test_the_bound_is_for_all_addresses_together(
    resolving: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving("192.0.2.1", "192.0.2.2", "192.0.2.3")
    given = list[float]()

    def create_connection(_: object, timeout: float) -> socket.socket:
        given.append(timeout)
        raise TimeoutError

    monkeypatch.setattr(outgoing, "monotonic", lambda: sum(given))
    monkeypatch.setattr(socket, "create_connection", create_connection)
    with pytest.raises(NotConnected, match=r"192\.0\.2\.1: no answer in time; .*192\.0\.2\.3"):
        urls._connect(("localhost", 1), 3.0)
    assert given == pytest.approx([1, 1, 1])
