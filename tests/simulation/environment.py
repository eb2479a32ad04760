"""What every simulated run replaces of the program's surroundings.

The loop, the wall clock and the store are arguments of the program, the network is the loop's. The
rest are names that modules have imported: clocks, random bytes, threads, and the socket to listen
on. Some kinds of runs replace a little more, in `core/world.py`, `points.py` and `exchange.py`.
"""

from __future__ import annotations

import asyncio
import os
import random as random_module
import secrets
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from random import Random
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import dealer.backoff
import dealer.eventlog.keys
import dealer.eventlog.log
import dealer.eventlog.postgres.store
import dealer.eventlog.writer
import dealer.gateway.net.connection
import dealer.gateway.pages.router
import dealer.gateway.rate_limit.cpu_time
import dealer.gateway.server
import dealer.gateway.session.dispatcher
import dealer.projector.scheduler
import dealer.proof.checkpoint
import dealer.proof.note
from dealer.client.table_session import TableSession
from dealer.eventlog import ReadOnlyLog
from dealer.gateway.clients import ClientConnection
from dealer.gateway.pages.static_files import StaticFiles
from dealer.gateway.presence.membership import Subscription
from tests.simulation import store
from tests.simulation.database import Database
from tests.simulation.loop import DOMAIN, SimulatedLoop
from tests.simulation.network import ListeningSocket, Network
from tests.simulation.threads import Threads


@cache
def _read_web_files() -> StaticFiles:
    """The pages' files, read once: no run changes them."""
    return StaticFiles()


_verifies = lru_cache(4096)(dealer.proof.note.verifies)
"""Whether a signature verifies, computed once where several clients ask the same."""

_derived = lru_cache(4096)(dealer.eventlog.keys._derived)
"""A key of a house, computed once where several nodes have the same house's."""


class _PrivateKeys:
    """The same of what a signing seed takes."""

    from_private_bytes = staticmethod(lru_cache(4096)(Ed25519PrivateKey.from_private_bytes))


EPOCH_MS = 1_800_000_000_000


def _raised_in(error: BaseException | None) -> str:
    """The name of the function that has raised an error."""
    trace = None if error is None else error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else trace.tb_frame.f_code.co_name


class Numbers:
    """Numbers objects in the order of their first use: hashes that do not depend on addresses.

    Sets of connections and subscriptions are written to in the order of these.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[int, object]] = {}

    def of(self, one: object) -> int:
        found = self._numbers.get(id(one))
        if found is None:  # kept, so that no other object gets its address
            found = self._numbers[id(one)] = len(self._numbers), one
        return found[0]


class Entropy:
    """Random bytes, one sequence a domain, so that what one does changes no other's."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random: dict[str, Random] = {}

    def random(self) -> Random:
        domain = DOMAIN.get()
        name = "" if domain is None else domain.name
        if name not in self._random:
            self._random[name] = Random(f"entropy {self._seed} {name}")
        return self._random[name]

    def token_bytes(self, nbytes: int | None = None) -> bytes:
        return self.random().randbytes(32 if nbytes is None else nbytes)

    def uniform(self, low: float, high: float) -> float:
        return self.random().uniform(low, high)

    def uuid4(self) -> uuid.UUID:
        return uuid.UUID(bytes=self.token_bytes(16), version=4)

    def getrandbits(self, bits: int) -> int:
        return self.random().getrandbits(bits)


@contextmanager
def replaced(
    loop: SimulatedLoop,
    threads: Threads,
    network: Network,
    database: Database,
    seed: int,
    *,
    on_gap: Callable[[TableSession], None],
) -> Iterator[None]:
    """Run the block with everything replaced that is not an argument of the program.

    `on_gap` is called with a client's session that misses a version.
    """
    entropy = Entropy(seed)

    async def listening_sockets(host: str, port: int, *, flag: str = "") -> list[Any]:
        domain = DOMAIN.get()
        assert domain is not None
        return [ListeningSocket(network, domain, host, port)]

    def backend(url: str, **settings: Any) -> Any:
        return store.backend(database)

    async def open_readonly(url: str) -> ReadOnlyLog:
        return ReadOnlyLog(store.SimulatedReader(database))

    def wall_ns() -> int:
        return EPOCH_MS * 1_000_000 + int(loop.now * 1e9)

    numbers = Numbers()
    resume_after_gap = TableSession._resume_after_gap

    def missed(session: TableSession) -> None:
        # A snapshot that proves nothing is asked for again, and nothing was left out.
        if _raised_in(sys.exception()) != "reset":
            on_gap(session)
        resume_after_gap(session)

    names: list[tuple[Any, str, Any]] = [
        (dealer.eventlog.log, "backend", backend),
        (dealer.eventlog.writer, "Thread", threads.Thread),
        (dealer.eventlog.writer, "Event", threads.Event),
        (dealer.eventlog.writer, "Lock", threads.Lock),
        (dealer.eventlog.writer, "perf_counter", loop.time),
        (dealer.eventlog.postgres.store, "monotonic", loop.time),
        (dealer.projector.scheduler, "monotonic", loop.time),
        (dealer.projector.scheduler, "perf_counter", loop.time),
        (dealer.gateway.server, "listening_sockets", listening_sockets),
        (dealer.gateway.rate_limit.cpu_time, "thread_time", loop.time),
        (dealer.gateway.session.dispatcher, "thread_time", loop.time),
        (dealer.gateway.net.connection, "thread_time", loop.time),
        (time, "time", lambda: wall_ns() / 1e9),
        (time, "time_ns", wall_ns),
        (dealer.eventlog.log, "open_readonly", open_readonly),
        (dealer.gateway.pages.router, "StaticFiles", lambda _: _read_web_files()),
        (dealer.proof.note, "verifies", _verifies),
        (dealer.eventlog.keys, "_derived", _derived),
        (dealer.proof.checkpoint, "Ed25519PrivateKey", _PrivateKeys),
        (TableSession, "_resume_after_gap", missed),
        (Subscription, "__hash__", lambda one: numbers.of(one)),
        (ClientConnection, "__hash__", lambda one: numbers.of(one)),
        (secrets, "token_bytes", entropy.token_bytes),
        (random_module, "uniform", entropy.uniform),
        (uuid, "uuid4", entropy.uuid4),
        (os, "urandom", entropy.token_bytes),
        (random_module, "getrandbits", entropy.getrandbits),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in names]
    for module, name, value in names:
        setattr(module, name, value)
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
        asyncio.set_event_loop(None)
