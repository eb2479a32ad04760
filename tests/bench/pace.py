"""What players wait for at a human pace: an open loop, beside others who come back.

    pace.py [--tables 50] [--seconds 60] [--every 2] [--resumes 100]

At each table four players draw, each of them every two seconds on average, at random (exponential)
instants, whether earlier draws were answered or not; one that is refused counts as never answered.
When the cards are used up the host shuffles again. Measured from when a draw is sent: until its
*answer*, and until the *last push*, when the other three have its event. Then the same while
players of other tables drop their connections and resume, so many a second, also at random.

Beside the load a thread writes 4 KiB to the same disk 20 times a second and measures `fdatasync`:
what a server waits for at least. The server has one processor, the load another one; where the load
itself is late, as the last line says, its figures are not the server's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import os
import random
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from load import LoadClient, cpu_times
from server import alone

try:
    from uvloop import run as run_loop
except ImportError:
    run_loop = asyncio.run  # type: ignore[assignment]

SEATS = 4
DECK = 52
WARM = 3.0
SYNC_PERIOD = 0.05

_DRAWN = re.compile(rb'"type":"CardDrawn","v":\d+,"version":(\d+)')
_VERSION = re.compile(rb'"version":(\d+)')
_HOST = "127.0.0.1"


class Sample:
    """Durations in seconds, of which `figures` names some in milliseconds."""

    QUANTILES = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))

    def __init__(self) -> None:
        self.all: list[float] = []

    def at(self, share: float) -> float:
        """The quantile in milliseconds; NaN if nothing was measured."""
        ordered = sorted(self.all)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000 if ordered else 0.0


class Seat(LoadClient):
    """A player's connection; `table` counts the draws that are pushed to it."""

    table: Table

    def pushed(self, buffer: bytes, start: int, end: int) -> None:
        if found := _DRAWN.search(buffer, start, end):
            self.table.pushed(int(found[1]))


class Table:
    """Four players, who draw when `act` is called and shuffle when the cards are used up."""

    def __init__(self, run: Run, chance: random.Random) -> None:
        self.counts_in(run)
        self._players: list[Seat] = []
        self._left = self._in_flight = 0
        # The first decks are used up at different times.
        self._first = chance.randint(1, DECK)
        self._begun: dict[int, float] = {}
        self._seen: dict[int, tuple[int, float]] = {}
        self.id = ""
        self.tokens: list[str] = []
        self.version = 0

    def counts_in(self, run: Run) -> None:
        """From now on its draws are of this run."""
        self._answers, self._pushes = run.answers, run.pushes

    async def sit_down(self, port: int) -> None:
        """Open the table, join and shuffle."""
        for seat in range(SEATS):
            player = await Seat.connect(_HOST, port)
            player.table = self
            if not seat:
                opened = await player.call("table.open", seats=SEATS, rules={"preset": "free"})
                self.id = str(opened["table"])
            joined = await player.call("table.join", table=self.id, name=f"seat {seat}")
            self.tokens.append(str(joined["token"]))
            self._players.append(player)
        await self._players[0].call("round.open", table=self.id, entropy="house")
        shuffled = await self._players[0].call("deck.shuffle", table=self.id)
        self.version = int(str(shuffled["version"]))
        self._left = self._first

    def act(self, seat: int) -> None:
        """The seat draws a card, or the host shuffles if there are none; not while he does."""
        if self._left == 0 and not self._in_flight:
            self._left = -1
            self._shuffle()
        elif self._left > 0:
            self._left -= 1
            self._in_flight += 1
            begun = time.perf_counter()

            def answered(answer: bytes) -> None:
                self._in_flight -= 1
                if b'"overloaded"' in answer:
                    self._answers.all.append(math.inf)
                    self._left += 1
                    return
                self._answers.all.append(time.perf_counter() - begun)
                _fine(answer)
                found = _VERSION.search(answer)
                assert found is not None, answer
                self._begun[int(found[1])] = begun
                self._complete(int(found[1]))

            self._players[seat].ask("deck.draw", f'"table":"{self.id}"', answered)

    def pushed(self, version: int) -> None:
        """One of the four has the event of this version."""
        times, _ = self._seen.get(version, (0, 0.0))
        self._seen[version] = times + 1, time.perf_counter()
        self._complete(version)

    def _complete(self, version: int) -> None:
        times, last = self._seen.get(version, (0, 0.0))
        if times == SEATS and version in self._begun:
            self._pushes.all.append(last - self._begun.pop(version))
            del self._seen[version]

    def _shuffle(self) -> None:
        host, table = self._players[0], f'"table":"{self.id}"'

        def shuffled(answer: bytes) -> None:
            _fine(answer)
            self._left = DECK

        host.ask("round.close", table, _fine)
        host.ask("round.open", f'{table},"entropy":"house"', _fine)
        host.ask("deck.shuffle", table, shuffled)

    async def come_back(self, port: int, seat: int) -> float:
        """Drop the seat's connection and resume by another; seconds from dialling to the answer."""
        self._players[seat].transport.abort()
        begun = time.perf_counter()
        player = await Seat.connect(_HOST, port)
        player.table = self
        self._players[seat] = player
        resume = {"table": self.id, "token": self.tokens[seat], "after": self.version}
        await player.call("table.resume", command=False, **resume)
        return time.perf_counter() - begun


def _fine(answer: bytes) -> None:
    assert b'"result"' in answer, answer


class Arrivals:
    """Calls `act` at random instants, `rate` times a second on average, and how late it was."""

    def __init__(self, rate: float, act: Callable[[], None], chance: random.Random) -> None:
        self.late = Sample()
        self._rate, self._act, self._chance = rate, act, chance

    async def run(self) -> None:
        """Until cancelled."""
        due = time.perf_counter()
        while True:
            due += self._chance.expovariate(self._rate)
            wait = due - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            self.late.all.append(max(0.0, time.perf_counter() - due))
            self._act()


class Sync:
    """Measures `fdatasync` of 4 KiB in a folder, from a thread, until `end`."""

    def __init__(self, folder: str) -> None:
        self.sample = Sample()
        self._file = Path(folder) / "sync"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with open(self._file, "w+b", buffering=0) as file:
            file.write(bytes(2**20))
            while not self._over.wait(SYNC_PERIOD):
                file.seek(0)
                file.write(bytes(4096))
                begun = time.perf_counter()
                os.fdatasync(file.fileno())
                self.sample.all.append(time.perf_counter() - begun)


class Run:
    """One measurement: its samples, and the server's CPU in µs a draw."""

    def __init__(self) -> None:
        self.answers, self.pushes, self.resumes = Sample(), Sample(), Sample()
        self.sync, self.late = Sample(), Sample()
        self.loop = self.cpu = 0.0

    def worst(self) -> float:
        """The p99 of answer and last push, the larger one, in milliseconds."""
        return max(self.answers.at(0.99), self.pushes.at(0.99))


async def seated(count: int, port: int, run: Run, chance: random.Random) -> list[Table]:
    """So many tables of four, opened eight at a time."""
    gate = asyncio.Semaphore(8)

    async def one() -> Table:
        async with gate:
            table = Table(run, chance)
            await table.sit_down(port)
            return table

    return list(await asyncio.gather(*(one() for _ in range(count))))


async def measure(
    tables: list[Table],
    run: Run,
    *,
    port: int,
    pid: int,
    folder: str,
    seconds: float,
    every: float,
    others: list[Table] | None = None,
    resumes: float = 0.0,
) -> Run:
    """Fill `run`, whose samples the tables add to; `others` resume."""
    chance = random.Random()
    resuming: set[asyncio.Task[float]] = set()

    def act() -> None:
        chance.choice(tables).act(chance.randrange(SEATS))

    # In turn, so that a player is back before he drops again.
    seats = [(table, seat) for seat in range(SEATS) for table in others or ()]

    def resume() -> None:
        seats.append(seats.pop(0))
        table, seat = seats[-1]
        task = asyncio.create_task(table.come_back(port, seat))
        resuming.add(task)
        task.add_done_callback(resuming.discard)
        task.add_done_callback(lambda done: run.resumes.all.append(done.result()))

    pace = Arrivals(len(tables) * SEATS / every, act, chance)
    running = [asyncio.create_task(pace.run())]
    if resumes:
        running.append(asyncio.create_task(Arrivals(resumes, resume, chance).run()))
    await asyncio.sleep(WARM)
    for sample in (run.answers, run.pushes, run.resumes, pace.late):
        sample.all.clear()
    sync, before = Sync(folder), cpu_times(pid)
    try:
        await asyncio.sleep(seconds)
        used = [after - then for after, then in zip(cpu_times(pid), before, strict=True)]
    finally:
        sync.end()
        for task in running:
            task.cancel()
    draws = max(1, len(run.answers.all))
    run.sync, run.late = sync.sample, pace.late
    run.loop, run.cpu = (seconds * 1e6 / draws for seconds in used)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(10):
            while resuming:
                await asyncio.wait(resuming)
    return run


def table_of(name: str, run: Run, beside: Run | None = None) -> Iterable[str]:
    """Lines of a Markdown table; a ratio to the run `beside` without resumes."""
    floor = run.sync.at(0.99)
    for what, sample in (("answer", run.answers), ("last push", run.pushes)):
        cells = [f"{name}: {what}"]
        for _, share in Sample.QUANTILES:
            cells.append(f"{sample.at(share):.1f} ms ({sample.at(share) / floor:.1f})")
        if beside is None:
            cells.append("")
        else:
            base = beside.answers if what == "answer" else beside.pushes
            cells.append(f"{sample.at(0.99) / base.at(0.99):.2f}")
        yield f"| {' | '.join(cells)} |"


def keep_apart(pid: int) -> None:
    """The server on the first processor and this program on the others, if there are several."""
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) > 1:
        for task in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), processors[:1])
        os.sched_setaffinity(0, processors[1:])


async def main(given: argparse.Namespace) -> None:
    print(
        "| at a human pace (in brackets: ÷ p99 of fdatasync) | p50 | p99 | p99.9 | p99 ÷ without |"
    )
    print("|---|---|---|---|---|")
    chance = random.Random()
    notes = []
    for count in given.tables:
        with alone() as server:
            pid, port = server.process.pid, server.port
            keep_apart(pid)
            run, beside = Run(), Run()
            tables = await seated(count, port, run, chance)
            others = await seated(given.others, port, Run(), chance) if given.resumes else []
            common = {"port": port, "pid": pid, "folder": server.folder}
            common |= {"seconds": given.seconds, "every": given.every}
            await measure(tables, run, **common)
            found = [(f"{count} × {SEATS}", run, None)]
            if given.resumes:
                for table in tables:
                    table.counts_in(beside)
                await measure(tables, beside, **common, others=others, resumes=given.resumes)
                found.append((f"{count} × {SEATS}, {given.resumes:g} resumes/s", beside, run))
        for name, one, without in found:
            print(*table_of(name, one, without), sep="\n", flush=True)
            resumed = f"; {len(one.resumes.all)} resumes, p50 {one.resumes.at(0.5):.1f} ms, p99 "
            resumed += f"{one.resumes.at(0.99):.1f} ms" if one.resumes.all else ""
            notes.append(
                f"{name}: {len(one.answers.all)} draws, CPU of the server {one.cpu:.0f} µs a draw,"
                f" {one.loop:.0f} of them its event loop; fdatasync p50 {one.sync.at(0.5):.2f} ms,"
                f" p99 {one.sync.at(0.99):.2f} ms; the load was late by {one.late.at(0.99):.1f} ms"
                f" (p99){resumed if one.resumes.all else ''}"
            )
    print("", *notes, sep="\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, nargs="+", default=[50, 500])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=2.0)
    parser.add_argument("--resumes", type=float, default=100.0)
    parser.add_argument("--others", type=int, default=100, help="tables whose players resume")
    return parser.parse_args()


if __name__ == "__main__":
    run_loop(main(_arguments()))
