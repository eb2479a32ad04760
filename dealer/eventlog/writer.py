"""Writer with group commit: the queue of appends, their batches, and where they are committed.

The event loop's thread queues appends. On a database server, and while COMMIT is slow, the writer
thread writes in one transaction what was queued during the last commit, and then schedules one
callback on the loop. While COMMIT is quick (`CommitPolicy`), the loop itself writes what one of its
iterations has queued, in a callback of its own. Either way each append gets its result on the
loop, in commit order, and then the commit listeners are called with the batch.

Both threads use the same store, each while it holds `_store_lock`. The loop never waits: not for
the lock, nor for another process's transaction, nor for a large batch. It leaves these to the
thread, which also runs the idle work, one slice whenever the queue is empty, and the maintenance.

| field | written by | kept consistent by |
|---|---|---|
| `_queue` | the loop appends, the committing thread takes | each step of a deque is atomic |
| `_jobs` | the loop appends, the writer thread takes | the same |
| `_idle` | the loop appends, the writer thread takes and puts back | the same |
| `_decided` | the committing thread appends, the loop takes | the same, and `_store_lock` |
| `_store`, `_policy`, `_batch` | the committing thread | `_store_lock` |
| `_loop_failure` | the loop, in a batch of its own | `_store_lock` |
| `_wakeup` | the loop sets, the writer thread clears | it is an Event |
| `_closing` | the loop, once | the writer thread reads it before it looks at the queue |
| `_batches_since_job` | the writer thread | no other thread reads it |
| `_flush_scheduled`, `_failure`, `full` | the loop | no other thread reads them |
| `_opened`, `_stopped` | the loop, called by the writer thread | they are futures |

Once the writer thread has ended, `_on_stopped` empties `_queue`, `_batch`, `_jobs` and `_idle` on
the loop, and fills `_decided`: the other thread no longer exists.

A store may keep appends and decide them later (`Store.append`). Then the thread calls it again when
it says so, and `close` waits for them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Sequence
from threading import Event, Lock, Thread
from time import perf_counter
from typing import Any, NamedTuple

from dealer.errors import DatabaseError, DatabaseLocked, Overloaded, Unavailable
from dealer.eventlog.protocols import Connection, Store
from dealer.eventlog.rows import Append, Result, reject, resolve
from dealer.histogram import LONG_SECONDS, SECONDS, Histogram

Slice = Callable[[Connection], bool]
Written = Callable[[Sequence[Append], Sequence[Result]], None]
Committed = Callable[[list[tuple[Append, Result]]], None]

BATCHES_PER_SLICE = 64
"""While the queue is never empty, one slice of idle work runs after so many batches."""

MODES = ("auto", "thread", "loop")

QUICK = 0.001
"""The loop commits after the mean of the durations has fallen below so many seconds."""

SLOW = 0.002
"""The writer thread commits after the mean has risen above so many seconds."""

FAILED = 1.0
"""The duration in seconds that a failed commit counts as: the thread commits for a while."""

MAX_ROWS = 256
"""Rows above which a batch goes to the writer thread however quick the disk is."""

_WEIGHT = 1 / 16


class CommitPolicy:
    """Whether the loop commits, by the exponentially weighted mean of the last durations.

    A commit on the event loop's thread saves four switches between threads, but nothing else of
    the server runs meanwhile. `mode` is one of `MODES`: with `thread` or `loop` the durations
    decide nothing. With `auto` the thread begins. `on_loop` may be read on any thread; `measured`
    and `failed` are called by the thread that commits, while it holds the writer's lock.
    """

    def __init__(self, mode: str) -> None:
        self.on_loop = mode == "loop"
        self.mean = SLOW
        self._fixed = mode != "auto"

    def allows(self, queue: Collection[Append]) -> bool:
        """Whether the loop may write these appends in one batch."""
        return (
            self.on_loop
            and len(queue) <= MAX_ROWS
            and sum([len(append.rows) for append in queue]) <= MAX_ROWS
        )

    def measured(self, seconds: float) -> None:
        """Note how long a COMMIT took, on either thread."""
        self.mean += (seconds - self.mean) * _WEIGHT
        if not self._fixed:
            self.on_loop = self.mean <= (SLOW if self.on_loop else QUICK)

    def failed(self) -> None:
        self.mean = max(self.mean, FAILED)
        self.measured(FAILED)


class _Job(NamedTuple):
    """Work for the writer thread: one call if `durable`, else calls until one returns False."""

    work: Callable[[Connection], Any]
    durable: bool
    by_worker: bool
    future: asyncio.Future[Any]


class Writer:
    """Owns the thread and its queues.

    At most `queue` appends are pending, and at most `batch` are written in one commit. The loop
    commits if `policy` says so and the store is `on_loop`.

    `commit_listeners` are called on the loop for each batch with (append, result) in commit order,
    after each append has its result; `written_listeners` on the thread that commits, with requests
    and results, after COMMIT and before a result is delivered. `commit_seconds` has the time of
    each batch in the store, with its COMMIT, failed ones too, and `delivery_seconds` that from its
    COMMIT to its last result.

    `full` says whether the next append would be refused as Overloaded; for the event loop.
    """

    def __init__(self, store: Store, policy: CommitPolicy, *, queue: int, batch: int) -> None:
        self.commit_listeners: list[Committed] = []
        self.written_listeners: list[Written] = []
        self.commit_seconds = Histogram(LONG_SECONDS)
        self.delivery_seconds = Histogram(SECONDS)
        self.full = False
        self._store = store
        self._policy = policy
        self._max_queued = queue
        self._max_batch = batch
        self._loop = asyncio.get_running_loop()
        # The loop appends, and the thread that commits pops: each is atomic, so `submit` takes no
        # lock. A queue of the standard library would take one for every append.
        self._queue: deque[Append] = deque()
        self._batch: list[Append] = []  # being written, or left undecided by a failure
        # Filled by both threads in commit order and delivered by the loop alone.
        self._decided: deque[tuple[Sequence[Append], Sequence[Result], float]] = deque()
        self._batches_since_job = 0
        self._jobs: deque[_Job] = deque()  # the durable ones, before all idle work
        self._idle: deque[_Job] = deque()
        # Held while the store is used. The store itself could lock, but then a commit of the loop
        # would fall between a batch of the thread and its entry in `_decided`.
        self._store_lock = Lock()
        self._wakeup = Event()
        self._flush_scheduled = False
        self._closing = False
        self._loop_failure: Exception | None = None
        self._failure: DatabaseError | None = None
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._stopped: asyncio.Future[None] = self._loop.create_future()
        self._thread = Thread(target=self._run, name="log writer", daemon=True)

    @property
    def commits_on_loop(self) -> bool:
        """Whether the event loop's thread commits at present, and not the writer thread."""
        return self._store.on_loop and self._policy.on_loop

    @property
    def unreachable(self) -> list[str]:
        """A sentence for each server of a log in shards that could not be reached, for a person."""
        return self._store.unreachable()

    @property
    def waiting(self) -> int:
        """Number of queued appends, without the batch that is being written."""
        return len(self._queue) + self._store.undecided

    async def start(self) -> None:
        """Start the thread and open the database; raises DatabaseError."""
        self._thread.start()
        try:
            await asyncio.shield(self._opened)
        except asyncio.CancelledError:
            await self.close()
            raise

    def submit(self, append: Append) -> None:
        """Queue an append whose `on_result` gets its result, in the order of these calls.

        If a batch fails, each result is a DatabaseError. Raises ValueError if the rows do not
        follow `expected`, Overloaded when the queue is full, Unavailable after `close`, and a
        DatabaseError after the writer has failed.
        """
        if len(append.table) != 16 or not (append.rows or append.checkpoints):
            raise ValueError("an append is to a table, whose id has 16 bytes, and adds something")
        for version, row in enumerate(append.rows, append.expected + 1):
            if row.version != version:
                raise ValueError(f"a row has version {row.version}, expected {version}")
        if self._failure is not None or self._closing:
            self._require_running()
        queued = len(self._queue) + self._store.undecided + 1
        if queued > self._max_queued:
            raise Overloaded("The server has too many writes queued; try again shortly.")
        self.full = queued == self._max_queued
        self._queue.append(append)
        # One flush per loop iteration, so that appends of the same iteration share a batch.
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)

    def enqueue(
        self, work: Callable[[Connection], Any], *, durable: bool, by_worker: bool = False
    ) -> asyncio.Future[Any]:
        """Queue work that runs between batches, in a transaction of its own, in arrival order.

        A `durable` one does not wait for idle work, of which there may always be more. With
        `by_worker` idle work runs by `Store.run_by_worker`.
        """
        self._require_running()
        future: asyncio.Future[Any] = self._loop.create_future()
        queue = self._jobs if durable else self._idle
        queue.append(_Job(work, durable=durable, by_worker=by_worker, future=future))
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)
        return future

    async def close(self) -> None:
        """Write all queued appends, cancel the jobs and stop the thread."""
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

    # On the loop

    def _flush(self) -> None:
        """Commit the queue and deliver the results, or leave it to the thread."""
        self._flush_scheduled = False
        done = False
        on_loop = self._store.on_loop and self._policy.on_loop and not self._closing
        # Not waiting: the thread may hold the lock for a slice of milliseconds, and no frame would
        # be read meanwhile. What it leaves it finds at its next turn, with what came since.
        if on_loop and self._store_lock.acquire(blocking=False):
            try:
                done = self._write_on_loop() and not self._store.maintenance_due()
            finally:
                self._store_lock.release()
            self._deliver()
        if not done or self._jobs or self._idle:
            self._wakeup.set()

    def _write_on_loop(self) -> bool:
        """Write the queue in one batch; False, with nothing done, if that is the thread's task."""
        undecided = bool(self._batch)  # of a failed batch; nothing may be written after it
        small = len(self._queue) <= self._max_batch and self._policy.allows(self._queue)
        if undecided or not small:
            return False
        batch = self._take()
        try:
            if batch:
                self._write(batch, wait=False)
        except DatabaseLocked:
            # Back to the front, in its order: what was queued later may be decided on it.
            self._queue.extendleft(reversed(batch))
            return False
        except Exception as error:
            # The thread raises it, and all appends are answered as after a failure of its own.
            self._loop_failure, self._batch = error, batch
            return False
        return True

    def _deliver(self) -> None:
        """Give the decided appends their results, in commit order; never inside of `submit`.

        The callback that delivers a batch of the thread may not have been called yet when the loop
        has committed the next one.
        """
        while self._decided:
            batch, results, decided_at = self._decided.popleft()
            self.full = len(self._queue) + self._store.undecided >= self._max_queued
            pairs = list(zip(batch, results, strict=True))
            for append, result in pairs:
                try:
                    append.on_result(append, result)
                except Exception as error:
                    self._report(error)
            self.delivery_seconds.observe(perf_counter() - decided_at)
            # Once for a batch and not for each append: most listeners only count or wake.
            for listener in tuple(self.commit_listeners):
                try:
                    listener(pairs)
                except Exception as error:
                    self._report(error)

    def _report(self, error: Exception) -> None:
        self._loop.call_exception_handler({"message": "commit callback failed", "exception": error})

    def _on_stopped(self, error: BaseException | None, kept: Sequence[Append]) -> None:
        """The thread has ended; `kept` are the appends that the store had not decided."""
        if error is not None:
            if not self._opened.done():
                self._opened.set_exception(error)
            self._failure = DatabaseError(
                f"The writer thread of {self._store.name} failed ({type(error).__name__}: {error});"
                " restart the server."
            )
            # The store may have kept some of the batch.
            undecided = list(dict.fromkeys([*kept, *self._batch, *self._queue]))
            self._batch = []
            self._queue.clear()
            failures = [self._failure] * len(undecided)
            self._decided.append((undecided, failures, perf_counter()))
            self._deliver()
        while jobs := self._jobs or self._idle:
            future = jobs.popleft().future
            if self._failure is not None:
                reject(future, self._failure)
            else:
                future.cancel()
        resolve(self._stopped, None)

    # On the writer thread

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            self._store.open()
            self._call_on_loop(resolve, self._opened, None)
            while True:
                # Read first, so that the appends that were queued before `close` are found below.
                closing = self._closing
                if self._work():
                    continue
                if closing and not self._store.undecided:
                    break
                self._wakeup.wait(self._store.seconds_until_due())
                self._wakeup.clear()
        except BaseException as error:
            failure = error
        kept: Sequence[Append] = ()
        with self._store_lock:
            try:
                kept = self._store.close()
            except Exception as error:
                failure = failure or error
        self._call_on_loop(self._on_stopped, failure, kept)

    def _work(self) -> bool:
        """Write a batch, run a job, do maintenance; False if there was no batch and no job."""
        # Read first, so that appends that were queued before a job are written before it.
        jobs = self._jobs or self._idle
        job_waits = bool(jobs)
        with self._store_lock:
            written = self._write_on_thread()
            maintenance_due = self._store.maintenance_due()
        # Maintenance comes after the callback was scheduled: a WAL checkpoint takes as long as some
        # dozens of commits, and would delay answers that are durable already.
        if written:
            # The lock is free again, so that the loop can commit what the callback submits.
            self._call_on_loop(self._deliver)
            self._batches_since_job += 1
        job_due = not written or self._batches_since_job >= BATCHES_PER_SLICE
        run_job = job_due and job_waits and not self._closing
        if run_job or maintenance_due:
            with self._store_lock:
                if run_job:
                    self._run_job(jobs.popleft())
                    self._batches_since_job = 0
                self._store.maintain()
        return written or run_job

    def _write_on_thread(self) -> bool:
        """Write the next batch; False if there is nothing to write.

        After an exception nothing more may be written, since the batch is not decided.
        """
        if self._loop_failure is not None:
            raise self._loop_failure
        batch = self._batch = self._take()
        written = bool(batch) or self._store.seconds_until_due() == 0
        if written:
            self._write(batch, wait=True)
        self._batch = []
        return written

    def _run_job(self, job: _Job) -> None:
        if job.future.cancelled():
            return
        try:
            if job.by_worker:
                result = self._store.run_by_worker(job.work)
            else:
                result = self._store.run(job.work, durable=job.durable)
        except Exception as error:
            self._call_on_loop(reject, job.future, error)
            return
        if not job.durable and result:
            self._idle.append(job)
        else:
            self._call_on_loop(resolve, job.future, result if job.durable else None)

    def _call_on_loop(self, callback: Callable[..., object], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            return  # the loop is closed, so no caller waits for a result

    # On the thread that commits, which holds the lock

    def _take(self) -> list[Append]:
        queue, batch = self._queue, list[Append]()
        while queue and len(batch) < self._max_batch:
            batch.append(queue.popleft())
        return batch

    def _write(self, batch: Sequence[Append], *, wait: bool) -> None:
        """Write a batch and pass it on to `_deliver`; DatabaseLocked only if not `wait`."""
        batch, results = self._append(batch, wait=wait)
        if batch:
            # Before any result is seen: a process that is killed here has marked less than it
            # wrote, never more than the log has.
            for listener in self.written_listeners:
                listener(batch, results)
            self._decided.append((batch, results, perf_counter()))

    def _append(
        self, batch: Sequence[Append], *, wait: bool
    ) -> tuple[Sequence[Append], Sequence[Result]]:
        """What the store has decided, or its error for each append."""
        started_at = perf_counter()
        try:
            decided = self._store.append(batch, wait=wait)
        except DatabaseError as error:
            if not wait and isinstance(error, DatabaseLocked):
                raise
            # Every append of the batch gets the error, and nothing is written again here: its
            # caller knows whether it is worth repeating, and its command id says what was written.
            self._policy.failed()
            for append in batch:
                if append.chain is not None:
                    append.chain.broken = True
            return batch, [error] * len(batch)
        finally:
            self.commit_seconds.observe(perf_counter() - started_at)
        self._policy.measured(self._store.commit_seconds)
        return decided
