"""Requests that change who somebody is or what they are told, and those that only ask.

Each takes the session and the call, and gives the answer with what follows once it is written, so
that no event comes before the answer that it belongs behind.
"""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any, cast

import msgspec

from dealer.errors import (
    BadRequest,
    BadToken,
    DealerError,
    NotEntitled,
    Refused,
    Unavailable,
)
from dealer.game.commands import LeaveSeat, TakeSeat
from dealer.game.events import SeatTaken, TableOpened
from dealer.gateway import params as p
from dealer.gateway import results as r
from dealer.gateway import wire
from dealer.gateway.beginnings import (
    look,
    members,
    snapshot,
    standing_of,
    start_from,
    take_up,
)
from dealer.gateway.commands import deck_codes
from dealer.gateway.costs import COMMIT, written_text
from dealer.gateway.floor import Question, Reply
from dealer.gateway.places import Place
from dealer.gateway.views import Listing
from dealer.gateway.wire import Call
from dealer.service.founding import NEW, UNGUESSABLE

if TYPE_CHECKING:
    from dealer.gateway.session import Session

PROTOCOL = "dealer.v1"


async def table_open(session: Session, call: Call) -> Reply:
    q: p.TableOpen = call.params
    earlier = session.earlier(call)
    if earlier is not None:
        return Reply(earlier)
    service, places = session.floor.service, session.places
    places.require_room()
    rules, content = _rules(q), wire.content(call)
    with session.paying(written_text(content), table=True):
        resident, done = await service.open_table(
            rules, cmd=q.cmd, content=content, address=session.outlet.address
        )
    (opened,) = (event for event in done.events if isinstance(event, TableOpened))
    tokens = service.tokens_of(opened.key)
    places.host(places.get(resident.table_id) or Place(resident))
    answer = r.Opened(
        table=resident.table_id,
        host_token=tokens.host(resident.id),
        invite=tokens.invite(resident.id),
        version=done.version,
        origin=opened.origin,
        key=opened.key.hex(),
    )
    session.remember(call, answer)
    return Reply(answer)


async def table_join(session: Session, call: Call) -> Reply:
    q: p.TableJoin = call.params
    earlier = session.earlier(call)
    if earlier is not None:
        return Reply(earlier)
    places = session.places
    place = await places.find(q.table)
    passing = place.subscription is None
    _check_join(session, place, q)
    places.keep(place)
    try:
        seat, since = await _take_seat(session, call, place)
    except DealerError:
        if passing:
            places.leave(place)
        raise
    places.sit(place, seat=seat, since=since)
    tokens = session.floor.service.tokens_of(place.resident.table.key)
    token = tokens.seat(place.resident.id, seat=seat, since=since)
    place.tokens.add(token)
    seen = await look(session, place)
    answer = r.Joined(seat=seat, token=token, **members(place, seen))
    session.remember(call, answer)
    return Reply(answer, start_from(session, place, seen.version))


def _check_join(session: Session, place: Place, q: p.TableJoin) -> None:
    resident = place.resident
    if place.actor().seat is not None:
        raise BadRequest(f"You sit at seat {place.seat} of this table already.")
    if resident.table.rules.invited and not place.host:
        tokens = session.floor.service.tokens_of(resident.table.key)
        if q.invite is None or not tokens.is_invite(resident.id, q.invite):
            raise NotEntitled("A seat at this table needs its invitation; ask the host for it.")
    # After the invitation: a refusal for the version tells a stranger how far the table is.
    place.require_version(q.expect)


async def _take_seat(session: Session, call: Call, place: Place) -> tuple[int, int]:
    """The seat, and the version of its SeatTaken."""
    q: p.TableJoin = call.params
    resident = place.resident
    key = None if q.key is None else bytes.fromhex(q.key)
    # Whoever guessed another's id would be handed that seat; so only ids that nobody guesses
    # are known again on another connection.
    cmd = q.cmd if q.cmd is not None and len(q.cmd) >= UNGUESSABLE else None
    content = wire.content(call)
    with session.paying(written_text(content)):
        done = await session.floor.service.call(
            resident, TakeSeat(q.name, q.seat, key), cmd=cmd, scope=NEW, content=content
        )
    (taken,) = (event for event in done.events if isinstance(event, SeatTaken))
    player = resident.table.seats.get(taken.seat)
    if player is None or player.since != done.version:
        raise BadToken("The seat that this took was given up since; join again with a new cmd.")
    return taken.seat, done.version


async def table_watch(session: Session, call: Call) -> Reply:
    q: p.TableWatch = call.params
    place = await session.places.find(q.table, token=q.token)
    place.require_watching()
    session.places.keep(place)
    if q.after is not None:
        return await take_up(session, place, q.after)
    seen = await look(session, place)
    return Reply(r.State(**members(place, seen)), start_from(session, place, seen.version))


async def table_resume(session: Session, call: Call) -> Reply:
    q: p.TableResume = call.params
    place = await session.places.find(q.table, token=q.token)
    return await take_up(session, place, q.after)


async def session_hello(session: Session, call: Call) -> Reply:
    q: p.SessionHello = call.params
    standings, replies = [], []
    for announced in q.tokens:
        try:
            place = await session.places.find(announced.table, token=announced.token)
            after = place.resident.committed if announced.after is None else announced.after
            reply = await take_up(session, place, after)
        except DealerError as error:
            refused = error if isinstance(error, Refused) else Unavailable("Try again later.")
            standing = r.Standing(table=announced.table, error=wire.error_of(refused))
        else:
            standing = r.Standing(**msgspec.structs.asdict(reply.answer))
            replies.append(reply)
        standings.append(standing)
    server = r.Server(name="dealer", version=version(), protocol=PROTOCOL)

    def then() -> None:
        for reply in replies:
            reply.then()

    return Reply(r.Greeting(server=server, tables=standings), then)


async def session_refresh(session: Session, call: Call) -> Reply:
    places = [place for place in session.places.all() if place.may_watch()]
    return Reply(r.Standings(tables=[standing_of(place) for place in places]))


async def table_leave(session: Session, call: Call) -> Reply:
    """Who has a seat gives it up; who has none stops watching."""
    q: p.Command = call.params
    places = session.places
    place = await places.find(q.table, token=q.token)
    resident, actor = place.resident, place.actor()
    if actor.seat is None and place.subscription is None:
        place.require_watching()  # the answer has the table's version
    place.require_version(q.expect)
    version = resident.committed
    if actor.seat is not None:
        scope, content = f"seat:{actor.seat}:{place.since}", wire.content(call)
        with session.paying(COMMIT):
            done = await session.floor.service.call(
                resident, LeaveSeat(actor), cmd=q.cmd, scope=scope, content=content
            )
        version = done.version
    if not place.host:
        places.leave(place)
    return Reply(r.Changed(version=version))


async def table_list(session: Session, call: Call) -> Reply:
    listed = cast("list[Listing]", await session.floor.service.lobby.tables())
    return Reply(r.Tables(tables=listed))


async def table_state(session: Session, call: Call) -> Reply:
    place = await session.places.find(call.params.table, token=call.params.token)
    place.require_watching()
    seen = await snapshot(session, place)
    return Reply(r.State(**members(place, seen)))


async def table_presence(session: Session, call: Call) -> Reply:
    """Who is here; and from then on, on this connection, whenever that changes."""
    places = session.places
    place = await places.find(call.params.table, token=call.params.token)
    place.require_watching()
    return Reply(*session.floor.pump.presence.ask(places.keep(place)))


async def table_cosign(session: Session, call: Call) -> Reply:
    q: p.TableCosign = call.params
    place = await session.places.find(q.table, token=q.token)
    if place.actor().seat is None:
        raise NotEntitled("Only who has a seat at this table cosigns its checkpoints.")
    with session.paying(COMMIT):
        size, _ = await session.floor.service.cosign(place.resident, q.cosignature)
    return Reply(r.Cosigned(version=place.resident.committed, size=size))


async def audit_bundle(session: Session, call: Call) -> Reply:
    place = await session.places.find(call.params.table, token=call.params.token)
    place.require_watching()
    resident = place.resident
    url = f"/tables/{resident.table_id}/bundle.jsonl"
    return Reply(r.Bundle(url=url, version=resident.committed))


async def ping(session: Session, call: Call) -> Reply:
    return Reply(r.Pong(at=session.floor.service.now()))


async def rpc_discover(session: Session, call: Call) -> Reply:
    from dealer.gateway.described import document  # made when the first one asks, not before

    return Reply(document())


def version() -> str:
    """This program's."""
    try:
        return metadata.version("dealer")
    except metadata.PackageNotFoundError:  # run from a checkout that was never installed
        return "0"


def _rules(q: p.TableOpen) -> dict[str, Any]:
    """The rules object as it goes into the log, the other parameters in it."""
    rules = dict(q.rules or {})
    given = {"deck": q.deck, "seats": q.seats, "name": q.name}
    rules |= {key: msgspec.to_builtins(value) for key, value in given.items() if value is not None}
    deck_codes(rules.get("deck"))
    return rules


QUESTIONS: dict[str, Question] = {
    "table.open": Question(p.TableOpen, (r.Opened,), table_open),
    "table.join": Question(p.TableJoin, (r.Joined,), table_join),
    "table.watch": Question(p.TableWatch, (r.State, r.Resumed), table_watch),
    "table.resume": Question(p.TableResume, (r.Resumed,), table_resume),
    "table.leave": Question(p.Command, (r.Changed,), table_leave),
    "table.list": Question(p.Params, (r.Tables,), table_list),
    "table.state": Question(p.OfTable, (r.State,), table_state),
    "table.presence": Question(p.OfTable, (r.Presence,), table_presence),
    "table.cosign": Question(p.TableCosign, (r.Cosigned,), table_cosign, automatic=True),
    "audit.bundle": Question(p.OfTable, (r.Bundle,), audit_bundle),
    "session.hello": Question(p.SessionHello, (r.Greeting,), session_hello),
    "session.refresh": Question(p.Params, (r.Standings,), session_refresh),
    "rpc.discover": Question(p.Params, (r.Document,), rpc_discover),
    "ping": Question(p.Params, (r.Pong,), ping),
}
