"""Methods of broadcasts: make and take back a link, and watch a table by one."""

from __future__ import annotations

from dealer.errors import BadRequest, NotHost, TooEarly
from dealer.eventlog.services import HOST
from dealer.game.decide.permission import is_host
from dealer.gateway.presence.membership import require_right
from dealer.gateway.session.session import Session
from dealer.gateway.wire import params as p
from dealer.gateway.wire import results as r
from dealer.gateway.wire.protocol import Call
from dealer.service import LiveTable


async def link(session: Session, call: Call) -> None:
    """Make a link to the table's broadcast; again it is the same one, until it is taken back."""
    made = await session.context.service.broadcasts.link(*await _owner(session, call.params))
    session.answers.send_result(call, r.BroadcastLink(link=made))


async def revoke(session: Session, call: Call) -> None:
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


async def watch(session: Session, call: Call, link: str) -> None:
    """Answer `table.watch` as of the newest version that is old enough; the events follow.

    Raises TooEarly before the broadcast has begun, or if another node has shown more.
    """
    q: p.TableWatch = call.params
    service = session.context.service
    table = q.table or session.named
    if table is None or q.token is not None:
        raise BadRequest("A broadcast is watched with `table` and `link`, and without a token.")
    broadcast, after = await service.broadcasts.find(table, link), q.after or 0
    subscription = session.watch(broadcast)
    async with session.permit():
        await service.broadcasts.advance(broadcast)
    if max(1, after) > broadcast.committed:
        if session.broadcasts.get(table) is subscription:
            session.context.backlog.end(session.broadcasts.pop(table))
        raise TooEarly("This table's broadcast has not come that far; try again shortly.")
    version, head = await service.checkpoints.head(broadcast)
    session.answers.send_result(call, r.Resumed(table=table, version=version, checkpoint=head))
    session.context.backlog.start(subscription, after=after)
