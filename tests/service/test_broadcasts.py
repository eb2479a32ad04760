"""A broadcast shows what players have seen, and nothing before its time: whatever the game, the
clock and the server do."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dealer.errors import Refused
from dealer.eventlog import EventRecord
from dealer.game import commands as c
from dealer.game.view import BROADCAST
from dealer.gateway.wire.protocol import event_frame
from dealer.service import LiveTable, Service
from dealer.service.clock import SteadyClock
from dealer.service.reading.broadcasts import Broadcast
from dealer.service.reading.past_states import no_pause
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

    def __init__(self, service: Service, live_table: LiveTable, time: Time) -> None:
        self.service, self.live_table, self.time = service, live_table, time
        self.happened: dict[int, int] = {}  # version → when it really was
        self.restart()

    def restart(self) -> None:
        """Nothing is remembered but the log."""
        self.service.broadcasts.clock = SteadyClock(self.time.wall, self.time.elapsed)
        self.broadcast = Broadcast(self.live_table, DELAY)
        self.started = self.time.elapsed_ms
        self.events: list[str] = []

    def note_versions(self) -> None:
        for version in range(len(self.happened) + 1, self.live_table.committed + 1):
            self.happened[version] = self.time.elapsed_ms

    async def look(self, *, all_shown: bool = False) -> None:
        """Bring the broadcast up to date, and compare all that it shows with the log."""
        while due := await self.service.broadcasts.due(self.broadcast):
            for entry in due:
                assert entry.version == len(self.events) + 1
                assert entry.at <= self.time.wall() - DELAY
                happened = self.happened[entry.version]
                if happened > self.started:
                    assert self.time.elapsed_ms - happened >= DELAY
                frame = event_frame([entry], BROADCAST)
                self.events.append(frame[frame.index(b"{") :].decode())
        version = self.broadcast.version
        assert version == len(self.events)
        assert version == self.live_table.committed or not all_shown
        if not version:
            return
        state = await self.service.past_states.view(
            self.live_table, version, BROADCAST, pause=no_pause
        )
        # The log up to there, read again, is all that the state and the events may depend on.
        rows = await self.service.reader.entries(self.live_table, 0, version)
        assert self.events == [expected(row) for row in rows]
        assert (state["version"], state["at"]) == (version, rows[-1].at)
        if "round" in state:
            shown = {slot: card for slot, card, _ in state["round"]["cards"]}
            assert shown.items() <= glimpsed(rows)[state["round"]["round"]].items()


def glimpsed(rows: list[EventRecord]) -> dict[int, dict[int, str]]:
    """The faces that these events showed to anyone, by round and slot."""
    found: dict[int, dict[int, str]] = {}
    for row in rows:
        public = json.loads(row.leaf)["public"]
        if row.type == "RoundOpened":
            round_ = found[public["round"]] = {}
        elif row.type == "CardShown":
            round_[public["slot"]] = public["card"]
        elif row.seat:
            face = json.loads(row.private)
            round_[face["slot"]] = face["card"]
    return found


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
            watched = Watched(service, live_table, time)
            watched.note_versions()
            for step in steps:
                match step:
                    case ("passes", ms):
                        time.elapsed_ms += ms
                    case ("is set", ms):
                        time.set_by += ms
                    case ("restarts", _):
                        service.recent.release(live_table.id)
                        watched.restart()
                    case command:
                        with suppress(Refused):
                            await service.execute(live_table, command)
                        watched.note_versions()
                await watched.look()
            # It is late, but nothing is lost.
            time.elapsed_ms += 10 * DELAY * (1 + len(steps))
            await watched.look(all_shown=True)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(steps, max_size=25))
def test_nothing_is_shown_before_its_time(steps: list[Any]) -> None:
    asyncio.run(_play(steps))
