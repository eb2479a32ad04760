"""How a table begins: its rules, which somebody must be able to verify, and its id."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from hmac import digest as hmac_digest
from typing import Any

from dealer.errors import BadRequest, NotCanonical
from dealer.eventlog import Log
from dealer.eventlog.sealing import HouseKeys
from dealer.game.rules import Rules
from dealer.proof import canonical
from dealer.proof.pack import T, lp

UNGUESSABLE = 22
"""Characters from which on an id that opens a table is a secret, and so may be remembered."""

NEW = "new"
"""The scope of command ids whose callers are nobody yet; only unguessable ones are kept in it."""


RULES_MAX = 2048
"""Bytes of the canonical JSON of a new table's rules."""


def new_id(now: int) -> bytes:
    """16 bytes that begin with the time, in milliseconds, and are nobody else's."""
    return now.to_bytes(6, "big") + secrets.token_bytes(10)


async def opened_by(cmd: str, log: Log, key: HouseKeys) -> bytes:
    """The id of the table that this command opens, or has opened under an earlier key."""
    ids = [
        hmac_digest(one.token_key, T("open") + lp(cmd.encode()), "sha256")[:16]
        for one in (key, *key.earlier)
    ]
    there = await log.heads(ids) if len(ids) > 1 else {}
    return next((table for table in ids if table in there), ids[0])


def check_rules(rules: Mapping[str, Any]) -> None:
    """Raise BadRequest for rules that no table has, that no leaf may hold, or that are too long.

    Of a table whose leaf has no canonical form nobody could ever verify anything. `deck` does not
    count: it has a bound of its own, the cards of a deck. Tables that have longer rules keep them.
    """
    Rules.check(rules)
    try:
        canonical.encode({"public": {"rules": rules}})  # as deep as they will stand in the leaf
        rest = {name: value for name, value in rules.items() if name != "deck"}
        length = len(canonical.encode(rest))
    except NotCanonical as error:
        raise BadRequest(f"The rules cannot be written down: {error}") from None
    if length > RULES_MAX:
        raise BadRequest(
            f"The rules of a table, but its deck, take {RULES_MAX} bytes at most as JSON; these "
            f"take {length}. Leave something out."
        )
