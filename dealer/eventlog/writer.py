"""Writer with group commit: a thread, and the event loop, write batches of queued requests.

The event loop's thread queues requests. On a database server, and while COMMIT is slow, the writer
thread writes in one transaction what was queued during the last commit, and then schedules one
callback on the loop. While COMMIT is quick (`CommitPolicy`), the loop itself writes what one of its
iterations has queued, in a callback of its own. Either way the commit listeners are called with
every request and its result in commit order, and then the futures are resolved.

Both threads use the same store, each while it holds `_store_lock`. The loop never waits: not for
the lock, nor for another process's transaction, nor for a large batch. It leaves these to the
thread, which also runs the idle work, one slice whenever the queue is empty, and the maintenance.

A request whose table is locked by another transaction is not decided with its batch: it is tried
again after a delay, and later requests of that table are queued behind it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Any, NamedTuple

from sqlalchemy import Connection

from dealer.errors import DatabaseError, Overloaded, Unavailable
from dealer.eventlog.batch_writer import BatchWriter
from dealer.eventlog.commit_policy import CommitPolicy
from dealer.eventlog.deliveries import Deliveries, reject, resolve
from dealer.eventlog.rows import Append, Result
from dealer.eventlog.store import LoopStore, Store

Slice = Callable[[Connection], bool]

BATCHES_PER_SLICE = 64
"""While the queue is never empty, one slice of idle work runs after so many batches."""


class _Job(NamedTuple):
    """Work for the writer thread: one call if `durable`, else calls until one returns False."""

    work: Callable[[Connection], Any]
    durable: bool
    future: asyncio.Future[Any]


class Writer:
    """Owns the thread and its queues.

    At most `queue` requests are pending, and at most `batch` are written in one commit. The loop
    commits if `policy` says so, and only to a `loop_store`, which is the same object as `store`.

    `commit_listeners` are called on the loop with the requests of a batch and their results,
    `written_listeners` on the thread that commits, after COMMIT, before a result is delivered.
    `commit_seconds` has the time of each batch in the store, with its COMMIT.
    """

    def __init__(
        self,
        store: Store,
        loop_store: LoopStore | None,
        policy: CommitPolicy,
        *,
        queue: int,
        batch: int,
    ) -> None:
        self._store = store
        self._loop_allowed = loop_store is not None
        self._policy = policy
        self._max_queued = queue
        self._loop = asyncio.get_running_loop()
        self._deliveries = Deliveries(self._loop)
        self._batches = BatchWriter(store, loop_store, policy, self._deliveries, max_batch=batch)
        self.commit_listeners = self._deliveries.listeners
        self.written_listeners = self._batches.listeners
        self.commit_seconds = self._batches.commit_seconds
        self._batches_since_job = 0
        self._jobs: deque[_Job] = deque()
        self._store_lock = Lock()
        self._wakeup = Event()
        self._flush_scheduled = False
        self._closing = False
        self._failure: DatabaseError | None = None
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._stopped: asyncio.Future[None] = self._loop.create_future()
        self._thread = Thread(target=self._run, name="log writer", daemon=True)

    @property
    def commits_on_loop(self) -> bool:
        return self._loop_allowed and self._policy.on_loop

    @property
    def waiting(self) -> int:
        return self._batches.waiting

    @property
    def full(self) -> bool:
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
        after the writer has failed.
        """
        self._require_running()
        if self.full:
            raise Overloaded("The server has too many writes queued; try again shortly.")
        self._batches.add((request, future))
        self._schedule_flush()

    def enqueue(self, work: Callable[[Connection], Any], *, durable: bool) -> asyncio.Future[Any]:
        """Queue work that runs between batches, in a transaction of its own."""
        self._require_running()
        future: asyncio.Future[Any] = self._loop.create_future()
        job = _Job(work, durable=durable, future=future)
        if durable:
            self._jobs.appendleft(job)
        else:
            self._jobs.append(job)
        self._schedule_flush()
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

    def _schedule_flush(self) -> None:
        # One flush per loop iteration, so that requests of the same iteration share a batch.
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_scheduled = False
        if not self._commit_on_loop() or self._jobs:
            self._wakeup.set()

    def _commit_on_loop(self) -> bool:
        """Commit the queue and deliver the results; False if the thread has to do something."""
        if not self.commits_on_loop or self._closing:
            return False
        if not self._store_lock.acquire(blocking=False):
            return False
        try:
            done = self._batches.write_on_loop() and not self._store.maintenance_due()
        finally:
            self._store_lock.release()
        self._deliveries.deliver()
        return done

    # The following methods, up to `_call_on_loop`, run on the writer thread.

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            self._store.open()
            self._call_on_loop(resolve, self._opened, None)
            while True:
                # Read first, so that the requests that were queued before `close` are found below.
                closing = self._closing
                if self._work():
                    continue
                if closing and not self._batches.any_locked:
                    break
                self._wakeup.wait(self._batches.seconds_until_due())
                self._wakeup.clear()
        except BaseException as error:
            failure = error
        with self._store_lock, suppress(Exception):
            self._store.close()
        self._call_on_loop(self._on_stopped, failure)

    def _work(self) -> bool:
        """Write a batch, run a job, do maintenance; False if there was no batch and no job."""
        # Read first, so that requests that were queued before a job are written before it.
        job_waits = bool(self._jobs)
        with self._store_lock:
            written = self._batches.write()
            maintenance_due = self._store.maintenance_due()
        if written:
            # The lock is free again, so that the loop can commit what the callback submits.
            self._call_on_loop(self._deliveries.deliver)
            self._batches_since_job += 1
        job_due = not written or self._batches_since_job >= BATCHES_PER_SLICE
        run_job = job_due and job_waits and not self._closing
        if run_job or maintenance_due:
            with self._store_lock:
                if run_job:
                    self._run_job(self._jobs.popleft())
                    self._batches_since_job = 0
                self._store.maintain()
        return written or run_job

    def _run_job(self, job: _Job) -> None:
        if job.future.cancelled():
            return
        try:
            result = self._store.run(job.work, durable=job.durable)
        except Exception as error:
            self._call_on_loop(reject, job.future, error)
            return
        if not job.durable and result:
            self._jobs.append(job)
        else:
            self._call_on_loop(resolve, job.future, result if job.durable else None)

    def _call_on_loop(self, callback: Callable[..., object], *arguments: object) -> None:
        # RuntimeError: the loop is closed, so no caller waits for a result.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *arguments)

    # The following method runs on the event loop's thread.

    def _on_stopped(self, error: BaseException | None) -> None:
        if error is not None:
            if not self._opened.done():
                self._opened.set_exception(error)
            self._failure = DatabaseError(
                f"The writer thread of {self._store.name} failed ({type(error).__name__}: {error});"
                " restart the server."
            )
            undecided = self._batches.drain()
            self._deliveries.add(undecided, [self._failure] * len(undecided))
            self._deliveries.deliver()
        while self._jobs:
            future = self._jobs.popleft().future
            if self._failure is not None:
                reject(future, self._failure)
            else:
                future.cancel()
        resolve(self._stopped, None)
