"""The operator's issuer: verifies the JWTs (RFC 7519) by which its users take seats.

A token names a user (`sub`) and is accepted only with the issuer and the audience that the operator
has configured, within its times, with a leeway of a minute. An issuer signs other tokens with the
same keys, as for logouts: by their `typ` or their claim `events` they are no credential of a user
(RFC 8725, section 3.11). No error and no log line has any part of a token.

The public keys of the issuer (JWKS, RFC 7517) are read once, and again when an unknown key comes.
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
from typing import Any, NamedTuple, TypeGuard
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request

import jwt
from jwt import PyJWK, exceptions

from dealer.errors import BadRequest, BadToken, ConfigurationError, Unavailable
from dealer.game.names import check_name
from dealer.outgoing import NotConnected
from dealer.urls import opener

LEEWAY_SECONDS = 60
SUBJECT_MAX = 255
"""Characters of a `sub`, as OpenID Connect bounds it."""

TOKEN_MAX = 8_192
"""Characters of a token."""

ALGORITHMS = ("EdDSA", "ES256", "RS256")
TYPES = ("jwt", "at+jwt")
"""Values of `typ`, apart from case and `application/` (RFC 7515, RFC 9068); it may be absent."""

NAME_CLAIMS = ("name", "preferred_username")

_REFUSALS: dict[type[Exception], str] = {
    exceptions.ExpiredSignatureError: "This JWT has expired; sign in again.",
    exceptions.ImmatureSignatureError: "This JWT is not valid yet; check the clocks.",
    exceptions.InvalidAudienceError: "This JWT is for another audience.",
    exceptions.InvalidIssuerError: "This JWT is of another issuer.",
    exceptions.InvalidSignatureError: "The signature of this JWT is not valid.",
    exceptions.MissingRequiredClaimError: "This JWT lacks one of the claims aud, exp, iss and sub.",
}
_OTHER_TYPE = "This JWT is neither an ID token nor an access token: its `typ` is JWT or at+jwt."
_INVALID = "This JWT is not valid here; sign in again."
_UNREADABLE = (exceptions.InvalidTokenError, ArithmeticError, RecursionError, TypeError, ValueError)
"""What a token with odd members raises, like an `exp` of 1e999."""

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


class User(NamedTuple):
    """A user of the issuer; `names` are those that the token gives and a player may have."""

    issuer: str
    subject: str
    names: tuple[str, ...]


class Issuer:
    """Verifies tokens of the issuer at the URL `url` for `audience`; `keys` are its keys."""

    def __init__(
        self, url: str, *, audience: str, keys: str | None, clock: Callable[[], float]
    ) -> None:
        self._url = url
        self._audience = audience
        self.keys = KeySet(url, keys, clock=clock)

    async def verify(self, token: str) -> User:
        """The user of a token; raises BadToken, or Unavailable while no keys could be read."""
        try:
            claims = await self._claims(token)
        except _UNREADABLE as error:
            raise BadToken(_REFUSALS.get(type(error), _INVALID)) from None
        subject = claims["sub"]
        if not _is_text(subject) or not 1 <= len(subject) <= SUBJECT_MAX:
            raise BadToken(_INVALID)
        names = (claims.get(name) for name in NAME_CLAIMS)
        return User(self._url, subject, tuple(name for name in names if _is_name(name)))

    async def _claims(self, token: str) -> dict[str, Any]:
        if len(token) > TOKEN_MAX:
            raise exceptions.InvalidTokenError
        header = jwt.get_unverified_header(token)
        algorithm, id = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS:
            raise BadToken(f"A JWT is signed with one of {', '.join(ALGORITHMS)}.")
        if not _is_type(header.get("typ", "JWT")):
            raise BadToken(_OTHER_TYPE)
        if "crit" in header or not isinstance(id, str | None):
            raise exceptions.InvalidTokenError
        key = await self.keys.find(id, algorithm)
        if key is None:
            raise BadToken("This JWT is signed with a key that its issuer does not have.")
        claims: dict[str, Any] = jwt.decode(
            token,
            key.key,
            algorithms=[key.algorithm],
            audience=self._audience,
            issuer=self._url,
            leeway=LEEWAY_SECONDS,
            options={"require": ["aud", "exp", "iss", "sub"]},
        )
        if "events" in claims:  # a security event (RFC 8417), such as a logout
            raise BadToken(_OTHER_TYPE)
        return claims


def _is_type(value: object) -> bool:
    return isinstance(value, str) and value.lower().removeprefix("application/") in TYPES


def _is_text(value: object) -> TypeGuard[str]:
    """Whether it is a string without lone surrogates, which have no bytes."""
    return isinstance(value, str) and not any(
        "\ud800" <= character <= "\udfff" for character in value
    )


def _is_name(value: object) -> TypeGuard[str]:
    if not isinstance(value, str):
        return False
    try:
        check_name(value)
    except BadRequest:
        return False
    return True


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
        """Read the keys as `start` does, and wait for it."""
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
    except (exceptions.PyJWTError, ValueError, TypeError, KeyError):
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
