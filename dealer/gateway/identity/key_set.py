"""The public keys of an issuer (JWKS, RFC 7517): read once, and again when an unknown key comes.

A key that is not in the set makes the server read it again, at most once a minute: tokens with
invented key ids cause no more than that. Where it cannot be read the keys that were known stay.
Documents are read from a file, or over https (http only from this machine), without redirects, and
are bounded in size and time.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request

from jwt import PyJWK
from jwt.exceptions import PyJWTError

from dealer.errors import ConfigurationError, Unavailable
from dealer.outgoing import NotConnected, opener

AGAIN_SECONDS = 60.0
"""Between two attempts to read the keys."""

RENEW_SECONDS = 3_600.0
"""Age of the keys after which they are read again, for keys that the issuer has withdrawn."""

BYTES_MAX = 256 * 1024
READ_SECONDS = 3.0
"""Timeout of the connection, at whichever address of the name, and of each read."""

TOTAL_SECONDS = 5.0
_CHUNK = 16 * 1024

KEYS_MAX = 100
RSA_BITS_MIN = 2048

_DISCOVERY = "/.well-known/openid-configuration"
_CURVES = {("OKP", "Ed25519"): "EdDSA", ("EC", "P-256"): "ES256"}

log = logging.getLogger(__name__)


class IssuerKey(NamedTuple):
    """A public key, and the one algorithm that it is for; `id` None if the issuer gives none."""

    id: str | None
    algorithm: str
    key: Any


class KeySet:
    """The keys of `issuer`: from `source`, a URL or file, or from where the issuer says they are.

    `clock` gives seconds.
    """

    def __init__(self, issuer: str, source: str | None, *, clock: Callable[[], float]) -> None:
        self._issuer = issuer
        self._source = source
        self._clock = clock
        self._keys: list[IssuerKey] = []
        self._read_at: float | None = None
        self._tried_at: float | None = None
        self._reading: asyncio.Task[None] | None = None

    async def find(self, id: str | None, algorithm: str) -> IssuerKey | None:
        """The key with this id and algorithm; without an id the only one for the algorithm.

        Raises Unavailable while no keys could be read yet.
        """
        found = self._known(id, algorithm)
        if found is None:
            await self.refresh()
            found = self._known(id, algorithm)
        elif self._read_at is not None and self._clock() - self._read_at > RENEW_SECONDS:
            self.start()  # the key is used meanwhile
        if found is None and self._read_at is None:
            raise Unavailable("The issuer's keys cannot be read at the moment; try again shortly.")
        return found

    def start(self) -> None:
        """Read the keys in the background, unless that was tried less than a minute ago."""
        if self._reading is not None and not self._reading.done():
            return
        now = self._clock()
        if self._tried_at is not None and now - self._tried_at < AGAIN_SECONDS:
            return
        self._tried_at = now
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def refresh(self) -> None:
        """The same, and wait for it."""
        self.start()
        if self._reading is not None:
            await asyncio.shield(self._reading)

    async def _read(self) -> None:
        try:
            document = await asyncio.to_thread(self._fetch)
            self._keys = read_keys(document)
        except FetchFailed as error:
            log.warning("issuer's keys not read", extra={"fields": {"says": str(error)}})
            return
        self._read_at = self._clock()

    def _fetch(self) -> Any:
        source = self._source
        if source is None:
            found = fetch_json(self._issuer.rstrip("/") + _DISCOVERY)
            if not isinstance(found, dict) or found.get("issuer") != self._issuer:
                raise FetchFailed("the configuration at the issuer's address names another issuer")
            source = found.get("jwks_uri")
            if not isinstance(source, str) or not is_url(source):
                raise FetchFailed("the issuer's configuration has no jwks_uri")
            check_url(source)
        return fetch_json(source)

    def _known(self, id: str | None, algorithm: str) -> IssuerKey | None:
        fitting = [
            key for key in self._keys if key.algorithm == algorithm and (id is None or key.id == id)
        ]
        return fitting[0] if len(fitting) == 1 or (fitting and id is not None) else None


def read_keys(document: Any) -> list[IssuerKey]:
    """The keys of a JWKS that tokens may be signed with; others are ignored.

    Raises FetchFailed if it is none.
    """
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise FetchFailed("the document is not a JWKS")
    keys = (_read_key(entry) for entry in entries[:KEYS_MAX] if isinstance(entry, dict))
    return [key for key in keys if key is not None]


def _read_key(entry: dict[str, Any]) -> IssuerKey | None:
    kind, id = entry.get("kty"), entry.get("kid")
    # Fixed by the key, never by a token: a public key is no HMAC secret.
    algorithm = "RS256" if kind == "RSA" else _CURVES.get((str(kind), str(entry.get("crv"))))
    if algorithm is None or entry.get("alg", algorithm) != algorithm:
        return None
    if entry.get("use", "sig") != "sig" or not (id is None or isinstance(id, str)):
        return None
    public = {
        name: value for name, value in entry.items() if name in ("kty", "crv", "x", "y", "n", "e")
    }
    try:
        key = PyJWK(public, algorithm=algorithm).key
    except (PyJWTError, ValueError, TypeError, KeyError):
        return None
    if kind == "RSA" and key.key_size < RSA_BITS_MIN:
        return None
    return IssuerKey(id, algorithm, key)


class FetchFailed(Exception):
    """The document cannot be had; the text says why, for the operator."""


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
    with opener(proxies, redirects=False).open(request, timeout=READ_SECONDS) as response:
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
