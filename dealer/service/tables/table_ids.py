"""Ids of tables, new ones and by a prefix, and the rules of new ones."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from hmac import digest as hmac_digest
from typing import Any

from dealer.errors import BadRequest, NotCanonical, UnknownTable
from dealer.eventlog import Log, ReadOnlyLog
from dealer.eventlog.keys import HouseKeys
from dealer.game.rules import PRACTICE, Rules, check_names
from dealer.proof import canonical
from dealer.proof.concatenation import T, lp
from dealer.service.tables.execution import ANONYMOUS_SCOPE, IdempotencyKey

TABLE_ID_BYTES = 16

MIN_SECRET_CMD_LENGTH = 22
"""Length from which a command id that opens a table counts as unguessable, and is stored."""

RULES_MAX = 2048
"""Bytes of the canonical JSON of a new table's rules."""


def new_id(now: int) -> bytes:
    """A unique id of 16 bytes: 6 of the time in milliseconds, then random ones."""
    return now.to_bytes(6, "big") + secrets.token_bytes(10)


async def id_and_key(
    key: IdempotencyKey | None, log: Log, keys: HouseKeys, *, now: int
) -> tuple[bytes, IdempotencyKey | None]:
    """The id of a table to be opened, and the key to store; no key that could be guessed.

    Where the caller has a role, only it can use the ids of its own scope, and none is guessed.
    """
    if key is None:
        return new_id(now), None
    named = lp(key.cmd.encode())
    if key.scope != ANONYMOUS_SCOPE:
        named += lp(key.scope.encode())
    elif len(key.cmd) < MIN_SECRET_CMD_LENGTH:
        return new_id(now), None
    ids = [
        hmac_digest(each_key.token_key, T("open") + named, "sha256")[:16]
        for each_key in (keys, *keys.earlier)
    ]
    # An earlier key, before a rotation, may have opened it.
    there = await log.heads(ids) if len(ids) > 1 else {}
    return next((table for table in ids if table in there), ids[0]), key


def check_rules(rules: Mapping[str, Any]) -> None:
    """Raise BadRequest for rules that no table has, that no leaf may hold, or that are too long.

    A table whose leaf has no canonical form could never be verified. `deck` does not count towards
    the length, because the number of its cards is bounded, nor does what the server itself writes.
    Older tables keep longer rules.
    """
    Rules.check(rules)
    try:
        canonical.encode({"public": {"rules": rules}})  # nested as deep as in the leaf
        rest = {name: value for name, value in rules.items() if name not in ("deck", PRACTICE)}
        length = len(canonical.encode(rest))
    except NotCanonical as error:
        raise BadRequest(f"The rules cannot be stored: {error}") from None
    if length > RULES_MAX:
        raise BadRequest(
            f"A table's rules, without the deck, have {RULES_MAX} bytes at most as JSON; these "
            f"have {length}. Leave something out."
        )
    check_names(rules)  # after the length, which bounds how many names are compared


async def table_with_prefix(log: ReadOnlyLog, text: str) -> bytes:
    """The id of the one table whose id starts with `text`, hex digits with or without hyphens.

    Raises BadRequest if `text` is no such prefix, and UnknownTable if no table or more than one
    starts with it. The table may be archived.
    """
    digits = text.lower().replace("-", "")
    try:
        low = bytes.fromhex(digits.ljust(2 * TABLE_ID_BYTES, "0"))
        high = bytes.fromhex(digits.ljust(2 * TABLE_ID_BYTES, "f"))
    except ValueError:
        low = high = b""
    if not digits or len(low) != TABLE_ID_BYTES:
        raise BadRequest(f"A table's id is {2 * TABLE_ID_BYTES} hex digits, not {text!r}.")
    found = await log.tables_between(low, high, limit=2)
    if not found:
        raise UnknownTable(f"This database has no table {text}; `dealer tables` lists its tables.")
    if len(found) > 1:
        raise UnknownTable(f"Several tables start with {text}; give more digits of the id.")
    return found[0]
