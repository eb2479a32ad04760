"""Start of a subscription: from a snapshot, or after the last version that the client has seen.

The events that follow an answer are sent after it, so a method first makes the answer and then
starts the stream. Meanwhile a stream that already runs is paused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dealer.gateway.presence.membership import Membership
from dealer.gateway.session.session import Session
from dealer.gateway.wire import protocol as wire
from dealer.gateway.wire import results as r
from dealer.service import Snapshot


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
            session.answers.send(wire.notification("snapshot", self.reset))
        start_stream(session, self.membership, self.after, say_resumed=True)


async def take_snapshot(session: Session, membership: Membership) -> Snapshot:
    """The table as this client may see it; a stream that already runs is sent up to its version."""
    backlog, subscription = session.context.backlog, session.add(membership)
    await _subscribe_as_seat(session, membership)
    with backlog.paused(subscription):
        seen = await snapshot(session, membership)
        _show_faces(session, membership)
        await backlog.send_until(subscription, upto=seen.version)
    return seen


async def snapshot(session: Session, membership: Membership) -> Snapshot:
    """The table as this client may see it, with a permit of the client's address.

    It shows what the seat may see that the membership has at the end.
    """
    async with session.permit():
        while True:
            await membership.seat.wait_committed()
            viewer = membership.seat.holder
            seen = await session.context.service.checkpoints.snapshot(membership.live_table, viewer)
            if membership.seat.refresh() == viewer:
                return seen


async def resume(session: Session, membership: Membership, after: int) -> Resumption:
    """Continue after a version with events, or with a snapshot if they cannot be sent."""
    context, live_table = session.context, membership.live_table
    subscription = session.add(membership)
    await _subscribe_as_seat(session, membership)
    context.metrics.resumes += 1
    version = live_table.committed
    with context.backlog.paused(subscription):
        if after > version or version - after > context.limits.resume:
            return await _resume_from_snapshot(session, membership, after)
        size, note = await context.service.checkpoints.head(live_table)
        await _subscribe_as_seat(session, membership)  # the player may have moved meanwhile
    table = live_table.table_id
    answer = r.Resumed(checkpoint=note, **seat_and_host(membership), table=table, version=size)
    return Resumption(membership, answer, after)


async def _resume_from_snapshot(session: Session, membership: Membership, after: int) -> Resumption:
    context, live_table = session.context, membership.live_table
    context.metrics.resets += 1
    seen = await snapshot(session, membership)
    _show_faces(session, membership)
    acting = seat_and_host(membership)
    proof: list[str] | None = None
    if after == 0:
        proof = []  # every log is consistent with the empty one
    elif after <= seen.version:
        async with session.permit():
            proof = await context.service.consistency.proof(
                live_table, old=after, new=seen.version, edge=seen.edge, pause=session.pause
            )
    answer = r.Resumed(
        checkpoint=seen.checkpoint,
        reset=True,
        table=live_table.table_id,
        version=seen.version,
        **acting,
    )
    reset = r.Snapshot(reset=True, proof=proof, **members(membership, seen))
    return Resumption(membership, answer, seen.version, reset)


async def _subscribe_as_seat(session: Session, membership: Membership) -> None:
    await membership.seat.wait_committed()
    _show_faces(session, membership)


def _show_faces(session: Session, membership: Membership) -> None:
    """Push the faces of the seat that this connection acts for."""
    holder = membership.seat.holder
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
        session.context.backlog.start(subscription, after=version, say_resumed=say_resumed)


def members(membership: Membership, seen: Snapshot) -> dict[str, Any]:
    """The members of a result that contains a snapshot."""
    return {"table": membership.live_table.table_id, **seen._asdict()}


def seat_and_host(membership: Membership) -> dict[str, Any]:
    """The members of a result that says who the connection is at a table."""
    holder = membership.seat.holder
    return {"seat": None if holder is None else holder.seat, "host": membership.host or None}
