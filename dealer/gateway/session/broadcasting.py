"""Methods of broadcasts: make and take back a link, and watch a table by one."""

from __future__ import annotations

from dealer.errors import BadRequest, BadToken, NotHost, TooEarly
from dealer.eventlog.services import HOST
from dealer.game.decide.permission import is_host
from dealer.game.view import BROADCAST
from dealer.gateway.presence.membership import require_right
from dealer.gateway.rate_limit.costs import past_state_weight
from dealer.gateway.session.session import Session
from dealer.gateway.wire import params as p
from dealer.gateway.wire import results as r
from dealer.gateway.wire.protocol import Call
from dealer.service import LiveTable, Snapshot
from dealer.service.reading.broadcasts import NO_BROADCAST


async def broadcast_link(session: Session, call: Call) -> None:
    """Make a link to the table's broadcast; again it is the same one, until it is taken back."""
    link = await session.context.service.broadcasts.link(*await _owner(session, call.params))
    session.answers.send_result(call, r.BroadcastLink(link=link))


async def broadcast_revoke(session: Session, call: Call) -> None:
    """Take back the caller's link: connections that watch by it end, and the next link is new."""
    broadcasts = session.context.service.broadcasts
    revoked = await broadcasts.take_back(*await _owner(session, call.params))
    session.answers.send_result(call, r.BroadcastRevoked(revoked=revoked))


async def _owner(session: Session, q: p.OfTable) -> tuple[LiveTable, int]:
    """The table, and as whose the caller's link is stored: the host's, or a service's."""
    membership = await session.find(q.table, token=q.token)
    if is_host(membership.live_table.table, membership.actor()):
        return membership.live_table, HOST
    if membership.service is None:
        membership.require_watching()
        raise NotHost("Only the host of a table, or its service, makes links to its broadcast.")
    require_right(membership.service, "broadcast")
    return membership.live_table, membership.service.id


async def watch_broadcast(session: Session, call: Call, link: str) -> None:
    """Answer `table.watch` as of the newest version that is old enough; the rest comes later.

    Raises TooEarly before the broadcast has begun, or if another node has shown more.
    """
    q: p.TableWatch = call.params
    viewers, service = session.context.broadcasts, session.context.service
    table = q.table or session.named
    if table is None or q.token is not None:
        raise BadRequest("A broadcast is watched with `table` and `link`, and without a token.")
    live_table, stored = await service.broadcasts.find(table, link)
    earlier = session.broadcasts.get(table)
    if earlier is None:
        session.require_room()
    viewer = viewers.add(session.transport, live_table, stored)
    broadcast = viewer.broadcast
    try:
        await broadcast.ready.wait()
        version, state = broadcast.version, None
        if max(1, q.after or 0) > version:
            raise TooEarly("This table's broadcast has not come that far; try again shortly.")
        edge = [node.hex() for node in broadcast.tree.edge]
        head = service.broadcasts.head(broadcast)
        if q.after is None:
            past = service.past_states
            session.charge(past_state_weight(past.length(live_table, version)))
            async with session.permit():
                state = await past.view(live_table, version, BROADCAST, pause=session.pause)
        if session.answers.closed:
            raise BadToken(NO_BROADCAST)
    except BaseException:
        viewers.remove(viewer)
        raise
    if earlier is not None:
        viewers.remove(earlier)
    session.broadcasts[table] = viewer
    answer: r.Result = r.Resumed(table=table, version=version, checkpoint=head)
    if state is not None:
        seen = Snapshot(version, state, edge, head)
        answer = r.State(table=table, **seen._asdict())
    session.answers.send_result(call, answer)
    await viewers.start(viewer, after=version if q.after is None else q.after)
