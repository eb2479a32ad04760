"""Clients at a real house, over real sockets: they play, they lose the line, they come back."""

from __future__ import annotations

import asyncio
import json

import pytest

import dealer
from dealer.client.store import Store
from dealer.errors import (
    CardNotInHand,
    HouseCheated,
    HouseUnreachable,
    SessionEnded,
    SetupError,
)
from dealer.game.events import CardDrawn, DeckSealed, EntropyRevealed, RoundClosed
from dealer.proof.checkpoint import Cosigner


async def test_open_join_and_draw(real_house):
    async with dealer.connect(real_house.url, name="Ada") as house:
        table = await house.join(await house.open(deck="52"))
        await table.round_open()
        await table.shuffle()
        cards = await table.draw(2)
        assert table.hand == cards
        assert table.deck_count == 50
        assert table.seats == {1: "Ada"}


async def test_a_round_of_two_with_everything_one_can_wish_for(connect):
    async with connect(name="Ada") as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open(seats=3))
        bob = await his.join(ada.id)
        events = bob.events()
        assert await ada.round_open(deck="54") == 1
        assert await ada.shuffle() == 0
        assert await ada.deal(2) == 4
        await bob.until(lambda table: len(table.hand) == 2)
        await ada.burn()
        await ada.cut(10)
        (random,) = await bob.draw(end="random")
        (bottom,) = await bob.draw(end="bottom")
        await bob.play(random)
        await bob.discard([bottom])
        await bob.show(bob.hand[0])
        await bob.show(bob.hand[1], to=1)
        await bob.give(bob.hand[0], to=1)
        await ada.until(lambda table: len(table.hand) == 3)
        assert "??" not in ada.hand
        await ada.return_(ada.hand[0], where="bottom")
        await ada.hand_return(ada.hand[0])
        await ada.pile_move("pile:table", to="side")
        await ada.pile_turn("burn")
        assert await ada.pile_draw("side", 1) == [random]
        await ada.shuffle(pile="discard")
        await ada.shuffle()
        await ada.round_close()
        await ada.close()
        seen = [event async for _, _, event in events]
        assert sum(isinstance(event, DeckSealed) for event in seen) == 4
        assert sum(isinstance(event, EntropyRevealed) for event in seen) == 8
        assert isinstance(seen[-2], RoundClosed)
        assert bob.closed
        assert not ada.doubts
        assert not bob.doubts
        assert bob.checkpoints


@pytest.mark.parametrize(
    ("asked", "opened", "doubts"),
    [
        ({}, "house", ["the house's bytes alone, though the players' bytes"]),
        ({"entropy": "players"}, "house", ["the house's bytes alone, though the players' bytes"]),
        ({"entropy": "house"}, "players", ["the players' bytes, though the house's bytes alone"]),
        ({"entropy": "house"}, "house", []),
        ({}, "players", []),
    ],
)
async def test_who_opens_a_round_is_told_if_it_takes_other_bytes(
    connect, proxy, asked, opened, doubts
):
    """The host asks for them without a seat, so that no missing bytes of hers are doubted."""

    def heard(frame):
        if frame["method"] == "round.open":
            frame["params"]["entropy"] = opened
        return frame

    proxy.heard = heard
    async with connect(proxy.url) as house:
        table = await house.open()
        assert await table.round_open(**asked) == 1
        assert table.doubts == [f"Round 1 takes {doubt} were asked for." for doubt in doubts]


async def test_refusals_are_raised_with_their_sentence(connect):
    async with connect(name="Ada") as house:
        table = await house.join(await house.open())
        await table.round_open()
        await table.shuffle()
        with pytest.raises(CardNotInHand, match="not in that hand"):
            await table.play("As")


async def test_an_onlooker_sees_no_card_and_checks_all_the_same(connect):
    async with connect(name="Ada") as hers, connect() as public:
        ada = await hers.join(await hers.open())
        onlooker = await public.watch(ada.id)
        await ada.round_open()
        await ada.shuffle()
        await ada.draw(2)
        await onlooker.until(lambda table: table.version == ada.version)
        assert onlooker.stack("hand:1") == ["??", "??"]
        await ada.round_close()
        await onlooker.until(lambda table: table.round is None)
        # The list is the projector's, which does not run here.
        assert await public.tables() == []


@pytest.mark.parametrize("lost", ["request", "answer"])
async def test_a_torn_line_loses_nothing_and_doubles_nothing(connect, proxy, lost):
    async with connect(proxy.url, name="Ada") as house, connect(name="Bob") as his:
        table = await house.join(await house.open())
        bob = await his.join(table.id)
        await table.round_open()
        await table.shuffle()
        await bob.until(lambda bob: bob.version == table.version)
        events = bob.events()
        proxy.tear_at_draw(lost)
        cards = await table.draw(3)
        assert proxy.torn == 1
        assert house.connection.sockets == 2
        assert table.hand == cards
        assert len(set(cards)) == 3
        await bob.discard(await bob.draw(1))
        await bob.until(lambda table: table.deck_count == 48)
        await table.round_close()
        await table.close()
        seen = [event async for _, _, event in events]
        assert sum(isinstance(event, CardDrawn) for event in seen) == 4


async def test_host_and_player_in_one_gets_back_the_cards_that_were_on_their_way(connect, proxy):
    lost = []

    def lose(frame):
        if "CardDrawn" in json.dumps(frame) and not lost:
            lost.append(frame)
            proxy.cut()
            return None
        return frame

    async with connect(proxy.url, name="Ada") as house:
        table = await house.join(await house.open())
        await table.round_open()
        await table.shuffle()
        proxy.alter = lose
        cards = await table.draw(2)
        assert lost
        assert "??" not in cards
        assert table.hand == cards


async def test_a_host_whose_seat_was_given_up_while_away_stays_host(connect, proxy, real_house):
    async with connect(proxy.url, name="Ada") as hers, connect() as elsewhere:
        ada = await hers.join(await hers.open())
        token = hers._store.table(ada.id).facts["token"]
        onlooker = await elsewhere.watch(ada.id)
        proxy.heard = lambda frame: None if frame["method"] == "table.resume" else frame
        proxy.cut()
        leave = {"table": ada.id, "token": token}
        asking = elsewhere.connection.ask("table.leave", leave, table=None, changes=True)
        await asyncio.gather(asking, return_exceptions=True)
        await onlooker.until(lambda table: not table.seats)
        proxy.heard = lambda frame: frame
        proxy.cut()
        await ada.until(lambda table: not table.seats)
        assert ada.seat is None
        assert await ada.round_open() == 1


async def test_joining_and_opening_over_a_torn_line(connect, proxy):
    cuts = []

    def tear(frame):
        result = frame.get("result", {})
        for member in ("host_token", "token"):
            if member in result and member not in cuts:
                cuts.append(member)
                proxy.cut()
                return None
        return frame

    proxy.alter = tear
    async with connect(proxy.url, name="Ada") as house:
        table = await house.join(await house.open())
        assert cuts == ["host_token", "token"]
        assert table.seats == {1: "Ada"}
        assert table.version == 2


async def test_a_house_that_restarts(connect, real_house, monkeypatch):
    monkeypatch.setattr("dealer.gateway.server.SPREAD_MS", 100)
    async with connect(name="Ada") as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open())
        bob = await his.join(ada.id)
        await ada.round_open()
        await ada.shuffle()
        before = await ada.draw(2)
        drawing = asyncio.gather(*(bob.draw(1) for _ in range(5)))
        await real_house.restart()
        drawn = [card for (card,) in await drawing]
        assert bob.hand == drawn
        assert ada.hand == before
        await ada.shuffle()
        await ada.round_close()
        await bob.until(lambda table: table.round is None)


async def test_a_player_who_restarts_comes_back_to_their_seat(connect, tmp_path):
    kept = tmp_path / "ada"
    async with connect(name="Bob") as his:
        async with connect(name="Ada", store=kept) as hers:
            bob = await his.open()
            await his.join(bob)
            ada = await hers.join(bob.id)
            await bob.round_open()
            await bob.shuffle()
            hand = await ada.draw(2)
        async with connect(name="Ada", store=kept) as hers:
            ada = await hers.join(bob.id)
            assert ada.hand == hand
            assert ada.seat == 2
            assert await bob.shuffle() == 1  # Ada's digest went ahead: it takes her reveal
            assert await ada.draw(1)
            await bob.round_close()
            await ada.until(lambda table: table.round is None)
            assert len(ada.checkpoints) > 3
            assert not ada.doubts
    bytes_kept = Store(kept).table(bob.id).nonces
    assert len({nonce.value for nonce in bytes_kept.values()}) == len(bytes_kept) == 3


async def test_a_player_who_restarts_between_promise_and_reveal(connect, proxy, tmp_path):
    """The reveal is held back until the first process is gone; the second one makes it."""
    kept = tmp_path / "ada"
    held = asyncio.Event()

    def hold(frame):
        if frame.get("method") == "entropy.reveal":
            held.set()
            return None
        return frame

    proxy.heard = hold
    async with connect(name="Bob") as his:
        bob = await his.join(await his.open())
        async with connect(proxy.url, name="Ada", store=kept) as hers:
            await hers.join(bob.id)
            await bob.round_open()
            shuffling = asyncio.create_task(bob.shuffle())
            await held.wait()
        async with connect(name="Ada", store=kept) as hers:
            ada = await hers.join(bob.id)
            await shuffling
            await ada.sealed()
            assert ada.state.round.k == 1
            assert not ada.state.round.withheld


async def test_leaving_frees_the_seat_and_ends_the_events(connect):
    async with connect(name="Ada") as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open())
        bob = await his.join(ada.id)
        events = bob.events()
        await bob.leave()
        await ada.until(lambda table: table.seats == {1: "Ada"})
        assert [event async for event in events][1:] == []
        bob = await his.join(ada.id)
        assert bob.seat == 2
        await ada.leave()
        await bob.until(lambda table: table.seats == {2: "Bob"})
        await ada.round_open()  # the host stays host
        await bob.until(lambda table: table.round == 1)


async def test_a_newer_connection_of_the_same_seat_ends_the_older(connect, tmp_path):
    kept = tmp_path / "ada"
    async with connect(name="Ada", store=kept) as first, connect(name="Ada", store=kept) as second:
        table = await first.open()
        table = await first.join(table)
        # What the first one learnt after the second began, the second reads from the folder.
        await second.join(table.id)
        with pytest.raises(SessionEnded) as ended:
            await table.until(lambda table: table.round == 1)
        assert ended.value.code == 4409


async def test_every_checkpoint_is_cosigned_without_asking(connect, proxy, tmp_path):
    sizes = proxy.watch_cosigning()
    async with connect(proxy.url, name="Ada", store=tmp_path / "ada") as house:
        table = await house.join(await house.open())
        kept = json.loads((tmp_path / "ada" / table.id / "seat.json").read_text())
        own = Cosigner(bytes.fromhex(kept["player_seed"])).public_key
        assert table.state.seats[1].key == own
        await table.round_open()
        for step, size in ((table.shuffle, 59), (table.round_close, 61), (table.close, 62)):
            await step()
            async with asyncio.timeout(20):
                await table.until(lambda table, size=size: table.cosigned == size)
        assert sizes == [6, 59, 61, 62]  # C1, what was sealed, the round's end, the table's
        assert await table.cosign(table.checkpoints[-1]) == table.version, "again is no fault"
        other = await house.join(await house.open())
        assert other.state.seats[1].key not in (None, own), "a key of its own for each table"


async def test_who_gives_a_key_cosigns_with_it_and_who_wants_none_has_none(connect):
    cosigner = Cosigner(bytes(range(32)))
    async with connect(name="Ada", cosigner=cosigner) as hers, connect(cosigner=False) as his:
        ada = await hers.join(await hers.open())
        bob = await his.join(ada.id)
        assert bob.state.seats[1].key == cosigner.public_key
        assert bob.state.seats[2].key is None
        await ada.round_open(entropy="house")
        await ada.shuffle()
        await ada.until(lambda table: table.cosigned == table.version)
        assert bob.cosigned == 0
        with pytest.raises(SetupError, match="does not cosign"):
            await bob.cosign(bob.checkpoints[-1])


async def test_who_comes_back_cosigns_the_newest_alone_with_the_same_key(connect, proxy, tmp_path):
    async with connect(name="Bob") as his:
        bob = await his.open()
        async with connect(proxy.url, name="Ada", store=tmp_path) as hers:
            ada = await hers.join(bob.id)
            key = ada.state.seats[1].key
        for _ in range(2):
            await bob.round_open(entropy="house")
            await bob.shuffle()
            sealed = bob.version
            await bob.deal(1)
            if sealed < 100:
                await bob.round_close()
        sizes = proxy.watch_cosigning()
        async with connect(proxy.url, name="Ada", store=tmp_path) as hers:
            ada = await hers.join(bob.id)
            await ada.until(lambda table: table.cosigned == sealed)
            assert (await ada.draw(1), ada.state.seats[1].key) == ([ada.hand[-1]], key)
            assert sizes == [sealed]


async def test_host_and_player_too_far_behind_get_two_snapshots(connect, real_house, proxy):
    await real_house.restart(resume=0)
    async with connect(proxy.url, name="Ada") as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open())
        bob = await his.join(ada.id)
        await ada.round_open(entropy="house")
        await ada.shuffle()
        await bob.until(lambda table: table.version == ada.version)
        proxy.cut()
        await bob.draw(3)
        await ada.until(lambda table: table.version == bob.version)
        assert await ada.draw(1) == ada.hand
        await ada.round_close()


async def test_a_long_log_is_not_read_from_its_start(connect, real_house, tmp_path):
    """Who comes back gets a snapshot, and then what leads to it from the head they saved."""
    kept = tmp_path / "ada"
    async with connect(name="Bob") as his:
        bob = await his.join(await his.open())
        async with connect(name="Ada", store=kept) as hers:
            ada = await hers.join(bob.id)
            await bob.round_open(entropy="house")
            await bob.shuffle()
            hand = await ada.draw(2)
        await bob.draw(2)
    for limit in (20, 0):  # first the events from the saved head on come, then a proof
        await real_house.restart(resume=limit)
        async with connect(name="Ada", store=kept) as hers:
            ada = await hers.join(bob.id)
            assert ada.hand == hand
            hand += await ada.draw(1)
            assert ada.hand == hand


@pytest.mark.parametrize("resume", [0, 5])
async def test_too_far_behind_to_resume(connect, real_house, proxy, resume):
    """The house sends a snapshot with a proof, and the game goes on."""
    await real_house.restart(resume=resume)
    async with connect(proxy.url, name="Ada") as hers, connect(name="Bob") as his:
        bob = await his.join(await his.open())
        ada = await hers.join(bob.id)
        await bob.round_open(entropy="house")
        await bob.shuffle()
        await ada.draw(1)
        resumes, held = [], asyncio.Event()

        def hold(frame):
            if frame["method"] == "table.resume":
                held.set()
                return None
            return frame

        proxy.heard = hold
        version = ada.version
        proxy.cut()
        await bob.draw(3)
        await bob.shuffle()
        await held.wait()
        proxy.heard = lambda frame: resumes.append(frame["method"]) or frame
        proxy.cut()
        await ada.until(lambda table: table.version > version)
        assert len(ada.hand) == 1
        assert resumes.count("table.resume") == 1
        await bob.round_close()
        await ada.until(lambda table: table.round is None)


async def test_a_house_that_is_not_there(connect):
    with pytest.raises(HouseUnreachable, match="does not answer"):
        await connect("ws://127.0.0.1:9/ws").__aenter__()
    with pytest.raises(HouseUnreachable, match="no address"):
        await connect("nowhere").__aenter__()


def changed_private(frame):
    for event in frame["params"].get("list", [frame["params"]]):
        if "private" in event:
            event["private"]["card"] = "As" if event["private"]["card"] != "As" else "Ks"
    return frame


def changed_leaf(frame):
    for event in frame["params"].get("list", [frame["params"]]):
        if event["type"] == "CardDrawn":
            event["at"] += 1
    return frame


def changed_secret(frame):
    for event in frame["params"].get("list", [frame["params"]]):
        if event["type"] == "RoundClosed":
            event["public"]["secret"] = "00" * (len(event["public"]["secret"]) // 2)
    return frame


def changed_swaps(frame):
    for event in frame["params"].get("list", [frame["params"]]):
        if event["type"] == "CardsSwapped":
            event["commit"] = "00" * 32
    return frame


@pytest.mark.parametrize("alter", [changed_private, changed_leaf, changed_secret, changed_swaps])
async def test_a_house_that_cheats_is_left(connect, proxy, tmp_path, alter):
    def change(frame):
        return alter(frame) if frame.get("method") in ("event", "events") else frame

    async def play(table):
        await table.round_open()
        await table.shuffle()
        await table.draw(2)
        await table.round_close()

    proxy.alter = change
    kept = tmp_path / "ada"
    async with connect(proxy.url, name="Ada", store=kept) as house:
        table = await house.join(await house.open())
        events = table.events()
        with pytest.raises(HouseCheated, match=r"evidence is in .*evidence-1\.json"):
            await play(table)
        assert table.evidence is not None
        with pytest.raises(HouseCheated):
            [event async for event in events]
        with pytest.raises(HouseCheated):
            await table.draw(1)
        with pytest.raises(HouseCheated):
            await house.join(table.id)
    async with connect(name="Ada", store=kept) as house:
        with pytest.raises(HouseCheated, match="was left because"):
            await house.join(table.id)


async def test_a_lost_event_is_fetched_and_a_doubled_one_passed_over(connect, proxy):
    dropped = []

    def lose(frame):
        opening = frame.get("params", {}).get("type") == "RoundOpened"
        if opening and not dropped:
            dropped.append(frame)
            return None
        return frame

    proxy.alter = lose
    async with connect(proxy.url, name="Ada") as hers:
        ada = await hers.join(await hers.open())
        # The answer comes, the event does not: the next one shows that it is missing.
        opening = asyncio.create_task(ada.round_open())
        await asyncio.wait((opening,), timeout=0.05)
        assert dropped
        async with connect(name="Bob") as his:
            await his.join(ada.id)
            assert await opening == 1
            await ada.shuffle()
            assert hers.connection.sockets == 1


async def test_who_is_here_is_asked_and_being_told_disturbs_nobody(connect):
    async with connect(name="Ada") as hers:
        ada = await hers.join(await hers.open())
        async with connect(name="Bob") as his:
            await his.join(ada.id)
            await ada.until(lambda table: len(table.seats) == 2)
            asked = await ada.presence()
            assert [seat["here"] for seat in asked["seats"]] == [True, True]
            follower, told = hers.connection.followers[ada.id], asyncio.Event()
            notified = follower.notified

            def listening(method, params):
                notified(method, params)
                if method == "presence" and not params["seats"][1]["here"]:
                    told.set()

            follower.notified = listening
        async with asyncio.timeout(10):
            await told.wait()
        await ada.round_open(entropy="house")
        await ada.shuffle()
        assert await ada.draw(1) == ada.hand
