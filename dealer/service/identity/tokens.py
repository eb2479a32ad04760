"""Bearer tokens: the holder of a seat's token is its player, the holder of the host's the host.

A token is computed, never stored: an HMAC under a key that is not in the database, over the table
and what the token is of: `host`, `invite`, or a seat with the version of its SeatTaken. So a token
stays valid across restarts and becomes invalid when its player leaves the seat. A player who moves
to another seat keeps the token: the table's state knows who moved.

    host.<mac>    seat.<seat>.<since>.<mac>    invitation: <mac>, half as long
    broadcast link: <mac, half as long>, valid while its number is in `broadcast_link`

A ticket is a service's statement that a user may take a seat at one table, once:

    dt_ ‖ base64url(nonce ‖ AES-256-GCM(ticket key, nonce, JSON of the statement))

It is not stored before it is used, and its holder cannot read it. Its nonce is its id. It is
sealed under the house key that its table is signed under, so every node can open it.
"""

from __future__ import annotations

import json
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hmac import compare_digest
from typing import NamedTuple

from dealer.errors import BadToken, TicketExpired
from dealer.eventlog.keys import NONCE_BYTES, HouseKeys
from dealer.game.commands import Actor
from dealer.game.state import SeatHolder, Table
from dealer.proof.concatenation import T, lp
from dealer.proof.round_keys import Hmac
from dealer.service.clock import Clock
from dealer.service.identity.service_keys import ServiceKey, ServiceKeys
from dealer.service.identity.service_tables import scope_of
from dealer.service.tables.live_table import LiveTable

_SEAT = re.compile(r"seat\.([1-9][0-9]{0,9})\.([1-9][0-9]{0,15})\.[0-9a-f]{64}")


class Tokens:
    """Computes and verifies tokens; `key` is 32 bytes, `table` an id of 16 bytes."""

    def __init__(self, key: bytes) -> None:
        self._token = Hmac(key, T("token")).digest

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

    def broadcast(self, table: bytes, number: int) -> str:
        """The broadcast link of this number."""
        return self._mac(table, f"broadcast.{number}")[:32]

    def actor(self, table: bytes, state: Table, token: str) -> Actor:
        """The sender that this token authenticates; BadToken if it does none, or no longer."""
        match = _SEAT.fullmatch(token)
        if match is None and compare_digest(self.host(table).encode(), token.encode()):
            return Actor(host=True)
        if match is not None:
            seat, since = int(match[1]), int(match[2])
            if compare_digest(self.seat(table, seat=seat, since=since).encode(), token.encode()):
                holder = state.latest(SeatHolder(seat, since))
                if not state.still_seated(holder):
                    raise BadToken("The seat of this token was left; join the table again.")
                return Actor(seat=holder.seat)
        raise BadToken("This token is not valid at this table; check that it is complete.")

    def _mac(self, table: bytes, of: str) -> str:
        return self._token(lp(table, of.encode())).hex()


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


PREFIX = "dt_"

TICKET_MAX = 3_072
"""Characters: more than a ticket with the longest name and a subject has."""

_TICKET = re.compile(PREFIX + rf"[A-Za-z0-9_-]{{40,{TICKET_MAX}}}")


class Ticket(NamedTuple):
    """What a ticket says: `table` is an id of 16 bytes, `expires_at` milliseconds since 1970.

    `subject` is the service's id of its user, `user` the digest of that (`user_digest`), empty
    without one. `seat` None stands for any. `key` is the number of the service key that made it.
    """

    table: bytes
    name: str
    seat: int | None
    user: bytes
    bot: bool
    expires_at: int
    key: int
    subject: str | None


def user_digest(keys: HouseKeys, table: bytes, *, issuer: str, subject: str) -> bytes:
    """The keyed digest, 32 bytes, of a user at a table; `keys` are the table's.

    `issuer` is from the user's JWT, or names the service that made the user's ticket.
    """
    return keys.command_digest(b"subject " + lp(table, issuer.encode(), subject.encode()))


def ticket_digest(keys: HouseKeys, text: str) -> bytes:
    """The keyed digest, 32 bytes, of the id of a ticket that `Tickets.open` accepts."""
    return keys.command_digest(b"ticket " + _sealed(text)[:NONCE_BYTES])


class Tickets:
    """Makes and opens tickets; `now` is the wall clock, milliseconds since 1970."""

    def __init__(self, keys: HouseKeys, service_keys: ServiceKeys, now: Clock) -> None:
        self._keys = keys
        self._service_keys = service_keys
        self._now = now

    def make(
        self,
        live_table: LiveTable,
        maker: ServiceKey,
        *,
        name: str,
        seat: int | None,
        subject: str | None,
        bot: bool,
        seconds: int,
    ) -> tuple[str, int]:
        """(text of a new ticket, when it expires).

        `maker` is the key of the service, `subject` the service's id of its user.
        """
        keys = self._keys.of(live_table.table.key)
        user = b""
        if subject is not None:
            user = user_digest(keys, live_table.id, issuer=scope_of(maker), subject=subject)
        expires_at = self._now() + 1000 * seconds
        ticket = Ticket(live_table.id, name, seat, user, bot, expires_at, maker.id, subject)
        members = ticket._asdict() | {"table": ticket.table.hex(), "user": user.hex()}
        plain = json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()
        sealed = keys.seal_ticket(plain, nonce=secrets.token_bytes(NONCE_BYTES))
        text = PREFIX + urlsafe_b64encode(sealed).rstrip(b"=").decode()
        return text, ticket.expires_at

    def open(self, live_table: LiveTable, text: str) -> Ticket:
        """What a ticket says; raises BadToken unless it is for this table, and TicketExpired."""
        plain = None
        if _TICKET.fullmatch(text):
            plain = self._keys.of(live_table.table.key).open_ticket(_sealed(text))
        if plain is None:
            raise BadToken("This ticket is not valid at this table; check that it is complete.")
        members = json.loads(plain)
        binary = {name: bytes.fromhex(members[name]) for name in ("table", "user")}
        ticket = Ticket(**(members | binary))
        if ticket.table != live_table.id:
            raise BadToken("This ticket is for another table.")
        if ticket.expires_at <= self._now():
            raise TicketExpired("This ticket has expired; ask for a new one.")
        if self._service_keys.of_number(ticket.key) is None:
            raise BadToken("The service key that made this ticket was revoked; ask for a new one.")
        return ticket


def _sealed(text: str) -> bytes:
    encoded = text.removeprefix(PREFIX)
    if len(encoded) % 4 == 1:
        return b""
    return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
