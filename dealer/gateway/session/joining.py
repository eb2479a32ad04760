"""Methods that change what a connection is at a table: open, join, watch, resume, leave."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec

from dealer.errors import BadRequest, BadToken, CommandReused, NotEntitled, UnknownTable
from dealer.game.commands import LeaveSeat
from dealer.game.events import TableOpened
from dealer.game.rules import BROADCAST
from dealer.game.state import Round
from dealer.gateway.presence.membership import Membership, require_right
from dealer.gateway.rate_limit import costs
from dealer.gateway.session import broadcasting
from dealer.gateway.session.commands import deck_codes
from dealer.gateway.session.repeats import command_key
from dealer.gateway.session.seating import seat_for
from dealer.gateway.session.session import Session
from dealer.gateway.wire import params as p
from dealer.gateway.wire import protocol as wire
from dealer.gateway.wire import results as r
from dealer.gateway.wire.protocol import Call
from dealer.service import CommandResult, LiveTable, Snapshot
from dealer.service.identity.service_tables import Owner, opening_key
from dealer.service.tables.execution import ANONYMOUS_SCOPE, failed
from dealer.version import __version__


async def table_open(session: Session, call: Call) -> None:
    """Open a table; this connection is its host, or acts there by its service key."""
    q: p.TableOpen = call.params
    if (answered := session.repeatable.find(call)) is not None:
        session.answers.send_result(call, answered)
        return
    session.require_room()
    _require_may_open(session, q)
    live_table, done = await _open(session, call)
    (opened,) = (event for event in done.events if isinstance(event, TableOpened))
    tokens, owner = session.context.service.tokens.of(opened.key), session.service_key
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
    session.repeatable.add(call, answer)
    session.answers.send_result(call, answer)


def _require_may_open(session: Session, q: p.TableOpen) -> None:
    if session.service_key is not None:
        require_right(session.service_key, "open")
    elif q.ref is not None:
        raise BadRequest("A `ref` needs a service key: it is the id of a service for its table.")
    elif not q.host:
        raise BadRequest("Only a service, with a service key, opens a table without a host token.")
    elif not session.context.players_open:
        raise NotEntitled(
            "On this server only services open tables: open the link that you were given."
        )


async def _open(session: Session, call: Call) -> tuple[LiveTable, CommandResult]:
    q: p.TableOpen = call.params
    service, owner = session.context.service, session.service_key
    content, laid_out = wire.content(call), None
    written = costs.text_bytes_written(content)
    key = command_key(call, ANONYMOUS_SCOPE)
    if owner is not None:
        key = opening_key(owner, ref=q.ref, cmd=q.cmd, content=content)
    rules = _rules(q)
    # A repetition has the first answer, whatever has become of its source, and whatever games and
    # packs this node has.
    depends = q.source is not None or not rules.keys().isdisjoint(("game", "pack"))
    if depends and not await service.was_opened(key):
        if q.source is None:
            rules = session.context.catalogue.rules_for(rules)
            written += costs.text_bytes_written(json.dumps(rules.get("deck")).encode())
        else:
            rules, laid_out = await _practice(session, q, q.source)
            written += costs.practice_bytes_written(len(laid_out.opened))
    if owner is None:
        address = session.transport.address
        with session.charged(written, decks=1):
            return await service.open_table(rules, key=key, address=address, laid_out=laid_out)
    try:
        with session.charged(written):
            # Without an address: the lobby's bound on the tables of one network is for players.
            return await service.open_table(
                rules, key=key, owner=Owner(owner.id, q.ref), laid_out=laid_out
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


async def _practice(
    session: Session, q: p.TableOpen, source: p.PracticeFrom
) -> tuple[dict[str, Any], Round]:
    """The rules of a practice table, which are its source's, and the round to lay out.

    Who may not see the source learns no more than that it cannot be played on from.
    """
    own = q.rules or {}
    if q.deck is not None or q.seats is not None or own.keys() - {BROADCAST}:
        raise BadRequest(
            "A practice table has its source's rules: leave out deck, seats and rules, all but "
            f"`{BROADCAST}`."
        )
    known, past = tuple(session.memberships), session.context.service.past_states
    try:
        membership = await session.find(source.table, token=source.token)
        membership.require_watching()
    except (UnknownTable, NotEntitled, BadToken):
        raise UnknownTable(
            "There is no table with that id from which you may play on; check the id, and give the "
            "token of your seat if the table is private."
        ) from None
    live_table = membership.live_table
    try:
        with live_table.held():
            version = await past.moment(live_table, source.round, source.version)
            session.charge(costs.past_state_weight(past.length(live_table, version)))
            async with session.permit():
                rules, round_ = await past.practice(
                    live_table, source.round, version, pause=session.pause
                )
    finally:
        if live_table.table_id not in known:  # a token was given for this request alone
            session.leave(membership)
    session.charge(2 * len(round_.opened) / 52)  # a deck to seal, and its shuffle
    return rules | own | ({} if q.name is None else {"name": q.name}), round_


async def table_join(session: Session, call: Call) -> None:
    """Take a seat, with a name, a ticket or a JWT; the events after the returned version follow."""
    q: p.TableJoin = call.params
    if (answered := session.repeatable.find(call)) is not None:
        session.answers.send_result(call, answered)
        return
    membership = await session.find(q.table)
    temporary, seated = membership.subscription is None, membership.seat.holder is not None
    subscription = session.add(membership)
    try:
        holder = await seat_for(session, call, membership)
        session.take_seat(membership, holder)
        live_table = membership.live_table
        tokens = session.context.service.tokens.of(live_table.table.key)
        token = tokens.seat(live_table.id, seat=holder.seat, since=holder.taken_at)
        membership.seat.tokens.add(token)
        seen = await take_snapshot(session, membership)
    except Exception:
        # As before, so that the same request can be sent again: the seat may be taken on disk.
        if temporary:
            session.leave(membership)
        elif not seated:
            membership.release_seat()
        raise
    seat = (subscription.viewer or holder).seat  # another one if the player has moved meanwhile
    answer = r.Joined(seat=seat, token=token, **members(membership, seen))
    session.repeatable.add(call, answer)
    session.answers.send_result(call, answer)
    start_stream(session, membership, seen.version)


async def table_watch(session: Session, call: Call) -> None:
    """Watch a table without a seat, from now on or from after the last version seen."""
    q: p.TableWatch = call.params
    if q.link is not None:
        await broadcasting.watch(session, call, q.link)
        return
    membership = await session.find(q.table, token=q.token)
    membership.require_watching()
    if q.after is not None:
        await _answer_resume(session, call, membership, q.after)
        return
    seen = await take_snapshot(session, membership)
    session.answers.send_result(call, r.State(**members(membership, seen)))
    start_stream(session, membership, seen.version)


async def table_resume(session: Session, call: Call) -> None:
    """Resume with a token; the events after the last one seen follow."""
    q: p.TableResume = call.params
    membership = await session.find(q.table, token=q.token)
    await _answer_resume(session, call, membership, q.after)


async def _answer_resume(session: Session, call: Call, membership: Membership, after: int) -> None:
    resumption = await resume(session, membership, after)
    session.answers.send_result(call, resumption.answer)
    resumption.start(session)


async def session_hello(session: Session, call: Call) -> None:
    """Identify the server, and resume several tables at once."""
    q: p.SessionHello = call.params
    session.charge(max(len(q.tokens) - 1, 0))
    if q.key is not None:
        session.identify(q.key)
    statuses: list[r.TableStatus] = []
    resumptions: list[Resumption] = []
    for given in q.tokens:
        try:
            membership = await session.find(given.table, token=given.token)
            after = membership.live_table.committed if given.after is None else given.after
            resumption = await resume(session, membership, after)
        except Exception as error:  # also a bug: the tables before it are paused until the answer
            refused = wire.error_of(failed("resuming a table failed", error))
            statuses.append(r.TableStatus(table=given.table, error=refused))
        else:
            statuses.append(r.TableStatus(**msgspec.structs.asdict(resumption.answer)))
            resumptions.append(resumption)
    server = r.Server(name="dealer", version=__version__, protocol=wire.PROTOCOL)
    by_table = None if session.context.service.hints is None else True
    at = session.context.service.now()
    session.answers.send_result(
        call, r.HelloResult(server=server, tables=statuses, by_table=by_table, at=at)
    )
    for resumption in resumptions:
        resumption.start(session)


async def table_leave(session: Session, call: Call) -> None:
    """Leave the seat, and the table; a host who left a seat stays, one without a seat leaves.

    The result has `host` if this connection stays.
    """
    q: p.Command = call.params
    membership = await session.find(q.table, token=q.token)
    live_table, actor = membership.live_table, membership.actor()
    if actor.seat is None:
        if (answered := session.repeatable.find(call)) is not None:
            session.answers.send_result(call, answered)
            return
        if membership.subscription is None:
            membership.require_watching()  # the answer contains the table's version
    membership.require_version(q.expect)
    version, stays = live_table.committed, False
    if actor.seat is not None:
        stays = membership.host
        key = command_key(call, membership.scope())
        with session.charged(costs.BYTES_PER_COMMIT):
            absence = await session.context.absences.at_command(live_table)
            command = LeaveSeat(actor, absence)
            done = await session.context.service.execute(live_table, command, key=key)
        version = done.version
    if not stays:
        session.leave(membership)
    answer = r.Left(version=version, host=stays or None)
    if stays:
        session.repeatable.add(call, answer)  # a repetition would leave the table, too
    session.answers.send_result(call, answer)


# Start of a subscription: from a snapshot, or after the last version that the client has seen.
#
# The events that follow an answer are sent after it, so a method first makes the answer and then
# starts the stream. Meanwhile a stream that already runs is paused.


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
    table = live_table.table_id
    answer = r.Resumed(
        checkpoint=seen.checkpoint, reset=True, table=table, version=seen.version, **acting
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
