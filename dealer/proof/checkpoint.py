"""A signed head: the house says under its key how many events a table has, and their root.

Stand-in until the whole module is here: signing and reading only.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import sha256
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class Head(NamedTuple):
    origin: str
    size: int
    root: bytes


class Signer:
    """Signs for one house; `seed` is the Ed25519 seed of 32 bytes."""

    def __init__(self, seed: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public_key = self._key.public_key().public_bytes_raw()

    def sign(self, *, origin: str, size: int, root: bytes) -> str:
        body = f"{origin}\n{size}\n{b64encode(root).decode()}\n"
        key_id = sha256(origin.encode() + b"\n\x01" + self.public_key).digest()[:4]
        signature = b64encode(key_id + self._key.sign(body.encode())).decode()
        return f"{body}\n— {origin} {signature}\n"


def read_checkpoint(note: str) -> Head:
    origin, size, root = note.split("\n")[:3]
    return Head(origin, int(size), b64decode(root))
