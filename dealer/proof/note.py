"""Signed notes and their keys, in the format C2SP signed-note.

A note is a text that ends in a newline, an empty line, and a line for each signature,

    — <name> <base64(key id ‖ signature)>

with key id = SHA-256(name ‖ 0x0A ‖ type ‖ public key)[:4]. A name is not empty and has no `+` and
no character with Unicode's property White_Space; a note has no character below U+0020 except
newlines. A line without a name and at least 5 bytes in canonical base64 makes the note invalid.
Signatures by unknown keys (another name or key id) are ignored; a signature by a known key that
does not verify makes the note invalid, and so does a second signature by the same key. A verifier
key (vkey) is
`name+hex(key id)+base64(type ‖ public key)`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from binascii import Error as Base64Error
from binascii import a2b_base64
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dealer.errors import NoteFault

ED25519 = 1
COSIGNATURE = 4
KEY_BYTES = 32
SIGNATURE_BYTES = 64
TIME_MAX = 2**63 - 1
_KEY_ID_BYTES = 4
_FIELD = 2**255 - 19
_Y_MASK = 2**255 - 1
_EIGHTH = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826  # of order 8
_SMALL_ORDER = frozenset({0, 1, _FIELD - 1, _EIGHTH, _FIELD - _EIGHTH})

# Exactly Unicode's White_Space: the meaning of `\s` differs between languages.
SPACES = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_name = re.compile(f"[^+{SPACES}]+").fullmatch
_unfit = re.compile("[\x00-\x09\x0b-\x1f\ud800-\udfff]").search
_vkey = re.compile(r"([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)").fullmatch


class Signature(NamedTuple):
    """A parsed signature line; `body` are the bytes after the key id."""

    name: str
    key_id: bytes
    body: bytes


class Verifier(NamedTuple):
    """A named public key: `type` is ED25519 or COSIGNATURE, `key` has 32 bytes."""

    name: str
    type: int
    key: bytes

    @property
    def key_id(self) -> bytes:
        """The key id that starts each signature, 4 bytes."""
        return key_id(self.name, self.type, self.key)

    @property
    def vkey(self) -> str:
        """The verifier key in C2SP's text form: name, key id and key."""
        material = b64encode(bytes([self.type]) + self.key).decode()
        return f"{self.name}+{self.key_id.hex()}+{material}"

    @classmethod
    def read(cls, vkey: str) -> Verifier:
        """Parse a vkey; raises NoteFault if it is malformed or its key id is wrong."""
        match = _vkey(vkey)
        if match is None or not _name(match[1]):
            raise NoteFault("A verifier key is <name>+<8 hex digits>+<base64>.")
        material = unbase64(match[3])
        if len(material) != 1 + KEY_BYTES or material[0] not in (ED25519, COSIGNATURE):
            raise NoteFault("A verifier key must contain an Ed25519 key of type 1 or 4.")
        verifier = cls(match[1], material[0], material[1:])
        if verifier.key_id.hex() != match[2]:
            raise NoteFault("The key id of a verifier key is not that of its key.")
        return verifier

    def signed(self, text: str, signatures: list[Signature]) -> bool:
        """Whether this key signed `text`; raises NoteFault for an invalid line or two lines."""
        own = [s for s in signatures if s.name == self.name and s.key_id == self.key_id]
        if not own:
            return False
        if len(own) > 1:
            raise NoteFault("A key has two signature lines.")
        body = own[0].body
        message = text.encode()
        if self.type == COSIGNATURE:
            time, body = int.from_bytes(body[:8], "big"), body[8:]
            if time > TIME_MAX:
                raise NoteFault("The time of a cosignature is 0 to 2^63-1 seconds.")
            message = cosigned(text, time)
        if len(body) != SIGNATURE_BYTES or not verifies(self.key, body, message):
            raise NoteFault("A signature does not verify with the key of its name.")
        return True


def key_id(name: str, type: int, key: bytes) -> bytes:
    """The first 4 bytes of the SHA-256 of name, newline, type and key (C2SP signed-note)."""
    return sha256(name.encode() + b"\n" + bytes([type]) + key).digest()[:_KEY_ID_BYTES]


def cosigned(text: str, time: int) -> bytes:
    """The bytes that a cosignature/v1 signs, at `time` seconds since 1970."""
    return f"cosignature/v1\ntime {time}\n{text}".encode()


def write(verifier: Verifier, body: bytes) -> str:
    """A signature line, with its newline."""
    return f"\u2014 {verifier.name} {b64encode(verifier.key_id + body).decode()}\n"


def split_note(note: str) -> tuple[str, list[Signature]]:
    """The text, with its newline, and the signatures of a note; NoteFault if it is malformed."""
    if _unfit(note):
        raise NoteFault("A note contains a control character or half of a surrogate pair.")
    text, blank, lines = note.rpartition("\n\n")
    if not text or not blank or not lines.endswith("\n"):
        raise NoteFault(
            "A note must be a text, an empty line and signature lines, each ending in a newline."
        )
    return f"{text}\n", [read_line(line) for line in lines[:-1].split("\n")]


def read_line(line: str) -> Signature:
    """Parse a signature line without its newline; raises NoteFault if it is malformed."""
    parts = line.split(" ")
    if len(parts) != 3 or parts[0] != "\u2014" or not _name(parts[1]):
        raise NoteFault(
            "A signature line must be a dash, a name and base64, separated by single spaces."
        )
    blob = unbase64(parts[2])
    if len(blob) <= _KEY_ID_BYTES:
        raise NoteFault("A signature line has no signature.")
    return Signature(parts[1], blob[:_KEY_ID_BYTES], blob[_KEY_ID_BYTES:])


def unbase64(text: str) -> bytes:
    """Decode strict base64; since decoders are lax, the result is encoded again and compared."""
    try:
        data = a2b_base64(text)
    except (Base64Error, ValueError) as error:
        raise NoteFault("A value is not base64.") from error
    if b64encode(data).decode() != text:
        raise NoteFault("A value is base64, but not in its canonical form.")
    return data


def verifies(key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether `signature` is an Ed25519 signature of `message` by `key`, 32 bytes.

    Signatures can be forged for keys of small order, and libraries differ about such points and
    about non-canonical encodings. Both are rejected, as key and as first half of a signature.
    """
    public = _public(key)
    if public is None or not _is_sound(signature[:KEY_BYTES]):
        return False
    try:
        public.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _is_sound(point: bytes) -> bool:
    """Whether y is below 2^255−19 and none of the eight points of small order has it."""
    y = int.from_bytes(point, "little") & _Y_MASK
    return y < _FIELD and y not in _SMALL_ORDER


@lru_cache(1024)
def _public(key: bytes) -> Ed25519PublicKey | None:
    if not _is_sound(key):
        return None
    try:
        return Ed25519PublicKey.from_public_bytes(key)
    except ValueError:
        return None
