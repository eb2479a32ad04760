"""Service keys: the bearer secrets by which other people's servers identify themselves.

A key is `dk_` and 43 characters of base64url, 32 random bytes. It is shown once, when it is made;
the database has its SHA-256, which is enough for a secret of that entropy. Every process polls the
keys, so that a revoked one ends within a second, also on open connections.
"""

from __future__ import annotations

import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

from dealer.backoff import Polls
from dealer.errors import ConfigurationError
from dealer.eventlog.read_only_log import ReadOnlyLog
from dealer.eventlog.services import StoredWebhook, stored_keys
from dealer.feed.pages import FeedFilter

RIGHTS = ("open", "seat", "read", "close", "broadcast", "admin")
"""What a key may do: open tables, seat and remove players, read what happens, close tables, make
broadcast links; with `admin` all of that at every table, otherwise at those that it opened."""

POLL_SECONDS = 0.5
"""Seconds between two polls: all processes follow within a second."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_KEY = re.compile(r"dk_[A-Za-z0-9_-]{43}")


def check_key(name: str, rights: Sequence[str]) -> None:
    """Raise ConfigurationError unless a key may have this name and these rights."""
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            "A key's name has 1 to 64 characters: a-z, 0-9, full stop, hyphen and underscore; it "
            f"begins with a letter or digit. {name[:80]!r} is none."
        )
    unknown = sorted(set(rights) - set(RIGHTS))
    if unknown or not rights:
        named = f"There is no right {unknown[0]!r}" if unknown else "A key has a right at least"
        raise ConfigurationError(f"{named}; the rights are {', '.join(RIGHTS)}.")


def new_key() -> str:
    return "dk_" + urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode()


def digest_of(key: str) -> bytes:
    """What is stored of a key."""
    return sha256(key.encode()).digest()


@dataclass(frozen=True, slots=True)
class ServiceKey:
    """A valid key: `id` is its number in the database, `rights` are some of `RIGHTS`."""

    id: int
    name: str
    rights: frozenset[str]

    def may(self, right: str) -> bool:
        return right in self.rights or "admin" in self.rights


class ServiceKeys:
    """The valid keys of one database, as of the last poll."""

    def __init__(self) -> None:
        self._may_read = False
        self._keys: dict[bytes, ServiceKey] = {}
        self._listeners: list[Callable[[ServiceKey], None]] = []

    def on_revoked(self, listener: Callable[[ServiceKey], None]) -> None:
        """Register a listener for keys that are no longer valid, or have other rights."""
        self._listeners.append(listener)

    def find(self, key: str) -> ServiceKey | None:
        """The valid key with this text."""
        if not _KEY.fullmatch(key):
            return None
        # A lookup by digest: its timing says nothing of the key.
        return self._keys.get(digest_of(key))

    def is_valid(self, key: ServiceKey) -> bool:
        """Whether this key is neither revoked nor replaced by one with other rights."""
        return key in self._keys.values()

    def __len__(self) -> int:
        return len(self._keys)

    def of_number(self, number: int) -> ServiceKey | None:
        """The valid key with this number in the database."""
        return next((key for key in self._keys.values() if key.id == number), None)

    def any_reads(self) -> bool:
        """Whether there is a key that may read."""
        return self._may_read

    def filter_of(self, webhook: StoredWebhook) -> FeedFilter | None:
        """What a webhook's key may follow; None if it is not valid, or may not read."""
        key = self.of_number(webhook.key)
        if key is None or not key.may("read"):
            return None
        return FeedFilter(
            None if "admin" in key.rights else key.id, None, frozenset(webhook.types.split())
        )

    async def refresh(self, log: ReadOnlyLog) -> None:
        """Read the keys; raises DatabaseError."""
        found = {
            row.digest: ServiceKey(row.id, row.name, frozenset(row.rights.split()))
            for row in await stored_keys(log)
            if row.revoked_at is None
        }
        before, self._keys = self._keys, found
        self._may_read = any(key.may("read") for key in found.values())
        for digest, key in before.items():
            if found.get(digest) != key:
                for listener in self._listeners:
                    listener(key)

    async def run(self, log: ReadOnlyLog) -> None:
        """Poll until cancelled; while the database is unavailable the last known keys apply."""
        await Polls(partial(self.refresh, log)).run(POLL_SECONDS)
