"""Fetches a small JSON document: the keys of an issuer, from its server or from a file.

Over https only, except from this machine; without redirects; bounded in size and time.
"""

from __future__ import annotations

import json
from http.client import HTTPMessage
from ipaddress import ip_address
from pathlib import Path
from time import monotonic
from typing import IO, Any
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request

from dealer.errors import ConfigurationError
from dealer.outgoing import NotConnected, opener

BYTES_MAX = 256 * 1024
READ_SECONDS = 3.0
"""Timeout of the connection, at whichever address of the name, and of each read."""

TOTAL_SECONDS = 5.0
_CHUNK = 16 * 1024


class FetchFailed(Exception):
    """The document cannot be had; the text says why, for the operator."""


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


def is_url(source: str) -> bool:
    """Whether a source is a URL; otherwise it is the path of a file."""
    return "://" in source


def check_url(url: str, *, of: str = "A URL") -> None:
    """Raise ConfigurationError, naming `of`, unless it is https, or http to this machine."""
    try:
        scheme, host = urlsplit(url).scheme, urlsplit(url).hostname
    except ValueError:
        scheme, host = "", None
    if not host or scheme not in ("https", "http") or (scheme == "http" and not _is_local(host)):
        raise ConfigurationError(
            f"{of} must begin with https://, or with http:// and an address of this machine, "
            f"not {url!r}."
        )


def fetch_json(source: str) -> Any:
    """The document at a URL or in a file; call it in a thread. Raises FetchFailed."""
    try:
        if not is_url(source):
            with Path(source).open("rb") as file:
                return _parsed(file.read(BYTES_MAX + 1))
        check_url(source)
        return _parsed(_download(source))
    except (OSError, ValueError, ConfigurationError, RecursionError) as error:
        raise FetchFailed(f"{source}: {_text(error)}") from None


def _download(url: str) -> bytes:
    # A proxy of the environment cannot reach this machine's own addresses.
    proxies = ProxyHandler({}) if _is_local(urlsplit(url).hostname or "") else ProxyHandler()
    request = Request(url, headers={"Accept": "application/json"})
    ends, body = monotonic() + TOTAL_SECONDS, b""
    with opener(_NoRedirects, proxies).open(request, timeout=READ_SECONDS) as response:
        while chunk := response.read1(_CHUNK):
            body += chunk
            if monotonic() > ends:
                raise OSError("it takes too long")
            if len(body) > BYTES_MAX:
                break
    return body


def _parsed(body: bytes) -> Any:
    if len(body) > BYTES_MAX:
        raise ValueError(f"it has more than {BYTES_MAX} bytes")
    return json.loads(body)


def _text(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason if isinstance(reason, NotConnected) else error)


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
