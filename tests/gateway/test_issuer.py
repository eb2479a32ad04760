"""JWTs of the operator's issuer: which are accepted, and how its keys are read."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dealer.errors import BadToken, ConfigurationError, Unavailable
from dealer.gateway import identity
from dealer.gateway.identity import (
    AGAIN_SECONDS,
    BYTES_MAX,
    RENEW_SECONDS,
    TOKEN_MAX,
    FetchFailed,
    Issuer,
    User,
    check_url,
    fetch_json,
    read_keys,
)
from tests.gateway.conftest import ManualClock
from tests.gateway.issuer import (
    ALGORITHMS,
    AUDIENCE,
    IssuerServer,
    issuer_server,
    jwk,
    jwks,
    private_key,
    public_pem,
    token,
)


@pytest.fixture
def server() -> Iterator[IssuerServer]:
    with issuer_server() as running:
        yield running


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


@pytest.fixture
def issuer(server: IssuerServer, clock: ManualClock) -> Issuer:
    return Issuer(server.url, audience=AUDIENCE, keys=None, clock=clock)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_a_token_of_each_algorithm_names_its_user(server, issuer, algorithm) -> None:
    given = token(server.url, algorithm, name="Ada L", preferred_username="ada")
    assert await issuer.verify(given) == User(server.url, "ada", ("Ada L", "ada"))


async def test_names_that_no_player_may_have_are_ignored(server, issuer) -> None:
    given = token(server.url, name="x" * 65, preferred_username=["ada"])
    assert (await issuer.verify(given)).names == ()


async def test_an_audience_may_be_one_of_several_and_times_have_a_leeway(server, issuer) -> None:
    now = int(time.time())
    given = token(server.url, aud=["other", AUDIENCE], exp=now - 30, nbf=now + 30)
    assert (await issuer.verify(given)).subject == "ada"


@pytest.mark.parametrize(
    ("claims", "says"),
    [
        ({"exp": 1}, "has expired"),
        ({"nbf": 2**40}, "not valid yet"),
        ({"iat": 2**40}, "not valid yet"),
        ({"aud": "other"}, "another audience"),
        ({"aud": None}, "lacks one of the claims"),
        ({"iss": "https://other.example"}, "another issuer"),
        ({"iss": None}, "lacks one of the claims"),
        ({"exp": None}, "lacks one of the claims"),
        ({"exp": "soon"}, "not valid here"),
        ({"exp": float("inf")}, "not valid here"),
        ({"sub": None}, "lacks one of the claims"),
        ({"sub": ""}, "not valid here"),
        ({"sub": "x" * 256}, "not valid here"),
        ({"sub": "\ud800"}, "not valid here"),
        ({"headers": {"typ": "logout+jwt"}}, "neither an ID token nor"),
        ({"headers": {"typ": "application/secevent+jwt"}}, "neither an ID token nor"),
        ({"headers": {"typ": "dpop+jwt"}}, "neither an ID token nor"),
        ({"headers": {"typ": "application/"}}, "neither an ID token nor"),
        ({"headers": {"typ": ["JWT"]}}, "neither an ID token nor"),
        ({"events": {"http://schemas.openid.net/event/backchannel-logout": {}}}, "neither an ID"),
        ({"headers": {"crit": ["b64"]}}, "not valid here"),
        ({"headers": {"kid": "unknown"}}, "its issuer does not have"),
        ({"headers": {"kid": "ES256"}}, "its issuer does not have"),
        ({"key": private_key("EdDSA", 1)}, "signature of this JWT"),
    ],
)
async def test_other_tokens_are_refused(server, issuer, claims, says) -> None:
    given = token(server.url, **claims)
    with pytest.raises(BadToken, match=says) as caught:
        await issuer.verify(given)
    assert given not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("typ", ["JWT", "jwt", "At+Jwt", "application/at+jwt", ""])
async def test_id_tokens_and_access_tokens_are_accepted(server, issuer, typ) -> None:
    given = token(server.url, headers={"typ": typ})  # PyJWT leaves an empty one out
    assert (await issuer.verify(given)).subject == "ada"


def unsigned(header: dict[str, object], claims: dict[str, object]) -> str:
    parts = (json.dumps(part).encode() for part in (header, claims))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


async def test_a_token_without_signature_or_with_the_public_key_as_secret_is_refused(
    server, issuer
) -> None:
    claims = {"iss": server.url, "aud": AUDIENCE, "sub": "eve", "exp": time.time() + 60}
    for name in ("none", "None", "HS256", "HS512"):
        body = unsigned({"alg": name, "kid": "RS256", "typ": "JWT"}, claims)
        mac = hmac.digest(public_pem("RS256"), body.encode(), "sha256")
        for signature in ("", base64.urlsafe_b64encode(mac).rstrip(b"=").decode()):
            with pytest.raises(BadToken):
                await issuer.verify(f"{body}.{signature}")


@pytest.mark.parametrize("text", ["", ".", "..", "a.b.c", "x" * TOKEN_MAX, "\ud800", "é.é.é"])
async def test_what_is_no_token_is_refused(issuer, text) -> None:
    with pytest.raises(BadToken):
        await issuer.verify(text)


async def test_a_token_that_is_too_long_is_refused(server, issuer) -> None:
    with pytest.raises(BadToken):
        await issuer.verify(token(server.url, more="x" * TOKEN_MAX))


async def test_a_new_key_is_read_and_unknown_ones_at_most_once_a_minute(
    server, issuer, clock
) -> None:
    await issuer.verify(token(server.url))
    assert server.reads == 1
    server.document = jwks(jwk("EdDSA", "new", number=1))
    for number in range(20):
        with pytest.raises(BadToken, match="does not have"):
            await issuer.verify(token(server.url, headers={"kid": f"k{number}"}))
    assert server.reads == 1
    clock.now += AGAIN_SECONDS
    fresh = token(server.url, key=private_key("EdDSA", 1), headers={"kid": "new"})
    assert (await issuer.verify(fresh)).subject == "ada"
    assert server.reads == 2


async def test_keys_stay_while_they_cannot_be_read_and_withdrawn_ones_go(
    server, issuer, clock
) -> None:
    given = token(server.url)
    await issuer.verify(given)
    server.status = 500
    clock.now += RENEW_SECONDS + 1
    await issuer.verify(given)
    await issuer.keys.refresh()
    await issuer.verify(given)
    server.status, server.document = 200, jwks(jwk("ES256", "ES256"))
    clock.now += AGAIN_SECONDS
    await issuer.keys.refresh()
    with pytest.raises(BadToken):
        await issuer.verify(given)


async def test_without_any_keys_a_token_may_be_sent_again(server, issuer, clock) -> None:
    server.configuration = {"issuer": "https://other.example", "jwks_uri": f"{server.url}/keys"}
    with pytest.raises(Unavailable):
        await issuer.verify(token(server.url))
    server.configuration = {"issuer": server.url, "jwks_uri": f"{server.url}/keys"}
    clock.now += AGAIN_SECONDS
    assert await issuer.verify(token(server.url))


async def test_keys_may_be_in_a_file_and_a_token_without_key_id_needs_the_only_one(
    tmp_path: Path, clock
) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps(jwks(jwk("EdDSA"), jwk("RS256"))))
    issuer = Issuer("my issuer", audience=AUDIENCE, keys=str(file), clock=clock)
    assert await issuer.verify(token("my issuer", headers={"kid": None}))
    file.write_text(json.dumps(jwks(jwk("EdDSA"), jwk("EdDSA", "b", number=1))))
    clock.now += AGAIN_SECONDS
    await issuer.keys.refresh()
    with pytest.raises(BadToken):
        await issuer.verify(token("my issuer", headers={"kid": None}))


def test_only_public_signature_keys_of_a_known_kind_are_read() -> None:
    weak = {"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "weak"}
    ignored = [
        weak,
        {"kty": "oct", "k": "AAAA", "kid": "secret"},
        jwk("RS256", "encryption", use="enc"),
        jwk("RS256", "other algorithm", alg="PS256"),
        jwk("ES256", "confused", alg="HS256"),
        jwk("ES256", "half") | {"x": "AA"},
        jwk("EdDSA") | {"kid": 7},
        {"kty": "EC", "crv": "P-521"},
        {},
        "text",
    ]
    document = {"keys": [*ignored, jwk("EdDSA", "good", use="sig", alg="EdDSA")]}
    assert [(key.id, key.algorithm) for key in read_keys(document)] == [("good", "EdDSA")]
    others: list[object] = [[], {"keys": {}}, {}, None]
    for wrong in others:
        with pytest.raises(FetchFailed, match="not a JWKS"):
            read_keys(wrong)


@pytest.mark.parametrize(
    "url", ["http://example.org/keys", "http://10.0.0.1/", "ftp://localhost/", "https://", "x://["]
)
def test_keys_come_over_https_or_from_this_machine(url) -> None:
    with pytest.raises(ConfigurationError, match="https://"):
        check_url(url)
    with pytest.raises(FetchFailed):
        fetch_json(url)


@pytest.mark.parametrize("url", ["https://example.org", "http://localhost:1/a", "http://[::1]/"])
def test_such_addresses_are_accepted(url) -> None:
    check_url(url)


def test_redirects_large_and_slow_answers_fail(server, monkeypatch) -> None:
    server.status, server.headers = 302, {"Location": f"{server.url}/keys"}
    with pytest.raises(FetchFailed, match="302"):
        fetch_json(f"{server.url}/keys")
    server.status, server.headers = 200, {}
    server.document = "x" * BYTES_MAX
    with pytest.raises(FetchFailed, match="more than"):
        fetch_json(f"{server.url}/keys")
    server.document = jwks()
    monkeypatch.setattr(identity, "TOTAL_SECONDS", -1.0)
    with pytest.raises(FetchFailed, match="too long"):
        fetch_json(f"{server.url}/keys")
