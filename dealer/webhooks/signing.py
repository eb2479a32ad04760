"""Signatures of webhooks as https://www.standardwebhooks.com/ specifies them.

webhook-signature: v1,<base64 of HMAC-SHA256 over "<id>.<timestamp>.<body>">
webhook-signature: v1a,<base64 of the Ed25519 signature of the same>
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

SECRET_BYTES = 32

HMAC, ED25519 = "v1", "v1a"
SIGNINGS = {"hmac": HMAC, "ed25519": ED25519}
"""The kinds of signatures by their names on the command line."""


class WebhookSigner(Protocol):
    """Signs the requests of one webhook; `verifier` is what the receiver checks them with.

    With HMAC that is the secret itself, `whsec_…`; with Ed25519 the public key, `whpk_…`.
    """

    verifier: str

    def sign(self, id: str, timestamp: int, body: bytes) -> str:
        """The value of `webhook-signature`; the time is in seconds since 1970."""


def signer(signing: str, secret: bytes) -> WebhookSigner:
    """The signer of a webhook with this secret of 32 bytes; ValueError for an unknown signing."""
    if signing == HMAC:
        return _Hmac(secret)
    if signing == ED25519:
        return _Ed25519(secret)
    raise ValueError(f"unknown signing {signing!r}")


class _Hmac:
    def __init__(self, secret: bytes) -> None:
        self.verifier = "whsec_" + b64encode(secret).decode()
        self._secret = secret

    def sign(self, id: str, timestamp: int, body: bytes) -> str:
        digest = hmac.digest(self._secret, _signed(id, timestamp, body), "sha256")
        return f"{HMAC},{b64encode(digest).decode()}"


class _Ed25519:
    def __init__(self, secret: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(secret)
        public = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.verifier = "whpk_" + b64encode(public).decode()

    def sign(self, id: str, timestamp: int, body: bytes) -> str:
        signature = self._key.sign(_signed(id, timestamp, body))
        return f"{ED25519},{b64encode(signature).decode()}"


def _signed(id: str, timestamp: int, body: bytes) -> bytes:
    return f"{id}.{timestamp}.".encode() + body
