"""The service over a real log: results are committed, and the same after a restart."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dealer.errors import (
    BadRequest,
    BadToken,
    CommandReused,
    DeckEmpty,
    NotHost,
    Refused,
    Unavailable,
    UnknownTable,
    VersionConflict,
)
from dealer.eventlog import Append, Conflict, EventRecord
from dealer.game.cards import STANDARD
from dealer.game.commands import (
    Actor,
    CloseRound,
    CloseTable,
    Command,
    CommitEntropy,
    Deal,
    Draw,
    DrawAtRandom,
    LeaveSeat,
    RevealEntropy,
    StartShuffle,
    TakeSeat,
)
from dealer.game.events import CardDrawn, DeckSealed, EntropyClosed, SeatTaken
from dealer.game.state import SeatHolder
from dealer.game.view import SPECTATOR
from dealer.game.view import snapshot as view_of
from dealer.proof.round_keys import player_digest
from dealer.proof.verify import verify
from dealer.service import CommandResult, CommitNotice, IdempotencyKey, LiveTable, Service
from dealer.service.build import open_service
from dealer.service.tables.execution import (
    ANONYMOUS_SCOPE,
    CommandExecution,
    RecentCommands,
)
from tests.harness.damage import change_log
from tests.service.tables import HOST, Listener, bundle_of, new_table, round_of, shuffled_table


async def play_a_game(service: Service, live_table: LiveTable) -> None:
    await service.execute(live_table, StartShuffle(HOST))
    await service.execute(live_table, Deal(HOST, 5))
    await service.execute(live_table, Draw(Actor(seat=1)))
    await service.execute(live_table, CloseRound(HOST))
    await service.execute(live_table, CloseTable(HOST))


async def test_the_bundle_of_a_game_verifies(service: Service) -> None:
    live_table = await new_table(service)
    await play_a_game(service, live_table)
    lines = await bundle_of(service, live_table)
    report = verify(lines, key=service.keys.public_key)
    assert report.fault is None
    assert report.remarks.rounds == 1
    seats = sum(line.startswith('{"opened":{"name":') for line in lines)
    assert len(lines) == 1 + live_table.committed + seats + 4
    assert seats == len(live_table.table.seats)


async def test_a_restarted_service_has_the_same_cards_and_the_same_tree(open_service) -> None:
    first = await open_service()
    live_table = await shuffled_table(first)
    await first.execute(live_table, Deal(HOST, 5))
    before = view_of(live_table.table, SeatHolder(1, 2))
    second = await open_service()
    again = await second.lifecycle.load(live_table.table_id)
    assert view_of(again.table, SeatHolder(1, 2)) == before
    assert again.tree.root() == live_table.tree.root()
    round_ = round_of(live_table)
    assert round_of(again).faces == round_.faces
    drawn = await second.execute(again, Draw(Actor(seat=2), 2))
    top = round_.cards("deck")[:-3:-1]
    assert [event.card for event in drawn.events] == [round_.faces[c] for c in top]
    await second.execute(again, CloseRound(HOST))
    report = verify(await bundle_of(second, again))
    assert report.fault is None


async def test_nothing_is_published_before_its_commit(service: Service) -> None:
    heads: list[tuple[int, int | None]] = []
    live_table = await new_table(service)
    published: list[int] = []
    service.notices.listen(
        lambda _, notice: published.extend(entry.version for entry in notice.entries)
    )
    await service.execute(live_table, StartShuffle(HOST))
    await service.execute(live_table, Draw(Actor(seat=1)))
    heads.append((published[-1], await service.log.head(live_table.id)))
    assert heads == [(live_table.committed, live_table.committed)]
    assert published == list(range(5, live_table.committed + 1))


async def test_commands_in_flight_together_keep_their_order(service: Service) -> None:
    live_table = await new_table(service, players=4)
    await service.execute(live_table, StartShuffle(HOST))
    draws = [service.execute(live_table, Draw(Actor(seat=1 + n % 4))) for n in range(52)]
    outcomes = await asyncio.gather(*draws)
    drawn = [event for done in outcomes for event in done.events if isinstance(event, CardDrawn)]
    assert Counter(event.card for event in drawn) == Counter(STANDARD)
    assert [done.version for done in outcomes] == list(
        range(outcomes[0].version, outcomes[0].version + 52)
    )
    with pytest.raises(DeckEmpty):
        await service.execute(live_table, Draw(Actor(seat=1)))


@pytest.mark.parametrize("columns", [("command", "digest"), ("command",)])
async def test_an_event_with_the_id_of_another_command_answers_no_repetition(
    open_service, columns
) -> None:
    """Who writes to the database cannot give a client the token of another player's seat."""
    service = await open_service()
    live_table, _ = await service.open_table({})
    keys = {name: IdempotencyKey("claim", name * 8) for name in ("Ada", "Eve")}
    ada, eve = [
        (await service.execute(live_table, TakeSeat(name), key=key)).version
        for name, key in keys.items()
    ]
    statement = f"SELECT {', '.join(columns)} FROM event WHERE version = ?"
    ((*stored,),) = await service.log.fetch(statement, (eve,))
    await change_log(service.log, "UPDATE event SET command = NULL WHERE version = ?", (eve,))
    changes = ", ".join(f"{column} = ?" for column in columns)
    statement = f"UPDATE event SET {changes} WHERE version = ?"
    await change_log(service.log, statement, (*stored, ada))
    other = await open_service()
    elsewhere = await other.lifecycle.load(live_table.table_id)
    with pytest.raises(CommandReused):
        await other.execute(elsewhere, TakeSeat("Eve"), key=keys["Eve"])


async def test_a_command_sent_again_has_its_first_answer(open_service) -> None:
    service = await open_service()
    live_table = await shuffled_table(service)
    sent = {"key": IdempotencyKey("seat:1", "a", b"draw 1")}
    first, twin = await asyncio.gather(
        service.execute(live_table, Draw(Actor(seat=1)), **sent),
        service.execute(live_table, Draw(Actor(seat=1)), **sent),
    )
    again = await service.execute(live_table, Draw(Actor(seat=1)), **sent)
    other = await open_service()
    elsewhere = await other.lifecycle.load(live_table.table_id)
    restarted = await other.execute(elsewhere, Draw(Actor(seat=1)), **sent)
    assert first == twin == again == restarted
    with pytest.raises(CommandReused):
        await service.execute(
            live_table, Draw(Actor(seat=1), 2), key=replace(sent["key"], content=b"draw 2")
        )
    mine = await service.execute(
        live_table, Draw(Actor(seat=2)), key=replace(sent["key"], scope="seat:2")
    )
    assert mine.version > first.version


async def test_an_evicted_command_is_found_in_the_log(service: Service) -> None:
    live_table = await shuffled_table(service)
    sent: dict[str, Any] = {"key": IdempotencyKey("seat:1", "a", b"draw 1")}
    first = await service.execute(live_table, Draw(Actor(seat=1)), **sent)
    live_table.stored_commands = RecentCommands()
    assert await service.execute(live_table, Draw(Actor(seat=1)), **sent) == first
    assert live_table.table.version == live_table.committed == first.version


async def test_an_old_command_is_answered_though_it_is_now_illegal(
    service: Service,
) -> None:
    live_table = await shuffled_table(service)
    sent: dict[str, Any] = {"key": IdempotencyKey("seat:1", "a", b"draw 52")}
    first = await service.execute(live_table, Draw(Actor(seat=1), 52), **sent)
    live_table.stored_commands = RecentCommands()
    live_table.stored_commands.evicted = True
    assert await service.execute(live_table, Draw(Actor(seat=1), 52), **sent) == first
    with pytest.raises(DeckEmpty):
        await service.execute(live_table, Draw(Actor(seat=1)), key=IdempotencyKey("seat:1", "b"))


async def test_a_command_with_an_outdated_version_is_refused(service: Service) -> None:
    live_table = await shuffled_table(service)
    version = live_table.table.version
    sent: dict[str, Any] = {"key": IdempotencyKey("seat:1", "a"), "expect": version}
    first = await service.execute(live_table, Draw(Actor(seat=1)), **sent)
    assert await service.execute(live_table, Draw(Actor(seat=1)), **sent) == first
    with pytest.raises(VersionConflict):
        await service.execute(live_table, Draw(Actor(seat=2)), expect=version)


async def test_two_processes_play_at_one_table(open_service) -> None:
    one, other = await open_service(), await open_service()
    live_table = await shuffled_table(one)
    elsewhere = await other.lifecycle.load(live_table.table_id)
    seen: list[int] = []
    one.notices.listen(lambda _, notice: seen.extend(entry.version for entry in notice.entries))
    draws = [
        node.execute(table, Draw(Actor(seat=seat)))
        for _ in range(10)
        for node, table, seat in ((one, live_table, 1), (other, elsewhere, 2))
    ]
    outcomes = await asyncio.gather(*draws)
    cards = [event.card for done in outcomes for event in done.events]
    assert len(set(cards)) == 20
    await one.execute(live_table, CloseRound(HOST))
    assert seen == list(range(seen[0], live_table.committed + 1))
    assert verify(await bundle_of(one, live_table)).fault is None


async def test_a_load_has_the_events_of_other_processes(open_service) -> None:
    one, other = await open_service(), await open_service()
    live_table = await new_table(one)
    elsewhere = await other.lifecycle.load(live_table.table_id)
    taken = await other.execute(elsewhere, TakeSeat("late"))
    assert (await one.lifecycle.load(live_table.table_id)).committed == taken.version
    token = other.tokens.of(live_table.table.key).seat(live_table.id, seat=3, since=taken.version)
    tokens = one.tokens.of(live_table.table.key)
    assert tokens.actor(live_table.id, live_table.table, token) == Actor(seat=3)


async def test_events_of_other_processes_are_published(
    open_service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dealer.service.nodes.head_poller.POLL_SECONDS", 0.01)
    one, other = await open_service(), await open_service()
    live_table = await new_table(one, players=1)
    live_table.subscribers.add("a subscriber")
    listener = Listener(one)
    polling = asyncio.ensure_future(one.head_poller.run())
    elsewhere = await other.lifecycle.load(live_table.table_id)
    await other.execute(elsewhere, StartShuffle(HOST))
    await listener.until_type("DeckSealed")
    assert listener.types[0] == "ShuffleStarted"
    assert live_table.committed == elsewhere.committed
    polling.cancel()


async def test_an_internal_error_leaves_no_events_behind(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_table = await new_table(service)
    version, root = live_table.table.version, live_table.tree.root()

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    with monkeypatch.context() as patch:
        patch.setattr(service.executor, "_nonces", fail)
        with pytest.raises(Unavailable):
            await service.execute(live_table, StartShuffle(HOST))
        patch.undo()
    await service.execute(live_table, LeaveSeat(Actor(seat=1)))
    assert live_table.table.version == version + 1
    assert (await service.reader.entries(live_table, version))[0].version == version + 1
    assert root != live_table.tree.root()


@pytest.mark.parametrize("name", ["_log", "arm"])
async def test_a_submit_that_fails_answers_once(
    service: Service, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Before its append is queued, or after that: its events are then published all the same."""
    live_table = await new_table(service, entropy="players")
    outcomes: list[Any] = []
    notices: list[CommitNotice] = []
    service.notices.listen(lambda _, notice: notices.append(notice))

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    owner = service.processor if name == "_log" else service.lifecycle.deadlines
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail)
        execution = CommandExecution(
            command=StartShuffle(HOST), done=outcomes.append, origin=object()
        )
        service.processor.submit(live_table, execution)
    await service.execute(live_table, LeaveSeat(Actor(seat=2)))
    assert [type(outcome) for outcome in outcomes] == [Unavailable]
    types = [entry.type for notice in notices for entry in notice.entries]
    assert types == ["ShuffleStarted", "SeatLeft"][name == "_log" :]
    assert [notice.origin for notice in notices] == [None] * len(notices)


async def test_only_what_was_written_is_to_be_projected(tmp_path: Path) -> None:
    async with open_service(f"sqlite:///{tmp_path}/dealer.db") as service:
        live_table, _ = await service.open_table({})
        projection = service.projection
        assert projection is not None
        assert projection.lag_seconds
        await projection.up_to_date()
        taken = EventRecord(1, "TableOpened", 1, 0, "{}")
        assert await service.log.append(Append(live_table.id, 0, [taken])) == Conflict(1)
        await service.checkpoints.checkpoint(live_table)
        assert not projection.lag_seconds


class Player:
    """A seat that contributes entropy, with a nonce of its own for each shuffle."""

    def __init__(self, service: Service, live_table: LiveTable, seat: int) -> None:
        self.service, self.live_table, self.seat = service, live_table, seat

    def nonce(self, k: int) -> bytes:
        return bytes([self.seat, k]) * 16

    async def commit(self, k: int) -> CommandResult:
        digest = player_digest(
            table=self.live_table.id, round=1, k=k, seat=self.seat, nonce=self.nonce(k)
        )
        return await self.call(CommitEntropy(Actor(seat=self.seat), 1, k, digest))

    async def reveal(self, k: int) -> CommandResult:
        return await self.call(RevealEntropy(Actor(seat=self.seat), 1, k, self.nonce(k)))

    async def call(self, command: Command) -> CommandResult:
        return await self.service.execute(self.live_table, command)


async def test_players_contribute_entropy(service: Service) -> None:
    live_table = await new_table(service, entropy="players")
    players = [Player(service, live_table, seat) for seat in (1, 2)]
    for player in players:
        await player.commit(0)
    started = await service.execute(live_table, StartShuffle(HOST))
    assert isinstance(started.events[-1], EntropyClosed)
    await players[1].reveal(0)
    sealed = await players[0].reveal(0)
    assert isinstance(sealed.events[-1], DeckSealed)
    await service.execute(live_table, CloseRound(HOST))
    report = verify(await bundle_of(service, live_table))
    assert report.fault is None
    assert report.remarks.house_only == 0


async def test_late_players_are_left_out_and_withheld_reveals_void(service: Service) -> None:
    live_table = await new_table(service, entropy="players", commit_ms=100, reveal_ms=100)
    one = Player(service, live_table, 1)
    await one.commit(0)
    listener = Listener(service)
    await service.execute(live_table, StartShuffle(HOST))
    await listener.until_type("EntropyClosed")
    await listener.until_type("ShuffleVoided")
    await listener.until_type("DeckSealed")
    await service.execute(live_table, CloseRound(HOST))
    report = verify(await bundle_of(service, live_table))
    assert report.fault is None
    assert report.remarks.voided == 1
    assert report.remarks.house_only == 1


async def test_a_shuffle_continues_after_a_restart_at_each_step(open_service) -> None:
    service = await open_service()
    live_table = await new_table(service, entropy="players")

    async def restart() -> tuple[Service, LiveTable]:
        fresh = await open_service()
        return fresh, await fresh.lifecycle.load(live_table.table_id)

    for seat in (1, 2):
        await Player(*(await restart()), seat).commit(0)
    node, table = await restart()
    await node.execute(table, StartShuffle(HOST))
    for seat in (2, 1):
        await Player(*(await restart()), seat).reveal(0)
    node, table = await restart()
    await node.execute(table, Deal(HOST, 2))
    await node.execute(table, CloseRound(HOST))
    assert verify(await bundle_of(node, table)).fault is None


async def test_a_draw_at_random_waits_for_the_players_entropy(service: Service) -> None:
    live_table = await new_table(service, entropy="players")
    players = [Player(service, live_table, seat) for seat in (1, 2)]
    sent: dict[str, Any] = {"key": IdempotencyKey("seat:1", "r", b"random")}

    def draw() -> asyncio.Task[CommandResult]:
        return asyncio.ensure_future(
            service.random_draws.draw(live_table, DrawAtRandom(Actor(seat=1), 3), **sent)
        )

    first = draw()
    for player in players:
        await player.commit(0)
    again = draw()
    for player in players:
        await player.reveal(0)
    done = await first
    assert [type(event) for event in done.events] == [CardDrawn] * 3
    assert await again == done == await draw()


async def test_a_draw_at_random_survives_a_restart(open_service) -> None:
    service = await open_service()
    live_table = await new_table(service, entropy="players")
    sent = {"key": IdempotencyKey("seat:1", "r", b"random")}
    lost = asyncio.ensure_future(
        service.random_draws.draw(live_table, DrawAtRandom(Actor(seat=1), 2), **sent)
    )
    for seat in (1, 2):
        await Player(service, live_table, seat).commit(0)
    fresh = await open_service()
    table = await fresh.lifecycle.load(live_table.table_id)
    for seat in (1, 2):
        await Player(fresh, table, seat).reveal(0)
    done = await fresh.random_draws.draw(table, DrawAtRandom(Actor(seat=1), 2), **sent)
    assert [type(event) for event in done.events] == [CardDrawn] * 2
    assert await fresh.random_draws.draw(table, DrawAtRandom(Actor(seat=1), 2), **sent) == done
    lost.cancel()


async def test_a_token_is_of_one_role_and_is_invalid_after_it(service: Service) -> None:
    live_table = await new_table(service)
    other = await new_table(service)
    tokens = service.tokens.of(b"")
    since = live_table.table.seats[1].taken_at
    seat = tokens.seat(live_table.id, seat=1, since=since)
    assert tokens.actor(live_table.id, live_table.table, seat) == Actor(seat=1)
    assert tokens.actor(live_table.id, live_table.table, tokens.host(live_table.id)) == HOST
    for text in ("", "host.", "seat.1.2.", seat[:-1], seat + "0", tokens.host(other.id), "é"):
        with pytest.raises(BadToken):
            tokens.actor(live_table.id, live_table.table, text)
    await service.execute(live_table, LeaveSeat(Actor(seat=1)))
    await service.execute(live_table, TakeSeat("another"))
    with pytest.raises(BadToken):
        tokens.actor(live_table.id, live_table.table, seat)


async def test_entries_are_the_same_from_memory_and_from_the_log(open_service) -> None:
    service = await open_service()
    live_table = await new_table(service)
    published: list[EventRecord] = []
    service.notices.listen(lambda _, notice: published.extend(notice.entries))
    after = live_table.committed
    await play_a_game(service, live_table)
    assert shown(await service.reader.entries(live_table, after)) == shown(published)
    fresh = await open_service()
    table = await fresh.lifecycle.load(live_table.table_id)
    assert shown(await fresh.reader.entries(table, after)) == shown(published)
    assert shown(await fresh.reader.entries(table, after, limit=7)) == shown(published[:7])


def shown(records: list[EventRecord]) -> list[tuple[object, ...]]:
    return [(each.version, each.type, each.leaf, each.seat, each.private) for each in records]


async def test_a_snapshot_is_signed_and_shows_only_what_the_viewer_may_see(service) -> None:
    live_table = await shuffled_table(service)
    await service.execute(live_table, Deal(HOST, 5))
    seen = await service.checkpoints.snapshot(
        live_table, SeatHolder(1, live_table.table.seats[1].taken_at)
    )
    assert len(seen.state["round"]["cards"]) == 5
    assert f"\n{seen.version}\n" in seen.checkpoint
    assert (await service.checkpoints.snapshot(live_table, SPECTATOR)).state["round"]["cards"] == []


async def test_refusals_change_nothing(service: Service) -> None:
    live_table = await new_table(service)
    root, version = live_table.tree.root(), live_table.table.version
    with pytest.raises(NotHost):
        await service.execute(live_table, StartShuffle(Actor(seat=1)))
    with pytest.raises(Refused):
        await service.open_table({"seats": 0})
    with pytest.raises(BadRequest):
        await service.open_table({"motto": "a\u001bb"})
    with pytest.raises(UnknownTable):
        await service.lifecycle.load("00" * 16)
    assert (live_table.tree.root(), live_table.table.version) == (root, version)


async def test_opening_again_under_an_unguessable_id_finds_the_table(service: Service) -> None:
    cmd = "3f1c3f4e-6f0a-4a52-9f4d-0d9d2c5b7a11"
    key = IdempotencyKey(ANONYMOUS_SCOPE, cmd, b"{}")
    live_table, first = await service.open_table(
        {}, key=IdempotencyKey(ANONYMOUS_SCOPE, cmd, b"{}")
    )
    same, again = await service.open_table({}, key=key)
    assert (same, again) == (live_table, first)
    with pytest.raises(CommandReused):
        await service.open_table({"seats": 3}, key=replace(key, content=b"other"))
    short, _ = await service.open_table({}, key=replace(key, cmd="1"))
    other, _ = await service.open_table({}, key=replace(key, cmd="1"))
    assert short is not other


async def test_an_idle_table_leaves_memory_and_is_loaded_again(open_service) -> None:
    service = await open_service()
    service.tables.bound = 3
    tables = [await new_table(service) for _ in range(8)]
    assert len(service.tables) <= 4
    back = await service.lifecycle.load(tables[0].table_id)
    assert back is not tables[0]
    assert back.tree.root() == tables[0].tree.root()
    assert isinstance((await service.execute(back, TakeSeat("late"))).events[0], SeatTaken)
