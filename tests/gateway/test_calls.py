"""How many of the project's functions a draw calls, and in how many of its files: bounds on both.

A draw cannot become longer unnoticed. So that the machine's speed does not count, the event loop
commits however long that takes, the read models follow after all draws, in slices of a fixed
number of events, and of the draws the median counts: timers fall into a few of them.
Comprehensions and generators count as calls; functions of C do not, nor those of libraries.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

import pytest

import dealer
from dealer.eventlog.writer import CommitPolicy
from dealer.gateway.server import Gateway, serve
from dealer.service import Service
from dealer.service.build import open_service
from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.rpc_client import RpcClient

DEALER = str(Path(dealer.__file__).parent) + "/"
SEATS = 4
DRAWS = 100
CALLS = 96
"""With the read models. Each draw has a commit of its own here, whose 40 calls are shared by the
draws of many tables otherwise."""

FILES = 41
"""Files of which a function is called at least every second draw."""


@contextmanager
def counted(calls: Counter[str]) -> Iterator[None]:
    """Count the calls by file, of all threads that start within the block, and of this one."""

    def hook(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(DEALER):
            calls[frame.f_code.co_filename] += 1

    sys.setprofile(hook)
    try:
        yield
    finally:
        sys.setprofile(None)


async def seated(gateway: Gateway, service: Service) -> tuple[RpcClient, list[RpcClient]]:
    host = await RpcClient.connect(gateway.port)
    opened = await host.call("table.open", rules={"preset": "free"})
    players = []
    for number in range(SEATS):
        player = await RpcClient.connect(gateway.port)
        invite = opened["invite"]
        await player.call(
            "table.join", table=opened["table"], name=f"player {number}", invite=invite
        )
        players.append(player)
    await host.call("round.open", deck={"decks": 4}, entropy="house")
    await host.call("deck.shuffle")
    return host, players


@pytest.fixture
def hooked_threads() -> Iterator[Counter[str]]:
    """The calls of the writer's thread, which starts in the test."""
    calls: Counter[str] = Counter()

    def hook(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(DEALER):
            calls[frame.f_code.co_filename] += 1

    threading.setprofile(hook)
    yield calls
    threading.setprofile(None)


async def test_a_draw_calls_few_functions_of_few_files(
    tmp_path: Path, hooked_threads: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CommitPolicy, "measured", lambda self, seconds: None)
    async with (
        open_service(f"sqlite:///{tmp_path}/dealer.db") as service,
        serve(service, port=0, limits=TEST_LIMITS) as gateway,
    ):
        # The draws are projected at the end, however long they take.
        monkeypatch.setattr(service.projection._polls, "_delay", 600.0)
        monkeypatch.setattr(service.projection._polls, "seconds", 600.0)
        _, players = await seated(gateway, service)
        for player in players:
            await player.call("deck.draw")
        await service.projection.up_to_date()
        monkeypatch.setattr(service.log.writer._policy, "on_loop", True)
        calls: Counter[str] = Counter()
        before = Counter(hooked_threads)
        of_draws = []
        with counted(calls):
            for turn in range(DRAWS):
                begin = calls.total()
                await players[turn % SEATS].call("deck.draw")
                of_draws.append(calls.total() - begin)
            drawn = calls.total()
            await service.projection.up_to_date()
        projected = calls.total() - drawn + (hooked_threads - before).total()
        calls += hooked_threads - before
        rows = await service.log.fetch("SELECT count(*) FROM moves WHERE event = 'CardDrawn'")
    assert rows[0][0] == DRAWS + SEATS  # a projection that failed would look like fewer calls
    files = {file for file, count in calls.items() if count >= DRAWS / 2}
    assert median(of_draws) + projected / DRAWS <= CALLS, calls.most_common(40)
    assert len(files) <= FILES, sorted(files)
