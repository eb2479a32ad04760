"""A broadcast shows what players have seen, and nothing before its time: whatever the game, the
clock and the server do.

Each step of a random game is followed by a look at all that a viewer was sent: every byte of it is
compared with what the log says up to the newest event that is old enough, and that event with the
clock. `FAULTS` are errors of one character or one name that are planted in the server: the same
search has to find each of them, so it fails when it can no longer see one.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dealer.errors import Refused
from dealer.eventlog import EventRecord
from dealer.eventlog.services import HOST as OF_HOST
from dealer.game import commands as c
from dealer.gateway.wire import protocol
from dealer.proof.tree import Tree
from dealer.service import CommitNotice, LiveTable, Service
from dealer.service.clock import SteadyClock
from dealer.service.reading import broadcasts
from tests.harness.empty_log import empty_log
from tests.service.bare_service import bare_service
from tests.service.tables import HOST, OPEN_ROUND

SECONDS = 5
DELAY = 1000 * SECONDS
START = 1_700_000_000_000
PLAYERS = 2


class Time:
    """A wall clock that can be set, and the time that really elapses."""

    def __init__(self) -> None:
        self.elapsed_ms = 0
        self.set_by = 0

    def wall(self) -> int:
        return START + self.elapsed_ms + self.set_by

    def elapsed(self) -> int:
        return self.elapsed_ms


def expected(row: EventRecord) -> str:
    """An event as it is pushed: its leaf, with the opening of a text or of the face it shows."""
    beside = {0: "opened", None: ""}.get(row.seat, "private")
    more = f',"{beside}":{row.private}' if beside else ""
    return f'{{"jsonrpc":"2.0","method":"event","params":{row.leaf[:-1]}{more}}}}}'


class Watched:
    """A table whose broadcast is compared with its log after each step."""

    def __init__(self, service: Service, live_table: LiveTable, link: str, time: Time) -> None:
        self.service, self.live_table, self.link, self.time = service, live_table, link, time
        self.happened: dict[int, int] = {}  # version → when it really was
        service.notices.listen(self.sent)

    async def restart(self) -> None:
        """Nothing is remembered but the log."""
        self.service.recent.release(self.live_table.id)
        self.service.broadcasts.watched.clear()
        self.service.broadcasts.clock = SteadyClock(self.time.wall, self.time.elapsed)
        self.started = self.time.elapsed_ms
        self.events: list[str] = []
        self.notes: list[tuple[int, str]] = []
        self.broadcast = await self.service.broadcasts.find(self.live_table.table_id, self.link)

    def note_versions(self) -> None:
        for version in range(len(self.happened) + 1, self.live_table.committed + 1):
            self.happened[version] = self.time.elapsed_ms

    def sent(self, live_table: LiveTable, notice: CommitNotice) -> None:
        """What is pushed to all who watch."""
        if live_table is not self.broadcast:
            return
        for entry in notice.entries:
            assert entry.version == len(self.events) + 1
            assert entry.at <= self.time.wall() - DELAY
            happened = self.happened[entry.version]
            if happened > self.started:
                assert self.time.elapsed_ms - happened >= DELAY
            frame = protocol.event_frame([entry], live_table.audience)
            self.events.append(frame[frame.index(b"{") :].decode())
        self.notes += notice.notes

    async def look(self, *, all_shown: bool = False) -> None:
        """Bring the broadcast up to date, and compare all that it shows with the log."""
        before = self.broadcast.committed
        await self.service.broadcasts.advance(self.broadcast)
        version = self.broadcast.committed
        assert version == len(self.events)
        assert version == self.live_table.committed or not all_shown
        rows = await self.service.reader.entries(self.live_table, 0)
        oldest = self.service.broadcasts.clock() - DELAY
        assert version == max(before, len(list(takewhile(lambda row: row.at <= oldest, rows))))
        # The log up to there, read again, is all that bytes may depend on.
        assert self.events == [expected(row) for row in rows[:version]]
        if version:
            self.notes.append(await self.service.checkpoints.head(self.broadcast))
        for size, note in self.notes:
            assert size <= version
            assert note == self.signed(rows[:size])

    def signed(self, rows: list[EventRecord]) -> str:
        tree = Tree()
        for row in rows:
            tree.add(row.leaf.encode())
        return self.service.executor.sign(self.live_table, tree.size, tree.root())


actors = st.sampled_from([HOST, c.Actor(seat=1), c.Actor(seat=2)])
stacks = st.sampled_from(["deck", "deck", "pile:x", "hand:1", "hand:2"])
moves = st.one_of(
    st.builds(c.Draw, actors, st.sampled_from([1, 2]), stacks, st.just("top"), st.none()),
    st.builds(c.Show, actors, stacks, st.none(), st.sampled_from([None, 1, 2])),
    st.builds(
        c.Move, actors, st.sampled_from(["pile", "play", "discard", "give", "burn"]), stacks,
        stacks, st.none(), st.just(1), st.just("top"), st.sampled_from(["up", "down"]),
    ),
    st.builds(c.Deal, st.just(HOST), st.just(1)),
    st.builds(c.StartShuffle, st.just(HOST), stacks, st.just("backward"), st.none()),
    st.just(c.CloseRound(HOST)),
    st.just(c.CloseTable(HOST)),
    st.just(OPEN_ROUND),
)  # fmt: skip
steps = st.one_of(
    moves,
    moves,
    st.sampled_from([1, 999, DELAY - 1, DELAY, DELAY + 1]).map(lambda ms: ("passes", ms)),
    st.sampled_from([-DELAY, -1, 1, DELAY, 3 * DELAY]).map(lambda ms: ("is set", ms)),
    st.just(("restarts", 0)),
)


async def _play(steps: list[Any]) -> None:
    time = Time()
    with TemporaryDirectory() as folder:
        async with bare_service(empty_log(Path(folder) / "dealer.db")) as service:
            service.executor.now = time.wall
            live_table, _ = await service.open_table({"preset": "free", "broadcast": SECONDS})
            for number in range(PLAYERS):
                await service.execute(live_table, c.TakeSeat(f"player {number}"))
            await service.execute(live_table, OPEN_ROUND)
            await service.execute(live_table, c.StartShuffle(HOST))
            link = await service.broadcasts.link(live_table, OF_HOST)
            watched = Watched(service, live_table, link, time)
            watched.note_versions()
            await watched.restart()
            for step in steps:
                match step:
                    case ("passes", ms):
                        time.elapsed_ms += ms
                    case ("is set", ms):
                        time.set_by += ms
                    case ("restarts", _):
                        await watched.restart()
                    case command:
                        with suppress(Refused):
                            await service.execute(live_table, command)
                        watched.note_versions()
                await watched.look()
            # It is late, but nothing is lost.
            time.elapsed_ms += 10 * DELAY * (1 + len(steps))
            await watched.look(all_shown=True)


def search(*, examples: int, **more: Any) -> None:
    """Play random games until one shows something wrong."""

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), **more)
    @given(st.lists(steps, max_size=25))
    def play(steps: list[Any]) -> None:
        asyncio.run(_play(steps))

    play()


def test_nothing_is_shown_before_its_time() -> None:
    search(examples=60)


NOW = "oldest = self.clock()"
FAULTS = {
    "a millisecond late": (broadcasts, "entry.at <= oldest, entries", "entry.at < oldest, entries"),
    "a millisecond early": (broadcasts, "entry.at <= oldest,", "entry.at <= oldest + 1,"),
    "an event too many": (
        broadcasts,
        "        broadcast.next_at = entries",
        "        due = entries[: len(due) + 1]\n        broadcast.next_at = entries",
    ),
    "the clock as it was set": (broadcasts, NOW, "oldest = self.clock._wall()"),
    "the clock of the newest event": (broadcasts, NOW, "oldest = of.at"),
    "a second early": (broadcasts, "1000 * (seconds or 0)", "1000 * ((seconds or 0) - 1)"),
    "not at its millisecond": (broadcasts, "next_at > oldest and", "next_at >= oldest and"),
    "a head of the table itself": (broadcasts, "head(broadcast)] if", "head(broadcast.source)] if"),
    "the version of the table itself": (
        broadcasts,
        "table.version = due[-1].version",
        "table.version = broadcast.source.committed",
    ),
    "no faces": (protocol, "viewer == BROADCAST or", "viewer is None or"),
}
"""A fault: the module, the source that is changed in it, and what that is changed to."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, right, wrong = FAULTS[fault]
    source = inspect.getsource(module)
    assert source.count(right) == 1
    planted = ModuleType(module.__name__)
    monkeypatch.setitem(sys.modules, module.__name__, planted)
    exec(compile(source.replace(right, wrong), module.__name__, "exec"), planted.__dict__)
    if module is protocol:
        monkeypatch.setattr(protocol, "event_frame", planted.event_frame)
    else:
        for name in ("advance", "_due"):
            monkeypatch.setattr(broadcasts.Broadcasts, name, getattr(planted.Broadcasts, name))
    with pytest.raises((AssertionError, KeyError)):
        search(examples=300, phases=[Phase.generate], derandomize=True, report_multiple_bugs=False)
