"""The archivist: one pair of hands that takes whatever lies on the desk and files it at one go.

The loop's thread puts requests on the desk; the writer's thread takes all that gathered while the
last commit ran, writes them in one transaction, and comes back with one hop: first `committed` is
called with every request and its result in commit order, then those who wait for a future are
woken. When the desk is empty it does a slice of the work that can wait.

A request whose table is locked by another transaction is not decided with its batch: it is tried
again after a pause, and later requests of that table wait behind it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import Any, Protocol, TypeVar, cast

from sqlalchemy import Connection

from dealer.errors import DatabaseError, Overloaded, Unavailable
from dealer.eventlog.locked import LockedRequests, Waiting
from dealer.eventlog.rows import Append, Locked, Result

T = TypeVar("T")

Committed = Callable[[list[tuple[Append, Result]]], None]
Written = Callable[[Sequence[Append], Sequence[Result]], None]
Slice = Callable[[Connection], bool]

# Under a load that never leaves the desk empty, a slice still gets its turn after so many batches.
PATIENCE = 64


class Store(Protocol):
    """What a database must be able to do for the writer; called on the writer's thread alone."""

    name: str

    def open(self) -> None: ...

    def append(self, requests: Sequence[Append]) -> Sequence[Result | Locked]: ...

    def run(self, work: Callable[[Connection], T], *, durable: bool) -> T: ...

    def maintain(self) -> None: ...

    def close(self) -> None: ...


class _Job:
    """Work for the writer's thread: one step if `durable`, else slices until one returns False."""

    __slots__ = ("durable", "future", "work")

    def __init__(
        self,
        work: Callable[[Connection], Any],
        *,
        durable: bool,
        future: asyncio.Future[Any],
    ) -> None:
        self.work = work
        self.durable = durable
        self.future = future


class Writer:
    """The thread, its desk and its way back to the loop.

    At most `queue` requests wait and `batch` go into one commit.
    """

    def __init__(
        self, store: Store, *, committed: Committed | None, queue: int, batch: int
    ) -> None:
        self.committed = committed
        self.written: Written | None = None
        self._store = store
        self._queue = queue
        self._batch = batch
        self._loop = asyncio.get_running_loop()
        self._desk: deque[Waiting] = deque()
        self._locked = LockedRequests()
        self._jobs: deque[_Job] = deque()
        self._bell = Event()
        self._rung = False
        self._closing = False
        self._fault: DatabaseError | None = None
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._thread = Thread(target=self._work, name="log writer", daemon=True)

    @property
    def waiting(self) -> int:
        """How many requests are not decided yet, the batch that is being written left out."""
        return len(self._desk) + len(self._locked)

    @property
    def full(self) -> bool:
        """Whether the queue has as many requests as it may."""
        return self.waiting >= self._queue

    async def start(self) -> None:
        """Opens the database on the writer's thread; raises DatabaseError or SetupError."""
        self._thread.start()
        try:
            await asyncio.shield(self._opened)
        except asyncio.CancelledError:
            await self.close()
            raise

    def submit(self, request: Append, future: asyncio.Future[Result] | None) -> None:
        """Puts a request on the desk; requests are decided in the order of these calls.

        Raises Overloaded when the desk is full, Unavailable after `close`, and the DatabaseError
        that ended the writer if one did.
        """
        self._accept()
        if self.full:
            raise Overloaded("The house has too much to write down just now; try again shortly.")
        self._desk.append((request, future))
        self._ring()

    def enqueue(self, work: Callable[[Connection], Any], *, durable: bool) -> asyncio.Future[Any]:
        """Work between batches, on the writer's connection, in a transaction of its own."""
        self._accept()
        future: asyncio.Future[Any] = self._loop.create_future()
        job = _Job(work, durable=durable, future=future)
        if durable:
            self._jobs.appendleft(job)
        else:
            self._jobs.append(job)
        self._ring()
        return future

    async def close(self) -> None:
        """Writes what lies on the desk, cancels the work that can wait, ends the thread."""
        self._closing = True
        self._bell.set()
        if self._thread.ident is not None:
            await asyncio.shield(self._ended)
            self._thread.join()

    def _accept(self) -> None:
        if self._fault is not None:
            raise self._fault
        if self._closing:
            raise Unavailable("The house is closing; come back when it has opened again.")

    def _ring(self) -> None:
        # The bell is rung once a turn of the loop, so that what arrives together goes together.
        if not self._rung:
            self._rung = True
            self._loop.call_soon(self._ring_now)

    def _ring_now(self) -> None:
        self._rung = False
        self._bell.set()

    # From here to `_hop` on the writer's thread.

    def _work(self) -> None:
        taken: list[Waiting] = []
        fault: BaseException | None = None
        try:
            self._store.open()
            self._hop(_settle, self._opened, None)
            batches = 0
            while True:
                taken = self._take()
                if taken:
                    self._write(taken)
                    batches += 1
                if self._jobs and not self._closing and (not taken or batches >= PATIENCE):
                    self._job(self._jobs.popleft())
                    batches = 0
                elif not taken:
                    if self._closing and not self._locked:
                        break
                    self._bell.wait(self._locked.pause())
                    self._bell.clear()
                    continue
                taken = []
                self._store.maintain()
        except BaseException as error:
            fault = error
        with suppress(Exception):
            self._store.close()
        self._hop(self._end, fault, taken)

    def _take(self) -> list[Waiting]:
        taken = self._locked.due(self._batch) if self._locked else []
        with suppress(IndexError):
            while len(taken) < self._batch:
                waiting = self._desk.popleft()
                if not (self._locked and self._locked.queued(waiting)):
                    taken.append(waiting)
        return taken

    def _write(self, taken: list[Waiting]) -> None:
        requests = [request for request, _ in taken]
        results: Sequence[Result | Locked]
        try:
            results = self._store.append(requests)
        except DatabaseError as error:
            results = [error] * len(requests)
            for request in requests:
                if request.chain is not None:
                    request.chain.broken = True
        if self._locked or Locked in map(type, results):
            pairs = list(zip(taken, results, strict=True))
            self._locked.keep([each for each, result in pairs if isinstance(result, Locked)])
            pairs = [pair for pair in pairs if not isinstance(pair[1], Locked)]
            taken, results = [each for each, _ in pairs], [result for _, result in pairs]
        if taken:
            if self.written is not None:
                self.written([request for request, _ in taken], cast("list[Result]", results))
            self._hop(self._deliver, taken, results)

    def _job(self, job: _Job) -> None:
        if job.future.cancelled():
            return
        try:
            result = self._store.run(job.work, durable=job.durable)
        except Exception as error:
            self._hop(_fail, job.future, error)
            return
        if not job.durable and result:
            self._jobs.append(job)
        else:
            self._hop(_settle, job.future, result if job.durable else None)

    def _hop(self, step: Callable[..., object], *details: object) -> None:
        # A loop that has ended has nobody left to tell.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(step, *details)

    # From here on the loop's thread again.

    def _deliver(self, taken: list[Waiting], results: list[Result]) -> None:
        if self.committed is not None:
            pairs = [(entry[0], result) for entry, result in zip(taken, results, strict=True)]
            try:
                self.committed(pairs)
            except Exception as error:
                self._loop.call_exception_handler(
                    {"message": "the callback after a commit failed", "exception": error}
                )
        for (_, future), result in zip(taken, results, strict=True):
            if future is not None:
                if isinstance(result, DatabaseError):
                    _fail(future, result)
                else:
                    _settle(future, result)

    def _end(self, error: BaseException | None, taken: list[Waiting]) -> None:
        if error is not None:
            if not self._opened.done():
                self._opened.set_exception(error)
            self._fault = DatabaseError(
                f"The writer of {self._store.name} ended ({type(error).__name__}: {error}); "
                "start the service again."
            )
            left = [*taken, *self._locked.drain(), *self._desk]
            self._desk.clear()
            self._deliver(left, [self._fault] * len(left))
        while self._jobs:
            future = self._jobs.popleft().future
            if self._fault is not None:
                _fail(future, self._fault)
            else:
                future.cancel()
        _settle(self._ended, None)


def _settle(future: asyncio.Future[Any], result: object) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
