"""Where commands are handed in, and where their answers are given out.

A command is judged at once against the state in memory and its events go to the log's writer. When
the batch that they are in has been committed, the table is told and then the caller, in the order
of versions. Should the log refuse, because another process was quicker, everything that was judged
on the state in memory is void: the table is loaded afresh and the commands are judged again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from dealer.errors import (
    CommandReused,
    Conflicted,
    DealerError,
    Overloaded,
    Refused,
    TableArchived,
    Unavailable,
)
from dealer.eventlog import Append, Appended, Known, Log, Result
from dealer.service.deadlines import Deadlines
from dealer.service.judge import Flight, Judge
from dealer.service.loading import Loader
from dealer.service.memory import Memory
from dealer.service.past import Past
from dealer.service.refusals import Refusals
from dealer.service.requests import (
    ATTEMPTS,
    Done,
    Outcome,
    Remembered,
    Request,
    knowing,
    unavailable,
)
from dealer.service.resident import Resident
from dealer.service.snapshots import Published

NEVER = 2**63
"""No table gets to this version: who waits for it is told when the table was read anew."""

RETRY_SECONDS = 0.5
"""How long a table whose log cannot be read waits before it tries again."""


class Desk:
    """Takes requests for any table of a house; `publish` is told what became public.

    `read_elsewhere` is called with a table before events of other processes are published there.
    """

    def __init__(
        self,
        log: Log,
        loader: Loader,
        past: Past,
        judge: Judge,
        memory: Memory,
        publish: Callable[[Resident, Published], None],
    ) -> None:
        self._log = log
        self._loader = loader
        self._past = past
        self._judge = judge
        self._memory = memory
        self._publish = publish
        self.read_elsewhere: Callable[[Resident], None] = lambda resident: None
        self.deadlines = Deadlines(judge, self.submit)
        self._refusals = Refusals(self, log, past)
        self._tasks: set[asyncio.Task[Any]] = set()
        log.committed = self._committed

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def submit(self, resident: Resident, request: Request) -> None:
        """Judge a request now; its `done` is told once it is on disk, or why it is not."""
        if resident.archived:
            request.done(TableArchived(resident.archived))
            return
        if resident.reloading:
            resident.failed.append(request)
            return
        if self._log.full:
            request.done(Overloaded("The house has too much to write just now; try again shortly."))
            return
        known = resident.recent.get(request.name) if request.name is not None else None
        if known is not None:
            self.answer_again(resident, request, known)
            return
        try:
            append = self._judge.decide(resident, request)
        except Refused as refusal:
            self._refusals.refuse(resident, request, refusal)
            return
        except Exception as error:
            self._distrust(resident, request, error)
            return
        if append is None:
            version = resident.table.version
            resident.when_committed(version, lambda _: request.done(Done(version, [])))
            return
        resident.in_flight += 1
        try:
            self._log.submit(append)
        except DealerError as error:
            resident.chain.broken = True
            self._committed([(append, error)])
            return
        if resident.table.round is not None or resident.timer is not None:
            self.deadlines.arm(resident)

    def _distrust(self, resident: Resident, request: Request, error: Exception) -> None:
        """The house made a mistake half-way: what is in memory may be anything; load it again."""
        asyncio.get_running_loop().call_exception_handler(
            {"message": "judging a command failed", "exception": error}
        )
        resident.chain.broken = True
        resident.reloading = True
        request.done(Unavailable("The house made a mistake; its operator's log says more."))
        if not resident.in_flight:
            self.keep(self._reload(resident))

    # After a commit, on the loop

    def _committed(self, batch: Sequence[tuple[Append, Result | DealerError]]) -> None:
        for append, result in batch:
            if not isinstance(append.tag, Flight):
                continue
            flight, resident = append.tag, append.tag.resident
            resident.in_flight -= 1
            try:
                if isinstance(result, Appended):
                    self._succeeded(flight)
                else:
                    self._failed(flight, result)
            except Exception as error:
                # One listener's fault is not the next one's.
                asyncio.get_running_loop().call_exception_handler(
                    {"message": "telling of an append failed", "exception": error}
                )
            if resident.reloading and not resident.in_flight:
                self.keep(self._reload(resident))

    def _succeeded(self, flight: Flight) -> None:
        resident, request = flight.resident, flight.request
        resident.committed = flight.last
        resident.leaf = flight.recorded.entries[-1].leaf
        resident.set_foot()
        if resident.sessions and not self._memory.full:
            resident.ring.extend(flight.recorded.entries)
        self._publish(resident, Published(flight.recorded.entries, flight.recorded.notes))
        done = Done(flight.last, flight.events)
        request.done(done)
        if flight.remembered is not None:
            flight.remembered.committed = True
            resident.remember(request.name or "", flight.remembered)
            for again in flight.remembered.also:
                self.answer_again(resident, again, flight.remembered, done)
            flight.remembered.also.clear()
        if flight.drawn is not None:
            for answer in flight.drawn.answers:
                answer(flight.drawn_outcome())
        resident.tell_waiting()
        self._memory.committed(resident)

    def _failed(self, flight: Flight, result: Result | DealerError) -> None:
        """Nothing of the flight was written, and the state in memory is ahead of the truth."""
        resident, request = flight.resident, flight.request
        resident.reloading = True
        if request.then is None:
            resident.pending_draw = flight.drawn or resident.pending_draw
        elif resident.pending_draw is not None and resident.pending_draw.draw is request.then:
            resident.pending_draw = None  # the shuffle that it waited for never began
        if isinstance(result, DealerError):
            request.done(unavailable(result))
        else:
            if isinstance(result, Known) and result.digest is not None:
                request.known = Remembered.read(result.version, result.digest)
            request.attempts += 1
            resident.failed.append(request)
        if flight.remembered is not None:
            resident.failed.extend(flight.remembered.also)

    async def catch_up(self, resident: Resident) -> None:
        """Take in, and publish, what another process has written to this table by now.

        So, too, where the log was put back to an older state.
        """
        while True:
            resident.require_here()
            believed = resident.committed
            head = await self._log.head(resident.id) or 0
            if believed <= head <= resident.committed:
                return
            if not (resident.reloading or resident.in_flight):
                resident.reloading = True
                # A task of its own: the guest for whom it is read may go in the middle of it.
                self.keep(self._reload(resident))
            # What is on its way to the disk meets the other's events there, as a conflict.
            await self.on_disk(resident, NEVER if resident.reloading else resident.table.version)

    def _gone(self, resident: Resident, error: TableArchived) -> None:
        """Another process closed the table and put it away; who listens here is sent away."""
        resident.archived = str(error)
        resident.reloading = False
        failed, resident.failed = resident.failed, []
        for request in failed:
            request.done(error)
        waiting, resident.waiting = resident.waiting, []
        for _, call in waiting:
            call(False)
        self.put_off_draw(resident)
        self.deadlines.disarm(resident)
        self._publish(resident, Published([], [], reset=True))

    async def _reload(self, resident: Resident) -> None:
        while True:
            try:
                fresh, news = await self._loader.advance(resident)
                break
            except TableArchived as error:
                self._gone(resident, error)
                return
            except DealerError as error:
                failed, resident.failed = resident.failed, []
                for request in failed:
                    request.done(unavailable(error))
                resident.tell_waiting()
                # Not all tables at once, and not all nodes, when the database is back.
                loop = asyncio.get_running_loop()
                await asyncio.sleep(RETRY_SECONDS * (0.5 + loop.time() * 1e6 % 1))
        resident.replace_with(fresh)
        # Before the version moves: what is void stays void where others wrote as many events.
        resident.tell_waiting()
        resident.committed = fresh.committed
        if news.entries:
            self.read_elsewhere(resident)
        if news.entries or news.reset:
            self._publish(resident, news)
        self.put_off_draw(resident)
        resident.reloading = False
        self._memory.weigh(resident)
        failed, resident.failed = resident.failed, []
        for request in failed:
            if request.known is not None:
                self.answer_again(resident, request, request.known)
            elif request.attempts >= ATTEMPTS:
                request.done(Conflicted("The table moved on each time; look at it and try again."))
            else:
                self.submit(resident, request)
        self.deadlines.arm(resident)

    @staticmethod
    def put_off_draw(resident: Resident) -> None:
        """Another process may have sealed that shuffle: whoever sends the draw again is told."""
        pending, resident.pending_draw = resident.pending_draw, None
        if pending is not None:
            for answer in pending.answers:
                answer(Unavailable("The table was read anew; send this again with the same cmd."))

    def answer_again(
        self,
        resident: Resident,
        request: Request,
        known: Remembered,
        done: Done | None = None,
    ) -> None:
        """Answer a command that was sent before as it was answered then."""
        request.again = True
        if known.digest != request.digest:
            request.done(
                CommandReused("This command id was used for something else; give each its own id.")
            )
        elif not known.committed:
            known.also.append(request)
        elif done is not None:
            request.done(done)
        else:
            self.keep(self._recall(resident, request, known))

    async def _recall(self, resident: Resident, request: Request, known: Remembered) -> None:
        outcome: Outcome
        try:
            await self.catch_up(resident)  # it may have been carried out elsewhere
            events = await self._past.events(resident, after=known.version - 1, count=known.count)
            outcome = Done(known.version + known.count - 1, events)
        except DealerError as error:
            outcome = unavailable(error)
        request.done(outcome)

    async def on_disk(self, resident: Resident, version: int) -> bool:
        """Wait until `version` is on disk; False if it was void and will never be.

        Raises Unavailable where the table cannot be read anew just now, TableArchived where it was
        put away.
        """
        resident.require_here()
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        resident.when_committed(version, knowing(future))
        there = await future
        resident.require_here()
        if not there and resident.reloading:
            raise Unavailable("This table cannot be read just now; try again shortly.")
        return there

    def keep(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run it; a task that nobody refers to may be collected before it is done."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
