"""Webhooks of service keys: the operators' actions."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from dealer.errors import ConfigurationError
from dealer.eventlog import services
from dealer.eventlog.health import DamagedTables
from dealer.eventlog.keys import NONCE_BYTES, HouseKeys
from dealer.eventlog.recent import RecentEvents
from dealer.eventlog.services import stored_keys
from dealer.feed.feed import Feed
from dealer.feed.positions import START
from dealer.game.events import TYPES
from dealer.service.clock import utc_ms
from dealer.service.identity.admin import Operator
from dealer.webhooks.addresses import parse_url
from dealer.webhooks.delivery import SECRET_BYTES, SIGNINGS, WebhookSigner


class WebhookAdmin(Operator):
    """The actions of an operator on webhooks. Every method may raise DatabaseError."""

    async def add(
        self,
        keys: HouseKeys,
        url: str,
        *,
        key: str,
        types: Sequence[str],
        signing: str,
        after: str,
        allow_private: bool,
        why: str,
    ) -> tuple[int, str]:
        """(number, secret or public key) of a new webhook for the service key of this name.

        `signing` is one of `SIGNINGS`, `after` is `start`, `now` or a position. Raises
        ConfigurationError.
        """
        parse_url(url, allow_private=allow_private)
        unknown = sorted(set(types) - TYPES.keys())
        if unknown:
            raise ConfigurationError(
                f"There is no event type {unknown[0]!r}; there are {', '.join(sorted(TYPES))}."
            )
        secret = secrets.token_bytes(SECRET_BYTES)
        verifier = WebhookSigner(SIGNINGS[signing], secret).verifier
        row = {
            "url": url,
            "key": await self._key(key),
            "types": " ".join(types),
            "signing": SIGNINGS[signing],
            "secret": keys.seal_webhook(secret, url=url, nonce=secrets.token_bytes(NONCE_BYTES)),
            "allow_private": int(allow_private),
            "position": await self._position(after),
            "created_at": utc_ms(),
        }
        entry = self.entry("add-webhook", url, why, {"key": key})
        return await self._run(services.add_webhook, row, entry), verifier

    async def remove(self, number: int, *, why: str) -> bool:
        """Remove a webhook; False if there is none."""
        entry = self.entry("remove-webhook", f"webhook {number}", why)
        return await self._run(services.remove_webhook, number, entry)

    async def enable(self, number: int, *, why: str) -> bool:
        """Deliver again to a webhook that was switched off; False if there is none.

        Raises ConfigurationError if its key is not valid any more.
        """
        hooks = {webhook.id: webhook.key for webhook in await services.stored_webhooks(self._log)}
        valid = {key.id for key in await stored_keys(self._log) if key.revoked_at is None}
        if number in hooks and hooks[number] not in valid:
            raise ConfigurationError(
                f"The key of webhook {number} was revoked; remove it, and add one for another key."
            )
        entry = self.entry("enable-webhook", f"webhook {number}", why)
        return await self._run(services.enable_webhook, number, entry)

    async def replay(self, number: int, position: str, *, why: str) -> bool:
        """Deliver again from a position, `start` or `now`; False if there is no such webhook."""
        after = await self._position(position)
        entry = self.entry("replay-webhook", f"webhook {number}", why, {"from": after})
        return await self._run(services.replay_webhook, number, after, entry)

    async def _key(self, name: str) -> int:
        """The number of a valid key that may read."""
        for key in await stored_keys(self._log):
            if key.name == name and key.revoked_at is None:
                if {"read", "admin"} & set(key.rights.split()):
                    return key.id
                raise ConfigurationError(f"The key {name} has not the right read.")
        raise ConfigurationError(f"There is no valid key {name!r}; `dealer key list` lists them.")

    async def _position(self, text: str) -> str:
        """The position to store; ConfigurationError if it is none, PositionLost if it is lost."""
        if text == START:
            return START
        feed = Feed(self._log, RecentEvents(), DamagedTables(), enabled=lambda: True)
        await feed.open()
        try:
            return feed.generations.text(await feed.place(text))
        except ValueError:
            raise ConfigurationError(
                f"{text!r} is not a position; write start, now, or a position of the feed."
            ) from None
