"""CPU cost of one draw by stages, in µs of the loop's thread: `python tests/bench/draw.py`.

A real gateway and service over SQLite serve one table of four seats and its host, in this process
and without sockets: frames are passed to the dispatchers, and the transports only count what they
would send. One draw is in flight at a time. A stage is a function of the server; its figure is
without that of the stages that it calls, but with the cost of the clock, about 0.3 µs a stage. The
whole is measured in rounds of their own, without these clocks.

`python tests/bench/draw.py --batches` has the stages of batches instead: draws at several tables
arrive together, and the loop commits them together.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from server import LIMITS

from dealer.eventlog.writer import CommitPolicy, Writer
from dealer.gateway.push.broadcaster import Broadcaster
from dealer.gateway.rate_limit.budgets import ClientBudget
from dealer.gateway.server import Gateway
from dealer.gateway.session.dispatcher import Dispatcher
from dealer.gateway.session.session import Session
from dealer.gateway.wire.protocol import Reader
from dealer.service.build import open_service
from dealer.service.commands import executor
from dealer.service.commands.executor import CommandExecutor
from dealer.service.commands.processor import CommandProcessor

SEATS = 4
DECK = 52
ROUNDS = 40
WHOLE = "draw: all on the loop's thread"

STAGES: list[tuple[str, Any, str]] = [
    ("decode: frame to typed request", Reader, "read"),
    ("rates of connection and address", ClientBudget, "admit"),
    ("dispatch: membership, command, key", Dispatcher, "receive"),
    ("processor: known command, append", CommandProcessor, "submit"),
    ("executor: encode, proof, row", CommandExecutor, "apply"),
    ("decide: command to event", executor, "decide"),
    ("evolve: event to state", executor, "evolve"),
    ("queue for the writer", Writer, "submit"),
    ("after the commit", CommandProcessor, "on_result"),
    ("broadcast: frames, one per view", Broadcaster, "publish"),
    ("answer", Dispatcher, "_on_outcome"),
]

BATCHES = (1, 5, 10, 20, 40)
BATCH_STAGES: list[tuple[str, Any, str]] = [
    ("frames to queue", Dispatcher, "receive"),
    ("commit", Writer, "_write_on_loop"),
    ("commit to frames and answers", Writer, "_deliver"),
]


class Transport:
    """Counts the frames that it would send, and resolves `answered` with each answer."""

    def __init__(self, gateway: Gateway) -> None:
        self.address = "203.0.113.1"
        self.budget = gateway.context.budgets.client(self.address, 0.0)
        self.paused = False
        self.frames = 0
        self.answered: asyncio.Future[bytes]

    def write(self, data: bytes) -> None:
        self.frames += 1
        # The events of the client's own command come before the answer, in one write.
        if b'"jsonrpc":"2.0","id":' in data:
            self.answered.set_result(data)

    async def drained(self) -> bool:
        return True

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close_with(self, code: object, reason: str) -> None:
        raise AssertionError(reason)


class Client:
    """One connection without a socket."""

    def __init__(self, gateway: Gateway) -> None:
        self.transport = Transport(gateway)
        self.dispatcher = Dispatcher(Session(gateway.context, self.transport))
        self.sent = 0

    async def call(self, method: str, params: str = "") -> bytes:
        """Send a request with these JSON members as parameters; returns the frame of the answer."""
        self.sent += 1
        self.transport.answered = asyncio.get_running_loop().create_future()
        inside = f'{params},"cmd":"bench-{self.sent}"' if params else f'"cmd":"bench-{self.sent}"'
        text = f'{{"jsonrpc":"2.0","id":{self.sent},"method":"{method}","params":{{{inside}}}}}'
        self.dispatcher.receive(text.encode())
        answer = await self.transport.answered
        assert b'"result"' in answer, answer
        return answer


class Stages:
    """Adds up the time of each stage, without that of the stages within it, while `counting`."""

    def __init__(
        self,
        stages: list[tuple[str, Any, str]] = STAGES,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._stages, self._clock = stages, clock
        self.seconds = dict.fromkeys((label for label, _, _ in stages), 0.0)
        self.counting = False
        self._inner = [0.0]

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Enter this before the server is created, which stores some stages as bound methods."""
        before = [getattr(owner, name) for _, owner, name in self._stages]
        for (label, owner, name), function in zip(self._stages, before, strict=True):
            setattr(owner, name, self._timed(label, function))
        try:
            yield
        finally:
            for (_, owner, name), function in zip(self._stages, before, strict=True):
                setattr(owner, name, function)

    def _timed(self, label: str, function: Callable[..., Any]) -> Callable[..., Any]:
        clock, inner = self._clock, self._inner

        def timed(*given: Any, **named: Any) -> Any:
            if not self.counting:
                return function(*given, **named)
            inner.append(0.0)
            begun = clock()
            try:
                return function(*given, **named)
            finally:
                took = clock() - begun
                self.seconds[label] += took - inner.pop()
                inner[-1] += took

        return timed


async def _table(gateway: Gateway) -> tuple[str, Client, list[Client]]:
    host = Client(gateway)
    opened = await host.call("table.open", '"rules":{"preset":"free"}')
    table = opened[opened.index(b'"table":"') + 9 :][:32].decode()
    players = [Client(gateway) for _ in range(SEATS)]
    for number, player in enumerate(players):
        await player.call("table.join", f'"table":"{table}","name":"player {number}"')
    return f'"table":"{table}"', host, players


async def _draws(
    table: str, host: Client, players: list[Client], stages: Stages | None = None
) -> dict[str, float]:
    """A round of 52 draws: µs of each stage, and of the loop's thread, for one draw."""
    await host.call("round.open", f'{table},"entropy":"house"')
    await host.call("deck.shuffle", table)
    if stages is not None:
        stages.counting, stages.seconds = True, dict.fromkeys(stages.seconds, 0.0)
    begun = time.thread_time()
    for turn in range(DECK):
        await players[turn % SEATS].call("deck.draw", f'{table},"count":1')
    costs = {WHOLE: time.thread_time() - begun}
    if stages is not None:
        stages.counting, costs = False, stages.seconds
    await host.call("round.close", table)
    return {label: seconds / DECK * 1e6 for label, seconds in costs.items()}


async def _medians(rounds: int, stages: Stages | None = None) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        async with open_service(f"sqlite:///{folder}/bench.db", synchronous="NORMAL") as service:
            gateway = Gateway(service, limits=LIMITS)
            at = await _table(gateway)
            for _ in range(5):
                await _draws(*at)
            gc.collect()
            costs = [await _draws(*at, stages) for _ in range(rounds)]
            await gateway.context.tasks.close()
    return {label: statistics.median(cost[label] for cost in costs) for label in costs[0]}


async def _batch(tables: int, rounds: int) -> dict[str, float]:
    """µs of each of `BATCH_STAGES` for a draw, one in flight at each of so many tables."""
    # Not the cheaper clock: other processes would count in the few rounds of a large batch.
    stages = Stages(BATCH_STAGES, time.thread_time)
    costs: list[dict[str, float]] = []
    with stages.installed(), tempfile.TemporaryDirectory(prefix="bench-") as folder:
        async with open_service(f"sqlite:///{folder}/bench.db", synchronous="NORMAL") as service:
            service.log.writer._policy = CommitPolicy("loop")
            gateway = Gateway(service, limits=LIMITS)
            at = [await _table(gateway) for _ in range(tables)]
            for _ in range(rounds):
                for table, host, _ in at:
                    await host.call("round.open", f'{table},"entropy":"house"')
                    await host.call("deck.shuffle", table)
                await service.projection.up_to_date()
                stages.counting, stages.seconds = True, dict.fromkeys(stages.seconds, 0.0)
                for turn in range(DECK):
                    drawn = [
                        players[turn % SEATS].call("deck.draw", f'{table},"count":1')
                        for table, _, players in at
                    ]
                    await asyncio.gather(*drawn)
                stages.counting = False
                draws = DECK * tables
                costs.append({label: s / draws * 1e6 for label, s in stages.seconds.items()})
                for table, host, _ in at:
                    await host.call("round.close", table)
            await gateway.context.tasks.close()
    return {label: statistics.median(cost[label] for cost in costs) for label in costs[0]}


async def _batches() -> list[dict[str, Any]]:
    return [
        {"name": f"batch of {tables}: {label}", "figure": figure, "unit": "µs"}
        for tables in BATCHES
        for label, figure in (await _batch(tables, 3 + 80 // tables)).items()
    ]


async def _measure(rounds: int) -> list[dict[str, Any]]:
    whole, stages = await _medians(rounds), Stages()
    with stages.installed():
        found = await _medians(rounds, stages) | whole
    return [{"name": name, "figure": figure, "unit": "µs"} for name, figure in found.items()]


def measure(*, rounds: int = ROUNDS, batches: bool = False) -> list[dict[str, Any]]:
    """Rows of name, figure and unit: each stage, then the whole; or the stages of batches."""
    try:
        from uvloop import run
    except ImportError:
        run = asyncio.run  # type: ignore[assignment]
    found: list[dict[str, Any]] = run(_batches() if batches else _measure(rounds))
    return found


if __name__ == "__main__":
    arguments = sys.argv[1:]
    batches = "--batches" in arguments
    given = [int(number) for number in arguments if number != "--batches"]
    for row in measure(rounds=given[0] if given else ROUNDS, batches=batches):
        print(f"{row['name']:40} {row['figure']:8.2f} {row['unit']}")
