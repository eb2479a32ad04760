"""Following one table: frames from the house go to the witness, and what is due goes back.

What the house says is checked before anybody here is told. If it cheats, this table is left for
good: the evidence is kept, and whoever waits for something hears why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dealer.client.connection import Connection
from dealer.client.duties import Duties
from dealer.client.happenings import Happenings
from dealer.client.questions import Members, forget
from dealer.client.store import TableStore
from dealer.client.story import Gap
from dealer.client.witness import Evidence, Witness
from dealer.errors import BadToken, DealerError, HouseCheated
from dealer.game.events import SeatLeft, TableClosed
from dealer.proof.checkpoint import Cosigner

RESUMES_MAX = 4
"""How often a missing event is asked for again before this client leaves the table."""

Truth = Callable[[], bool]


class Following:
    """What one client holds of one table, and its end of the connection."""

    def __init__(
        self,
        table_id: str,
        connection: Connection,
        store: TableStore,
        *,
        key: bytes | None,
        cosigner: Cosigner | None,
    ) -> None:
        self.id = table_id
        self.connection = connection
        self.store = store
        self.witness = Witness(table_id, key=key, saved=store.heads)
        self.witness.seat = store.facts.get("seat")
        self.duties = Duties(table_id, store, cosigner)
        self.happenings = Happenings()
        self.cosigned = 0  # size of the newest checkpoint that the server took our signature of
        self.evidence: Evidence | None = None
        self.error: DealerError | None = None
        self._waiting: list[tuple[Truth, asyncio.Future[None]]] = []
        self._asked: list[asyncio.Future[Members]] = []  # resumes, until they are answered
        self._asked_after = 0  # what the resume that was answered last began after
        self._started: asyncio.Future[Members] = asyncio.Future()
        self._target = 0  # the version that the house was at when it last said so
        self._gap = (0, 0)  # a version that was missing after this one, and how often it was

    @property
    def token(self) -> str | None:
        return self.store.facts.get("token")

    @property
    def host_token(self) -> str | None:
        return self.store.facts.get("host_token")

    async def until(self, truth: Truth) -> None:
        """Wait until it holds; it is looked at after every event."""
        if self.error is not None:
            raise self.error
        if not truth():
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((truth, future))
            await future

    def ask(self, method: str, params: Members, *, changes: bool) -> asyncio.Future[Members]:
        """Ask the house about this table, once the socket follows it."""
        if self.error is not None:
            raise self.error
        members = params | {"table": self.id}
        return self.connection.ask(method, members, table=self.id, changes=changes)

    def end(self, error: DealerError | None) -> None:
        """No more comes: readers stop, who waits is told."""
        self.connection.drop(self.id, error or DealerError("You have left this table."))
        if self.error is not None:
            return
        self.error = error or DealerError("You have left this table.")
        self.happenings.end(error)
        if not self._started.done():
            self._started.set_exception(self.error)
            self._started.exception()
        waiting, self._waiting = self._waiting, []
        for _, future in waiting:
            if not future.done():
                future.set_exception(self.error)

    async def start(self) -> Members:
        """Follow this table from its first event on; the answer to the resume."""
        self._started = asyncio.get_running_loop().create_future()
        self.connection.followers[self.id] = self
        self.attach()
        return await self._started

    def attach(self) -> None:
        """Ask for everything after the last event that came, as seat, host or onlooker."""
        for earlier in self._asked:
            earlier.cancel()
        # The seat goes first: as host alone one would be sent the same events without its cards.
        tokens = [token for token in (self.token, self.host_token) if token]
        if tokens:
            self._asked = [self._resume(token, last=token == tokens[-1]) for token in tokens]
        else:
            self._asked = [self._resume(None, last=True)]

    @property
    def _resuming(self) -> bool:
        return not all(asked.done() for asked in self._asked)

    def _resume(self, token: str | None, *, last: bool) -> asyncio.Future[Members]:
        after = self.witness.story.resume_after()

        def answered(result: Members) -> None:
            self._target, self._asked_after = result["version"], after
            self._checked(lambda: self.witness.whole(result["checkpoint"]))
            if last and self.error is None:
                self.connection.attach(self.id)
                if not self._started.done():
                    self._started.set_result(result)

        def settled(future: asyncio.Future[Members]) -> None:
            error = None if future.cancelled() else future.exception()
            if isinstance(error, BadToken) and not last:
                self._got_up()  # the host stays, without a seat
            elif isinstance(error, DealerError):
                self.end(error)

        method = "table.watch" if token is None else "table.resume"
        params = {"table": self.id, "after": after} | ({} if token is None else {"token": token})
        asked = self.connection.ask(method, params, table=None, answered=answered)
        asked.add_done_callback(settled)
        return asked

    def joined(self, result: Members) -> None:
        """Begin with the answer to `table.join` or `table.watch`."""
        self._target = result["version"]
        if "seat" in result:
            seat = self.witness.seat = result["seat"]
            taken = [player for player in result["state"]["seats"] if player["seat"] == seat]
            since = taken[0]["since"] if taken else result["version"]
            self.store.learn(token=result["token"], seat=seat, since=since)
        self.connection.followers[self.id] = self
        self.connection.attach(self.id)
        self._checked(lambda: self._begin(result))
        if self.witness.version < result["version"] or not self.witness.story.linked:
            self.attach()

    def _begin(self, result: Members) -> None:
        self.witness.begin(**_snapshot(result))

    def notified(self, method: str, params: Members) -> None:
        match method:
            case "event":
                self._checked(lambda: self._event(params))
            case "checkpoint":
                self._checked(lambda: self.witness.checkpoint(params.get("note", "")))
            case "snapshot":
                self._checked(lambda: self._reset(params))
            case _:
                self._checked(lambda: None)

    def failed(self, error: DealerError) -> None:
        self.end(error)

    def _checked(self, step: Callable[[], None]) -> None:
        """Take a step, and do what is due after it; or leave, with the evidence."""
        if self.error is not None:
            return
        try:
            step()
            self._do_duties()
        except Gap:
            self._ask_for_gap()
        except HouseCheated as fault:
            self._caught(fault)
        except DealerError as error:
            self.end(error)

    def _event(self, params: Members) -> None:
        happened = self.witness.event(params)
        if happened is None:
            return
        event = happened.event
        since = self.store.facts.get("since") or 0
        ours = isinstance(event, SeatLeft) and event.seat == self.witness.seat
        if ours and happened.version > since:  # before that, somebody else sat there
            self._got_up()
        self.happenings.put(happened)
        self._wake()
        if isinstance(event, TableClosed):
            self.happenings.end(None)

    def _got_up(self) -> None:
        """The seat was given up; the token that stood for it opens nothing any more."""
        self.store.learn(token=None, seat=None, since=None)
        self.witness.seat = None

    def _reset(self, params: Members) -> None:
        """A snapshot in place of events, because they are too many, or are no more."""
        if self.witness.version:
            proof, after = params.get("proof"), self._asked_after
            self.witness.reset(**_snapshot(params), proof=proof, after=after)
        else:
            self._begin(params)
            if not self.witness.story.linked:
                self.attach()
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for truth, future in waiting:
            if future.done():
                continue
            try:
                if truth():
                    future.set_result(None)
                else:
                    self._waiting.append((truth, future))
            except Exception as error:
                # It is the caller's own test that fails; no reason to accuse the house.
                future.set_exception(error)

    def _do_duties(self) -> None:
        live = self.witness.version >= self._target and not self._resuming
        for method, params in self.duties.due(self.witness, live=live):
            # A refusal here means that the time was up; the log then says so to everybody.
            asked = self.ask(method, params, changes=True)
            asked.add_done_callback(self._cosigned if method == "table.cosign" else forget)

    def _cosigned(self, asked: asyncio.Future[Members]) -> None:
        forget(asked)
        if not asked.cancelled() and asked.exception() is None:
            self.cosigned = max(self.cosigned, int(asked.result().get("size", 0)))
            self._wake()

    def _ask_for_gap(self) -> None:
        """Events are missing: resume after the last one that came, but not for ever."""
        if self._resuming:
            return
        version, times = self._gap
        times = times + 1 if version == self.witness.version else 1
        self._gap = (self.witness.version, times)
        if times > RESUMES_MAX:
            sentence = "The house leaves out an event again and again: this client leaves."
            self._caught(HouseCheated(sentence, self.witness.evidence(sentence)))
            return
        self.attach()

    def _caught(self, fault: HouseCheated) -> None:
        """Keep the evidence, get up, and have no more to do with this table."""
        evidence = fault.evidence
        if isinstance(evidence, Evidence):
            self.evidence = evidence
            file = self.store.keep_evidence(evidence.to_json())
            if file is not None:
                fault = HouseCheated(f"{fault.sentence} The evidence is in {file}.", evidence)
        if self.token is not None:
            params = {"table": self.id, "token": self.token}
            leaving = self.connection.ask("table.leave", params, table=None, changes=True)
            leaving.add_done_callback(forget)
        self.end(fault)


def _snapshot(members: Members) -> Members:
    """The parts of a snapshot as a witness takes them; it judges those that are missing, too."""
    return {
        "version": members.get("version"),
        "state": members.get("state"),
        "edge": members.get("edge"),
        "note": members.get("checkpoint"),
    }
