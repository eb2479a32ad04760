"""An issuer of JWTs for the tests: keys, tokens, and a server of its configuration and keys."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

AUDIENCE = "cards.example"
ALGORITHMS = ("EdDSA", "ES256", "RS256")


def private_key(algorithm: str, number: int = 0) -> Any:
    """A private key for an algorithm; each `number` has another one."""
    return _generated(algorithm, number)


@cache
def _generated(algorithm: str, number: int) -> Any:
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    if algorithm == "ES256":
        return ec.generate_private_key(ec.SECP256R1())
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def public_pem(algorithm: str) -> bytes:
    key = private_key(algorithm).public_key()
    return bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def jwk(algorithm: str, kid: str | None = None, *, number: int = 0, **more: Any) -> dict[str, Any]:
    """The public key as an entry of a JWKS."""
    kind: Any = {"EdDSA": OKPAlgorithm, "ES256": ECAlgorithm, "RS256": RSAAlgorithm}[algorithm]
    entry = json.loads(kind.to_jwk(private_key(algorithm, number).public_key()))
    entry.pop("key_ops", None)
    return entry | ({} if kid is None else {"kid": kid}) | more


def jwks(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"keys": list(entries or (jwk(one, one) for one in ALGORITHMS))}


def token(issuer: str, algorithm: str = "EdDSA", *, key: Any = None, **changes: Any) -> str:
    """A token that is valid for a minute; a claim or `headers` that is None is left out."""
    now = int(time.time())
    headers = {"kid": algorithm} | changes.pop("headers", {})
    claims = {"iss": issuer, "aud": AUDIENCE, "sub": "ada", "exp": now + 60, "nbf": now} | changes
    return jwt.encode(
        {name: value for name, value in claims.items() if value is not None},
        key if key is not None else private_key(algorithm),
        algorithm=algorithm,
        headers={name: value for name, value in headers.items() if value is not None},
    )


class IssuerServer:
    """Serves `document` as the keys of the issuer `url`; `reads` counts these."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.document: Any = jwks()
        self.configuration: Any = {"issuer": url, "jwks_uri": f"{url}/keys"}
        self.status = 200
        self.headers: dict[str, str] = {}
        self.reads = 0

    def answer(self, path: str) -> bytes | None:
        if path == "/.well-known/openid-configuration":
            return json.dumps(self.configuration).encode()
        if path == "/keys":
            self.reads += 1
            return json.dumps(self.document).encode()
        return None


@contextmanager
def issuer_server() -> Iterator[IssuerServer]:
    """An issuer on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = issuer.answer(self.path)
            self.send_response(404 if body is None else issuer.status)
            for name, value in issuer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        issuer = IssuerServer(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield issuer
        server.shutdown()
        thread.join()
