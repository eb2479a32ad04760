"""Seat claims: seats for the users of other servers, who come with a ticket or with a JWT.

A user has one seat at a table, on every device and at every node, and a ticket gives one request a
seat. Both hold because of the log's command index:

1. `find` reads the user's row. A seat that is still the user's is given again, without an event.
2. `take` takes a seat under a command id that is computed from the user, or from a ticket without
   one, and from the version of the user's last seat. Two nodes that do so at the same time, and a
   node after a crash, send the same id: the log carries it out once.
   A service's own id of the user is written before, under the same id.
3. `record` writes the user's row, and the row of the ticket: the request that is in it is answered,
   any other is refused. It is written before the answer, so that a ticket never gives two answers.
   Both are bound to their seat by a keyed digest: changed in the database, they give no seat.

A crash after 2 leaves the seat taken, and neither row. The next request finds that seat through
the command id, and as the ticket is not spent any request may be given it. A crash after 3 leaves
the ticket with the request that is in its row: sent again with its `cmd`, it is answered.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

from dealer.errors import BadToken, TableArchived, TicketUsed, VersionConflict
from dealer.eventlog import Log, seat_subjects
from dealer.eventlog.keys import HouseKeys
from dealer.eventlog.seat_subjects import CLAIM, DIGEST_BYTES, StoredSeat, Subject
from dealer.game.commands import TakeSeat
from dealer.game.events import SeatTaken
from dealer.game.state import SeatHolder
from dealer.proof.concatenation import be64, lp
from dealer.service.commands.processor import CommandProcessor
from dealer.service.identity.tokens import Ticket, ticket_digest, user_digest
from dealer.service.tables.execution import CommandExecution, IdempotencyKey
from dealer.service.tables.live_table import LiveTable

ATTEMPTS = 8
"""Seats of a user without a row that one request follows: each crash leaves one."""


class SeatClaim(NamedTuple):
    """A request for a seat: digests of 32 bytes, empty if there is none.

    `user` is the digest of the user, `ticket` of the ticket's id, at least one of them given;
    `request` of the joining request, by which a repetition is recognised. `subject` is the
    service's id of the user, whose digest `user` is.
    """

    user: bytes
    ticket: bytes
    request: bytes
    subject: Subject | None = None


class SeatClaims:
    """Finds and takes seats of users, by commands to `processor`."""

    def __init__(self, log: Log, keys: HouseKeys, processor: CommandProcessor) -> None:
        self._log = log
        self._keys = keys
        self._processor = processor

    def of_ticket(
        self, live_table: LiveTable, text: str, ticket: Ticket, *, key: IdempotencyKey | None
    ) -> SeatClaim:
        """The claim of the holder of a ticket, which was opened.

        `key` is the request's, None if it has none that only its sender can know.
        """
        keys = self._keys.of(live_table.table.key)
        subject = None if ticket.subject is None else Subject(ticket.key, ticket.subject)
        return SeatClaim(ticket.user, ticket_digest(keys, text), _request(keys, key), subject)

    def of_user(self, live_table: LiveTable, *, issuer: str, subject: str) -> SeatClaim:
        """The claim of the user whom a verified JWT names."""
        keys = self._keys.of(live_table.table.key)
        user = user_digest(keys, live_table.id, issuer=issuer, subject=subject)
        return SeatClaim(user, b"", b"")

    async def find(self, live_table: LiveTable, claim: SeatClaim) -> SeatHolder | None:
        """The seat that the user still has, or that this request was given before; None if neither.

        Raises TicketUsed if another request has used the ticket, and BadToken if the seat that the
        ticket gave was left.
        """
        if claim.ticket:
            spent = await self._stored(live_table, claim.ticket)
            if spent is not None:
                return await self._given_again(live_table, claim, spent)
        stored = await self._of_user(live_table, claim.user)
        return None if stored is None else await _seated(live_table, stored)

    async def take(self, live_table: LiveTable, claim: SeatClaim, command: TakeSeat) -> SeatHolder:
        """Take a seat for a claim that `find` has none for; raises the refusal of the command.

        Raises BadToken if a ticket without a user gave a seat that was left.
        """
        after = 0
        stored = await self._of_user(live_table, claim.user)
        if stored is not None:
            if (holder := await _seated(live_table, stored)) is not None:
                return holder  # taken since `find`, by another request of the user
            after = stored.version
        for _ in range(ATTEMPTS):
            # The user may be about to leave: the seat is free only once that is on disk.
            await live_table.wait_committed(live_table.table.version)
            holder = await self._take_after(live_table, claim, command, after)
            if (now := await live_table.seat_on_disk(holder)) is not None:
                return now
            if not claim.user:
                raise BadToken("The seat of this ticket was left; ask for a new ticket.")
            await self.record(live_table, claim._replace(ticket=b""), holder)  # followed once
            after = holder.taken_at
        raise VersionConflict("The table changed each time; read it and try again.")

    async def record(self, live_table: LiveTable, claim: SeatClaim, holder: SeatHolder) -> None:
        """Write the rows of a seat that is about to be given to this request.

        Raises TicketUsed if another request was quicker, which may be at another node.
        """

        def rows(digest: bytes, request: bytes) -> dict[bytes, StoredSeat]:
            row = StoredSeat(*holder, self._bound(live_table, digest, holder, request))
            return {digest: row} if digest else {}

        users, tickets = rows(claim.user, b""), rows(claim.ticket, claim.request)
        stored = await self._log.run_in_transaction(
            seat_subjects.record, live_table.id, users=users, tickets=tickets
        )
        if stored is None:
            raise TableArchived("This table is closed and archived.")
        if claim.ticket and not self._is_bound(live_table, claim.ticket, stored, claim.request):
            raise _used()

    async def _take_after(
        self, live_table: LiveTable, claim: SeatClaim, command: TakeSeat, after: int
    ) -> SeatHolder:
        keys = self._keys.of(live_table.table.key)
        cmd = keys.command_digest(b"claim " + (claim.user or claim.ticket) + be64(after))
        subject = claim.subject
        if subject is not None:
            await self._log.run_in_transaction(
                seat_subjects.record_subject, live_table.id, cmd, subject
            )
        execution = CommandExecution(command=command, key=IdempotencyKey(CLAIM, cmd.hex()))
        done = await self._processor.execute(live_table, execution)
        (taken,) = (event for event in done.events if isinstance(event, SeatTaken))
        return SeatHolder(taken.seat, done.version)

    def _bound(
        self, live_table: LiveTable, digest: bytes, holder: SeatHolder, request: bytes
    ) -> bytes:
        """What a row has as `request`: a keyed digest of the row and the request."""
        keys = self._keys.of(live_table.table.key)
        return keys.command_digest(
            b"row " + lp(live_table.id, digest, be64(holder.seat), be64(holder.taken_at), request)
        )

    def _is_bound(
        self, live_table: LiveTable, digest: bytes, stored: StoredSeat, request: bytes
    ) -> bool:
        holder = SeatHolder(stored.seat, stored.version)
        return stored.request == self._bound(live_table, digest, holder, request)

    async def _of_user(self, live_table: LiveTable, user: bytes) -> StoredSeat | None:
        """The row of a user; None without one, or if it is not as this house wrote it."""
        stored = await self._stored(live_table, user) if user else None
        bound = stored is not None and self._is_bound(live_table, user, stored, b"")
        return stored if bound else None

    async def _given_again(
        self, live_table: LiveTable, claim: SeatClaim, spent: StoredSeat
    ) -> SeatHolder:
        if not self._is_bound(live_table, claim.ticket, spent, claim.request):
            raise _used()
        holder = await _seated(live_table, spent)
        if holder is None:
            raise BadToken("The seat of this ticket was left; ask for a new ticket.")
        return holder

    async def _stored(self, live_table: LiveTable, digest: bytes) -> StoredSeat | None:
        stored = await seat_subjects.find(self._log, live_table.id, digest)
        if stored is not None and stored.version > live_table.committed:
            # Another node wrote it after this one read the log.
            await self._processor.lifecycle.catch_up(live_table)
        return stored


def _request(keys: HouseKeys, key: IdempotencyKey | None) -> bytes:
    """The digest of a request; without a key no other request has the same."""
    if key is None:
        return secrets.token_bytes(DIGEST_BYTES)
    return keys.command_digest(b"join " + lp(key.scope.encode(), key.cmd.encode(), key.content))


async def _seated(live_table: LiveTable, stored: StoredSeat) -> SeatHolder | None:
    return await live_table.seat_on_disk(SeatHolder(stored.seat, stored.version))


def _used() -> TicketUsed:
    return TicketUsed("This ticket was used before; ask for a new one.")
