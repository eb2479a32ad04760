"""Checkpoints: the signed size and root of a log, and players' cosignatures of them.

A checkpoint is a C2SP tlog-checkpoint: a signed note whose text is three lines,

    <house>/t/<table>
    <size, decimal>
    <root, base64>

with no extension lines. The house signs it with Ed25519 (type 1) under the origin as its name. A
player's cosignature is C2SP cosignature/v1 (type 4) under the name `player/<key in hex>`: the time,
be64 seconds since 1970, then an Ed25519 signature over

    cosignature/v1
    time <seconds, decimal>
    <the three lines>
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dealer.errors import NoteFault
from dealer.proof import note as notes
from dealer.proof.concatenation import be64
from dealer.proof.note import read_line as read_signature

__all__ = [
    "Checkpoint",
    "Cosigner",
    "NoteFault",
    "Signer",
    "attach_once",
    "check_house",
    "cosigners",
    "is_origin",
    "open_note",
    "player",
    "read_checkpoint",
    "require_leaves",
    "table_of",
]

ROOT_BYTES = 32
SIZE_MAX = 2**53 - 1

_size = re.compile(r"0|[1-9][0-9]{0,15}").fullmatch
_origin = re.compile(f"[^+{notes.SPACES}]+/t/([0-9a-f]{{32}})").fullmatch


class Checkpoint(NamedTuple):
    """A parsed checkpoint: `text` is the signed text, `root` has 32 bytes. It is not verified."""

    origin: str
    size: int
    root: bytes
    text: str
    signatures: list[notes.Signature]


class Signer:
    """Signs checkpoints for the house; `seed` is an Ed25519 private key, 32 bytes."""

    def __init__(self, seed: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public_key: bytes = self._key.public_key().public_bytes_raw()

    def vkey(self, origin: str) -> str:
        """The house's verifier key for an origin, in C2SP's text form."""
        return notes.Verifier(origin, notes.ED25519, self.public_key).vkey

    def sign(self, *, origin: str, size: int, root: bytes) -> str:
        """The signed note of a checkpoint; `root` has 32 bytes."""
        text = f"{origin}\n{size}\n{b64encode(root).decode()}\n"
        verifier = notes.Verifier(origin, notes.ED25519, self.public_key)
        return f"{text}\n{notes.write(verifier, self._key.sign(text.encode()))}"


class Cosigner:
    """Cosigns checkpoints for a player; `seed` is an Ed25519 private key, 32 bytes."""

    def __init__(self, seed: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public_key: bytes = self._key.public_key().public_bytes_raw()

    @property
    def vkey(self) -> str:
        """The player's verifier key in C2SP's text form."""
        return player(self.public_key).vkey

    def cosign(self, note: str, *, time: int) -> str:
        """The signature line with its newline, at `time` seconds since 1970.

        The caller must have verified the note and that it extends the log known so far. Raises
        NoteFault for a malformed note.
        """
        message = _message(read_checkpoint(note), time)
        return notes.write(player(self.public_key), be64(time) + self._key.sign(message))


def player(key: bytes) -> notes.Verifier:
    """The verifier of cosignatures by a player's `key`, 32 bytes."""
    return notes.Verifier(f"player/{key.hex()}", notes.COSIGNATURE, key)


def is_origin(text: str) -> bool:
    """Whether `text` is `<house>/t/<32 hex digits>` without Unicode spaces and `+`."""
    return _origin(text) is not None


def table_of(origin: str) -> str:
    """The table id, in hex, of a valid origin."""
    return origin[-32:]


def read_checkpoint(note: str) -> Checkpoint:
    """Parse a note without verifying it; raises NoteFault if it is not a checkpoint."""
    text, signatures = notes.split_note(note)
    lines = text.split("\n")
    if len(lines) != 4 or not lines[0]:
        raise NoteFault("A checkpoint consists of an origin, a size and a root.")
    origin, size, root = lines[:3]
    if not _size(size) or int(size) > SIZE_MAX:
        raise NoteFault("The size of a checkpoint is not a plain decimal number.")
    raw = notes.unbase64(root)
    if len(raw) != ROOT_BYTES:
        raise NoteFault("The root of a checkpoint does not have 32 bytes.")
    return Checkpoint(origin, int(size), raw, text, signatures)


def check_house(checkpoint: Checkpoint, *, key: bytes) -> None:
    """Raise NoteFault unless the house's `key`, 32 bytes, signed the checkpoint."""
    house = notes.Verifier(checkpoint.origin, notes.ED25519, key)
    if not house.signed(checkpoint.text, checkpoint.signatures):
        raise NoteFault("The house's key did not sign this checkpoint.")


def require_leaves(checkpoint: Checkpoint) -> None:
    """Raise NoteFault for the checkpoint of an empty log: a table has at least one event."""
    if checkpoint.size == 0:
        raise NoteFault("A saved checkpoint covers at least one event.")


def open_note(note: str, *, key: bytes, table: str) -> tuple[int, bytes]:
    """Size and root of a checkpoint of `table` (hex id) that the house's `key`, 32 bytes, signed.

    Raises NoteFault otherwise; cosignatures are ignored.
    """
    checkpoint = read_checkpoint(note)
    if not is_origin(checkpoint.origin) or table_of(checkpoint.origin) != table:
        raise NoteFault("This is a checkpoint of another table.")
    check_house(checkpoint, key=key)
    return checkpoint.size, checkpoint.root


def cosigners(checkpoint: Checkpoint, *, keys: Iterable[bytes]) -> list[bytes]:
    """The players' `keys` that cosigned; raises NoteFault if one of their lines is invalid."""
    names = {signature.name for signature in checkpoint.signatures}
    known = [key for key in keys if f"player/{key.hex()}" in names]
    return [key for key in known if player(key).signed(checkpoint.text, checkpoint.signatures)]


def attach_once(note: str, line: str, *, key: bytes) -> str:
    """The note with a player's cosignature line appended; the line's newline is optional.

    Returns the unchanged note if this `key`, 32 bytes, has already cosigned it. Raises NoteFault
    unless the line is a valid cosignature of this key: an invalid line would make the note invalid
    for every reader.
    """
    checkpoint = read_checkpoint(note)
    signature = read_signature(line.removesuffix("\n"))
    if not player(key).signed(checkpoint.text, [signature]):
        raise NoteFault("This is not a cosignature by this player's key.")
    if cosigners(checkpoint, keys=[key]):
        return note
    return note + line.removesuffix("\n") + "\n"


def _message(checkpoint: Checkpoint, time: int) -> bytes:
    if not 0 <= time <= notes.TIME_MAX:
        raise NoteFault("The time of a cosignature is 0 to 2^63-1 seconds.")
    return notes.cosigned(checkpoint.text, time)
