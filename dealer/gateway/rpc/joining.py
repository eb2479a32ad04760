"""Methods that change the role of a connection at a table: open, join, watch, resume, leave.

A subscription starts from a snapshot, or after the last version that the client has seen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from dealer.errors import (
    BadRequest,
    CommandReused,
    DealerError,
    NotEntitled,
    Refused,
    Unavailable,
)
from dealer.game.commands import LeaveSeat
from dealer.game.events import TableOpened
from dealer.gateway.push.membership import Membership, require_right
from dealer.gateway.rate_limit.costs import BYTES_PER_COMMIT, text_bytes_written
from dealer.gateway.rpc.commands import command_key, deck_codes
from dealer.gateway.rpc.seating import seat_for
from dealer.gateway.rpc.session import Session
from dealer.gateway.wire import params as p
from dealer.gateway.wire import protocol as wire
from dealer.gateway.wire import results as r
from dealer.gateway.wire.protocol import Call
from dealer.service import CommandResult, LiveTable, Snapshot
from dealer.service.identity.service_keys import ServiceKey
from dealer.service.identity.service_tables import Owner, opening_key
from dealer.service.tables.execution import ANONYMOUS_SCOPE
from dealer.version import __version__


async def table_open(session: Session, call: Call) -> None:
    """Open a table; this connection is its host, or acts there by its service key."""
    q: p.TableOpen = call.params
    if session.answer_again(call):
        return
    service = session.context.service
    session.require_room()
    owner = session.service_key
    if owner is not None:
        require_right(owner, "open")
        live_table, done = await _open_as_service(session, call, owner)
    elif q.ref is not None:
        raise BadRequest("A `ref` needs a service key: it is the id of a service for its table.")
    elif not q.host:
        raise BadRequest("Only a service, with a service key, opens a table without a host token.")
    elif not session.context.players_open:
        raise NotEntitled(
            "On this server only services open tables: open the link that you were given."
        )
    else:
        live_table, done = await _open_as_player(session, call)
    (opened,) = (event for event in done.events if isinstance(event, TableOpened))
    tokens = service.tokens_of(opened.key)
    membership = session.memberships.get(live_table.table_id) or Membership(live_table, owner)
    if owner is None:
        session.become_host(membership)
    else:
        session.add(membership)
    answer = r.Opened(
        table=live_table.table_id,
        host_token=tokens.host(live_table.id) if q.host else None,
        invite=tokens.invite(live_table.id),
        version=done.version,
        origin=opened.origin,
        key=opened.key.hex(),
        ref=q.ref,
    )
    session.answer_and_keep(call, answer)


async def _open_as_player(session: Session, call: Call) -> tuple[LiveTable, CommandResult]:
    key, rules = command_key(call, ANONYMOUS_SCOPE), _rules(call.params)
    with session.paying(text_bytes_written(wire.content(call)), decks=1):
        address = session.transport.address
        return await session.context.service.open_table(rules, key=key, address=address)


async def _open_as_service(
    session: Session, call: Call, owner: ServiceKey
) -> tuple[LiveTable, CommandResult]:
    q: p.TableOpen = call.params
    content, rules = wire.content(call), _rules(q)
    key = opening_key(owner, ref=q.ref, cmd=q.cmd, content=content)
    # Without an address: the lobby's bound on the tables of one network is for players.
    try:
        with session.paying(text_bytes_written(content)):
            return await session.context.service.open_table(
                rules, key=key, owner=Owner(owner.id, q.ref)
            )
    except CommandReused:
        if q.ref is None:
            raise
        raise CommandReused(
            "This ref was used for a table with other parameters; give each table its own."
        ) from None


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
    if session.answer_again(call):
        return
    membership = await session.find(q.table)
    temporary = membership.subscription is None
    subscription = session.add(membership)
    try:
        holder = await seat_for(session, call, membership)
    except DealerError:
        if temporary:
            session.leave(membership)
        raise
    session.take_seat(membership, holder)
    live_table = membership.live_table
    tokens = session.context.service.tokens_of(live_table.table.key)
    token = tokens.seat(live_table.id, seat=holder.seat, since=holder.taken_at)
    membership.tokens.add(token)
    seen = await take_snapshot(session, membership)
    seat = (subscription.viewer or holder).seat  # another one if the player has moved meanwhile
    answer = r.Joined(seat=seat, token=token, **members(membership, seen))
    session.answer_and_keep(call, answer)
    start_stream(session, membership, seen.version)


async def table_watch(session: Session, call: Call) -> None:
    """Watch a table without a seat, from now on or from after the last version seen."""
    q: p.TableWatch = call.params
    membership = await session.find(q.table, token=q.token)
    membership.require_watching()
    session.add(membership)
    if q.after is not None:
        await _answer_resume(session, call, membership, q.after)
        return
    seen = await take_snapshot(session, membership)
    session.answer(call, r.State(**members(membership, seen)))
    start_stream(session, membership, seen.version)


async def table_resume(session: Session, call: Call) -> None:
    """Resume with a token; the events after the last one seen follow."""
    q: p.TableResume = call.params
    membership = await session.find(q.table, token=q.token)
    await _answer_resume(session, call, membership, q.after)


async def _answer_resume(session: Session, call: Call, membership: Membership, after: int) -> None:
    resumption = await resume(session, membership, after)
    session.answer(call, resumption.answer)
    resumption.start(session)


async def session_hello(session: Session, call: Call) -> None:
    """Identify the server, and resume several tables at once."""
    q: p.SessionHello = call.params
    if q.key is not None:
        session.identify(q.key)
    statuses: list[r.TableStatus] = []
    resumptions: list[Resumption] = []
    for given in q.tokens:
        try:
            membership = await session.find(given.table, token=given.token)
            after = membership.live_table.committed if given.after is None else given.after
            resumption = await resume(session, membership, after)
        except DealerError as error:
            refused = error if isinstance(error, Refused) else Unavailable("Try again later.")
            statuses.append(r.TableStatus(table=given.table, error=wire.error_of(refused)))
        else:
            statuses.append(r.TableStatus(**msgspec.structs.asdict(resumption.answer)))
            resumptions.append(resumption)
    server = r.Server(name="dealer", version=__version__, protocol=wire.PROTOCOL)
    by_table = None if session.context.service.hints is None else True
    session.answer(call, r.HelloResult(server=server, tables=statuses, by_table=by_table))
    for resumption in resumptions:
        resumption.start(session)


async def table_leave(session: Session, call: Call) -> None:
    """Leave the seat, and the table; a host who left a seat stays, one without a seat leaves.

    The result has `host` if this connection stays.
    """
    q: p.Command = call.params
    membership = await session.find(q.table, token=q.token)
    live_table, actor = membership.live_table, membership.actor()
    if actor.seat is None and membership.subscription is None:
        membership.require_watching()  # the answer contains the table's version
    membership.require_version(q.expect)
    version, stays = live_table.committed, False
    if actor.seat is not None:
        stays = membership.host
        key = command_key(call, membership.scope())
        with session.paying(BYTES_PER_COMMIT):
            absence = await session.context.broadcaster.absences.at_command(live_table)
            command = LeaveSeat(actor, absence)
            done = await session.context.service.execute(live_table, command, key=key)
        version = done.version
    if not stays:
        session.leave(membership)
    session.answer(call, r.Left(version=version, host=stays or None))


# Start of a subscription


class Resumption(NamedTuple):
    """A resume that is ready: its answer, and what is sent after the answer.

    Events after version `after` follow, preceded by the notification `snapshot` if there is a
    `reset`.
    """

    membership: Membership
    answer: r.Resumed
    after: int
    reset: r.Snapshot | None = None

    def start(self, session: Session) -> None:
        """Send what follows the answer."""
        if self.reset is not None:
            session.send(wire.notification("snapshot", self.reset))
        start_stream(session, self.membership, self.after, say_resumed=True)


async def take_snapshot(session: Session, membership: Membership) -> Snapshot:
    """The table as this client may see it; a stream that already runs is sent up to its version."""
    broadcaster, subscription = session.context.broadcaster, session.add(membership)
    await _subscribe_as_seat(session, membership)
    with broadcaster.paused(subscription):
        seen = await snapshot(session, membership)
        _show_faces(session, membership)
        await broadcaster.send_until(subscription, upto=seen.version)
    return seen


async def snapshot(session: Session, membership: Membership) -> Snapshot:
    """The table as this client may see it, in a turn of the client's address.

    It is that of the seat which the membership has at the end.
    """
    async with session.turn():
        while True:
            await membership.settle()
            viewer = membership.holder
            seen = await session.context.service.snapshot(membership.live_table, viewer)
            if membership.refresh() == viewer:
                return seen


async def resume(session: Session, membership: Membership, after: int) -> Resumption:
    """Continue after a version with events, or with a snapshot where they cannot be sent."""
    context, live_table = session.context, membership.live_table
    subscription = session.add(membership)
    await _subscribe_as_seat(session, membership)
    context.metrics.resumes += 1
    version = live_table.committed
    with context.broadcaster.paused(subscription):
        if after > version or version - after > context.limits.resume:
            return await _resume_from_snapshot(session, membership, after)

        def pay() -> None:
            session.budget.pay(BYTES_PER_COMMIT, context.clock())

        size, note = await context.service.checkpoint(live_table, writing=pay)
        await _subscribe_as_seat(session, membership)  # the player may have moved meanwhile
    table = live_table.table_id
    answer = r.Resumed(checkpoint=note, **role(membership), table=table, version=size)
    return Resumption(membership, answer, after)


async def _resume_from_snapshot(session: Session, membership: Membership, after: int) -> Resumption:
    context, live_table = session.context, membership.live_table
    context.metrics.resets += 1
    seen = await snapshot(session, membership)
    _show_faces(session, membership)
    seat_and_host = role(membership)
    proof: list[str] | None = None
    if after == 0:
        proof = []  # every log is consistent with the empty one
    elif after <= seen.version:
        async with session.turn():
            proof = await context.service.consistency.proof(
                live_table, old=after, new=seen.version, edge=seen.edge, pause=session.pause
            )
    answer = r.Resumed(
        checkpoint=seen.checkpoint,
        reset=True,
        table=live_table.table_id,
        version=seen.version,
        **seat_and_host,
    )
    reset = r.Snapshot(reset=True, proof=proof, **members(membership, seen))
    return Resumption(membership, answer, seen.version, reset)


async def _subscribe_as_seat(session: Session, membership: Membership) -> None:
    await membership.settle()
    _show_faces(session, membership)


def _show_faces(session: Session, membership: Membership) -> None:
    """Push the faces of the seat that this connection acts for."""
    holder = membership.holder
    if holder is not None:
        session.context.broadcaster.take_seat(session.add(membership), holder)


def start_stream(
    session: Session, membership: Membership, version: int, *, say_resumed: bool = False
) -> None:
    """Push the events after a version; to be called once the answer is sent.

    Nothing is pushed to a session that cannot receive it.
    """
    subscription = membership.subscription
    if subscription is not None and session.pushes:
        session.context.broadcaster.start(subscription, after=version, say_resumed=say_resumed)


def members(membership: Membership, seen: Snapshot) -> dict[str, Any]:
    """The members of a result that contains a snapshot."""
    return {"table": membership.live_table.table_id, **seen._asdict()}


def role(membership: Membership) -> dict[str, Any]:
    """The members of a result that says who the connection is at a table."""
    holder = membership.holder
    return {"seat": None if holder is None else holder.seat, "host": membership.host or None}


def table_status(membership: Membership) -> r.TableStatus:
    live_table = membership.live_table
    return r.TableStatus(
        table=live_table.table_id, version=live_table.committed, **role(membership)
    )
