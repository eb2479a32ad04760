"""The operator's issuer: verifies the JWTs (RFC 7519) by which its users take seats.

A token names a user (`sub`) and is accepted only with the issuer and the audience that the operator
has configured, within its times, with a leeway of a minute. An issuer signs other tokens with the
same keys, as for logouts: by their `typ` or their claim `events` they are no credential of a user
(RFC 8725, section 3.11). No error and no log line has any part of a token.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeGuard

import jwt
from jwt.exceptions import (
    ExpiredSignatureError,
    ImmatureSignatureError,
    InvalidAudienceError,
    InvalidIssuerError,
    InvalidSignatureError,
    InvalidTokenError,
    MissingRequiredClaimError,
)

from dealer.errors import BadRequest, BadToken
from dealer.game.names import check_name
from dealer.gateway.identity.key_set import KeySet

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
    ExpiredSignatureError: "This JWT has expired; sign in again.",
    ImmatureSignatureError: "This JWT is not valid yet; check the clocks.",
    InvalidAudienceError: "This JWT is for another audience.",
    InvalidIssuerError: "This JWT is of another issuer.",
    InvalidSignatureError: "The signature of this JWT is not valid.",
    MissingRequiredClaimError: "This JWT lacks one of the claims aud, exp, iss and sub.",
}
_OTHER_TYPE = "This JWT is neither an ID token nor an access token: its `typ` is JWT or at+jwt."
_INVALID = "This JWT is not valid here; sign in again."
_UNREADABLE = (InvalidTokenError, ArithmeticError, RecursionError, TypeError, ValueError)
"""What a token with odd members raises, like an `exp` of 1e999."""


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
            raise InvalidTokenError
        header = jwt.get_unverified_header(token)
        algorithm, id = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS:
            raise BadToken(f"A JWT is signed with one of {', '.join(ALGORITHMS)}.")
        if not _is_type(header.get("typ", "JWT")):
            raise BadToken(_OTHER_TYPE)
        if "crit" in header or not isinstance(id, str | None):
            raise InvalidTokenError
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
