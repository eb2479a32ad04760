"""Method `feed.follow`: the events of a service key's tables, as notifications."""

from __future__ import annotations

from dealer.errors import BadRequest, NotEntitled
from dealer.feed.positions import START
from dealer.gateway.push.feeds import FeedFollower
from dealer.gateway.rpc.session import Session
from dealer.gateway.wire import params as p
from dealer.gateway.wire import results as r
from dealer.gateway.wire.protocol import Call
from dealer.service.feed_access import feed_filter


async def feed_follow(session: Session, call: Call) -> None:
    """Follow the events of the service key's tables; a connection follows one feed at a time."""
    q: p.FeedFollow = call.params
    key, feed = session.service_key, session.context.service.feed
    if key is None:
        raise NotEntitled("Only a connection with a service key can follow the feed.")
    filter = await feed_filter(session.context.service, key, table=q.table, types=q.type or [])
    try:
        place = await feed.place(START if q.after is None else q.after)
    except ValueError:
        raise BadRequest("`after` is not a position.") from None
    if session.feed is not None:
        session.context.feeds.end(session.feed)
    if session.closed:
        return
    session.feed = FeedFollower(session.transport, key, filter, place)
    session.answer(call, r.Following(position=feed.generations.text(place)))
    session.context.feeds.start(session.feed)
