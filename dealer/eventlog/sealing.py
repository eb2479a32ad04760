"""The locked drawers of the archive: who reads the database without the key learns no card.

Everything sealed is AES-256-GCM with a random 12-byte nonce in front:

    hidden part   JCS padded with spaces to a multiple of 32 bytes, else its length would tell how
                  many digits j has; under the round's seal_key,
                  associated data T("hidden") ‖ lp(table_id, be64(version))
    secret S      under the house's wrapping key, T("secret") ‖ lp(table_id, be32(round))

The house's keys all come from one master key of 32 bytes: HKDF-SHA-512(ikm = master, no salt,
info = T("house-" + use), 32 bytes). Nonces are arguments; whoever calls draws them.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dealer.errors import DatabaseDamaged, HouseKeyError
from dealer.proof.checkpoint import Signer
from dealer.proof.pack import T, be32, be64, lp

NONCE_BYTES = 12
MASTER_BYTES = 32
_BLOCK = 32


class RoundSeal:
    """Seals and opens the hidden parts of one round; `seal_key` comes from its secret."""

    __slots__ = ("_about", "_aead")

    def __init__(self, *, table: bytes, seal_key: bytes) -> None:
        self._aead = AESGCM(seal_key)
        # lp(table_id, be64(version)) up to the version, which changes from row to row.
        self._about = T("hidden") + lp(table) + be32(8)

    def seal(self, version: int, hidden: bytes, *, nonce: bytes) -> bytes:
        """What is stored for the canonical JSON `hidden` of the event at `version`."""
        padded = hidden + b" " * (-len(hidden) % _BLOCK)
        return nonce + self._aead.encrypt(nonce, padded, self._about + be64(version))

    def seal_many(
        self, versions: Sequence[int], hidden: Sequence[bytes], *, nonces: bytes
    ) -> list[bytes]:
        """The same for many events at once; `nonces` are 12 bytes for each, joined."""
        if len(nonces) != NONCE_BYTES * len(hidden):
            needed = NONCE_BYTES * len(hidden)
            raise ValueError(f"{len(hidden)} parts need {needed} bytes of nonces")
        encrypt, about = self._aead.encrypt, self._about
        sealed = []
        for place, (version, part) in enumerate(zip(versions, hidden, strict=True)):
            nonce = nonces[NONCE_BYTES * place : NONCE_BYTES * (place + 1)]
            padded = part + b" " * (-len(part) % _BLOCK)
            sealed.append(nonce + encrypt(nonce, padded, about + be64(version)))
        return sealed

    def unseal(self, version: int, stored: bytes) -> bytes:
        """The canonical JSON again; raises DatabaseDamaged if the row is not the one sealed."""
        return _open(self._aead, stored, self._about + be64(version)).rstrip(b" ")


class HouseKeys:
    """What follows from the house's 32-byte master key, and belongs to no one round.

    `signing_seed` is the Ed25519 seed of every table's checkpoints and `public_key` its key of 32
    bytes, `token_key` makes the players' tokens, `check` tells this key from another without
    telling the key. `earlier` are the keys that the house had before, whose tables go on under
    them, and `more` looks for such that were not there when the house opened.
    """

    def __init__(
        self,
        master: bytes,
        *,
        earlier: Iterable[HouseKeys] = (),
        more: Callable[[], Iterable[HouseKeys]] = tuple,
    ) -> None:
        if len(master) != MASTER_BYTES:
            raise ValueError(f"a master key has {MASTER_BYTES} bytes")
        self.signing_seed = _derived(master, "signing")
        self.public_key = Signer(self.signing_seed).public_key
        self.token_key = _derived(master, "token")
        self.check = _derived(master, "check")
        self._command_key = _derived(master, "command")
        self._wrapping = AESGCM(_derived(master, "wrapping"))
        self._more = more
        self._known = {one.public_key: one for one in (*earlier, self)}

    @property
    def earlier(self) -> tuple[HouseKeys, ...]:
        return tuple(one for one in self._known.values() if one is not self)

    def of(self, public_key: bytes) -> HouseKeys:
        """The key that signs a table whose players know this one; of a table that is none yet, b"",
        this one. Raises HouseKeyError if the house has not got it.
        """
        found = self._known.get(public_key)
        if found is not None:
            return found
        if not public_key:
            return self
        # Another process may have begun to use a key that was made after this one opened.
        self._known |= {one.public_key: one for one in self._more()} | {self.public_key: self}
        if public_key not in self._known:
            raise HouseKeyError(
                "This table is signed under a key that the house has not got; put its file back "
                "beside the house's key."
            )
        return self._known[public_key]

    def command_digest(self, content: bytes) -> bytes:
        """32 bytes that tell one command's content from another's and nothing else."""
        return hmac.digest(self._command_key, content, "sha256")

    def wrap(self, secret: bytes, *, table: bytes, round: int, nonce: bytes) -> bytes:
        """A round's secret S as it is stored."""
        return nonce + self._wrapping.encrypt(nonce, secret, _secret(table, round))

    def unwrap(self, stored: bytes, *, table: bytes, round: int) -> bytes:
        """S again, whichever of the house's keys it is under; DatabaseDamaged if under none."""
        about = _secret(table, round)
        for one in (self, *self.earlier):
            with suppress(InvalidTag, ValueError):
                nonce, sealed = stored[:NONCE_BYTES], stored[NONCE_BYTES:]
                return one._wrapping.decrypt(nonce, sealed, about)
        return _open(self._wrapping, stored, about)


def _secret(table: bytes, round: int) -> bytes:
    return T("secret") + lp(table, be32(round))


def _derived(master: bytes, use: str) -> bytes:
    return HKDF(SHA512(), length=32, salt=None, info=T(f"house-{use}")).derive(master)


def _open(aead: AESGCM, stored: bytes, about: bytes) -> bytes:
    try:
        return aead.decrypt(stored[:NONCE_BYTES], stored[NONCE_BYTES:], about)
    except (InvalidTag, ValueError):
        raise DatabaseDamaged(
            "A sealed part of the log does not open: its row was altered or moved; restore the "
            "database from a backup."
        ) from None
