"""Writer thread with group commit: drains the queue and writes each batch in one transaction.

The event loop's thread queues requests. The writer thread takes all that were queued during the
last commit, writes them in one transaction and schedules one callback on the loop, in which the
commit listeners are called with every request and its result in commit order, and then the futures
are resolved. When the queue is empty the thread runs one slice of the idle work.

A request whose table is locked by another transaction is not decided with its batch: it is tried
again after a delay, and later requests of that table are queued behind it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Thread
from time import perf_counter
from typing import Any, cast

from sqlalchemy import Connection

from dealer.errors import DatabaseError, Overloaded, Unavailable
from dealer.eventlog.locked_requests import LockedRequests, Pending
from dealer.eventlog.rows import Append, Locked, Result
from dealer.eventlog.store import Store
from dealer.histogram import LONG_SECONDS, Histogram

Committed = Callable[[list[tuple[Append, Result]]], None]
Written = Callable[[Sequence[Append], Sequence[Result]], None]
Slice = Callable[[Connection], bool]

BATCHES_PER_SLICE = 64
"""While the queue is never empty, one slice of idle work runs after so many batches."""


class _Job:
    """Work for the writer thread: one call if `durable`, else calls until one returns False."""

    __slots__ = ("durable", "future", "work")

    def __init__(
        self, work: Callable[[Connection], Any], *, durable: bool, future: asyncio.Future[Any]
    ) -> None:
        self.work = work
        self.durable = durable
        self.future = future


class Writer:
    """Owns the thread and its queue.

    At most `queue` requests are pending, and at most `batch` are written in one commit.
    `commit_seconds` has the time of each batch in the store, with its COMMIT.
    """

    def __init__(self, store: Store, *, queue: int, batch: int) -> None:
        self.commit_listeners: list[Committed] = []
        self.written_listeners: list[Written] = []
        self.commit_seconds = Histogram(LONG_SECONDS)
        self._store = store
        self._max_queued = queue
        self._max_batch = batch
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Pending] = deque()
        self._locked = LockedRequests()
        self._jobs: deque[_Job] = deque()
        self._wakeup = Event()
        self._wakeup_scheduled = False
        self._closing = False
        self._failure: DatabaseError | None = None
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._stopped: asyncio.Future[None] = self._loop.create_future()
        self._thread = Thread(target=self._run, name="log writer", daemon=True)

    @property
    def waiting(self) -> int:
        """Number of queued requests, without the batch that is being written."""
        return len(self._queue) + len(self._locked)

    @property
    def full(self) -> bool:
        """Whether the next `submit` would raise Overloaded."""
        return self.waiting >= self._max_queued

    async def start(self) -> None:
        """Start the thread and open the database; raises DatabaseError."""
        self._thread.start()
        try:
            await asyncio.shield(self._opened)
        except asyncio.CancelledError:
            await self.close()
            raise

    def submit(self, request: Append, future: asyncio.Future[Result] | None) -> None:
        """Queue a request; requests are decided in the order of these calls.

        Raises Overloaded when the queue is full, Unavailable after `close`, and a DatabaseError
        after the thread has failed.
        """
        self._require_running()
        if self.full:
            raise Overloaded("The server has too many writes queued; try again shortly.")
        self._queue.append((request, future))
        self._schedule_wakeup()

    def enqueue(self, work: Callable[[Connection], Any], *, durable: bool) -> asyncio.Future[Any]:
        """Queue work that runs between batches, in a transaction of its own."""
        self._require_running()
        future: asyncio.Future[Any] = self._loop.create_future()
        job = _Job(work, durable=durable, future=future)
        if durable:
            self._jobs.appendleft(job)
        else:
            self._jobs.append(job)
        self._schedule_wakeup()
        return future

    async def close(self) -> None:
        """Write all queued requests, cancel the jobs and stop the thread."""
        self._closing = True
        self._wakeup.set()
        if self._thread.ident is not None:
            await asyncio.shield(self._stopped)
            self._thread.join()

    def _require_running(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closing:
            raise Unavailable("The server is shutting down; try again when it has restarted.")

    def _schedule_wakeup(self) -> None:
        # One wake-up per loop iteration, so that requests of the same iteration share a batch.
        if not self._wakeup_scheduled:
            self._wakeup_scheduled = True
            self._loop.call_soon(self._wake_up)

    def _wake_up(self) -> None:
        self._wakeup_scheduled = False
        self._wakeup.set()

    # The following methods, up to `_call_on_loop`, run on the writer thread.

    def _run(self) -> None:
        batch: list[Pending] = []
        failure: BaseException | None = None
        try:
            self._store.open()
            self._call_on_loop(_resolve, self._opened, None)
            batches = 0
            while True:
                batch = self._take_batch()
                if batch:
                    self._write(batch)
                    batches += 1
                if self._jobs and not self._closing and (not batch or batches >= BATCHES_PER_SLICE):
                    self._run_job(self._jobs.popleft())
                    batches = 0
                elif not batch:
                    if self._closing and not self._locked:
                        break
                    self._wakeup.wait(self._locked.seconds_until_due())
                    self._wakeup.clear()
                    continue
                batch = []
                self._store.maintain()
        except BaseException as error:
            failure = error
        with suppress(Exception):
            self._store.close()
        self._call_on_loop(self._on_stopped, failure, batch)

    def _take_batch(self) -> list[Pending]:
        batch = self._locked.due(self._max_batch) if self._locked else []
        with suppress(IndexError):
            while len(batch) < self._max_batch:
                pending = self._queue.popleft()
                if not (self._locked and self._locked.queue_behind(pending)):
                    batch.append(pending)
        return batch

    def _write(self, batch: list[Pending]) -> None:
        requests = [request for request, _ in batch]
        results: Sequence[Result | Locked]
        started_at = perf_counter()
        try:
            results = self._store.append(requests)
        except DatabaseError as error:
            results = [error] * len(requests)
            for request in requests:
                if request.chain is not None:
                    request.chain.broken = True
        self.commit_seconds.observe(perf_counter() - started_at)
        if self._locked or Locked in map(type, results):
            pairs = list(zip(batch, results, strict=True))
            self._locked.put_back([pending for pending, result in pairs if type(result) is Locked])
            pairs = [pair for pair in pairs if type(pair[1]) is not Locked]
            batch, results = [pending for pending, _ in pairs], [result for _, result in pairs]
        if batch:
            if self.written_listeners:
                requests = [request for request, _ in batch]
                for listener in tuple(self.written_listeners):
                    listener(requests, cast("list[Result]", results))
            self._call_on_loop(self._deliver, batch, results)

    def _run_job(self, job: _Job) -> None:
        if job.future.cancelled():
            return
        try:
            result = self._store.run(job.work, durable=job.durable)
        except Exception as error:
            self._call_on_loop(_reject, job.future, error)
            return
        if not job.durable and result:
            self._jobs.append(job)
        else:
            self._call_on_loop(_resolve, job.future, result if job.durable else None)

    def _call_on_loop(self, callback: Callable[..., object], *arguments: object) -> None:
        # RuntimeError: the loop is closed, so no caller waits for a result.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *arguments)

    # The following methods run on the event loop's thread.

    def _deliver(self, batch: list[Pending], results: list[Result]) -> None:
        pairs = [(pending[0], result) for pending, result in zip(batch, results, strict=True)]
        for listener in tuple(self.commit_listeners):
            try:
                listener(pairs)
            except Exception as error:
                self._loop.call_exception_handler(
                    {"message": "commit callback failed", "exception": error}
                )
        for (_, future), result in zip(batch, results, strict=True):
            if future is not None:
                if isinstance(result, DatabaseError):
                    _reject(future, result)
                else:
                    _resolve(future, result)

    def _on_stopped(self, error: BaseException | None, batch: list[Pending]) -> None:
        if error is not None:
            if not self._opened.done():
                self._opened.set_exception(error)
            self._failure = DatabaseError(
                f"The writer thread of {self._store.name} failed ({type(error).__name__}: {error});"
                " restart the server."
            )
            undecided = [*batch, *self._locked.drain(), *self._queue]
            self._queue.clear()
            self._deliver(undecided, [self._failure] * len(undecided))
        while self._jobs:
            future = self._jobs.popleft().future
            if self._failure is not None:
                _reject(future, self._failure)
            else:
                future.cancel()
        _resolve(self._stopped, None)


def _resolve(future: asyncio.Future[Any], result: object) -> None:
    if not future.done():
        future.set_result(result)


def _reject(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
