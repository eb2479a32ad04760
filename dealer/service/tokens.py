"""Keys to a place at the table: who holds a seat's token sits there, who holds the host's hosts.

A token is computed, never stored: an HMAC under a key that the database does not hold, over the
table and the role, for a seat also over the version of its SeatTaken. So a token outlives restarts
and ends when its player leaves the seat.

    host.<mac>    seat.<seat>.<since>.<mac>    invitation: <mac>, half as long
"""

from __future__ import annotations

import re
from hmac import compare_digest
from hmac import digest as hmac_digest

from dealer.errors import BadToken
from dealer.game.commands import Actor
from dealer.game.state import Table
from dealer.proof.pack import T, lp

_SEAT = re.compile(r"seat\.([1-9][0-9]{0,9})\.([1-9][0-9]{0,15})\.[0-9a-f]{64}")


class Tokens:
    """Makes and reads the tokens of one house; `key` is 32 bytes, `table` an id of 16 bytes."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def host(self, table: bytes) -> str:
        return f"host.{self._mac(table, 'host')}"

    def seat(self, table: bytes, *, seat: int, since: int) -> str:
        return f"seat.{seat}.{since}.{self._mac(table, f'seat.{seat}.{since}')}"

    def invite(self, table: bytes) -> str:
        return self._mac(table, "invite")[:32]

    def is_invite(self, table: bytes, text: str) -> bool:
        return compare_digest(self.invite(table).encode(), text.encode())

    def actor(self, table: bytes, state: Table, token: str) -> Actor:
        """Whose token this is; BadToken if it is nobody's at this table, or nobody's any more."""
        if compare_digest(self.host(table).encode(), token.encode()):
            return Actor(host=True)
        match = _SEAT.fullmatch(token)
        if match is not None:
            seat, since = int(match[1]), int(match[2])
            if compare_digest(self.seat(table, seat=seat, since=since).encode(), token.encode()):
                player = state.seats.get(seat)
                if player is None or player.since != since:
                    raise BadToken("The seat of this token was given up; join the table again.")
                return Actor(seat=seat)
        raise BadToken("This token opens nothing at this table; check that it was copied whole.")

    def _mac(self, table: bytes, role: str) -> str:
        return hmac_digest(self._key, T("token") + lp(table, role.encode()), "sha256").hex()
