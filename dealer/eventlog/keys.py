"""Keys of the house: the master key in its file, and encryption at rest under what it derives.

The master key is a file of 32 bytes that only its owner may read, next to the database and never in
it; nodes that share a PostgreSQL database each have a copy. The database stores a check value, so
that a wrong key is detected before anything is written with it. Without the house key the database
reveals no hidden card.

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

import asyncio
import logging
import os
import re
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dealer.errors import ConfigurationError, DatabaseDamaged, HouseKeyError, amount
from dealer.eventlog.address import database_file, is_postgres
from dealer.eventlog.log import Log
from dealer.eventlog.read_only_log import ReadOnlyLog
from dealer.proof.checkpoint import Signer
from dealer.proof.concatenation import T, be32, be64, lp
from dealer.proof.round_keys import Hmac

NONCE_BYTES = 12
MASTER_BYTES = 32
_BLOCK = 32
_USES = ("wrapping", "savepoint", "ticket", "webhook")


def pad(hidden: bytes) -> bytes:
    """A hidden part with spaces up to whole blocks, so that its length does not show."""
    return hidden + b" " * (-len(hidden) % _BLOCK)


class RoundCipher:
    """Encrypts and decrypts the hidden parts of one round; `seal_key` comes from its secret."""

    __slots__ = ("_aead", "about", "seal")

    def __init__(self, *, table: bytes, seal_key: bytes) -> None:
        self._aead = AESGCM(seal_key)
        self.seal = self._aead.encrypt
        # lp(table_id, be64(version)) without the version, which differs in each row.
        self.about = T("hidden") + lp(table) + be32(8)

    def encrypt(self, version: int, hidden: bytes, *, nonce: bytes) -> bytes:
        """The stored form of `hidden`, the canonical JSON of the event at `version`."""
        return nonce + self.seal(nonce, pad(hidden), self.about + be64(version))

    def encrypt_many(
        self, versions: Sequence[int], hidden: Sequence[bytes], *, nonces: bytes
    ) -> list[bytes]:
        """`encrypt` for many events; `nonces` are 12 bytes for each, concatenated."""
        if len(nonces) != NONCE_BYTES * len(hidden):
            needed = NONCE_BYTES * len(hidden)
            raise ValueError(f"{len(hidden)} hidden parts need {needed} bytes of nonces")
        encrypt, about = self.seal, self.about
        encrypted = []
        for index, (version, part) in enumerate(zip(versions, hidden, strict=True)):
            nonce = nonces[NONCE_BYTES * index : NONCE_BYTES * (index + 1)]
            padded = part + b" " * (-len(part) % _BLOCK)
            encrypted.append(nonce + encrypt(nonce, padded, about + be64(version)))
        return encrypted

    def decrypt(self, version: int, stored: bytes) -> bytes:
        """The canonical JSON; raises DatabaseDamaged if the row was altered or moved."""
        return self.decrypt_many((version,), (stored,))[0].rstrip(b" ")

    def decrypt_many(self, versions: Sequence[int], stored: Sequence[bytes]) -> list[bytes]:
        """`decrypt` for many events, padded: the JSON ends with spaces."""
        decrypt, about = self._aead.decrypt, self.about
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
    `command_digest(content)` is a keyed digest of a command, or of whom one is from, 32 bytes.
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
        self.command_digest = Hmac(_derived(master, "command")).digest
        self._ciphers = {use: AESGCM(_derived(master, use)) for use in _USES}
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

    def wrap(self, secret: bytes, *, table: bytes, round: int, nonce: bytes) -> bytes:
        """The stored form of a round's secret S."""
        return nonce + self._ciphers["wrapping"].encrypt(nonce, secret, _secret(table, round))

    def unwrap(self, stored: bytes, *, table: bytes, round: int) -> bytes:
        """S, decrypted with any of the house's keys; DatabaseDamaged if none of them fits."""
        found = self._open("wrapping", stored, _secret(table, round))
        if found is None:
            raise _damaged()
        return found[0]

    def seal_savepoint(
        self, plain: bytes, *, table: bytes, version: int, format: int, code: bytes, nonce: bytes
    ) -> bytes:
        """The stored form of a savepoint, bound to its table, version, format and code."""
        about = _savepoint(table, version, format, code)
        return nonce + self._ciphers["savepoint"].encrypt(nonce, plain, about)

    def open_savepoint(
        self, stored: bytes, *, table: bytes, version: int, format: int, code: bytes
    ) -> bytes:
        """The savepoint, decrypted with any of the house's keys; DatabaseDamaged if none fits."""
        found = self._open("savepoint", stored, _savepoint(table, version, format, code))
        if found is None:
            raise DatabaseDamaged(
                "The savepoint cannot be decrypted: its row was altered or moved."
            )
        return found[0]

    def seal_ticket(self, plain: bytes, *, nonce: bytes) -> bytes:
        """A ticket for a seat, which its holder cannot read: the nonce and the ciphertext."""
        return nonce + self._ciphers["ticket"].encrypt(nonce, plain, T("ticket"))

    def open_ticket(self, sealed: bytes) -> bytes | None:
        """The content of a ticket; None if it was altered, or sealed under another key."""
        return self._decrypt("ticket", sealed, T("ticket"))

    def seal_webhook(self, secret: bytes, *, url: str, nonce: bytes) -> bytes:
        """The stored form of a webhook's secret, bound to its address."""
        return nonce + self._ciphers["webhook"].encrypt(nonce, secret, _webhook(url))

    def open_webhook(self, stored: bytes, *, url: str) -> tuple[bytes, bool]:
        """The secret, and whether this key encrypted it and not an earlier one of the house.

        Raises DatabaseDamaged if none of the house's keys fits.
        """
        found = self._open("webhook", stored, _webhook(url))
        if found is None:
            raise DatabaseDamaged("The webhook's secret cannot be decrypted with the house's keys.")
        return found[0], found[1] is self

    def _open(self, use: str, stored: bytes, about: bytes) -> tuple[bytes, HouseKeys] | None:
        """The content, and which of the house's keys decrypted it; None if none of them fits."""
        for key in (self, *self.earlier):
            plain = key._decrypt(use, stored, about)
            if plain is not None:
                return plain, key
        return None

    def _decrypt(self, use: str, stored: bytes, about: bytes) -> bytes | None:
        with suppress(InvalidTag, ValueError):
            nonce, ciphertext = stored[:NONCE_BYTES], stored[NONCE_BYTES:]
            return self._ciphers[use].decrypt(nonce, ciphertext, about)
        return None


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


_log = logging.getLogger(__name__)

_CHECK = "key"

RETIRED = ".retired"
"""Suffix of a key's name in `house` once no table needs that key."""

_LOSS = (
    "Without it open rounds cannot continue, their hidden cards cannot be read or proved, and "
    "no table can be signed with the key that its players know"
)


def key_file(url: str, given: Path | None = None) -> Path:
    """The path of the key for the database at `url`: `given`, or dealer.db.key for dealer.db.

    Raises ConfigurationError for a PostgreSQL database without `given`.
    """
    if given is not None:
        return given
    if is_postgres(url):
        raise ConfigurationError(
            "Name the house key's file with --house-key or DEALER_HOUSE_KEY_FILE: a PostgreSQL "
            "database has no default path. All nodes that share it need the same key."
        )
    file = database_file(url)
    return file.with_name(file.name + ".key")


def require_database(url: str, key: Path) -> None:
    """Raise HouseKeyError if the SQLite database at `url` is missing, but its key exists.

    A first start creates the database before the key, so no crash leaves a key alone. Nor does a
    key that cannot be created leave a database.
    """
    if is_postgres(url) or (file := database_file(url)).exists():
        return
    if key.parent != file.parent and not os.access(key.parent, os.W_OK | os.X_OK):
        there = key.parent.is_dir()
        raise _not_created(key, "its folder is read-only" if there else "there is no such folder")
    if key.exists():
        raise HouseKeyError(
            f"The house key {key} exists, but its database {file} is missing. Restore the database "
            "from a backup, or name the right --database. To begin a new house, first move the key "
            "elsewhere, with all files whose names begin with its name; for a key that was never "
            "used, make an empty database with `dealer migrate`."
        )


async def load_house_keys(log: Log, file: Path, *, fresh: bytes) -> HouseKeys:
    """The keys of the house whose master key is in `file` and whose log is `log`.

    `fresh` is 32 random bytes, which become the key if neither file nor log has one. Earlier keys
    are loaded from files next to it; if one is missing, as in a backup from before the key was
    retired, its tables are unavailable until the keys are loaded again with it. Raises
    HouseKeyError if the key is missing, unreadable, accessible to other users, or of another house.
    """
    if len(fresh) != MASTER_BYTES:
        raise ValueError(f"a master key has {MASTER_BYTES} bytes")
    known = await key_checks(log)
    if not known:
        master = await asyncio.to_thread(_read_or_create, file, fresh)
        await log.put_metadata(_CHECK, HouseKeys(master).check)
        known = await key_checks(log)
    masters = await asyncio.to_thread(_masters, file)
    (_, check), *before = reversed(known.items())
    if check not in masters:
        raise HouseKeyError(
            f"The key in {file} is another house's, or newer than this database. {_LOSS}; restore "
            "the key file of this database from a backup."
        )
    current, earlier, missing = masters[check], [], set()
    for name, check in before:
        if check in masters:
            earlier.append(HouseKeys(masters[check]))
        elif await log.metadata(f"{name}{RETIRED}") is None:
            missing.add(check)
            fields = {"file": str(earlier_file(file, check))}
            _log.error("house key missing", extra={"fields": fields})
    return HouseKeys(current, earlier=earlier, more=partial(_added_keys, file, without=missing))


async def existing_house_keys(log: Log, file: Path) -> HouseKeys:
    """The keys of the house, see `load_house_keys`; HouseKeyError if it has none yet."""
    if not await key_checks(log):
        raise HouseKeyError("This house has no key yet; `dealer serve` makes the first.")
    return await load_house_keys(log, file, fresh=bytes(MASTER_BYTES))


async def key_checks(log: ReadOnlyLog) -> dict[str, bytes]:
    """The check values of all keys of the house, by their names, the newest last.

    Raises DatabaseDamaged if one is not a check value, or if the log has tables and there is none.
    """
    found = dict(map(tuple, await log.fetch("SELECT name, value FROM house")))
    names = [_CHECK, *(f"{_CHECK}.{number}" for number in range(1, len(found)))]
    checks = {name: found[name] for name in names if name in found}
    for name, check in checks.items():
        if not isinstance(check, bytes) or len(check) != MASTER_BYTES:
            raise DatabaseDamaged(
                f"The row `{name}` of the SQL table `house` was altered; restore it from a backup "
                "of the database."
            )
    if not checks and await log.fetch("SELECT 1 FROM stream LIMIT 1"):
        raise DatabaseDamaged(
            f"The row `{_CHECK}` of the SQL table `house` is missing, but the log has tables; "
            "restore it from a backup of the database."
        )
    return checks


def read_keys(file: Path) -> list[HouseKeys]:
    """The keys in `file` and in the files of earlier keys; HouseKeyError if one is unreadable."""
    return [HouseKeys(master) for master in _masters(file).values()]


def _added_keys(file: Path, *, without: Collection[bytes]) -> list[HouseKeys]:
    """The keys there, but for those with these check values.

    A restore leaves the open tables of a missing key to the first start that has it.
    """
    return [key for key in read_keys(file) if key.check not in without]


def earlier_file(file: Path, check: bytes) -> Path:
    """The path of a key after a rotation has replaced it."""
    return file.with_name(f"{file.name}.{check.hex()[:8]}")


def next_file(file: Path) -> Path:
    """The path of a new key before a rotation activates it."""
    return file.with_name(f"{file.name}.new")


KEY_END = r"(\.new|\.[0-9a-f]{8})?"
"""The end of the name of a key's file, as a pattern; what else lies next to a key is no key."""


def key_files(file: Path) -> list[Path]:
    """The files of all keys of a house, next to each other; HouseKeyError if `file` is not there.

    Their names begin with `file`'s.
    """
    beside = re.compile(re.escape(file.name) + KEY_END)
    try:
        there = [
            neighbour for neighbour in file.parent.iterdir() if beside.fullmatch(neighbour.name)
        ]
    except OSError as error:
        _read(file)
        raise HouseKeyError(
            f"The folder {file.parent} cannot be listed for the house keys ({error.strerror}); "
            "let the server's user read it."
        ) from None
    if file not in there:
        _read(file)  # raises the error that describes the problem
    return sorted(there)


def _masters(file: Path) -> dict[bytes, bytes]:
    """All master keys in `file` and its neighbours, by their check values."""
    masters = [_read(each) for each in key_files(file)]
    return {HouseKeys(master).check: master for master in masters}


def _read_or_create(file: Path, fresh: bytes) -> bytes:
    return _read(file) if file.exists() else make(file, fresh)


def _read(file: Path) -> bytes:
    try:
        mode = file.stat().st_mode
        master = file.read_bytes()
    except FileNotFoundError:
        raise HouseKeyError(
            f"The house key {file} is missing, but the database has been used with one. {_LOSS}; "
            "restore the file from a backup. Closed rounds remain provable without it."
        ) from None
    except OSError as error:
        raise HouseKeyError(
            f"The house key {file} cannot be read ({error.strerror}); make it readable "
            "for the user that the server runs as."
        ) from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise HouseKeyError(
            f"The house key {file} is open to other users, who could read every hidden card; "
            f"run `chmod 600 {file}`, then start again."
        )
    if len(master) != MASTER_BYTES:
        raise HouseKeyError(
            f"The file {file} is no house key: it has {amount(len(master), 'byte')} and not "
            f"{MASTER_BYTES}. {_LOSS}; restore the file from a backup."
        )
    return master


def make(file: Path, fresh: bytes) -> bytes:
    """Create a new key file atomically; two processes at once both return the same key."""
    try:
        # Mode 0600, under a name that no key file can have.
        handle, draft = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=".part")
        try:
            os.write(handle, fresh)
            os.fsync(handle)
        finally:
            os.close(handle)
        try:
            with suppress(FileExistsError):
                os.link(draft, file)
        finally:
            os.unlink(draft)
        # The directory entry must be durable before anything is encrypted with the key.
        sync_folder(file.parent)
    except OSError as error:
        raise _not_created(file, str(error.strerror)) from None
    return _read(file)


def _not_created(file: Path, reason: str) -> HouseKeyError:
    return HouseKeyError(
        f"The house key {file} cannot be created ({reason}); make its folder writable for the user "
        "that the server runs as."
    )


def sync_folder(folder: Path) -> None:
    """fsync a folder, on systems that support it."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
