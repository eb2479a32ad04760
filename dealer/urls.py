"""Requests with urllib that try every address of a name, see `dealer.outgoing`."""

from __future__ import annotations

import socket
from collections.abc import Callable
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any
from urllib import request

from dealer.outgoing import Attempts


def opener(*handlers: request.BaseHandler, redirects: bool = True) -> request.OpenerDirector:
    """An opener of `urllib` that connects like this; its timeout is a connection's, too.

    Without `redirects` an answer that names another address is an error: a token is not sent on.
    """
    own = [_Http, _Https] if redirects else [_Http, _Https, _NoRedirects]
    return request.build_opener(*handlers, *own)


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


class _Http(request.HTTPHandler):
    def http_open(self, req: request.Request) -> HTTPResponse:
        return self.do_open(_in_turn(HTTPConnection), req)


class _Https(request.HTTPSHandler):
    def https_open(self, req: request.Request) -> HTTPResponse:
        return self.do_open(_in_turn(HTTPSConnection), req)


class _NoRedirects(request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _in_turn(kind: type[HTTPConnection]) -> Callable[..., HTTPConnection]:
    def make(host: str, **given: Any) -> HTTPConnection:
        connection = kind(host, **given)
        connection._create_connection = _connect  # type: ignore[attr-defined]
        return connection

    return make
