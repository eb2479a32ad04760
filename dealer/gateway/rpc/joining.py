"""Methods that change the role of a connection at a table: open, join, watch, resume, leave."""

from __future__ import annotations

from typing import Any

import msgspec

from dealer.errors import DealerError, Refused, Unavailable
from dealer.game.commands import LeaveSeat
from dealer.game.events import TableOpened
from dealer.gateway.push.membership import Membership
from dealer.gateway.rate_limit.costs import COMMIT, text_bytes_written
from dealer.gateway.rpc.commands import command_key, deck_codes
from dealer.gateway.rpc.resume import Resumption, members, resume, start_stream, take_snapshot
from dealer.gateway.rpc.seating import seat_for
from dealer.gateway.rpc.session import Session
from dealer.gateway.version import program_version
from dealer.gateway.wire import params as p
from dealer.gateway.wire import protocol as wire
from dealer.gateway.wire import results as r
from dealer.gateway.wire.protocol import Call
from dealer.service.requests import ANONYMOUS_SCOPE


async def table_open(session: Session, call: Call) -> None:
    """Open a table; this connection is its host."""
    q: p.TableOpen = call.params
    cached = session.cached_answer(call)
    if cached is not None:
        session.answer(call, cached)
        return
    service, memberships = session.context.service, session.memberships
    memberships.require_room()
    rules, content = _rules(q), wire.content(call)
    with session.paying(text_bytes_written(content), table=True):
        key = command_key(call, ANONYMOUS_SCOPE)
        address = session.transport.address
        live_table, done = await service.open_table(rules, key=key, address=address)
    (opened,) = (event for event in done.events if isinstance(event, TableOpened))
    tokens = service.tokens_of(opened.key)
    memberships.become_host(memberships.get(live_table.table_id) or Membership(live_table))
    answer = r.Opened(
        table=live_table.table_id,
        host_token=tokens.host(live_table.id),
        invite=tokens.invite(live_table.id),
        version=done.version,
        origin=opened.origin,
        key=opened.key.hex(),
    )
    session.cache_answer(call, answer)
    session.answer(call, answer)


def _rules(q: p.TableOpen) -> dict[str, Any]:
    """The rules object as it goes into the log, which includes the other parameters."""
    rules = dict(q.rules or {})
    given = {"deck": q.deck, "seats": q.seats, "name": q.name}
    rules |= {key: msgspec.to_builtins(value) for key, value in given.items() if value is not None}
    deck_codes(rules.get("deck"))
    return rules


async def table_join(session: Session, call: Call) -> None:
    """Take a seat, with a name, a ticket or a JWT; the events after the returned version follow."""
    q: p.TableJoin = call.params
    cached = session.cached_answer(call)
    if cached is not None:
        session.answer(call, cached)
        return
    memberships = session.memberships
    membership = await memberships.find(q.table)
    temporary = membership.subscription is None
    memberships.add(membership)
    try:
        holder = await seat_for(session, call, membership)
    except DealerError:
        if temporary:
            memberships.leave(membership)
        raise
    memberships.take_seat(membership, holder)
    live_table = membership.live_table
    tokens = session.context.service.tokens_of(live_table.table.key)
    token = tokens.seat(live_table.id, seat=holder.seat, since=holder.taken_at)
    membership.tokens.add(token)
    seen = await take_snapshot(session, membership)
    answer = r.Joined(seat=holder.seat, token=token, **members(membership, seen))
    session.cache_answer(call, answer)
    session.answer(call, answer)
    start_stream(session, membership, seen.version)


async def table_watch(session: Session, call: Call) -> None:
    """Watch a table without a seat, from now on or from after the last version seen."""
    q: p.TableWatch = call.params
    membership = await session.memberships.find(q.table, token=q.token)
    membership.require_watching()
    session.memberships.add(membership)
    if q.after is not None:
        await _answer_resume(session, call, membership, q.after)
        return
    seen = await take_snapshot(session, membership)
    session.answer(call, r.State(**members(membership, seen)))
    start_stream(session, membership, seen.version)


async def table_resume(session: Session, call: Call) -> None:
    """Resume with a token; the events after the last one seen follow."""
    q: p.TableResume = call.params
    membership = await session.memberships.find(q.table, token=q.token)
    await _answer_resume(session, call, membership, q.after)


async def _answer_resume(session: Session, call: Call, membership: Membership, after: int) -> None:
    resumption = await resume(session, membership, after)
    session.answer(call, resumption.answer)
    resumption.start(session)


async def session_hello(session: Session, call: Call) -> None:
    """Identify the server, and resume several tables at once."""
    q: p.SessionHello = call.params
    statuses: list[r.TableStatus] = []
    resumptions: list[Resumption] = []
    for given in q.tokens:
        try:
            membership = await session.memberships.find(given.table, token=given.token)
            after = membership.live_table.committed if given.after is None else given.after
            resumption = await resume(session, membership, after)
        except DealerError as error:
            refused = error if isinstance(error, Refused) else Unavailable("Try again later.")
            statuses.append(r.TableStatus(table=given.table, error=wire.error_of(refused)))
        else:
            statuses.append(r.TableStatus(**msgspec.structs.asdict(resumption.answer)))
            resumptions.append(resumption)
    server = r.Server(name="dealer", version=program_version(), protocol=wire.PROTOCOL)
    by_table = None if session.context.service.hints is None else True
    session.answer(call, r.HelloResult(server=server, tables=statuses, by_table=by_table))
    for resumption in resumptions:
        resumption.start(session)


async def table_leave(session: Session, call: Call) -> None:
    """Leave the seat; without a seat, stop watching."""
    q: p.Command = call.params
    memberships = session.memberships
    membership = await memberships.find(q.table, token=q.token)
    live_table, actor = membership.live_table, membership.actor()
    if actor.seat is None and membership.subscription is None:
        membership.require_watching()  # the answer contains the table's version
    membership.require_version(q.expect)
    version = live_table.committed
    if actor.seat is not None:
        key = command_key(call, f"seat:{actor.seat}:{actor.taken_at}")
        with session.paying(COMMIT):
            done = await session.context.service.execute(live_table, LeaveSeat(actor), key=key)
        version = done.version
    if not membership.host:
        memberships.leave(membership)
    session.answer(call, r.Changed(version=version))
