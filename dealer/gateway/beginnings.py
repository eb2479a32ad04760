"""Where a guest begins to be told of a table: at a snapshot, or after the last version they saw."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from dealer.gateway import results as r
from dealer.gateway import wire
from dealer.gateway.costs import COMMIT
from dealer.gateway.floor import Reply
from dealer.gateway.places import Place
from dealer.service import Snapshot

if TYPE_CHECKING:
    from dealer.gateway.session import Session


async def look(session: Session, place: Place) -> Snapshot:
    """The table as this guest may know it; who was told its events before is told up to there."""
    pump, subscription = session.floor.pump, session.places.keep(place)
    _look_from_seat(session, place)
    with pump.stopped(subscription):
        seen = await snapshot(session, place)
        await pump.bring(subscription, upto=seen.version)
    return seen


async def snapshot(session: Session, place: Place) -> Snapshot:
    """The table as this client may know it, when it is the turn of the client's address."""
    async with session.turn():
        return await session.floor.service.snapshot(place.resident, place.viewer())


async def take_up(session: Session, place: Place, after: int) -> Reply:
    """The events after a version, or a snapshot where they cannot be sent."""
    floor, resident = session.floor, place.resident
    subscription = session.places.keep(place)
    _look_from_seat(session, place)
    floor.metrics.resumes += 1
    head = resident.committed
    with floor.pump.stopped(subscription):
        if after > head or head - after > floor.limits.resume:
            return await _start_afresh(session, place, after)
        paid = partial(session.pay, COMMIT)
        size, note = await floor.service.checkpoint(resident, writing=paid)
    answer = r.Resumed(checkpoint=note, **role(place), table=resident.table_id, version=size)
    return Reply(answer, start_from(session, place, after, say_resumed=True))


def _look_from_seat(session: Session, place: Place) -> None:
    viewer = place.viewer()
    if viewer.seat is not None:
        subscription = session.places.keep(place)
        session.floor.pump.take_seat(subscription, seat=viewer.seat, since=viewer.since)


async def _start_afresh(session: Session, place: Place, after: int) -> Reply:
    floor, resident = session.floor, place.resident
    floor.metrics.resets += 1
    seen = await snapshot(session, place)
    proof: list[str] | None = None
    if after == 0:
        proof = []  # every log continues the empty one
    elif after <= seen.version:
        async with session.turn():
            proof = await floor.service.consistency(
                resident, after, seen.version, pause=session.pause
            )
    reset = r.Reset(reset=True, proof=proof, **members(place, seen))
    answer = r.Resumed(
        checkpoint=seen.checkpoint,
        reset=True,
        table=resident.table_id,
        version=seen.version,
        **role(place),
    )
    begin = start_from(session, place, seen.version, say_resumed=True)

    def then() -> None:
        session.send(wire.notification("snapshot", reset))
        begin()

    return Reply(answer, then)


def start_from(
    session: Session, place: Place, version: int, *, say_resumed: bool = False
) -> Callable[[], None]:
    subscription = session.places.keep(place)
    return partial(session.floor.pump.start, subscription, after=version, say_resumed=say_resumed)


def members(place: Place, seen: Snapshot) -> dict[str, Any]:
    return {"table": place.resident.table_id, **seen._asdict()}


def role(place: Place) -> dict[str, Any]:
    return {"seat": place.actor().seat, "host": place.host or None}


def standing_of(place: Place) -> r.Standing:
    resident = place.resident
    return r.Standing(table=resident.table_id, version=resident.committed, **role(place))
