"""Methods that read or follow, and `table.cosign`."""

from __future__ import annotations

from typing import Any, cast

from dealer.errors import BadRequest, NotEntitled
from dealer.feed.positions import START
from dealer.gateway.presence.membership import Membership, require_right
from dealer.gateway.push.feeds import FeedFollower
from dealer.gateway.rate_limit.costs import BYTES_PER_COMMIT, past_state_weight
from dealer.gateway.session.joining import members, seat_and_host, snapshot
from dealer.gateway.session.session import Session
from dealer.gateway.wire import params as p
from dealer.gateway.wire import results as r
from dealer.gateway.wire.protocol import Call
from dealer.gateway.wire.views import ServiceTableListing, TableListing, View
from dealer.service.identity.service_keys import ServiceKey
from dealer.service.identity.service_tables import feed_filter, list_tables

LISTED_PER_MESSAGE = 50
"""Tables of a service that a list may have for the cost of one more message."""


async def session_refresh(session: Session, call: Call) -> None:
    """The tables of this connection, and its role at each."""
    for membership in tuple(session.memberships.values()):
        await membership.seat.wait_committed()
    watched = [each for each in session.memberships.values() if each.may_watch()]
    tables = [
        r.TableStatus(
            table=each.live_table.table_id, version=each.live_table.committed, **seat_and_host(each)
        )
        for each in watched
    ]
    session.answers.send_result(call, r.TableStatuses(tables=tables))


async def table_list(session: Session, call: Call) -> None:
    """The open tables, or the closed ones, newest first; for a service its own tables, by page."""
    q: p.TableList = call.params
    if session.service_key is not None:
        await _list_own(session, call, session.service_key)
        return
    closed = q == p.TableList(state="closed")
    if not closed and q != p.TableList():
        raise BadRequest(
            "Only a service, with a service key, lists tables with parameters; without one `state` "
            "may be closed."
        )
    context = session.context
    if closed and not context.players_list_closed:
        raise NotEntitled(
            "This server lists no finished tables: open the link that you were given."
        )
    if not closed and not context.players_list:
        raise NotEntitled("This server lists no tables: open the link that you were given.")
    listing = context.service.finished if closed else context.service.lobby
    tables = cast("list[TableListing]", await listing.tables())
    session.answers.send_result(call, r.Tables(tables=tables))


async def _list_own(session: Session, call: Call, key: ServiceKey) -> None:
    q: p.TableList = call.params
    require_right(key, "read")
    async with session.permit():
        page = await list_tables(
            session.context.service.log, key, ref=q.ref, state=q.state, after=q.after, limit=q.limit
        )
    session.charge(len(page.tables) / LISTED_PER_MESSAGE)
    tables = cast("list[ServiceTableListing]", page.tables)
    session.answers.send_result(call, r.ServiceTables(tables=tables, next=page.next))


async def table_state(session: Session, call: Call) -> None:
    """The table as this viewer may see it, or could see it at an earlier version."""
    q: p.TableState = call.params
    membership = await _find(session, q)
    if q.seat is not None:
        if membership.service is None:
            raise NotEntitled("Only a service reads a player's cards, at its own tables.")
        require_right(membership.service, "read")
        if q.at is None:
            raise BadRequest("Say in `at` at which version you want to see the cards of this seat.")
    if q.at is not None:
        await _past_state(session, call, membership, q.at, q.seat)
        return
    seen = await snapshot(session, membership)
    await _add_subjects(session, membership, seen.state)
    session.answers.send_result(call, r.State(**members(membership, seen)))


async def _past_state(
    session: Session, call: Call, membership: Membership, version: int, seat: int | None
) -> None:
    past, live_table = session.context.service.past_states, membership.live_table
    past.require(live_table, version)
    session.charge(past_state_weight(past.length(live_table, version)))
    async with session.permit():
        await membership.seat.wait_committed()
        viewer = membership.seat.holder if seat is None else seat
        state = await past.view(live_table, version, viewer, pause=session.pause)
        await _add_subjects(session, membership, state)
    view = cast("View", state)
    session.answers.send_result(
        call, r.PastState(table=live_table.table_id, version=version, state=view)
    )


async def _add_subjects(session: Session, membership: Membership, state: dict[str, Any]) -> None:
    """Add a service's own ids of its users to the seats of a state that it reads by its rights."""
    service, subjects = membership.service, session.context.service.feed.subjects
    if service is None or not service.may("read") or not membership.is_spectator():
        return
    for seat in state["seats"]:
        subject = await subjects.of(membership.live_table.id, seat["since"])
        if subject is not None and ("admin" in service.rights or subject.key == service.id):
            seat["subject"] = subject.text


async def feed_follow(session: Session, call: Call) -> None:
    """Follow the events of the service key's tables; a connection follows one feed at a time."""
    q: p.FeedFollow = call.params
    key, feed = session.service_key, session.context.service.feed
    if key is None:
        raise NotEntitled("Only a connection with a service key can follow the feed.")
    filter = await feed_filter(session.context.service.log, key, table=q.table, types=q.type or [])
    try:
        place = await feed.place(START if q.after is None else q.after)
    except ValueError:
        raise BadRequest("`after` is not a position.") from None
    if session.feed is not None:
        session.context.feeds.end(session.feed)
    if session.answers.closed:
        return
    session.feed = FeedFollower(session.transport, key, filter, place)
    session.answers.send_result(call, r.Following(position=feed.generations.text(place)))
    session.context.feeds.start(session.feed)


async def table_presence(session: Session, call: Call) -> None:
    """The live connections of a table; a notification follows whenever they change."""
    membership = await _find(session, call.params)
    presence = session.context.presence
    subscription = session.add(membership)
    attendance = presence.observe(membership.live_table)
    session.answers.send_result(call, attendance)
    presence.follow(subscription, attendance)


async def table_cosign(session: Session, call: Call) -> None:
    """Cosign a checkpoint with the key that the seat was taken with."""
    q: p.TableCosign = call.params
    membership = await session.find(q.table, token=q.token)
    if membership.seat.holder is None:
        raise NotEntitled("Only players with a seat at this table can cosign its checkpoints.")
    with session.charged(BYTES_PER_COMMIT):
        checkpoints = session.context.service.checkpoints
        size, _ = await checkpoints.cosign(membership.live_table, q.cosignature)
    session.answers.send_result(
        call, r.Cosigned(version=membership.live_table.committed, size=size)
    )


async def audit_bundle(session: Session, call: Call) -> None:
    """The address where a verifier downloads the whole log."""
    live_table = (await _find(session, call.params)).live_table
    url = f"/tables/{live_table.table_id}/bundle.jsonl"
    session.answers.send_result(call, r.Bundle(url=url, version=live_table.committed))


async def ping(session: Session, call: Call) -> None:
    """Check that the server answers, and read its clock."""
    session.answers.send_result(call, r.Pong(at=session.context.service.now()))


async def rpc_discover(session: Session, call: Call) -> None:
    """This document."""
    session.answers.send_result(call, session.context.document())


async def _find(session: Session, q: p.OfTable) -> Membership:
    """The membership at a table that this client may see."""
    membership = await session.find(q.table, token=q.token)
    membership.require_watching()
    return membership
