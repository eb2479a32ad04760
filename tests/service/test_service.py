"""The service over a real log: what is answered is on disk, and comes back the same."""

from __future__ import annotations

import asyncio
import json

import pytest

from dealer.errors import (
    BadRequest,
    BadToken,
    CommandReused,
    Conflicted,
    DeckEmpty,
    NotHost,
    Refused,
    Unavailable,
    UnknownTable,
)
from dealer.game.cards import STANDARD
from dealer.game.commands import (
    Actor,
    CloseRound,
    CloseTable,
    Command,
    CommitEntropy,
    Deal,
    Draw,
    LeaveSeat,
    OpenRound,
    RevealEntropy,
    StartShuffle,
    TakeSeat,
)
from dealer.game.events import CardDrawn, DeckSealed, EntropyClosed, SeatTaken
from dealer.game.view import SPECTATOR, Viewer
from dealer.game.view import snapshot as view_of
from dealer.proof.keys import player_digest
from dealer.proof.verify import verify
from dealer.service import Done, Published, Resident, Service

HOST = Actor(host=True)


async def table_of(service: Service, *, players: int = 2, entropy: str = "house", **waits: int):
    resident, _ = await service.open_table({"preset": "free"})
    for number in range(players):
        await service.call(resident, TakeSeat(f"player {number}"))
    opening = OpenRound(
        HOST, STANDARD, entropy, waits.get("commit_ms", 10_000), waits.get("reveal_ms", 10_000)
    )
    await service.call(resident, opening)
    return resident


async def bundle_of(service: Service, resident: Resident) -> list[str]:
    return [line async for line in service.bundle(resident)]


async def whole_game(service: Service, resident: Resident) -> None:
    await service.call(resident, StartShuffle(HOST))
    await service.call(resident, Deal(HOST, 5))
    await service.call(resident, Draw(Actor(seat=1)))
    await service.call(resident, CloseRound(HOST))
    await service.call(resident, CloseTable(HOST))


async def test_a_game_is_proved_by_its_bundle(service: Service) -> None:
    resident = await table_of(service)
    await whole_game(service, resident)
    lines = await bundle_of(service, resident)
    report = verify(lines, key=service.public_key)
    assert report.fault is None
    assert report.remarks.rounds == 1
    assert len(lines) == 1 + resident.committed + 4


async def test_after_a_restart_the_cards_are_the_same(open_service) -> None:
    first = await open_service()
    resident = await table_of(first)
    await first.call(resident, StartShuffle(HOST))
    await first.call(resident, Deal(HOST, 5))
    before = view_of(resident.table, Viewer(1, 2))
    second = await open_service()
    again = await second.load(resident.table_id)
    assert view_of(again.table, Viewer(1, 2)) == before
    assert again.tree.root() == resident.tree.root()
    assert again.table.round is not None
    assert again.table.round.faces == resident.table.round.faces
    drawn = await second.call(again, Draw(Actor(seat=2), 2))
    top = resident.table.round.cards("deck")[:-3:-1]
    assert [event.card for event in drawn.events] == [resident.table.round.faces[c] for c in top]
    await second.call(again, CloseRound(HOST))
    report = verify(await bundle_of(second, again))
    assert report.fault is None


async def test_nobody_is_told_before_it_is_on_disk(service: Service) -> None:
    heads: list[tuple[int, int | None]] = []
    resident = await table_of(service)
    told: list[int] = []
    service.publish = lambda _, news: told.extend(entry.version for entry in news.entries)
    await service.call(resident, StartShuffle(HOST))
    await service.call(resident, Draw(Actor(seat=1)))
    heads.append((told[-1], await service.log.head(resident.id)))
    assert heads == [(resident.committed, resident.committed)]
    assert told == list(range(5, resident.committed + 1))


async def test_commands_in_flight_together_keep_their_order(service: Service) -> None:
    resident = await table_of(service, players=4)
    await service.call(resident, StartShuffle(HOST))
    draws = [service.call(resident, Draw(Actor(seat=1 + n % 4))) for n in range(52)]
    outcomes = await asyncio.gather(*draws)
    cards = [event.card for done in outcomes for event in done.events]
    assert sorted(cards) == sorted(STANDARD)
    assert [done.version for done in outcomes] == list(
        range(outcomes[0].version, outcomes[0].version + 52)
    )
    with pytest.raises(DeckEmpty):
        await service.call(resident, Draw(Actor(seat=1)))


async def test_a_command_sent_again_has_its_first_answer(open_service) -> None:
    service = await open_service()
    resident = await table_of(service)
    await service.call(resident, StartShuffle(HOST))
    sent = {"cmd": "a", "scope": "seat:1", "content": b"draw 1"}
    first, twin = await asyncio.gather(
        service.call(resident, Draw(Actor(seat=1)), **sent),
        service.call(resident, Draw(Actor(seat=1)), **sent),
    )
    again = await service.call(resident, Draw(Actor(seat=1)), **sent)
    other = await open_service()
    elsewhere = await other.load(resident.table_id)
    restarted = await other.call(elsewhere, Draw(Actor(seat=1)), **sent)
    assert first == twin == again == restarted
    with pytest.raises(CommandReused):
        await service.call(resident, Draw(Actor(seat=1), 2), **(sent | {"content": b"draw 2"}))
    mine = await service.call(resident, Draw(Actor(seat=2)), **(sent | {"scope": "seat:2"}))
    assert mine.version > first.version


async def test_an_old_command_is_known_after_memory_forgot_it(service: Service) -> None:
    resident = await table_of(service)
    await service.call(resident, StartShuffle(HOST))
    sent = {"cmd": "a", "scope": "seat:1", "content": b"draw 1"}
    first = await service.call(resident, Draw(Actor(seat=1)), **sent)
    resident.recent.clear()
    assert await service.call(resident, Draw(Actor(seat=1)), **sent) == first
    assert resident.table.version == resident.committed == first.version


async def test_a_command_done_long_ago_is_answered_though_it_could_not_be_done_now(
    service: Service,
) -> None:
    resident = await table_of(service)
    await service.call(resident, StartShuffle(HOST))
    sent = {"cmd": "a", "scope": "seat:1", "content": b"draw 52"}
    first = await service.call(resident, Draw(Actor(seat=1), 52), **sent)
    resident.recent.clear()
    resident.forgetful = True
    assert await service.call(resident, Draw(Actor(seat=1), 52), **sent) == first
    with pytest.raises(DeckEmpty):
        await service.call(resident, Draw(Actor(seat=1)), cmd="b", scope="seat:1")


async def test_a_wish_that_was_decided_on_an_older_version_is_refused(service: Service) -> None:
    resident = await table_of(service)
    await service.call(resident, StartShuffle(HOST))
    version = resident.table.version
    sent = {"cmd": "a", "scope": "seat:1", "expect": version}
    first = await service.call(resident, Draw(Actor(seat=1)), **sent)
    assert await service.call(resident, Draw(Actor(seat=1)), **sent) == first
    with pytest.raises(Conflicted):
        await service.call(resident, Draw(Actor(seat=2)), expect=version)


async def test_two_processes_play_at_one_table(open_service) -> None:
    one, other = await open_service(), await open_service()
    resident = await table_of(one)
    await one.call(resident, StartShuffle(HOST))
    elsewhere = await other.load(resident.table_id)
    seen: list[int] = []
    one.publish = lambda _, news: seen.extend(entry.version for entry in news.entries)
    draws = [
        house.call(table, Draw(Actor(seat=seat)))
        for _ in range(10)
        for house, table, seat in ((one, resident, 1), (other, elsewhere, 2))
    ]
    outcomes = await asyncio.gather(*draws)
    cards = [event.card for done in outcomes for event in done.events]
    assert len(set(cards)) == 20
    await one.call(resident, CloseRound(HOST))
    assert seen == list(range(seen[0], resident.committed + 1))
    assert verify(await bundle_of(one, resident)).fault is None


async def test_who_comes_in_finds_what_another_process_wrote(open_service) -> None:
    one, other = await open_service(), await open_service()
    resident = await table_of(one)
    elsewhere = await other.load(resident.table_id)
    taken = await other.call(elsewhere, TakeSeat("late"))
    assert (await one.load(resident.table_id)).committed == taken.version
    token = other.tokens_of(resident.table.key).seat(resident.id, seat=3, since=taken.version)
    tokens = one.tokens_of(resident.table.key)
    assert tokens.actor(resident.id, resident.table, token) == Actor(seat=3)


async def test_who_listens_is_told_what_another_process_wrote(
    open_service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dealer.service.lookout.LOOK_SECONDS", 0.01)
    one, other = await open_service(), await open_service()
    resident = await table_of(one, players=1)
    resident.sessions.add("somebody")
    news = Listener(one, resident)
    news.types.clear()
    looking = asyncio.ensure_future(one.lookout.look_around())
    elsewhere = await other.load(resident.table_id)
    await other.call(elsewhere, StartShuffle(HOST))
    await news.until("DeckSealed")
    assert news.types[0] == "ShuffleStarted"
    assert resident.committed == elsewhere.committed
    looking.cancel()


async def test_a_mistake_half_way_leaves_nothing_behind(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    resident = await table_of(service)
    version, root = resident.table.version, resident.tree.root()

    def stumble(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    with monkeypatch.context() as patch:
        patch.setattr("dealer.service.judge.secrets.token_bytes", stumble)
        with pytest.raises(Unavailable):
            await service.call(resident, StartShuffle(HOST))
        patch.undo()
    await service.call(resident, LeaveSeat(Actor(seat=1)))
    assert resident.table.version == version + 1
    assert (await service.entries(resident, version))[0].version == version + 1
    assert root != resident.tree.root()


class Player:
    """A seat that brings entropy."""

    def __init__(self, service: Service, resident: Resident, seat: int) -> None:
        self.service, self.resident, self.seat = service, resident, seat

    def nonce(self, k: int) -> bytes:
        return bytes([self.seat, k]) * 16

    async def commit(self, k: int) -> Done:
        digest = player_digest(
            table=self.resident.id, round=1, k=k, seat=self.seat, nonce=self.nonce(k)
        )
        return await self.call(CommitEntropy(Actor(seat=self.seat), 1, k, digest))

    async def reveal(self, k: int) -> Done:
        return await self.call(RevealEntropy(Actor(seat=self.seat), 1, k, self.nonce(k)))

    async def call(self, command: Command) -> Done:
        return await self.service.call(self.resident, command)


async def test_players_bring_entropy(service: Service) -> None:
    resident = await table_of(service, entropy="players")
    players = [Player(service, resident, seat) for seat in (1, 2)]
    for player in players:
        await player.commit(0)
    started = await service.call(resident, StartShuffle(HOST))
    assert isinstance(started.events[-1], EntropyClosed)
    await players[1].reveal(0)
    sealed = await players[0].reveal(0)
    assert isinstance(sealed.events[-1], DeckSealed)
    await service.call(resident, CloseRound(HOST))
    report = verify(await bundle_of(service, resident))
    assert report.fault is None
    assert report.remarks.house_only == 0


async def test_who_is_late_is_left_out_and_who_withholds_voids(service: Service) -> None:
    resident = await table_of(service, entropy="players", commit_ms=100, reveal_ms=100)
    one = Player(service, resident, 1)
    await one.commit(0)
    news = Listener(service, resident)
    await service.call(resident, StartShuffle(HOST))
    await news.until("EntropyClosed")
    await news.until("ShuffleVoided")
    await news.until("DeckSealed")
    await service.call(resident, CloseRound(HOST))
    report = verify(await bundle_of(service, resident))
    assert report.fault is None
    assert report.remarks.voided == 1
    assert report.remarks.house_only == 1


async def test_a_restart_between_any_two_steps_of_a_shuffle(open_service) -> None:
    service = await open_service()
    resident = await table_of(service, entropy="players")

    async def restart() -> tuple[Service, Resident]:
        fresh = await open_service()
        return fresh, await fresh.load(resident.table_id)

    for seat in (1, 2):
        await Player(*(await restart()), seat).commit(0)
    house, table = await restart()
    await house.call(table, StartShuffle(HOST))
    for seat in (2, 1):
        await Player(*(await restart()), seat).reveal(0)
    house, table = await restart()
    await house.call(table, Deal(HOST, 2))
    await house.call(table, CloseRound(HOST))
    assert verify(await bundle_of(house, table)).fault is None


async def test_a_draw_at_random_waits_for_the_players_entropy(service: Service) -> None:
    resident = await table_of(service, entropy="players")
    players = [Player(service, resident, seat) for seat in (1, 2)]
    sent = {"cmd": "r", "scope": "seat:1", "content": b"random"}

    def draw() -> asyncio.Task[Done]:
        return asyncio.ensure_future(
            service.draw_at_random(resident, Actor(seat=1), count=3, source="deck", **sent)
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
    resident = await table_of(service, entropy="players")
    sent = {"count": 2, "source": "deck", "cmd": "r", "scope": "seat:1", "content": b"random"}
    lost = asyncio.ensure_future(service.draw_at_random(resident, Actor(seat=1), **sent))
    for seat in (1, 2):
        await Player(service, resident, seat).commit(0)
    fresh = await open_service()
    table = await fresh.load(resident.table_id)
    for seat in (1, 2):
        await Player(fresh, table, seat).reveal(0)
    done = await fresh.draw_at_random(table, Actor(seat=1), **sent)
    assert [type(event) for event in done.events] == [CardDrawn] * 2
    assert await fresh.draw_at_random(table, Actor(seat=1), **sent) == done
    lost.cancel()


class Listener:
    """Hears what is published of a table."""

    def __init__(self, service: Service, resident: Resident) -> None:
        self.resident = resident
        self.types: list[str] = []
        self.bell = asyncio.Event()
        service.publish = self.hear

    def hear(self, resident: Resident, news: Published) -> None:
        self.types.extend(json.loads(entry.leaf)["type"] for entry in news.entries)
        self.bell.set()

    async def until(self, kind: str) -> None:
        async with asyncio.timeout(10):
            while kind not in self.types:
                self.bell.clear()
                await self.bell.wait()


async def test_tokens_open_one_place_and_end_with_it(service: Service) -> None:
    resident = await table_of(service)
    other = await table_of(service)
    tokens = service.tokens_of(b"")
    since = resident.table.seats[1].since
    seat = tokens.seat(resident.id, seat=1, since=since)
    assert tokens.actor(resident.id, resident.table, seat) == Actor(seat=1)
    assert tokens.actor(resident.id, resident.table, tokens.host(resident.id)) == HOST
    for text in ("", "host.", "seat.1.2.", seat[:-1], seat + "0", tokens.host(other.id), "é"):
        with pytest.raises(BadToken):
            tokens.actor(resident.id, resident.table, text)
    await service.call(resident, LeaveSeat(Actor(seat=1)))
    await service.call(resident, TakeSeat("another"))
    with pytest.raises(BadToken):
        tokens.actor(resident.id, resident.table, seat)


async def test_entries_are_the_same_from_memory_and_from_the_log(open_service) -> None:
    service = await open_service()
    resident = await table_of(service)
    published: list[object] = []
    service.publish = lambda _, news: published.extend(news.entries)
    after = resident.committed
    await whole_game(service, resident)
    assert await service.entries(resident, after) == published
    fresh = await open_service()
    table = await fresh.load(resident.table_id)
    assert await fresh.entries(table, after) == published
    assert await fresh.entries(table, after, limit=7) == published[:7]


async def test_a_snapshot_is_signed_and_shows_only_what_the_viewer_may_see(service) -> None:
    resident = await table_of(service)
    await service.call(resident, StartShuffle(HOST))
    await service.call(resident, Deal(HOST, 5))
    seen = await service.snapshot(resident, Viewer(1, resident.table.seats[1].since))
    assert len(seen.state["round"]["cards"]) == 5
    assert f"\n{seen.version}\n" in seen.checkpoint
    assert (await service.snapshot(resident, SPECTATOR)).state["round"]["cards"] == []


async def test_refusals_change_nothing(service: Service) -> None:
    resident = await table_of(service)
    root, version = resident.tree.root(), resident.table.version
    with pytest.raises(NotHost):
        await service.call(resident, StartShuffle(Actor(seat=1)))
    with pytest.raises(Refused):
        await service.open_table({"seats": 0})
    with pytest.raises(BadRequest):
        await service.open_table({"motto": "a\u001bb"})
    with pytest.raises(UnknownTable):
        await service.load("00" * 16)
    assert (resident.tree.root(), resident.table.version) == (root, version)


async def test_opening_again_under_an_unguessable_id_finds_the_table(service: Service) -> None:
    cmd = "3f1c3f4e-6f0a-4a52-9f4d-0d9d2c5b7a11"
    resident, first = await service.open_table({}, cmd=cmd, content=b"{}")
    same, again = await service.open_table({}, cmd=cmd, content=b"{}")
    assert (same, again) == (resident, first)
    with pytest.raises(CommandReused):
        await service.open_table({"seats": 3}, cmd=cmd, content=b"other")
    short, _ = await service.open_table({}, cmd="1", content=b"{}")
    other, _ = await service.open_table({}, cmd="1", content=b"{}")
    assert short is not other


async def test_a_table_idle_too_long_leaves_memory_and_comes_back(open_service) -> None:
    service = await open_service()
    service.memory.bound = 3
    tables = [await table_of(service) for _ in range(8)]
    assert len(service.memory) <= 4
    back = await service.load(tables[0].table_id)
    assert back is not tables[0]
    assert back.tree.root() == tables[0].tree.root()
    assert isinstance((await service.call(back, TakeSeat("late"))).events[0], SeatTaken)
