"""Encryption at rest: without the house key the database reveals no hidden card.

Every ciphertext is AES-256-GCM, preceded by its random 12-byte nonce:

    hidden part   JCS padded with spaces to a multiple of 32 bytes, because its length would reveal
                  how many digits j has; under the round's seal_key,
                  associated data T("hidden") ‖ lp(table_id, be64(version))
    secret S      under the house's wrapping key, T("secret") ‖ lp(table_id, be32(round))
    savepoint     under the house's savepoint key,
                  T("savepoint") ‖ lp(table_id, be64(version), be32(format), code)
    ticket        (not stored) under the house's ticket key, T("ticket")
    webhook       the secret of a webhook under the house's webhook key, T("webhook") ‖ lp(url)

The house's keys all come from one master key of 32 bytes: HKDF-SHA-512(ikm = master, no salt,
info = T("house-" + use), 32 bytes). The caller passes the random nonces.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import copy

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

_SHORT, _DIGESTS = 64, 256
"""Bytes of a content whose digest is kept, and the number of these."""


class RoundCipher:
    """Encrypts and decrypts the hidden parts of one round; `seal_key` comes from its secret."""

    __slots__ = ("_about", "_aead")

    def __init__(self, *, table: bytes, seal_key: bytes) -> None:
        self._aead = AESGCM(seal_key)
        # lp(table_id, be64(version)) without the version, which differs in each row.
        self._about = T("hidden") + lp(table) + be32(8)

    def encrypt(self, version: int, hidden: bytes, *, nonce: bytes) -> bytes:
        """The stored form of `hidden`, the canonical JSON of the event at `version`."""
        padded = hidden + b" " * (-len(hidden) % _BLOCK)
        return nonce + self._aead.encrypt(nonce, padded, self._about + be64(version))

    def encrypt_many(
        self, versions: Sequence[int], hidden: Sequence[bytes], *, nonces: bytes
    ) -> list[bytes]:
        """`encrypt` for many events; `nonces` are 12 bytes for each, concatenated."""
        if len(nonces) != NONCE_BYTES * len(hidden):
            needed = NONCE_BYTES * len(hidden)
            raise ValueError(f"{len(hidden)} hidden parts need {needed} bytes of nonces")
        encrypt, about = self._aead.encrypt, self._about
        encrypted = []
        for index, (version, part) in enumerate(zip(versions, hidden, strict=True)):
            nonce = nonces[NONCE_BYTES * index : NONCE_BYTES * (index + 1)]
            padded = part + b" " * (-len(part) % _BLOCK)
            encrypted.append(nonce + encrypt(nonce, padded, about + be64(version)))
        return encrypted

    def decrypt(self, version: int, stored: bytes) -> bytes:
        """The canonical JSON; raises DatabaseDamaged if the row was altered or moved."""
        nonce, ciphertext = stored[:NONCE_BYTES], stored[NONCE_BYTES:]
        try:
            return self._aead.decrypt(nonce, ciphertext, self._about + be64(version)).rstrip(b" ")
        except (InvalidTag, ValueError):
            raise _damaged() from None

    def decrypt_many(self, versions: Sequence[int], stored: Sequence[bytes]) -> list[bytes]:
        """`decrypt` for many events, padded: the JSON ends with spaces."""
        decrypt, about = self._aead.decrypt, self._about
        try:
            return [
                decrypt(part[:NONCE_BYTES], part[NONCE_BYTES:], about + be64(version))
                for version, part in zip(versions, stored, strict=True)
            ]
        except (InvalidTag, ValueError):
            raise _damaged() from None


class HouseKeys:
    """The keys derived from the house's 32-byte master key, except those of single rounds.

    `signing_seed` is the Ed25519 seed of every table's checkpoints and `public_key` its key of 32
    bytes, `token_key` makes the players' tokens, `check` identifies the key without revealing it.
    `earlier` are keys from before a rotation, under which older tables continue, and `more` loads
    the keys again, to find those that were added since.
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
        self._digests: dict[bytes, bytes] = {}
        self._wrapping = AESGCM(_derived(master, "wrapping"))
        self._savepoints = AESGCM(_derived(master, "savepoint"))
        self._tickets = AESGCM(_derived(master, "ticket"))
        self._webhooks = AESGCM(_derived(master, "webhook"))
        self._more = more
        self._known = {key.public_key: key for key in (*earlier, self)}

    def adopt(self, newest: HouseKeys) -> None:
        """Become these keys, which the house has since a rotation; older tables keep theirs."""
        before, known, more = copy(self), self._known, self._more
        before._known = {}  # its tables find it among those of this object
        vars(self).update(vars(newest))
        self._known = known | {before.public_key: before, self.public_key: self}
        self._more = more

    @property
    def earlier(self) -> tuple[HouseKeys, ...]:
        """The other known keys of the house."""
        return tuple(key for key in self._known.values() if key is not self)

    def of(self, public_key: bytes) -> HouseKeys:
        """The keys of a table by the `public_key` that its players know; b"", for a new table,
        gives these keys. Raises HouseKeyError if the key's file is missing.
        """
        found = self._known.get(public_key)
        if found is not None:
            return found
        if not public_key:
            return self
        # Another process may use a key that was created after this process loaded its keys.
        self._known |= {key.public_key: key for key in self._more()} | {self.public_key: self}
        if public_key not in self._known:
            raise HouseKeyError(
                "This table is signed with an earlier house key whose file is missing; restore "
                "that file next to the current key."
            )
        return self._known[public_key]

    def command_digest(self, content: bytes) -> bytes:
        """A keyed digest of a command's content, 32 bytes.

        Most commands of a game, such as the draw of one card, have the same short content.
        """
        digest = self._digests.get(content)
        if digest is None:
            digest = hmac.digest(self._command_key, content, "sha256")
            if len(content) <= _SHORT:
                if len(self._digests) == _DIGESTS:
                    self._digests.clear()
                self._digests[content] = digest
        return digest

    def wrap(self, secret: bytes, *, table: bytes, round: int, nonce: bytes) -> bytes:
        """The stored form of a round's secret S."""
        return nonce + self._wrapping.encrypt(nonce, secret, _secret(table, round))

    def unwrap(self, stored: bytes, *, table: bytes, round: int) -> bytes:
        """S, decrypted with any of the house's keys; DatabaseDamaged if none of them fits."""
        about = _secret(table, round)
        for key in (self, *self.earlier):
            with suppress(InvalidTag, ValueError):
                nonce, ciphertext = stored[:NONCE_BYTES], stored[NONCE_BYTES:]
                return key._wrapping.decrypt(nonce, ciphertext, about)
        raise _damaged()

    def seal_savepoint(
        self, plain: bytes, *, table: bytes, version: int, format: int, code: bytes, nonce: bytes
    ) -> bytes:
        """The stored form of a savepoint, bound to its table, version, format and code."""
        about = _savepoint(table, version, format, code)
        return nonce + self._savepoints.encrypt(nonce, plain, about)

    def open_savepoint(
        self, stored: bytes, *, table: bytes, version: int, format: int, code: bytes
    ) -> bytes:
        """The savepoint, decrypted with any of the house's keys; DatabaseDamaged if none fits."""
        about = _savepoint(table, version, format, code)
        for key in (self, *self.earlier):
            with suppress(InvalidTag, ValueError):
                return key._savepoints.decrypt(stored[:NONCE_BYTES], stored[NONCE_BYTES:], about)
        raise DatabaseDamaged("The savepoint cannot be decrypted: its row was altered or moved.")

    def seal_ticket(self, plain: bytes, *, nonce: bytes) -> bytes:
        """A ticket for a seat, which its holder cannot read: the nonce and the ciphertext."""
        return nonce + self._tickets.encrypt(nonce, plain, T("ticket"))

    def open_ticket(self, sealed: bytes) -> bytes | None:
        """The content of a ticket; None if it was altered, or sealed under another key."""
        with suppress(InvalidTag, ValueError):
            return self._tickets.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], T("ticket"))
        return None

    def seal_webhook(self, secret: bytes, *, url: str, nonce: bytes) -> bytes:
        """The stored form of a webhook's secret, bound to its address."""
        return nonce + self._webhooks.encrypt(nonce, secret, _webhook(url))

    def open_webhook(self, stored: bytes, *, url: str) -> tuple[bytes, bool]:
        """The secret, and whether this key encrypted it and not an earlier one of the house.

        Raises DatabaseDamaged if none of the house's keys fits.
        """
        for key in (self, *self.earlier):
            with suppress(InvalidTag, ValueError):
                nonce, ciphertext = stored[:NONCE_BYTES], stored[NONCE_BYTES:]
                return key._webhooks.decrypt(nonce, ciphertext, _webhook(url)), key is self
        raise DatabaseDamaged("The webhook's secret cannot be decrypted with the house's keys.")


def _webhook(url: str) -> bytes:
    return T("webhook") + lp(url.encode())


def _savepoint(table: bytes, version: int, format: int, code: bytes) -> bytes:
    return T("savepoint") + lp(table, be64(version), be32(format), code)


def _secret(table: bytes, round: int) -> bytes:
    return T("secret") + lp(table, be32(round))


def _derived(master: bytes, use: str) -> bytes:
    return HKDF(SHA512(), length=32, salt=None, info=T(f"house-{use}")).derive(master)


def _damaged() -> DatabaseDamaged:
    return DatabaseDamaged(
        "An encrypted part of the log cannot be decrypted: its row was altered or moved; "
        "restore the database from a backup."
    )
