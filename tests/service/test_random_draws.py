"""Random draws: each happens once, at the seal of its own shuffle."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dealer.errors import NotYourSeat, ShuffleRunning, Unavailable
from dealer.game.commands import (
    Actor,
    CloseRound,
    CommitEntropy,
    Draw,
    DrawAtRandom,
    LeaveSeat,
    Move,
    MoveSeat,
    OpenRound,
    RevealEntropy,
    StartShuffle,
    TakeSeat,
)
from dealer.game.events import CardDrawn, ShuffleStarted
from dealer.proof.round_keys import player_digest
from dealer.service import CommandResult, IdempotencyKey, LiveTable, Service
from dealer.service.commands.random_draws import RandomDraws
from dealer.service.tables.execution import CommandExecution, PendingDraw
from tests.service.tables import (
    HOST,
    NONCE,
    commit_entropy,
    new_table,
    reveal_entropy,
    round_of,
    shared_table,
)


async def contribute(service: Service, live_table: LiveTable, k: int) -> None:
    """Both players contribute their nonces to shuffle k."""
    await commit_entropy(service, live_table, 1, 2, k=k)
    await reveal_entropy(service, live_table, 1, 2, k=k)


def at_random(service: Service, live_table: LiveTable, seat: int) -> asyncio.Task[CommandResult]:
    """A draw of two cards; each call of a seat repeats one command."""
    sent: dict[str, Any] = {"key": IdempotencyKey(f"seat:{seat}", "r", b"random")}
    draw = service.random_draws.draw(live_table, DrawAtRandom(Actor(seat=seat), 2), **sent)
    return asyncio.ensure_future(draw)


def hands(live_table: LiveTable) -> list[int]:
    return [len(round_of(live_table).cards(f"hand:{seat}")) for seat in (1, 2)]


async def test_a_repetition_during_another_shuffle_gets_the_first_answer(
    service: Service,
) -> None:
    live_table = await new_table(service, entropy="players")
    first = at_random(service, live_table, 1)
    await asyncio.sleep(0)
    await contribute(service, live_table, 0)
    mine = await first
    theirs = at_random(service, live_table, 2)
    await asyncio.sleep(0)
    again = at_random(service, live_table, 1)
    await contribute(service, live_table, 1)
    assert await again == mine
    drawn = (await theirs).events
    assert {event.seat for event in drawn if isinstance(event, CardDrawn)} == {2}
    assert hands(live_table) == [2, 2]
    await service.execute(live_table, StartShuffle(HOST))
    again = at_random(service, live_table, 1)
    await contribute(service, live_table, 2)
    assert await again == mine
    assert hands(live_table) == [2, 2]


async def test_a_repetition_in_the_next_round_gets_the_first_answer(service: Service) -> None:
    live_table = await new_table(service, entropy="players")
    first = at_random(service, live_table, 1)
    await asyncio.sleep(0)
    await contribute(service, live_table, 0)
    mine = await first
    await service.execute(live_table, CloseRound(HOST))
    assert await at_random(service, live_table, 1) == mine


async def test_a_repetition_after_a_long_shuffle_and_a_restart_draws_no_more(
    open_service,
) -> None:
    """The shuffle has more events than are read in one batch."""
    service = await open_service()
    live_table, _ = await service.open_table({})
    await service.execute(live_table, TakeSeat("Ann"))
    deck = tuple(f"{n:04}" for n in range(1024))
    await service.execute(live_table, OpenRound(HOST, deck, "players", 10_000, 10_000))
    sent = {"key": IdempotencyKey("seat:1", "r", b"random")}
    command = DrawAtRandom(Actor(seat=1), 1010)
    first = asyncio.ensure_future(service.random_draws.draw(live_table, command, **sent))
    await asyncio.sleep(0)
    await commit_entropy(service, live_table, 1)
    await reveal_entropy(service, live_table, 1)
    done = await first
    other = await open_service()
    again = await other.random_draws.draw(
        await other.lifecycle.load(live_table.table_id), command, **sent
    )
    assert again == done


async def test_a_draw_of_a_player_who_left_is_void(service: Service) -> None:
    """Also if another has taken the seat by the time of the seal."""
    live_table = await new_table(service, entropy="players")
    ann = Actor(seat=1, taken_at=live_table.table.seats[1].taken_at)
    draw = asyncio.ensure_future(service.random_draws.draw(live_table, DrawAtRandom(ann, 2)))
    await asyncio.sleep(0)
    await service.execute(live_table, LeaveSeat(ann))
    await service.execute(live_table, TakeSeat("Carol", seat=1))
    await contribute(service, live_table, 0)
    with pytest.raises(NotYourSeat):
        await draw
    assert hands(live_table) == [0, 0]


async def test_a_draw_that_was_refused_does_not_happen_later(open_service) -> None:
    """Another process began a shuffle before the one that the draw would have begun."""
    one, two = await open_service(), await open_service()
    here, there = await shared_table(one, two, entropy="players")
    await two.execute(there, StartShuffle(HOST))
    with pytest.raises(ShuffleRunning):
        await at_random(one, here, 1)
    assert round_of(here).shuffle is not None
    await contribute(one, here, 0)
    assert hands(here) == [0, 0]


async def test_a_repetition_finds_a_draw_that_another_process_sealed(
    open_service,
) -> None:
    one, two = await open_service(), await open_service()
    here = await new_table(one, entropy="players")
    lost = at_random(one, here, 1)
    await asyncio.sleep(0)
    there = await two.lifecycle.load(here.table_id)
    while there.table.round.shuffle is None:
        there = await two.lifecycle.load(here.table_id)
    await contribute(two, there, 0)
    await one.lifecycle.load(here.table_id)
    with pytest.raises(Unavailable):
        await lost
    done = await at_random(one, here, 1)
    assert [type(event) for event in done.events] == [CardDrawn] * 2
    await one.execute(here, StartShuffle(HOST))
    await contribute(one, here, 1)
    assert hands(here) == [2, 0]


async def test_two_draws_whose_seals_are_lost_are_both_answered(open_service) -> None:
    """The second shuffle began while the seal of the first was on its way to the log."""
    one, two = await open_service(), await open_service()
    here, there = await shared_table(one, two, entropy="players")

    def submit(seat: int, kind: type[CommitEntropy | RevealEntropy], k: int) -> None:
        digest = player_digest(table=here.id, round=1, k=k, seat=seat, nonce=NONCE)
        content = digest if kind is CommitEntropy else NONCE
        one.submit(here, kind(Actor(seat=seat), 1, k, content), done=lambda _: None)

    first = at_random(one, here, 1)
    await asyncio.sleep(0)
    await commit_entropy(one, here, 1, 2)
    await reveal_entropy(one, here, 1)
    await two.execute(
        await two.lifecycle.load(there.table_id), TakeSeat("Dan")
    )  # nothing here is new now
    submit(2, RevealEntropy, 0)
    second = at_random(one, here, 2)
    await asyncio.sleep(0)
    for kind in (CommitEntropy, RevealEntropy):
        for seat in (1, 2):
            submit(seat, kind, 1)
    async with asyncio.timeout(20):
        outcomes = await asyncio.gather(first, second, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 2
    assert not here.holds


class StubReader:
    """Finds no seal, and counts how often it is asked."""

    def __init__(self) -> None:
        self.reads = 0

    async def seal_after(self, live_table: LiveTable, version: int) -> int | None:
        self.reads += 1
        return None


def draws_with(reader: StubReader) -> RandomDraws:
    unused: Any = None
    read: Any = reader
    return RandomDraws(unused, read, unused)


def repeated(outcomes: list[Any], seat: int) -> tuple[Any, ...]:
    """The arguments of `_resume` for a draw whose shuffle began at version 5."""
    draw = Draw(Actor(seat=seat))
    start = CommandResult(5, [ShuffleStarted(1, 0, "deck", 4, "backward", 1)])
    execution = CommandExecution(command=DrawAtRandom(Actor(seat=seat)), done=outcomes.append)
    return execution, draw, start, outcomes.append


async def test_a_seal_is_not_looked_for_while_the_version_is_void() -> None:
    """After a reload another state may have that version, with the draw of another player."""
    live_table, reader = LiveTable(bytes(16), "00" * 16), StubReader()
    outcomes: list[Any] = []
    live_table.table.version = 7
    live_table.begin_reload()
    resuming = asyncio.create_task(draws_with(reader)._resume(live_table, *repeated(outcomes, 1)))
    await asyncio.sleep(0)
    live_table.notify_commit_waiters()
    live_table.adopt(LiveTable(bytes(16), "00" * 16, committed=6))
    live_table.table.version = 7  # of a command that is decided again
    live_table.resume()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert reader.reads == 0
    live_table.begin_append()
    live_table.append_committed(7, "leaf")
    live_table.notify_commit_waiters()
    await resuming
    assert reader.reads == 1
    assert live_table.pending_draw is not None


@pytest.mark.parametrize(
    "draw",
    [Draw(Actor(seat=2)), Draw(Actor(seat=1), count=3), Draw(Actor(seat=1, taken_at=4))],
)
async def test_a_repetition_does_not_wait_for_another_draw(draw: Draw) -> None:
    live_table, reader = LiveTable(bytes(16), "00" * 16), StubReader()
    outcomes: list[Any] = []
    other: list[Any] = []
    live_table.pending_draw = PendingDraw(draw, [other.append])
    await draws_with(reader)._resume(live_table, *repeated(outcomes, 1))
    assert [type(outcome) for outcome in outcomes] == [Unavailable]
    assert live_table.pending_draw.answers == [other.append]


async def test_the_cards_at_a_seal_are_not_those_of_a_later_player_of_the_seat(
    service: Service,
) -> None:
    live_table = await new_table(service)
    drawn = await at_random(service, live_table, 1)
    sealed = drawn.version - 2
    for taken_at, cards in ((2, 2), (sealed, 2), (drawn.version, 0)):
        draw = Draw(Actor(seat=1, taken_at=taken_at), 2)
        found = await service.reader.drawn_at_seal(live_table, draw, sealed=sealed)
        assert len(found.events if found is not None else ()) == cards


async def test_a_repetition_after_a_move_gets_the_first_answer(service: Service) -> None:
    live_table = await new_table(service, entropy="players")
    first = at_random(service, live_table, 1)
    await contribute(service, live_table, 0)
    drawn = await first
    returned = Move(Actor(seat=1), "return", "hand:1", "deck", count=2)
    await service.execute(live_table, returned)
    await service.execute(live_table, MoveSeat(Actor(seat=1), 3))
    moved = live_table.table.holder(3)
    assert moved is not None
    again = DrawAtRandom(Actor(seat=3, taken_at=moved.taken_at), 2)
    key = IdempotencyKey("seat:1", "r", b"random")
    assert await service.random_draws.draw(live_table, again, key=key) == drawn
