"""Clients of a real server over real sockets: playing, losing the connection, resuming."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import dealer
from dealer.client.store import Store
from dealer.errors import (
    BadRequest,
    CardNotInHand,
    ConfigurationError,
    DealerError,
    HouseCheated,
    HouseUnreachable,
    NothingToTakeBack,
    Refused,
    SessionEnded,
)
from dealer.game.copies import copy_table
from dealer.game.events import CardDrawn, DeckSealed, EntropyRevealed, RoundClosed
from dealer.proof.checkpoint import Cosigner
from tests.client.conftest import RefusedJoin, RefusedResume

NOTES = [
    ("turn", "1"), ("turn", "2"), ("turn", "0"), ("turn", "the next"), ("dealer_button", "1"),
    ("score", "1:10"), ("score", "2:0"), ("score", "1:-5"), ("score", "1:-0"), ("score", "1:1.5"),
    ("counter", "pot, in $:120"), ("counter", "a:b:1"), ("counter", ":1"),
    ("phrase", "thanks"), ("phrase", "well-played"), ("phrase", "Well played!"),
    ("reaction", "👏🏽"), ("reaction", ""), ("reaction", "x" * 17), ("chat", "3"),
]  # fmt: skip
"""Notes with and without a meaning as markers, in order."""


async def test_open_join_and_draw(real_server):
    async with dealer.connect(real_server.url, name="Ada") as house:
        table = await house.join(await house.open(deck="52"))
        assert not table.shuffled
        await table.round_open()
        assert not table.shuffled
        assert not table.shuffling
        await table.shuffle()
        assert table.shuffled
        cards = await table.draw(2)
        assert table.hand == cards
        assert table.deck_count == 50
        assert table.seats == {1: "Ada"}


async def test_a_round_with_every_command(connect):
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
        await ada.return_cards(ada.hand[0], where="bottom")
        await ada.return_cards(ada.hand[0])
        await ada.move("pile:table", to="side")
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


async def test_passing_taking_back_and_whole_piles(connect):
    async with connect(name="Ada") as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open(seats=3))
        bob = await his.join(ada.id)
        await ada.round_open()
        await ada.shuffle()
        assert await ada.deal(2, piles=[{"name": "board", "count": 3, "face": "up"}]) == 7
        await bob.until(lambda table: len(table.piles.get("board", ())) == 3)
        mine, other = ada.hand
        await ada.pass_(mine, to=2)
        await ada.take_back()
        assert ada.hand == [mine, other]
        await ada.pass_([mine], to=2)
        assert ada.piles["pass:2"] == [mine]
        await bob.until(lambda table: table.piles.get("pass:2") == ["??"])
        passed = bob.hand[0]
        await bob.pass_(passed, to=1)
        assert mine in bob.hand
        await ada.until(lambda table: len(table.hand) == 2)
        assert ada.hand == [other, passed]
        board = bob.piles["board"]
        await bob.move("board", to="won-2", whole=True)
        assert bob.piles["won-2"] == board
        assert await ada.pile_draw("won-2", whole=True) == board
        await ada.take_back()
        await bob.pass_(other_card := bob.hand[0], to=1)
        await ada.pass_()
        await ada.until(lambda table: other_card in table.hand)
        await ada.play(ada.hand, face="down")
        await ada.pile_turn("table", whole=True)
        await bob.show(whole=True)
        with pytest.raises(NothingToTakeBack):
            await bob.take_back()
        await ada.round_close()
        assert not ada.doubts
        assert not bob.doubts


async def test_markers_are_the_newest_notes(connect):
    async with connect(name="Ada") as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open())
        bob = await his.join(ada.id)
        for kind, text in NOTES:
            await ada.note(kind, text)
        await bob.until(lambda table: table.version == ada.version)
        assert bob.markers == ada.markers
        assert (bob.markers.turn, bob.markers.dealer_button) == (2, 1)
        assert bob.markers.scores == {1: -5, 2: 0}
        assert bob.markers.counters == {"pot, in $": 120}
        assert bob.markers.phrase == (1, "well-played")
        assert bob.markers.reaction == (1, "👏🏽")


@pytest.mark.parametrize(
    ("options", "opened", "doubts"),
    [
        ({}, "house", ["the house's bytes alone, but the players' bytes"]),
        ({"entropy": "players"}, "house", ["the house's bytes alone, but the players' bytes"]),
        ({"entropy": "house"}, "players", ["the players' bytes, but the house's bytes alone"]),
        ({"entropy": "house"}, "house", []),
        ({}, "players", []),
    ],
)
async def test_a_round_with_other_entropy_than_requested_is_doubted(
    connect, proxy, options, opened, doubts
):
    """The host has no seat, so that no doubt is about her own entropy."""

    def alter_request(frame):
        if frame["method"] == "round.open":
            frame["params"]["entropy"] = opened
        return frame

    proxy.alter_request = alter_request
    async with connect(proxy.url) as house:
        table = await house.open()
        assert await table.round_open(**options) == 1
        assert table.doubts == [f"Round 1 uses {doubt} were requested." for doubt in doubts]


async def test_refusals_are_raised_with_their_message(connect):
    async with connect(name="Ada") as house:
        table = await house.join(await house.open())
        await table.round_open()
        await table.shuffle()
        with pytest.raises(CardNotInHand, match="not in that hand"):
            await table.play("As")


async def test_a_spectator_sees_no_card_and_verifies(connect):
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
        # The list comes from the projector, which does not run here.
        assert await public.tables() == []


@pytest.mark.parametrize("lost", ["request", "answer"])
async def test_a_lost_connection_loses_and_repeats_nothing(connect, proxy, lost):
    async with connect(proxy.url, name="Ada") as house, connect(name="Bob") as his:
        table = await house.join(await house.open())
        bob = await his.join(table.id)
        await table.round_open()
        await table.shuffle()
        await bob.until(lambda bob: bob.version == table.version)
        events = bob.events()
        proxy.abort_at_draw(lost)
        cards = await table.draw(3)
        assert proxy.aborted == 1
        assert house._connection.sockets == 2
        assert table.hand == cards
        assert len(set(cards)) == 3
        await bob.discard(await bob.draw(1))
        await bob.until(lambda table: table.deck_count == 48)
        await table.round_close()
        await table.close()
        seen = [event async for _, _, event in events]
        assert sum(isinstance(event, CardDrawn) for event in seen) == 4


async def test_a_host_who_plays_gets_the_cards_lost_with_a_connection(connect, proxy):
    async with connect(proxy.url, name="Ada") as house:
        table = await house.join(await house.open())
        await table.round_open()
        await table.shuffle()
        lost = proxy.lose_drawn_card()
        cards = await table.draw(2)
        assert lost
        assert "??" not in cards
        assert table.hand == cards


async def test_a_host_who_lost_the_seat_while_away_stays_host(connect, proxy, real_server):
    async with connect(proxy.url, name="Ada") as hers, connect() as elsewhere:
        ada = await hers.join(await hers.open())
        token = hers._store.table(ada.id).facts["token"]
        onlooker = await elsewhere.watch(ada.id)
        proxy.alter_request = lambda frame: None if frame["method"] == "table.resume" else frame
        proxy.cut()
        leave = {"table": ada.id, "token": token}
        asking = elsewhere._connection.ask("table.leave", leave, table=None, changes=True)
        await asyncio.gather(asking, return_exceptions=True)
        await onlooker.until(lambda table: not table.seats)
        proxy.alter_request = lambda frame: frame
        proxy.cut()
        await ada.until(lambda table: not table.seats)
        assert ada.seat is None
        assert await ada.round_open() == 1


async def test_joining_and_opening_across_a_lost_connection(connect, proxy):
    cuts = proxy.cut_at_tokens()
    async with connect(proxy.url, name="Ada") as house:
        table = await house.join(await house.open())
        assert cuts == ["host_token", "token"]
        assert table.seats == {1: "Ada"}
        assert table.version == 2


async def test_joining_while_the_table_is_left(connect, monkeypatch):
    async with connect(name="Bob") as his, connect(name="Ada") as hers:
        bob = await his.open()
        watching = await hers.watch(bob.id)
        ask = hers._connection.ask

        def leave_first(method, *arguments, **options):
            if method == "table.join":  # an earlier leave is answered before the join
                watching._session.end(None)
                hers._follow(bob.id, key=None)  # as another join does
            return ask(method, *arguments, **options)

        monkeypatch.setattr(hers._connection, "ask", leave_first)
        async with asyncio.timeout(20):
            ada = await hers.join(bob.id)
            await his.join(bob.id)
            await ada.until(lambda table: len(table.seats) == 2)


async def test_answers_to_a_leave_and_a_join_come_together(connect, monkeypatch):
    """The client reads both before the caller of `leave` goes on."""
    async with connect(name="Bob") as his, connect(name="Ada") as hers:
        bob = await his.open()
        watching = await hers.watch(bob.id)
        connection, held = hers._connection, []
        process = connection._answered

        def process_together(frame):
            method = connection._requests[frame["id"]].method
            if method not in ("table.leave", "table.join"):
                process(frame)
                return
            held.append(frame)
            if method == "table.join":
                for one in held:
                    process(one)

        monkeypatch.setattr(connection, "_answered", process_together)
        async with asyncio.timeout(20):
            _, ada = await asyncio.gather(watching.leave(), hers.join(bob.id))
            await his.join(bob.id)
            await ada.until(lambda table: len(table.seats) == 2)
        assert len(held) == 2
        assert ada.seat == 1


async def test_a_store_that_cannot_be_written_fails_only_the_request(connect, monkeypatch):
    async with connect(name="Ada") as house:
        table = await house.join(await house.open())

        def full(**facts):
            raise ConfigurationError("seat.json cannot be written")

        monkeypatch.setattr(table._session.store, "learn", full)
        with pytest.raises(ConfigurationError, match="cannot be written"):
            await table.leave()
        await house.open()


async def test_watching_while_the_table_is_left(connect):
    """Nothing happens between: the answer has the version that the session had."""
    async with connect(name="Bob") as his, connect(name="Ada") as hers:
        bob = await his.open()
        watching = await hers.watch(bob.id)
        leaving = asyncio.create_task(watching.leave())
        again = asyncio.create_task(hers.watch(bob.id))
        await leaving
        async with asyncio.timeout(20):
            table = await again
            await his.join(bob.id)
            await table.until(lambda table: len(table.seats) == 1)


async def test_a_late_refusal_of_an_earlier_seat_does_not_end_a_later_one(connect, proxy):
    """A host leaves the seat, and takes another, while a resume with its token is to be sent."""
    async with connect(proxy.url, name="Ada") as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open())
        bob = await his.join(ada.id)
        resume = RefusedResume(proxy)
        await bob.note("chat", "one")
        await bob.note("chat", "two")
        async with asyncio.timeout(20):
            await resume.refused.wait()
            await ada.leave()
            ada = await hers.join(ada.id)
            seat = ada.seat
            await resume.sent_again.wait()  # with the token of the seat that was left
            await ada.note("chat", "four")  # the requests of a connection are answered in order
        assert ada.seat == seat is not None


async def test_an_answer_to_a_join_that_comes_while_the_next_session_watches(connect, proxy):
    async with connect(proxy.url, name="Ada") as hers, connect(name="Bob") as his:
        bob = await his.open()
        first = await hers.watch(bob.id)
        join = RefusedJoin(proxy)
        joining = asyncio.create_task(hers.join(bob.id))
        await join.refused.wait()
        await first.leave()
        async with asyncio.timeout(20):
            watching = await hers.watch(bob.id)
            assert await joining is watching
            await his.join(bob.id)
            await watching.until(lambda table: len(table.seats) == 2)


async def test_an_ended_session_does_not_end_the_one_after_it(connect):
    async with connect(name="Ada") as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open())
        bob = await his.join(ada.id)
        await bob.leave()
        again = await his.join(ada.id)
        bob._session.end(None)  # as a late answer to a request of the first session does
        await ada.note("chat", "hello")
        async with asyncio.timeout(20):
            await again.until(lambda table: table.version >= ada.version)
            await again.note("chat", "here")


async def test_an_answer_to_a_join_that_comes_after_the_seat_was_left(connect, monkeypatch):
    """The answer to a repeated join shows the table as it was then, which is not an older log."""
    async with connect(name="Ada") as hers:
        ada = await hers.join(await hers.open())
        joined: dict[str, Any] = {}

        async def join(method, *arguments, answered, **options):
            if joined:
                await bob.leave()
                answered(joined)
            else:
                joined.update(await ask(method, *arguments, answered=answered, **options))
            return joined

        def kept(method, *arguments, **options):
            return (join if method == "table.join" else ask)(method, *arguments, **options)

        async with connect(name="Bob") as his:
            ask = his._connection.ask
            monkeypatch.setattr(his._connection, "ask", kept)
            bob = await his.join(ada.id)
            await ada.round_open()
            await ada.shuffle()
            await bob.until(lambda table: table.shuffled)
            with pytest.raises(DealerError, match="left this table"):
                await his.join(ada.id)
            monkeypatch.undo()
            again = await his.join(ada.id)
            assert again.seats == {1: "Ada", 2: "Bob"}


async def test_clients_resume_after_a_server_restart(connect, real_server):
    async with connect(name="Ada") as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open())
        bob = await his.join(ada.id)
        await ada.round_open()
        await ada.shuffle()
        before = await ada.draw(2)
        drawing = asyncio.gather(*(bob.draw(1) for _ in range(5)))
        await real_server.restart()
        drawn = [card for (card,) in await drawing]
        assert bob.hand == drawn
        assert ada.hand == before
        await ada.shuffle()
        await ada.round_close()
        await bob.until(lambda table: table.round is None)


async def test_a_restarted_client_resumes_its_seat(connect, tmp_path):
    folder = tmp_path / "ada"
    async with connect(name="Bob") as his:
        async with connect(name="Ada", store=folder) as hers:
            bob = await his.open()
            await his.join(bob)
            ada = await hers.join(bob.id)
            await bob.round_open()
            await bob.shuffle()
            hand = await ada.draw(2)
        async with connect(name="Ada", store=folder) as hers:
            ada = await hers.join(bob.id)
            assert ada.hand == hand
            assert ada.seat == 2
            assert await bob.shuffle() == 1  # Ada has already committed: it needs her reveal
            assert await ada.draw(1)
            await bob.round_close()
            await ada.until(lambda table: table.round is None)
            assert len(ada.checkpoints) > 3
            assert not ada.doubts
    nonces = Store(folder).table(bob.id).nonces
    assert len({nonce.value for nonce in nonces.values()}) == len(nonces) == 3


async def test_a_client_restart_between_commit_and_reveal(connect, proxy, tmp_path):
    """The reveal is delayed until the first process has ended; the second one sends it."""
    folder = tmp_path / "ada"
    held = proxy.hold("entropy.reveal")
    async with connect(name="Bob") as his:
        bob = await his.join(await his.open())
        async with connect(proxy.url, name="Ada", store=folder) as hers:
            await hers.join(bob.id)
            await bob.round_open()
            shuffling = asyncio.create_task(bob.shuffle())
            await held.wait()
        async with connect(name="Ada", store=folder) as hers:
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
        await bob.round_open()  # the host has left, and Bob follows
        await ada.until(lambda table: table.round == 1)  # who opened the table still sees it
        assert bob.state.host_seat == 2


async def test_the_host_hands_on_its_role_and_removes_a_player(connect):
    async with connect(name="Ada") as hers, connect(name="Bob") as his, connect() as whose:
        ada = await hers.join(await hers.open())
        bob = await his.join(ada.id)
        watching = await whose.watch(ada.id)
        await ada.transfer_host(2)
        await bob.note("chat", "I deal \u2660")
        await bob.vacate(1, "it is late")
        await watching.until(lambda table: table.seats == {2: "Bob"})
        assert watching.state.host_seat == 2
        with pytest.raises(Refused):
            await bob.vacate(1)
        await ada.until(lambda table: table.seat is None)
    async with connect() as later:
        assert (await later.watch(ada.id)).state.host_seat == 2


async def test_a_player_moves_draws_and_comes_back_with_the_same_token(connect, tmp_path):
    async with connect(name="Ada") as hers, connect(name="Bob", store=tmp_path) as his:
        ada = await hers.join(await hers.open())
        bob = await his.join(ada.id)
        token = Store(tmp_path).table(bob.id).facts["token"]
        await ada.move_seat(5, seat=2)  # a request, which clients may ignore
        assert ada.seats == {1: "Ada", 2: "Bob"}
        await bob.move_seat(5)
        assert bob.seat == 5
        await ada.until(lambda table: table.seats == {1: "Ada", 5: "Bob"})
        await ada.round_open()
        await ada.shuffle()  # with the bytes of both
        drawn = await bob.draw(2)
        assert bob.hand == drawn
        assert (ada.doubts, bob.doubts) == ([], [])
    async with connect(name="Bob", store=tmp_path) as his:
        again = await his.join(ada.id)
        assert (again.seat, again.hand) == (5, drawn)
        assert Store(tmp_path).table(bob.id).facts["token"] == token
        await again.leave()


@pytest.mark.parametrize("resume", [0, 1000])
async def test_a_player_who_moved_on_another_device_is_followed(
    connect, real_server, tmp_path, resume
):
    async with connect(name="Ada", store=tmp_path) as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open())
        kept = Store(tmp_path).table(ada.id).facts
        bob = await his.join(ada.id)
        for to in (3, 4):
            await ada.move_seat(to)
        await bob.move_seat(1)
    Store(tmp_path).table(ada.id).learn(**kept)  # as on a device that has only the link
    await real_server.restart(resume=resume)
    async with connect(store=tmp_path) as hers:
        again = await hers.join(ada.id)
        assert again.seat == 4
        assert again.seats == {1: "Bob", 4: "Ada"}
        await again.round_open(commit_ms=200)
        await again.shuffle()
        assert len(await again.draw(1)) == 1
        assert again.doubts == []


async def test_a_host_without_a_seat_comes_back(connect, tmp_path):
    async with connect(store=tmp_path) as house:
        table = await house.open(rules={"preset": "dealer"})
    async with connect(store=tmp_path) as house:
        again = await house.watch(table.id)
        assert await again.round_open() == 1


async def test_a_table_id_that_cannot_be_one_is_refused_before_it_is_used(connect, tmp_path):
    folder = tmp_path / "store"
    async with connect(store=folder) as house:
        for wrong in ("nonsense", "", "../" * 10 + "aa", "0199F3C2" * 4):
            for follow in (house.join, house.watch):
                with pytest.raises(BadRequest, match="32 hexadecimal digits"):
                    await follow(wrong)
    assert not folder.exists()


async def test_a_connection_that_was_not_opened_says_so(connect):
    house = connect()
    with pytest.raises(ConfigurationError, match="async with connect"):
        await house.open()


async def test_a_newer_connection_of_the_same_seat_ends_the_older(connect, tmp_path):
    folder = tmp_path / "ada"
    async with (
        connect(name="Ada", store=folder) as first,
        connect(name="Ada", store=folder) as second,
    ):
        table = await first.open()
        table = await first.join(table)
        # The second client reads from the folder what the first one stored after the second began.
        await second.join(table.id)
        with pytest.raises(SessionEnded) as ended:
            await table.until(lambda table: table.round == 1)
        assert ended.value.code == 4409


async def test_every_checkpoint_is_cosigned_automatically(connect, proxy, tmp_path):
    sizes = proxy.watch_cosigning()
    async with connect(proxy.url, name="Ada", store=tmp_path / "ada") as house:
        table = await house.join(await house.open())
        stored = json.loads((tmp_path / "ada" / table.id / "seat.json").read_text())
        own = Cosigner(bytes.fromhex(stored["player_seed"])).public_key
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


async def test_the_cosigning_key_can_be_given_or_turned_off(connect):
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
        with pytest.raises(ConfigurationError, match="does not cosign"):
            await bob.cosign(bob.checkpoints[-1])


async def test_a_returning_client_cosigns_only_the_newest_checkpoint(connect, proxy, tmp_path):
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


async def test_a_lagging_host_who_plays_gets_two_snapshots(connect, real_server, proxy):
    await real_server.restart(resume=0)
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


async def test_a_long_log_is_not_read_from_its_start(connect, real_server, tmp_path):
    """A returning client gets a snapshot, and then a link from its saved head."""
    folder = tmp_path / "ada"
    async with connect(name="Bob") as his:
        bob = await his.join(await his.open())
        async with connect(name="Ada", store=folder) as hers:
            ada = await hers.join(bob.id)
            await bob.round_open(entropy="house")
            await bob.shuffle()
            hand = await ada.draw(2)
        await bob.draw(2)
    for limit in (20, 0):  # first with the events since the saved head, then with a proof
        await real_server.restart(resume=limit)
        async with connect(name="Ada", store=folder) as hers:
            ada = await hers.join(bob.id)
            assert ada.hand == hand
            hand += await ada.draw(1)
            assert ada.hand == hand


@pytest.mark.parametrize("resume", [0, 5])
async def test_a_lagging_client_gets_a_snapshot(connect, real_server, proxy, resume):
    """The server sends a snapshot with a proof, and the game continues."""
    await real_server.restart(resume=resume)
    async with connect(proxy.url, name="Ada") as hers, connect(name="Bob") as his:
        bob = await his.join(await his.open())
        ada = await hers.join(bob.id)
        await bob.round_open(entropy="house")
        await bob.shuffle()
        await ada.draw(1)
        resumes, held = [], proxy.hold("table.resume")
        version = ada.version
        proxy.cut()
        await bob.draw(3)
        await bob.shuffle()
        await held.wait()

        def record(frame):
            resumes.append(frame["method"])
            return frame

        proxy.alter_request = record
        proxy.cut()
        await ada.until(lambda table: table.version > version)
        assert len(ada.hand) == 1
        assert resumes.count("table.resume") == 1
        await bob.round_close()
        await ada.until(lambda table: table.round is None)


async def test_an_unreachable_address_is_reported(connect):
    with pytest.raises(HouseUnreachable, match="does not answer"):
        await connect("ws://127.0.0.1:9/ws").__aenter__()
    for page in ("nowhere", "http://127.0.0.1:9/"):
        with pytest.raises(HouseUnreachable, match=r"not the address of a server: .*ws://.*/ws"):
            await connect(page).__aenter__()


async def test_an_address_of_a_page_is_no_websocket(connect, real_server):
    with pytest.raises(HouseUnreachable, match=r"no WebSocket at .*: .*ws://.*/ws"):
        await connect(real_server.url.removesuffix("/ws")).__aenter__()


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
async def test_a_client_leaves_a_house_that_cheats(connect, proxy, tmp_path, alter):
    def change(frame):
        return alter(frame) if frame.get("method") in ("event", "events") else frame

    async def play(table):
        await table.round_open()
        await table.shuffle()
        await table.draw(2)
        await table.round_close()

    proxy.alter = change
    folder = tmp_path / "ada"
    async with connect(proxy.url, name="Ada", store=folder) as house:
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
    async with connect(name="Ada", store=folder) as house:
        with pytest.raises(HouseCheated, match="was left because"):
            await house.join(table.id)


async def test_a_lost_event_is_requested_again(connect, proxy):
    dropped = asyncio.Event()

    def lose(frame):
        opening = frame.get("params", {}).get("type") == "RoundOpened"
        if opening and not dropped.is_set():
            dropped.set()
            return None
        return frame

    proxy.alter = lose
    async with connect(proxy.url, name="Ada") as hers:
        ada = await hers.join(await hers.open())
        # The answer arrives, the event does not: the next event reveals the gap.
        opening = asyncio.create_task(ada.round_open())
        await dropped.wait()
        async with connect(name="Bob") as his:
            await his.join(ada.id)
            assert await opening == 1
            await ada.shuffle()
            assert hers._connection.sockets == 1


async def test_presence_is_requested_and_its_notifications_are_ignored(connect):
    async with connect(name="Ada") as hers:
        ada = await hers.join(await hers.open())
        async with connect(name="Bob") as his:
            await his.join(ada.id)
            await ada.until(lambda table: len(table.seats) == 2)
            answer = await ada.presence()
            assert [seat["here"] for seat in answer["seats"]] == [True, True]
            handler, left = hers._connection.handlers[ada.id], asyncio.Event()
            notified = handler.notified

            def listening(method, params):
                notified(method, params)
                if method == "presence" and not params["seats"][1]["here"]:
                    left.set()

            handler.notified = listening
        async with asyncio.timeout(30):
            await left.wait()
        await ada.round_open(entropy="house")
        await ada.shuffle()
        assert await ada.draw(1) == ada.hand


async def test_an_earlier_version_as_this_player_saw_it(connect):
    async with connect(name="Ada") as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open())
        bob = await his.join(ada.id)
        await ada.round_open()
        await ada.shuffle()
        drawn = await ada.draw(2)
        then, version = copy_table(ada.state), ada.version
        await ada.play(drawn[0])
        past = await ada.state_at(version)
        assert then.round is not None
        assert (past.version, past.round.stacks) == (version, then.round.stacks)
        assert [past.round.face(card) for card in past.round.cards("hand:1")] == drawn
        his_view = await bob.state_at(version)
        assert [his_view.round.face(card) for card in his_view.round.cards("hand:1")] == [None] * 2
        assert his_view.seats[1].name == "Ada"
        assert (await ada.state_at(1)).round is None
        with pytest.raises(BadRequest, match="no version"):
            await ada.state_at(ada.version + 1)
