"""Seats by a name, and for the users of other servers by a ticket or by a JWT.

A player without an account gives a name. A service makes a ticket for its user (`seat.ticket`); a
user of the operator's issuer gives a JWT. Such a user has one seat at a table: on another device
the same seat is given again, and the older connection is closed, as when any seat is resumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from dealer.errors import BadRequest, BadToken, NameTaken, NotEntitled, TableIsClosed
from dealer.game.commands import TakeSeat
from dealer.game.decide.seats import is_name_taken
from dealer.game.events import SeatTaken
from dealer.game.names import NAME_MAX, check_name
from dealer.game.state import SeatHolder
from dealer.gateway.presence.membership import Membership, require_right
from dealer.gateway.rate_limit.costs import text_bytes_written
from dealer.gateway.session.repeats import joining_key
from dealer.gateway.session.session import Session
from dealer.gateway.wire import params as p
from dealer.gateway.wire import protocol as wire
from dealer.gateway.wire import results as r
from dealer.gateway.wire.protocol import Call
from dealer.service.identity.seat_claims import SeatClaim, SeatClaims
from dealer.service.tables.live_table import LiveTable


async def seat_ticket(session: Session, call: Call) -> None:
    """Make a ticket, by which a user of this service may take a seat at the table, once."""
    q: p.SeatTicket = call.params
    membership = await session.find(q.table)
    live_table = membership.live_table
    if membership.service is None:
        membership.require_watching()
        raise NotEntitled("Only a service makes tickets, for the tables that it opened.")
    require_right(membership.service, "seat")
    if live_table.table.closed:
        raise TableIsClosed("This table is closed and stays closed; open another one.")
    check_name(q.name)
    seats = live_table.table.rules.seats
    if q.seat is not None and not 1 <= q.seat <= seats:
        raise BadRequest(f"This table has the seats 1 to {seats}.")
    ticket, expires_at = session.context.service.tickets.make(
        live_table,
        membership.service,
        name=q.name,
        seat=q.seat,
        subject=q.subject,
        bot=q.bot,
        seconds=q.expires_s,
    )
    session.answers.send_result(call, r.Ticket(ticket=ticket, expires_at=expires_at))


async def seat_for(session: Session, call: Call, membership: Membership) -> SeatHolder:
    """The seat of a `table.join`: taken now, or the one that the user has already."""
    q: p.TableJoin = call.params
    if membership.seat.holder is not None:
        raise BadRequest(f"You already have seat {membership.seat.holder.seat} at this table.")
    with session.charged(text_bytes_written(wire.content(call))):
        if q.ticket is not None:
            return await _seat_by_ticket(session, call, membership, q.ticket)
        if q.jwt is not None:
            return await _seat_by_jwt(session, call, membership, q.jwt)
        return await _seat_by_name(session, call, membership)


async def _seat_by_name(session: Session, call: Call, membership: Membership) -> SeatHolder:
    q: p.TableJoin = call.params
    live_table = membership.live_table
    _require_invitation(session, membership, q)
    command = TakeSeat(q.name or "", q.seat, _key(q), q.bot)
    key = joining_key(call, session.service_key)
    done = await session.context.service.execute(live_table, command, key=key, expect=q.expect)
    (taken,) = (event for event in done.events if isinstance(event, SeatTaken))
    holder = await live_table.seat_on_disk(SeatHolder(taken.seat, done.version))
    if holder is None:
        raise BadToken("The seat that this command took was left since; join again with a new cmd.")
    return holder


async def _seat_by_ticket(
    session: Session, call: Call, membership: Membership, text: str
) -> SeatHolder:
    q: p.TableJoin = call.params
    service, live_table = session.context.service, membership.live_table
    ticket = service.tickets.open(live_table, text)
    if ticket.seat is not None and q.seat not in (None, ticket.seat):
        raise BadRequest(f"This ticket is for seat {ticket.seat}.")
    key = joining_key(call, session.service_key)
    claim = service.seat_claims.of_ticket(live_table, text, ticket, key=key)
    holder = await service.seat_claims.find(live_table, claim)
    if holder is None:
        membership.require_version(q.expect)
        seat = q.seat if ticket.seat is None else ticket.seat
        command = TakeSeat(ticket.name, seat, _key(q), ticket.bot or q.bot)
        names = _names((ticket.name,), q)
        holder = await _take(service.seat_claims, live_table, claim, names, command)
    await service.seat_claims.record(live_table, claim, holder)
    return holder


async def _seat_by_jwt(
    session: Session, call: Call, membership: Membership, token: str
) -> SeatHolder:
    q: p.TableJoin = call.params
    issuer = session.context.issuer
    if issuer is None:
        raise BadRequest("This server has no issuer whose JWTs it accepts; give a name.")
    user = await issuer.verify(token)
    claims, live_table = session.context.service.seat_claims, membership.live_table
    claim = claims.of_user(live_table, issuer=user.issuer, subject=user.subject)
    holder = await claims.find(live_table, claim)
    if holder is not None:
        return holder
    _require_invitation(session, membership, q)
    membership.require_version(q.expect)
    names = _names(user.names, q)
    if not names:
        raise BadRequest("This JWT has no name that a player may have; give one as `name`.")
    command = TakeSeat(names[0], q.seat, _key(q), q.bot)
    holder = await _take(claims, live_table, claim, names, command)
    await claims.record(live_table, claim, holder)
    return holder


def _names(known: Sequence[str], q: p.TableJoin) -> list[str]:
    return [*known] if q.name is None else [*known, q.name]


async def _take(
    claims: SeatClaims,
    live_table: LiveTable,
    claim: SeatClaim,
    names: Sequence[str],
    command: TakeSeat,
) -> SeatHolder:
    """Take a seat by `command` under the first of these names that no player has.

    Users of one service may have the same name: if the user's names are taken, the one that the
    join gives counts, which comes last; NameTaken says what would be free.
    """
    table = live_table.table
    free = next((name for name in names if not is_name_taken(table, name)), names[0])
    try:
        return await claims.take(live_table, claim, replace(command, name=free))
    except NameTaken:
        numbered = (f"{names[-1][: NAME_MAX - 4]} {number}" for number in count(2))
        offered = next(name for name in numbered if not is_name_taken(table, name))
        raise NameTaken(
            f'A player at this table has the name "{names[-1]}"; give another one as `name`, such '
            f'as "{offered}".'
        ) from None


def _require_invitation(session: Session, membership: Membership, q: p.TableJoin) -> None:
    live_table = membership.live_table
    if live_table.table.rules.invited and not membership.host:
        tokens = session.context.service.tokens.of(live_table.table.key)
        if q.invite is None or not tokens.is_invite(live_table.id, q.invite):
            raise NotEntitled("A seat at this table needs its invitation; ask the host for it.")


def _key(q: p.TableJoin) -> bytes | None:
    return None if q.key is None else bytes.fromhex(q.key)
