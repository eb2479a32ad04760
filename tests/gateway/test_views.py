"""Views: each client gets every event, and the private face only of its own seat's events."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from dealer.game.cards import STANDARD
from dealer.game.decide import rounds
from dealer.game.tape import Tape
from dealer.gateway import Gateway
from dealer.service import clock
from tests.gateway.conftest import serving
from tests.gateway.rpc_client import RpcClient
from tests.gateway.tables import seat_and_shuffle, seat_players
from tests.service.bare_service import bare_service

CODES = re.compile(r'"([A23456789TJQK][shdc])"')


def codes_in(frames: list[str]) -> set[str]:
    """Cards that are named anywhere but in the list of the round's deck."""
    return {
        code for frame in frames for code in CODES.findall(re.sub(r'"deck":\[[^]]*\]', "", frame))
    }


async def test_each_client_gets_only_the_cards_that_it_may_see(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=3)
    spectator = await connect(gateway)
    await spectator.call("table.watch", table=table.id)
    await table.host.call("table.watch", table=table.id)
    ann, bob, carol = table.players
    hands: list[set[str]] = []
    await table.host.call("deck.deal", each=2)
    for client in table.players:
        drawn = await client.call("deck.draw")
        await client.until_version(drawn["version"])
        hands.append({e["private"]["card"] for e in client.events if "private" in e})
    assert [len(hand) for hand in hands] == [3, 3, 3]
    played = sorted(hands[0])[0]
    last = await ann.call("hand.play", cards=[played])
    given = sorted(hands[1])[0]
    last = await bob.call("hand.give", cards=[given], to=3)
    for client in (*table.players, spectator, table.host):
        await client.until_version(last["version"])
    assert codes_in(ann.frames) == hands[0]
    assert codes_in(bob.frames) == hands[1] | {played}
    assert codes_in(carol.frames) == hands[2] | {played, given}
    assert codes_in(spectator.frames) == {played}
    assert codes_in(table.host.frames) == {played}
    for client in (*table.players, spectator, table.host):
        assert client.versions == list(range(client.versions[0], last["version"] + 1))


async def test_all_clients_get_the_same_leaves(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=3)
    version = (await table.players[1].call("deck.draw"))["version"]
    leaves = []
    for client in table.players:
        await client.until_version(version)
        events = [event for event in client.events if event["version"] > 4]
        leaves.append([{k: v for k, v in event.items() if k != "private"} for event in events])
    assert leaves[0] == leaves[1] == leaves[2]
    assert "private" in table.players[1].events[-1]
    assert "private" not in table.players[0].events[-1]


async def test_the_exact_frames_of_a_draw(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    ann, bob = table.players
    await ann.send_raw('{"jsonrpc":"2.0","id":"x","method":"deck.draw"}')
    await ann.until(lambda: ann.notices("answer"))
    await bob.until_version(ann.versions[-1])
    event = ann.events[-1]
    card, slot = event["private"]["card"], event["private"]["slot"]
    public = (
        f'{{"jsonrpc":"2.0","method":"event","params":{{"at":{event["at"]},'
        f'"commit":"{event["commit"]}","public":{{"from":"deck","round":1,"seat":1,"slot":{slot}}},'
        f'"table":"{table.id}","type":"CardDrawn","v":1,"version":{event["version"]}'
    )
    private = f'"private":{{"card":"{card}","salt":"{event["private"]["salt"]}","slot":{slot}}}'
    assert bob.frames[-1] == public + "}}"
    assert ann.frames[-2] == public + f",{private}}}}}"
    assert ann.frames[-1] == (
        '{"jsonrpc":"2.0","id":"x","result":'
        f'{{"cards":["{card}"],"slots":[{slot}],"version":{event["version"]}}}}}'
    )


async def test_a_player_that_left_sees_no_card_of_the_next_one(gateway, connect) -> None:
    """Also on another connection than the one that sent `table.leave`."""
    table = await seat_and_shuffle(connect, gateway, players=2)
    ann = table.players[0]
    mine = {(await ann.call("deck.draw"))["cards"][0]}
    other = await connect(gateway)
    await other.call("table.leave", table=table.id, token=table.tokens[0])
    carol = await connect(gateway)
    assert (await carol.call("table.join", table=table.id, name="Carol"))["seat"] == 1
    drawn = await carol.call("deck.draw")
    await ann.until_version(drawn["version"])
    assert codes_in(ann.frames) == mine
    assert "private" not in ann.events[-1]
    with pytest.raises(Exception, match="seat"):
        await ann.call("deck.draw")


async def test_a_player_that_left_a_private_table_gets_no_more_events(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2, watch="nobody")
    ann, bob = table.players
    other = await connect(gateway)
    left = await other.call("table.leave", table=table.id, token=table.tokens[0])
    drawn = await bob.call("deck.draw")
    await bob.until_version(drawn["version"])
    await ann.call("ping")
    assert ann.versions[-1] == left["version"]


@asynccontextmanager
async def open_gateway_in(directory: Path) -> AsyncIterator[Gateway]:
    directory.mkdir()  # noqa: ASYNC240
    async with serving(
        bare_service(f"sqlite:///{directory / 'dealer.db'}", fresh=bytes(32))
    ) as gateway:
        yield gateway


class Played(NamedTuple):
    """A game: the cards that seat 1 sees, those that seat 2 passes and takes back, and frames.

    These are of the player of seat 1, of the same player resumed, and of a spectator.
    """

    seen: list[str]
    taken_back: list[str]
    frames: list[list[str]]


async def play(gateway: Gateway, deck: list[str]) -> Played:
    """Play a game with this deck."""
    async with AsyncExitStack() as stack:

        async def connect(_: Gateway) -> RpcClient:
            client = await RpcClient.connect(gateway.port)
            stack.push_async_callback(client.close)
            return client

        table = await seat_players(connect, gateway, players=2)
        ann, bob = table.players
        spectator = await connect(gateway)
        await spectator.call("table.watch", table=table.id)
        await table.host.call("round.open", entropy="house", deck=deck)
        await table.host.call("deck.shuffle")
        await table.host.call("deck.deal", each=3)
        own = await ann.call("deck.draw", count=2)
        first = await bob.call("deck.draw")
        await bob.call("hand.discard", cards=first["slots"])
        await bob.call("hand.take_back")
        await bob.call("hand.discard", cards=first["slots"])
        drawn = await bob.call("deck.draw", count=4, from_="random")
        await bob.call("hand.pass", cards=drawn["slots"][:3], to=1)
        await bob.call("hand.take_back")
        await bob.call("hand.pass", cards=drawn["slots"][3:], to=1)
        with pytest.raises(Exception, match="wait to be passed"):
            await ann.call("pile.draw", pile="pass:1")
        await ann.call("hand.pass", cards=own["cards"][:1], to=2)
        with pytest.raises(Exception, match="not in that hand"):
            await ann.call("hand.play", cards=[deck[1]])
        await ann.call("table.state")
        again = await connect(gateway)
        last = await again.call("table.resume", table=table.id, token=table.tokens[0], after=0)
        await again.until(lambda: again.notices("resumed"))
        await spectator.until_version(last["version"])
        seen = sorted(codes_in(ann.frames + again.frames))
        return Played(seen, drawn["cards"][:3], [ann.frames, again.frames, spectator.frames])


HASHES = re.compile(r"[0-9a-f]{32,}|[A-Za-z0-9+/]{40,}={0,2}")


def without_hashes(frames: list[str]) -> list[str]:
    """Frames with each hash and signature replaced by as many dots, and an empty deck list."""
    masked = []
    for frame in frames:
        frame = re.sub(r'"deck":\[[^]]*\]', '"deck":[]', frame)
        masked.append(HASHES.sub(lambda match: "." * len(match[0]), frame))
    return masked


@pytest.fixture
def restart_randomness(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Gives each server for which it is called the same random bytes, clock and tapes.

    A tape also depends on the root of the log, and so on the first order of the deck.
    """

    class TapeOfOneRoot(Tape):
        def __init__(self, **inputs: Any) -> None:
            super().__init__(**inputs | {"root": bytes(32)})

    def restart() -> None:
        count = 0

        def token_bytes(size: int) -> bytes:
            nonlocal count
            count += 1
            return (count.to_bytes(4, "big") * size)[:size]

        monkeypatch.setattr(secrets, "token_bytes", token_bytes)
        monkeypatch.setattr(
            clock, "time", SimpleNamespace(time_ns=lambda: 1_700_000_000_000_000_000)
        )
        monkeypatch.setattr(rounds, "Tape", TapeOfOneRoot)

    return restart


async def test_exchanging_two_unseen_cards_changes_no_byte(
    tmp_path: Path, restart_randomness: Callable[[], None]
) -> None:
    """Two servers play one game with the same randomness and two cards unseen by seat 1 exchanged.

    The frames differ in the round's deck, which is public, and in hashes, of fixed length.
    """
    deck = list(STANDARD)
    restart_randomness()
    async with open_gateway_in(tmp_path / "one") as gateway:
        seen, _, frames = await play(gateway, deck)
    assert len(seen) == 6
    unseen = [code for code in deck[1:] if code not in seen]
    a, b = deck.index(unseen[0]), deck.index(unseen[-1])
    deck[a], deck[b] = deck[b], deck[a]
    restart_randomness()
    async with open_gateway_in(tmp_path / "two") as gateway:
        seen_again, _, frames_again = await play(gateway, deck)
    assert seen_again == seen
    for one, other in zip(frames, frames_again, strict=True):
        assert without_hashes(one) == without_hashes(other)
        assert one != other, "the decks differ, and so do the hashes"
    one_seen = deck.index(seen[0])
    deck[one_seen], deck[a] = deck[a], deck[one_seen]
    restart_randomness()
    async with open_gateway_in(tmp_path / "three") as gateway:
        _, _, frames_seen = await play(gateway, deck)
    assert without_hashes(frames_seen[0]) != without_hashes(frames[0]), "a seen card differs"
    assert without_hashes(frames_seen[2]) == without_hashes(frames[2]), "but not for a spectator"


async def test_exchanging_cards_that_are_passed_and_taken_back_changes_no_byte(
    tmp_path: Path, restart_randomness: Callable[[], None]
) -> None:
    """Each two of the cards that seat 2 passes in one command, and takes back, are exchanged."""
    restart_randomness()
    async with open_gateway_in(tmp_path / "one") as gateway:
        _, taken_back, frames = await play(gateway, list(STANDARD))
    assert len(set(taken_back)) == 3
    for one, other in combinations(taken_back, 2):
        names = {one: other, other: one}
        restart_randomness()
        async with open_gateway_in(tmp_path / f"{one}{other}") as gateway:
            exchanged = await play(gateway, [names.get(code, code) for code in STANDARD])
        assert exchanged.taken_back == [names.get(code, code) for code in taken_back]
        for mine, theirs in zip(exchanged.frames, frames, strict=True):
            assert without_hashes(mine) == without_hashes(theirs)
