"""Bearer tokens: the holder of a seat's token is its player, the holder of the host's the host.

A token is computed, never stored: an HMAC under a key that is not in the database, over the table
and the role, for a seat also over the version of its SeatTaken. So a token stays valid across
restarts and becomes invalid when its player leaves the seat. A player who moves to another seat
keeps the token: the table's state knows who moved.

    host.<mac>    seat.<seat>.<since>.<mac>    invitation: <mac>, half as long
"""

from __future__ import annotations

import re
from hmac import compare_digest
from hmac import digest as hmac_digest

from dealer.errors import BadToken
from dealer.eventlog.encryption import HouseKeys
from dealer.game.commands import Actor
from dealer.game.state import SeatHolder, Table
from dealer.proof.pack import T, lp

_SEAT = re.compile(r"seat\.([1-9][0-9]{0,9})\.([1-9][0-9]{0,15})\.[0-9a-f]{64}")


class Tokens:
    """Computes and verifies tokens; `key` is 32 bytes, `table` an id of 16 bytes."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def host(self, table: bytes) -> str:
        """The host token."""
        return f"host.{self._mac(table, 'host')}"

    def seat(self, table: bytes, *, seat: int, since: int) -> str:
        """The token of the player whose SeatTaken has version `since`."""
        return f"seat.{seat}.{since}.{self._mac(table, f'seat.{seat}.{since}')}"

    def invite(self, table: bytes) -> str:
        """The invitation to a private table."""
        return self._mac(table, "invite")[:32]

    def is_invite(self, table: bytes, text: str) -> bool:
        """Whether `text` is the table's invitation; compared in constant time."""
        return compare_digest(self.invite(table).encode(), text.encode())

    def actor(self, table: bytes, state: Table, token: str) -> Actor:
        """The role that this token gives at the table; BadToken if it gives none, or no longer."""
        if compare_digest(self.host(table).encode(), token.encode()):
            return Actor(host=True)
        match = _SEAT.fullmatch(token)
        if match is not None:
            seat, since = int(match[1]), int(match[2])
            if compare_digest(self.seat(table, seat=seat, since=since).encode(), token.encode()):
                holder = state.latest(SeatHolder(seat, since))
                if not state.still_seated(holder):
                    raise BadToken("The seat of this token was left; join the table again.")
                return Actor(seat=holder.seat)
        raise BadToken("This token is not valid at this table; check that it is complete.")

    def _mac(self, table: bytes, role: str) -> str:
        return hmac_digest(self._key, T("token") + lp(table, role.encode()), "sha256").hex()


class TokenKeys:
    """The tokens of all tables, by the house key that a table is signed under."""

    def __init__(self, keys: HouseKeys) -> None:
        self._keys = keys
        self._tokens: dict[bytes, Tokens] = {}

    def of(self, key: bytes) -> Tokens:
        """The tokens of tables that are signed under this public key; raises HouseKeyError."""
        if key not in self._tokens:
            under = self._keys.of(key)
            key = under.public_key  # of a new table, whose key is the newest at this time
            self._tokens.setdefault(key, Tokens(under.token_key))
        return self._tokens[key]
