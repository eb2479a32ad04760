"""One table's session: verifies its frames, sends automatic requests and wakes waiting callers.

Frames are verified before any caller sees them. If the server cheats, the client leaves the table
permanently: the evidence is stored, and waiting callers get HouseCheated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NoReturn

from dealer.client.auto_responder import AutoResponder
from dealer.client.connection import Connection
from dealer.client.event_stream import EventStream
from dealer.client.event_verifier import EventVerifier, Evidence, TableEvent
from dealer.client.markers import Markers
from dealer.client.requests import Answered, Members, forget
from dealer.client.storage import NO_SEAT, TableStore
from dealer.client.verified_log import Gap
from dealer.errors import BadToken, DealerError, HouseCheated, SessionEnded
from dealer.game.events import Event, SeatGivenUp, SeatTaken, TableClosed
from dealer.game.state import SeatHolder
from dealer.proof.checkpoint import Cosigner

RESUMES_MAX = 4
"""How often a missing event is requested again before this client leaves the table."""

SUPERSEDED = 4409
"""The close code of a connection whose seat a newer connection took."""

Predicate = Callable[[], bool]
OnEvent = Callable[[str, TableEvent], None]
"""Called with a table's id and each of its verified events."""


class OwnSeat:
    """Keeps the seat of `verifier`, and what the record in `store` says of it.

    It is given up by an event, or changed when the player moves: by a note of the kind `seat_move`
    and, in the same append, SeatLeft and SeatTaken. The token stays valid, and the states of
    server and client follow the player (`Table.latest`).
    """

    def __init__(self, verifier: EventVerifier, store: TableStore) -> None:
        self._verifier = verifier
        self._store = store
        verifier.seat = store.record.get("seat")

    def follow(self, event: Event, version: int) -> bool:
        """Follow an event that was verified; whether the player has moved by it."""
        seat, since = self._verifier.seat, self._store.record.get("since") or 0
        if seat is None or version <= since:  # an earlier version is of an earlier player
            return False
        holder = SeatHolder(seat, since)
        latest = self._verifier.state.latest(holder)
        if isinstance(event, SeatTaken) and version == latest.taken_at:
            self._sit(latest)
            return True
        if isinstance(event, SeatGivenUp) and event.seat == seat and latest == holder:
            self.release()
        return False

    def return_to(self, seat: int | None) -> None:
        """After a snapshot: sit where the server says that the token's player sits."""
        holder = self._verifier.state.holder(seat)
        if self._verifier.seat is not None and holder is not None:
            self._sit(holder)

    def share(self) -> None:
        """Store that other clients may play this seat: with its token, or its player's ticket."""
        if self._store.record.get("token"):
            self._store.update(shared=True)

    def release(self) -> None:
        """Forget the seat and its token, which is no longer valid."""
        self._store.update(**NO_SEAT)
        self._verifier.seat = None

    def _sit(self, holder: SeatHolder) -> None:
        self._verifier.seat = holder.seat
        self._store.update(seat=holder.seat, since=holder.taken_at)


class TableSession:
    """A client's session at one table; with a broadcast `link` it watches, later, by that."""

    def __init__(
        self,
        table_id: str,
        connection: Connection,
        store: TableStore,
        *,
        key: bytes | None,
        cosigner: Cosigner | None,
        link: str | None = None,
        on_event: OnEvent | None = None,
    ) -> None:
        self._on_event = on_event
        self._link = link
        self.id = table_id
        self.connection = connection
        self.store = store
        self.verifier: EventVerifier = EventVerifier(table_id, key=key, saved=store.heads)
        self.own_seat: OwnSeat = OwnSeat(self.verifier, store)
        self.responder: AutoResponder = AutoResponder(table_id, store, cosigner)
        self.events: EventStream = EventStream()
        self.markers: Markers = Markers()
        self.cosigned: int = 0  # size of the newest checkpoint whose cosignature was accepted
        self.evidence: Evidence | None = None
        self.error: DealerError | None = None
        self._waiting: list[tuple[Predicate, asyncio.Future[None]]] = []
        self._resumes: list[asyncio.Future[Members]] = []  # pending resumes
        self._resumed_after = 0  # `after` of the resume answered last
        self._resumed_seat: int | None = None  # the seat that it gave
        self._started: asyncio.Future[Members] = asyncio.Future()
        self._target = 0  # the newest version that the server announced
        self._gap = (0, 0)  # version before a gap, and how often it occurred
        # The round and the beginning of the seat for which the left hand was asked for.
        self._hand_asked: tuple[int, int] | None = None

    @property
    def token(self) -> str | None:
        """The stored token of this player's seat."""
        return self.store.record.get("token")

    @property
    def host_token(self) -> str | None:
        """The stored host token."""
        return self.store.record.get("host_token")

    @property
    def over(self) -> bool:
        """Whether the table is closed: no more events will come."""
        return self.verifier.state.closed

    async def until(self, predicate: Predicate, seconds: float | None = None) -> None:
        """Wait until `predicate` is true; it is evaluated after every event."""
        if self.error is not None:
            raise self.error
        if not predicate():
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((predicate, future))
            try:
                async with asyncio.timeout(seconds):
                    await future
            except TimeoutError as error:
                raise TimeoutError(
                    f"The condition was not true within {seconds} s. A state that has passed before"
                    " the call is not noticed."
                ) from error

    def ask(
        self, method: str, params: Members, *, changes: bool, answered: Answered | None = None
    ) -> asyncio.Future[Members]:
        """Send a request about this table, as soon as the socket is subscribed to it.

        `answered` is called with the result before any later frame is read.
        """
        if self.error is not None:
            raise self.error
        asked = self.connection.ask(
            method, params | {"table": self.id}, table=self.id, changes=changes, answered=answered
        )
        if self.over and self.id not in self.connection.attached and not self._resuming:
            self.attach()  # a closed table is not resumed on a new socket before it is needed
        return asked

    def end(self, error: DealerError | None) -> None:
        """End the session: event streams end and waiting callers get the error."""
        if self.connection.handlers.get(self.id, self) is self:  # else another session follows it
            self.connection.drop(self.id, error or DealerError("You have left this table."))
        if self.error is not None:
            return
        if isinstance(error, SessionEnded) and error.code == SUPERSEDED:
            # Another client plays this seat, and commits to bytes that this one does not know.
            self.own_seat.share()
        self.error = error or DealerError("You have left this table.")
        for asked in self._resumes:
            asked.cancel()
        self.events.end(error)
        if not self._started.done():
            self._started.set_exception(self.error)
            self._started.exception()
        waiting, self._waiting = self._waiting, []
        for _, future in waiting:
            if not future.done():
                future.set_exception(self.error)

    async def start(self) -> Members:
        """Subscribe to this table from its first event; the answer to the resume."""
        self._started = asyncio.get_running_loop().create_future()
        self.connection.handlers[self.id] = self
        self.attach()
        return await self._started

    def attach(self) -> None:
        """Resume after the last event, as seat, host or spectator."""
        for earlier in self._resumes:
            earlier.cancel()
        # The seat first: a host without the seat gets the same events without the seat's cards.
        tokens = [token for token in (self.token, self.host_token) if token]
        if tokens:
            self._resumes = [self._resume(token, last=token == tokens[-1]) for token in tokens]
        else:
            self._resumes = [self._resume(None, last=True)]

    @property
    def _resuming(self) -> bool:
        return not all(asked.done() for asked in self._resumes)

    def _resume(self, token: str | None, *, last: bool) -> asyncio.Future[Members]:
        after = self.verifier.log.resume_after()

        def answered(result: Members) -> None:
            self._target, self._resumed_after = result["version"], after
            self._resumed_seat = result.get("seat")
            self._checked(lambda: self.verifier.check_head(result["checkpoint"]))
            if last and self.error is None:
                self.connection.attach(self.id)
                if not self._started.done():
                    self._started.set_result(result)

        def settled(future: asyncio.Future[Members]) -> None:
            error = None if future.cancelled() else future.exception()
            if isinstance(error, BadToken) and not last:
                if token == self.token:  # a late answer may be about an earlier seat
                    self.own_seat.release()  # the host stays, without a seat
            elif isinstance(error, DealerError):
                self.end(error)

        method = "table.watch" if token is None else "table.resume"
        params = {"table": self.id, "after": after} | ({} if token is None else {"token": token})
        if self._link is not None:
            params["link"] = self._link
        asked = self.connection.ask(method, params, table=None, answered=answered)
        asked.add_done_callback(settled)
        return asked

    def joined(self, result: Members, *, shared: bool) -> None:
        """Start with the answer to `table.join` or `table.watch`.

        `shared` says whether the seat may be one that the player has on other devices, too.
        """
        self._target = result["version"]
        if "seat" in result:
            seat = self.verifier.seat = result["seat"]
            taken = [player for player in result["state"]["seats"] if player["seat"] == seat]
            since = taken[0]["since"] if taken else result["version"]
            self.store.update(token=result["token"], seat=seat, since=since, shared=shared)
        self.connection.handlers[self.id] = self
        self.connection.attach(self.id)
        self._checked(lambda: self._begin(result))
        if self.verifier.version < result["version"] or not self.verifier.log.linked:
            self.attach()

    def _begin(self, result: Members) -> None:
        self.verifier.begin(**_snapshot(result))

    def notified(self, method: str, params: Members) -> None:
        """Handle a notification: event, checkpoint, snapshot or status."""
        match method:
            case "event":
                self._checked(lambda: self._event(params))
            case "checkpoint":
                self._checked(lambda: self.verifier.checkpoint(params.get("note", "")))
            case "snapshot":
                self._checked(lambda: self._reset(params))
            case _:
                self._checked(lambda: None)

    def _checked(self, step: Callable[[], None]) -> None:
        """Run a step and then send automatic requests; leave the table if the server cheated."""
        if self.error is not None:
            return
        try:
            step()
            self._send_due()
        except Gap:
            self._resume_after_gap()
        except HouseCheated as fault:
            self._caught(fault)
        except DealerError as error:
            self.end(error)

    def _event(self, params: Members) -> None:
        verified = self.verifier.event(params)
        if verified is None:
            return
        version, _, event = verified
        if self.own_seat.follow(event, version) and version > self._target:
            self.attach()  # from the answer on the server pushes the new seat's cards
        self.markers.apply(event)
        self.events.put(verified)
        if self._on_event is not None:
            self._on_event(self.id, verified)
        self._wake()
        if isinstance(event, TableClosed):
            self.events.end(None)

    def _reset(self, params: Members) -> None:
        """A snapshot in place of events that are too many, or no longer in the log."""
        if self.verifier.version:
            proof, after = params.get("proof"), self._resumed_after
            self.verifier.reset(**_snapshot(params), proof=proof, after=after)
        else:
            self._begin(params)
            if not self.verifier.log.linked:
                self.attach()
        self.own_seat.return_to(self._resumed_seat)
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for predicate, future in waiting:
            if future.done():
                continue
            try:
                if predicate():
                    future.set_result(None)
                else:
                    self._waiting.append((predicate, future))
            except Exception as error:
                # The caller's predicate failed; that is not the server's fault.
                future.set_exception(error)

    def _send_due(self) -> None:
        away = self.verifier.version <= self._target
        live = self.verifier.version >= self._target and not self._resuming
        for method, params in self.responder.due(self.verifier, live=live, away=away):
            # A rejection means that the deadline has passed, which the log records.
            asked = self.ask(method, params, changes=True)
            asked.add_done_callback(self._cosigned if method == "table.cosign" else forget)
        if live and self.verifier.log.linked and self.verifier.blind:
            self._ask_for_hand()

    def _ask_for_hand(self) -> None:
        """Ask once for the cards that were in the hand of this seat before this player took it.

        The events that dealt them opened them only to the player who held the seat then, so they
        come with no event, and not with those of a resume.
        """
        round_, since = self.verifier.state.round, self.store.record.get("since") or 0
        place = (0 if round_ is None else round_.number, since)
        if place == self._hand_asked:
            return
        self._hand_asked = place

        def answered(result: Members) -> None:
            self._checked(lambda: self.verifier.open_cards(result["state"]))
            self._wake()

        # A refusal means that the seat was lost meanwhile, which an event says.
        asked = self.ask("table.state", {}, changes=False, answered=answered)
        asked.add_done_callback(forget)

    def _cosigned(self, asked: asyncio.Future[Members]) -> None:
        forget(asked)
        if not asked.cancelled() and asked.exception() is None:
            size = asked.result().get("size")
            verified = [head.size for head in self.store.heads if head.size == size]
            self.cosigned = max(self.cosigned, *verified, 0)
            self._wake()

    def _resume_after_gap(self) -> None:
        """Events are missing: resume after the last one, a limited number of times."""
        if self._resuming:
            return
        version, times = self._gap
        times = times + 1 if version == self.verifier.version else 1
        self._gap = (self.verifier.version, times)
        if times > RESUMES_MAX:
            sentence = "The server repeatedly omitted an event, so this client left the table."
            self._caught(HouseCheated(sentence, self.verifier.evidence(sentence)))
            return
        self.attach()

    def accuse(self, method: str) -> NoReturn:
        """Leave the table, because the answer to `method` is not what its events say."""
        sentence = f"The server's answer to {method} is not what the table's events say."
        fault = HouseCheated(sentence, self.verifier.evidence(sentence))
        self._caught(fault)
        raise self.error or fault

    def _caught(self, fault: HouseCheated) -> None:
        """Store the evidence, leave the seat and end the session."""
        evidence = fault.evidence
        if isinstance(evidence, Evidence):
            self.evidence = evidence
            file = self.store.save_evidence(evidence.to_json())
            if file is not None:
                fault = HouseCheated(f"{fault.sentence} The evidence is in {file}.", evidence)
        if self.token is not None:
            params = {"table": self.id, "token": self.token}
            leaving = self.connection.ask("table.leave", params, table=None, changes=True)
            leaving.add_done_callback(forget)
        self.end(fault)


def _snapshot(members: Members) -> Members:
    """The members of a snapshot as the verifier takes them; missing ones are None."""
    return {
        "version": members.get("version"),
        "state": members.get("state"),
        "edge": members.get("edge"),
        "note": members.get("checkpoint"),
    }
