"""Outgoing connections: every address of a name in its turn, within one bound of time.

A name may have an address at which nothing listens, such as ::1, or that no packet reaches. So each
address is tried for a short time, and a failure names all that were tried, with what each said.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from time import monotonic
from typing import Any
from urllib.request import (
    BaseHandler,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    Request,
    build_opener,
)

CONNECT_SECONDS = 2.0
"""Seconds for one address at most, unless it is the last: that one gets what is left."""

ADDRESSES = 8
"""Addresses of one name that are tried."""


class NotConnected(OSError):
    """No address could be connected to; the text says for each why not."""


class Attempts:
    """Attempts to connect to addresses, within `seconds` together.

    for address, seconds in attempts:
        try:
            return … address …, within these seconds
        except OSError as error:
            attempts.failed(address, error)
    raise attempts.failure()
    """

    def __init__(self, addresses: Sequence[str], *, seconds: float) -> None:
        self._addresses = addresses[:ADDRESSES]
        self._seconds = seconds
        self._problems: list[str] = []

    def __iter__(self) -> Iterator[tuple[str, float]]:
        ends = monotonic() + self._seconds
        for number, address in enumerate(self._addresses):
            left = max(0.0, ends - monotonic())
            after = len(self._addresses) - number - 1
            yield address, min(CONNECT_SECONDS, left / (after + 1)) if after else left

    def failed(self, address: str, error: OSError) -> None:
        """Note why there is no connection to an address."""
        self._problems.append(f"{address}: {_described(error)}")

    def failure(self) -> NotConnected:
        """What was tried."""
        return NotConnected(f"no connection to {'; '.join(self._problems) or 'any address'}")


def opener(*handlers: BaseHandler, redirects: bool = True) -> OpenerDirector:
    """An opener of `urllib` that connects like this; its timeout is a connection's, too.

    Without `redirects` an answer that names another address is an error: a token is not sent on.
    """
    own = [_Http, _Https] if redirects else [_Http, _Https, _NoRedirects]
    return build_opener(*handlers, *own)


def _connect(place: tuple[str, int], timeout: float, _: object = None) -> socket.socket:
    host, port = place
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    attempts = Attempts(addresses, seconds=timeout)
    for address, seconds in attempts:
        try:
            # 0 would make it non-blocking.
            connection = socket.create_connection((address, port), timeout=max(seconds, 0.001))
        except OSError as error:
            attempts.failed(address, error)
        else:
            connection.settimeout(timeout)
            return connection
    raise attempts.failure()


class _Http(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_in_turn(HTTPConnection), req)


class _Https(HTTPSHandler):
    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_in_turn(HTTPSConnection), req)


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _in_turn(kind: type[HTTPConnection]) -> Callable[..., HTTPConnection]:
    def make(host: str, **given: Any) -> HTTPConnection:
        connection = kind(host, **given)
        connection._create_connection = _connect  # type: ignore[attr-defined]
        return connection

    return make


def _described(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not valid: {error.verify_message}"
    if isinstance(error, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionError):
        return "the connection was closed"
    return error.strerror or "it was not reached"
