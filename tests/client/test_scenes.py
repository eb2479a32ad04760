"""Scenes of both clients, Python and JavaScript, with a real server over real sockets."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import dealer
from dealer.client.storage import Store
from dealer.errors import (
    BadRequest,
    CardNotInHand,
    NotEntitled,
    NothingToTakeBack,
    PlayerRemoved,
    Refused,
    SessionEnded,
)
from dealer.proof.checkpoint import Cosigner
from tests.client.conftest import FAST, RefusedJoin, RefusedResume
from tests.web.client.python_api import JsHouses


class PythonClients:
    """`connect` of the Python client, and what it keeps in a folder."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, url: str | None = None, **options: Any) -> Any:
        return dealer.connect(url or self._url, patience=FAST, **options)

    def check(self, table: Any, *, unavailable: dict[str, str] | None = None) -> None:
        """A closed round was verified; the Python client raises otherwise."""
        assert table.doubts == []

    def entropy(self, table: Any) -> tuple[str, str | None]:
        """The Python client lists no checks: what the JavaScript client says in its place."""
        return ("no", None) if table.doubts else ("unavailable", "other_client")

    def nonces(self, folder: Path, table: str) -> list[str]:
        return [nonce.value.hex() for nonce in Store(folder).table(table).nonces.values()]

    def key(self, folder: Path, table: str) -> bytes:
        seat = json.loads((folder / table / "seat.json").read_text())
        return Cosigner(bytes.fromhex(seat["player_seed"])).public_key


class JavaScriptClients:
    """`connect` of the JavaScript client, and what it keeps in a folder."""

    def __init__(self, url: str, houses: JsHouses) -> None:
        self._url = url
        self._houses = houses

    def __call__(self, url: str | None = None, **options: Any) -> Any:
        return self._houses.house(url or self._url, **options)

    def check(self, table: Any, *, unavailable: dict[str, str] | None = None) -> None:
        """A closed round was verified: each of the checks that the client lists."""
        assert table.doubts == []
        unmet = {one["name"]: one["state"] for one in table.checks if one["state"] != "yes"}
        assert unmet == (unavailable or {})

    def entropy(self, table: Any) -> tuple[str, str | None]:
        """Whether the player's bytes are used, and the reason if that cannot be checked."""
        (check,) = (one for one in table.checks if one["name"] == "entropy")
        return check["state"], check["because"]

    def nonces(self, folder: Path, table: str) -> list[str]:
        kept = [json.loads(file.read_text()) for file in folder.glob("*nonce*")]
        return [one["value"] for one in kept if isinstance(one, dict)]

    def key(self, folder: Path, table: str) -> bytes:
        kept = json.loads((folder / f"dealer%2F{table}%2Fplayer").read_text())
        return base64.urlsafe_b64decode(kept["x"] + "=")


@pytest.fixture(params=["python", pytest.param("javascript", marks=pytest.mark.slow)])
async def connect(request: Any, real_server: Any) -> AsyncIterator[Any]:
    if request.param == "python":
        yield PythonClients(real_server.url)
        return
    async with JsHouses() as houses:
        yield JavaScriptClients(real_server.url, houses)


NOTES = [
    ("turn", "1"), ("turn", "2"), ("turn", "0"), ("turn", "the next"), ("dealer_button", "1"),
    ("clock", "30"), ("clock", "45"), ("clock", "-1"), ("clock", "07"), ("clock", "100000"),
    ("score", "1:10"), ("score", "2:0"), ("score", "1:-5"), ("score", "1:-0"), ("score", "1:1.5"),
    ("counter", "pot, in $:120"), ("counter", "a:b:1"), ("counter", ":1"),
    ("phrase", "thanks"), ("phrase", "well-played"), ("phrase", "Well played!"),
    ("reaction", "👏🏽"), ("reaction", ""), ("reaction", "x" * 17), ("chat", "3"),
]  # fmt: skip
"""Notes with and without a meaning as markers, in order."""


async def test_open_join_and_draw(connect):
    async with connect(name="Ada") as house:
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
        seen = [type(event).__name__ async for _, _, event in events]
        assert (seen.count("DeckSealed"), seen.count("EntropyRevealed")) == (4, 8)
        assert seen[-2:] == ["RoundClosed", "TableClosed"]
        assert bob.closed
        connect.check(ada)
        connect.check(bob)
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
        await bob.until(lambda table: table.round is None)
        connect.check(ada)
        connect.check(bob)


async def test_markers_are_the_newest_notes(connect):
    async with connect(name="Ada") as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open())
        bob = await his.join(ada.id)
        for kind, text in NOTES:
            await ada.note(kind, text)
        await bob.until(lambda table: table.version == ada.version)
        assert vars(bob.markers) == vars(ada.markers)
        assert (bob.markers.turn, bob.markers.dealer_button, bob.markers.clock) == (2, 1, 45)
        assert bob.markers.scores == {1: -5, 2: 0}
        assert bob.markers.counters == {"pot, in $": 120}
        assert bob.markers.phrase == (1, "well-played")
        assert bob.markers.reaction == (1, "👏🏽")


@pytest.mark.parametrize(
    ("rules", "asked", "opened", "doubts"),
    [
        ({}, {}, "house", ["the house's bytes alone, but the players' bytes"]),
        ({}, {"entropy": "players"}, "house", ["the house's bytes alone, but the players' bytes"]),
        ({}, {"entropy": "house"}, "players", ["the players' bytes, but the house's bytes alone"]),
        ({"entropy": "house"}, {}, "players", ["the players' bytes, but the house's bytes alone"]),
        ({"entropy": "house"}, {}, "house", []),
        ({}, {"entropy": "house"}, "house", []),
        ({}, {}, "players", []),
    ],
)
async def test_a_round_with_other_entropy_than_requested_is_doubted(
    connect, proxy, rules, asked, opened, doubts
):
    """The host has no seat, so that no doubt is about her own entropy."""

    def alter_request(frame):
        if frame["method"] == "round.open":
            frame["params"]["entropy"] = opened
        return frame

    proxy.alter_request = alter_request
    async with connect(proxy.url) as house:
        table = await house.open(rules=rules)
        assert await table.round_open(**asked) == 1
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
        connect.check(onlooker, unavailable={"entropy": "unavailable", "cards": "waiting"})
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
        assert proxy.opened == 2
        assert table.hand == cards
        assert len(set(cards)) == 3
        await bob.discard(await bob.draw(1))
        await bob.until(lambda table: table.deck_count == 48)
        await table.round_close()
        await table.close()
        seen = [type(event).__name__ async for _, _, event in events]
        assert seen.count("CardDrawn") == 4


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


async def test_joining_and_opening_across_a_lost_connection(connect, proxy):
    cuts = proxy.cut_at_tokens()
    async with connect(proxy.url, name="Ada") as house:
        table = await house.join(await house.open())
        assert cuts == ["host_token", "token"]
        assert table.seats == {1: "Ada"}
        assert table.version == 2


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
            connect.check(ada)
    nonces = connect.nonces(folder, bob.id)
    assert len(set(nonces)) == len(nonces) == 3


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
        token = bob.token
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
        assert again.token == token
        await again.leave()


@asynccontextmanager
async def left_hand(connect):
    """Ada's table where Bob has left seat 2 with two cards in its hand; and these cards."""
    async with connect(name="Ada") as hers:
        ada = await hers.join(await hers.open())
        async with connect(name="Bob") as his:
            bob = await his.join(ada.id)
            await ada.round_open(entropy="house")
            await ada.shuffle()
            await ada.deal(2)
            await bob.until(lambda table: len(table.hand) == 2)
            hand = bob.hand
            await bob.leave()
        yield ada, hand


@pytest.mark.parametrize("watching", [False, True])
async def test_who_takes_over_a_left_hand_sees_its_cards(connect, tmp_path, watching):
    async with left_hand(connect) as (ada, hand):
        async with connect(name="Nell", store=tmp_path) as house:
            if watching:
                await house.watch(ada.id)
            nell = await house.join(ada.id, seat=2)
            await nell.until(lambda table: table.hand == hand)
            await nell.play(hand[0])
        async with connect(store=tmp_path) as house:  # a second device, which reads all events
            again = await house.join(ada.id)
            await again.until(lambda table: table.hand == hand[1:])
            await ada.round_close()
            await again.until(lambda table: table.round is None)
            assert again.doubts == []


async def test_who_moves_to_a_left_hand_sees_its_cards(connect, tmp_path):
    async with left_hand(connect) as (ada, hand):
        async with connect(name="Nell", store=tmp_path) as house:
            nell = await house.join(ada.id, seat=4)
            assert nell.hand == []
            await nell.move_seat(2)
            await nell.until(lambda table: table.hand == hand)
        async with connect(store=tmp_path) as house:
            again = await house.join(ada.id)
            await again.until(lambda table: table.hand == hand)


async def test_who_leaves_a_taken_over_hand_no_longer_sees_it(connect):
    async with left_hand(connect) as (ada, hand), connect(name="Nell") as house:
        nell = await house.join(ada.id, seat=2)
        await nell.until(lambda table: table.hand == hand)
        await nell.leave()
        nell = await house.join(ada.id, seat=3)
        assert nell.hand == []
        await ada.deal(1, seats=[3])
        await nell.until(lambda table: len(table.hand) == 1)
        assert set(nell.hand).isdisjoint(hand)


@pytest.mark.parametrize("resume", [0, 1000])
async def test_a_player_who_moved_on_another_device_is_followed(
    connect, real_server, tmp_path, resume
):
    folder, kept = tmp_path / "store", tmp_path / "kept"
    async with connect(name="Ada", store=folder) as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open())
        shutil.copytree(folder, kept)
        bob = await his.join(ada.id)
        for to in (3, 4):
            await ada.move_seat(to)
        await bob.move_seat(1)
    shutil.rmtree(folder)
    kept.rename(folder)  # as on a device that has only the link
    await real_server.restart(resume=resume)
    async with connect(store=folder) as hers:
        again = await hers.join(ada.id)
        assert again.seat == 4
        assert again.seats == {1: "Bob", 4: "Ada"}
        await again.round_open(commit_ms=200)
        await again.shuffle()
        assert len(await again.draw(1)) == 1
        assert again.doubts == []


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


async def test_bytes_of_another_device_of_the_player_are_no_sign_of_fraud(connect, tmp_path):
    """Two devices play one seat in turn; each has committed to bytes that the other cannot know."""
    async with (
        connect(name="Ada", store=tmp_path / "phone") as phone,
        connect(store=tmp_path / "laptop") as laptop,
    ):
        ada = await phone.join(await phone.open())
        await ada.transfer_host(1)  # for whom both devices act
        await ada.round_open(reveal_ms=200)
        await ada.shuffle()
        await ada.until(lambda table: table.version == 61)  # its digest for the next shuffle
        other = await laptop.resume(ada.id, token=ada.token)
        await other.until(lambda table: table.version >= 61)
        assert other.doubts == []
        assert connect.entropy(other) == ("unavailable", "other_client")
        await other.shuffle()  # without the seat, whose nonce does not come
        assert other.doubts == []
        assert connect.entropy(other) == ("unavailable", "other_client")
        await other.round_close()
        await other.round_open()
        await other.shuffle()  # with bytes of its own
        assert other.doubts == []
        await other.until(lambda table: table.version == 177)
    async with connect(store=tmp_path / "phone") as phone:
        back = await phone.join(ada.id)
        assert back.seat == 1
        assert back.doubts == []
        assert connect.entropy(back) == ("unavailable", "other_client")


async def test_a_player_removed_for_a_reason_waits_for_the_host(connect):
    async with connect(name="Ada") as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open())
        bob = await his.join(ada.id)
        with pytest.raises(NotEntitled, match="Only the host may let"):
            await bob.note("readmit", "Bob")
        await ada.vacate(2, "he shows his cards")
        await bob.until(lambda table: table.seat is None)
        for name in ("Bob", "b\u043eb", " BOB"):
            with pytest.raises(PlayerRemoved, match="the host can let them sit down again"):
                await his.join(ada.id, name=name)
        assert (await his.join(ada.id, name="Cleo")).seat == 2
        with pytest.raises(BadRequest, match="No player of this name"):
            await ada.note("readmit", "Cleo")
        await ada.note("readmit", "bob")
        async with connect(name="Bob") as again:
            assert (await again.join(ada.id)).seat == 3


@pytest.mark.parametrize("removal", ["without a reason", "readmitted before"])
async def test_a_player_who_may_sit_down_again(connect, removal):
    async with connect(name="Ada") as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open())
        bob = await his.join(ada.id)
        if removal == "without a reason":
            await ada.vacate(2)
        else:
            await ada.vacate(2, "too slow")
            await ada.note("readmit", "Bob")
        await bob.until(lambda table: table.seat is None)
        assert (await his.join(ada.id)).seat == 2


async def test_every_checkpoint_is_cosigned_automatically(connect, proxy, tmp_path):
    sizes = proxy.watch_cosigning()
    async with connect(proxy.url, name="Ada", store=tmp_path / "ada") as house:
        table = await house.join(await house.open())
        own = connect.key(tmp_path / "ada", table.id)
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
        unseen = dict.fromkeys(("entropy", "commitment", "seal"), "unavailable")
        connect.check(ada, unavailable=unseen)


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
            assert proxy.opened == 1
