"""The queue of append requests, and group commit: each batch of it is one transaction.

The batches are written by the writer thread, or by the event loop while COMMIT is quick; see
`dealer.eventlog.writer`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import cast

from dealer.errors import DatabaseError, DatabaseLocked
from dealer.eventlog.commit_policy import CommitPolicy
from dealer.eventlog.deliveries import Deliveries
from dealer.eventlog.locked_requests import LockedRequests, Pending
from dealer.eventlog.rows import Append, Locked, Result
from dealer.eventlog.store import LoopStore, Store
from dealer.histogram import LONG_SECONDS, Histogram

Written = Callable[[Sequence[Append], Sequence[Result]], None]


class BatchWriter:
    """Takes batches of at most `max_batch` requests from the queue and writes them.

    The event loop adds requests; `waiting` may be read on any thread. Everything else is called by
    the thread that holds the writer's lock. Results are added to `deliveries`. `commit_seconds` has
    the time of each batch in the store, with its COMMIT.
    """

    def __init__(
        self,
        store: Store,
        loop_store: LoopStore | None,
        policy: CommitPolicy,
        deliveries: Deliveries,
        *,
        max_batch: int,
    ) -> None:
        self.listeners: list[Written] = []
        self.commit_seconds = Histogram(LONG_SECONDS)
        self._store = store
        self._loop_store = loop_store
        self._policy = policy
        self._deliveries = deliveries
        self._max_batch = max_batch
        self._queue: deque[Pending] = deque()
        self._locked = LockedRequests()
        self._batch: list[Pending] = []
        self._loop_failure: Exception | None = None

    @property
    def waiting(self) -> int:
        """Number of queued requests, without the batch that is being written."""
        return len(self._queue) + len(self._locked)

    @property
    def any_locked(self) -> bool:
        """Whether requests wait for the locks of other transactions."""
        return bool(self._locked)

    def add(self, pending: Pending) -> None:
        self._queue.append(pending)

    def seconds_until_due(self) -> float | None:
        """Seconds until locked requests are tried again; None if there are none."""
        return self._locked.seconds_until_due()

    def write(self) -> bool:
        """On the writer thread, write the next batch; False if the queue is empty.

        After an exception nothing more may be written, since the batch is not decided; `drain`
        returns it.
        """
        if self._loop_failure is not None:
            raise self._loop_failure
        batch = self._batch = self._take()
        if batch:
            self._write(batch, wait=True)
        self._batch = []
        return bool(batch)

    def write_on_loop(self) -> bool:
        """On the loop, write the queue in one batch; False, and nothing is done, if that is the
        thread's task.
        """
        failed = bool(self._batch)
        small = len(self._queue) <= self._max_batch and self._policy.allows(self._queue)
        if failed or not small:
            return False
        batch = self._take()
        try:
            if batch:
                self._write(batch, wait=False)
        except DatabaseLocked:
            self._queue.extendleft(reversed(batch))
            return False
        except Exception as error:
            # The thread raises it, and all requests are answered as after a failure of its own.
            self._loop_failure, self._batch = error, batch
            return False
        return True

    def drain(self) -> list[Pending]:
        """Remove and return all requests that are not decided."""
        found = [*self._batch, *self._locked.drain(), *self._queue]
        self._batch = []
        self._queue.clear()
        return found

    def _take(self) -> list[Pending]:
        batch = self._locked.due(self._max_batch) if self._locked else []
        with suppress(IndexError):
            while len(batch) < self._max_batch:
                pending = self._queue.popleft()
                if not (self._locked and self._locked.queue_behind(pending)):
                    batch.append(pending)
        return batch

    def _write(self, batch: list[Pending], *, wait: bool) -> None:
        requests = [request for request, _ in batch]
        results = self._append(requests, wait=wait)
        if self._locked or Locked in map(type, results):
            pairs = list(zip(batch, results, strict=True))
            self._locked.put_back([pending for pending, result in pairs if type(result) is Locked])
            pairs = [pair for pair in pairs if type(pair[1]) is not Locked]
            batch, results = [pending for pending, _ in pairs], [result for _, result in pairs]
            requests = [request for request, _ in batch]
        if batch:
            decided = cast("Sequence[Result]", results)
            for listener in tuple(self.listeners):
                listener(requests, decided)
            self._deliveries.add(batch, decided)

    def _append(self, requests: list[Append], *, wait: bool) -> Sequence[Result | Locked]:
        """The store's results, or its error for each request; DatabaseLocked only if not `wait`."""
        started_at = perf_counter()
        try:
            if self._loop_store is None:
                return self._store.append(requests)
            results = self._loop_store.append(requests, wait=wait)
        except DatabaseError as error:
            if not wait and isinstance(error, DatabaseLocked):
                raise
            self._policy.failed()
            for request in requests:
                if request.chain is not None:
                    request.chain.broken = True
            return [error] * len(requests)
        finally:
            self.commit_seconds.observe(perf_counter() - started_at)
        self._policy.measured(self._loop_store.commit_seconds)
        return results
