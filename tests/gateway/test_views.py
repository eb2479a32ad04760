"""What each viewer is told: everything that happens, and of the hidden only what is theirs."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dealer.eventlog import Log
from dealer.eventlog.house import key_file, open_house
from dealer.game.cards import STANDARD
from dealer.game.decide import shuffles
from dealer.game.tape import Tape
from dealer.gateway import Gateway, serve
from dealer.service import Service
from dealer.service.judge import Judge
from tests.gateway.conftest import EAGER
from tests.gateway.guest import Guest
from tests.gateway.tables import seat_all, shuffled

CODES = re.compile(r'"([A23456789TJQK][shdc])"')


def codes_in(frames: list[str]) -> set[str]:
    """Cards that are named anywhere but in the list of the round's deck."""
    return {
        code for frame in frames for code in CODES.findall(re.sub(r'"deck":\[[^]]*\]', "", frame))
    }


async def test_nobody_is_told_a_card_that_is_not_theirs(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=3)
    watcher = await arrive(gateway)
    await watcher.ask("table.watch", table=table.id)
    await table.host.ask("table.watch", table=table.id)
    ann, bob, carol = table.players
    hands: list[set[str]] = []
    await table.host.ask("deck.deal", each=2)
    for guest in table.players:
        drawn = await guest.ask("deck.draw")
        await guest.seen(drawn["version"])
        hands.append({e["private"]["card"] for e in guest.events if "private" in e})
    assert [len(hand) for hand in hands] == [3, 3, 3]
    played = sorted(hands[0])[0]
    last = await ann.ask("hand.play", cards=[played])
    given = sorted(hands[1])[0]
    last = await bob.ask("hand.give", cards=[given], to=3)
    for guest in (*table.players, watcher, table.host):
        await guest.seen(last["version"])
    assert codes_in(ann.frames) == hands[0]
    assert codes_in(bob.frames) == hands[1] | {played}
    assert codes_in(carol.frames) == hands[2] | {played, given}
    assert codes_in(watcher.frames) == {played}
    assert codes_in(table.host.frames) == {played}
    for guest in (*table.players, watcher, table.host):
        assert guest.versions == list(range(guest.versions[0], last["version"] + 1))


async def test_all_see_the_same_leaves(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=3)
    version = (await table.players[1].ask("deck.draw"))["version"]
    leaves = []
    for guest in table.players:
        await guest.seen(version)
        events = [event for event in guest.events if event["version"] > 4]
        leaves.append([{k: v for k, v in event.items() if k != "private"} for event in events])
    assert leaves[0] == leaves[1] == leaves[2]
    assert "private" in table.players[1].events[-1]
    assert "private" not in table.players[0].events[-1]


async def test_the_bytes_of_a_draw(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=2)
    ann, bob = table.players
    await ann.say('{"jsonrpc":"2.0","id":"x","method":"deck.draw"}')
    await ann.until(lambda: ann.notices("answer"))
    await bob.seen(ann.versions[-1])
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


async def test_who_got_up_sees_no_more_of_the_seat(gateway, arrive) -> None:
    """Also on a connection that did not leave by itself."""
    table = await shuffled(arrive, gateway, players=2)
    ann = table.players[0]
    mine = {(await ann.ask("deck.draw"))["cards"][0]}
    other = await arrive(gateway)
    await other.ask("table.leave", table=table.id, token=table.tokens[0])
    carol = await arrive(gateway)
    assert (await carol.ask("table.join", table=table.id, name="Carol"))["seat"] == 1
    drawn = await carol.ask("deck.draw")
    await ann.seen(drawn["version"])
    assert codes_in(ann.frames) == mine
    assert "private" not in ann.events[-1]
    with pytest.raises(Exception, match="seat"):
        await ann.ask("deck.draw")


async def test_a_private_table_tells_nothing_to_who_got_up(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=2, watch="nobody")
    ann, bob = table.players
    other = await arrive(gateway)
    left = await other.ask("table.leave", table=table.id, token=table.tokens[0])
    drawn = await bob.ask("deck.draw")
    await bob.seen(drawn["version"])
    await ann.ask("ping")
    assert ann.versions[-1] == left["version"]


@asynccontextmanager
async def house_with(directory: Path) -> AsyncIterator[Gateway]:
    directory.mkdir()  # noqa: ASYNC240
    url = f"sqlite:///{directory / 'dealer.db'}"
    async with await Log.open(url) as log:
        service = Service(log, await open_house(log, key_file(url), fresh=bytes(32)))
        async with serve(service, host="127.0.0.1", port=0, limits=EAGER) as gateway:
            yield gateway
        await service.close()


async def stream_of(gateway: Gateway, deck: list[str]) -> tuple[list[str], list[list[str]]]:
    """What seat 1, and somebody who watches, are told of a game with this deck."""
    async with AsyncExitStack() as stack:

        async def arrive(_: Gateway) -> Guest:
            guest = await Guest.arrive(gateway.port)
            stack.push_async_callback(guest.leave)
            return guest

        table = await seat_all(arrive, gateway, players=2)
        ann, bob = table.players
        watcher = await arrive(gateway)
        await watcher.ask("table.watch", table=table.id)
        await table.host.ask("round.open", entropy="house", deck=deck)
        await table.host.ask("deck.shuffle")
        await table.host.ask("deck.deal", each=3)
        await ann.ask("deck.draw", count=2)
        first = await bob.ask("deck.draw")
        await bob.ask("hand.discard", cards=first["slots"])
        await bob.ask("deck.draw", count=4, from_="random")
        with pytest.raises(Exception, match="not in that hand"):
            await ann.ask("hand.play", cards=[deck[0]])
        await ann.ask("table.state")
        again = await arrive(gateway)
        last = await again.ask("table.resume", table=table.id, token=table.tokens[0], after=0)
        await again.until(lambda: again.notices("resumed"))
        await watcher.seen(last["version"])
        seen = sorted(codes_in(ann.frames + again.frames))
        return seen, [ann.frames, again.frames, watcher.frames]


HASHES = re.compile(r"[0-9a-f]{32,}|[A-Za-z0-9+/]{40,}={0,2}")


def without_hashes(frames: list[str]) -> list[str]:
    """Frames with every hash and signature replaced by as many dots, and no list of the deck."""
    found = []
    for frame in frames:
        frame = re.sub(r'"deck":\[[^]]*\]', '"deck":[]', frame)
        found.append(HASHES.sub(lambda match: "." * len(match[0]), frame))
    return found


@pytest.fixture
def same_chance(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes a house's random bytes, clock and tapes those of every other house that it is called
    for: a tape comes from the root of the log, and so from the deck's first order, too."""

    class Replayed(Tape):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given | {"root": bytes(32)})

    def begin() -> None:
        count = 0

        def token_bytes(size: int) -> bytes:
            nonlocal count
            count += 1
            return (count.to_bytes(4, "big") * size)[:size]

        monkeypatch.setattr(secrets, "token_bytes", token_bytes)
        monkeypatch.setattr(Judge, "now", lambda self: 1_700_000_000_000)
        monkeypatch.setattr(shuffles, "Tape", Replayed)

    return begin


async def test_exchanging_cards_that_one_may_not_see_changes_no_byte(
    tmp_path: Path, same_chance: Callable[[], None]
) -> None:
    """Two houses play one game by the same chance; two cards that seat 1 never sees are exchanged.

    They differ in the round's deck, which is public, and in hashes, of fixed length.
    """
    deck = list(STANDARD)
    same_chance()
    async with house_with(tmp_path / "one") as gateway:
        seen, streams = await stream_of(gateway, deck)
    assert len(seen) == 5
    unseen = [code for code in deck[1:] if code not in seen]
    a, b = deck.index(unseen[0]), deck.index(unseen[-1])
    deck[a], deck[b] = deck[b], deck[a]
    same_chance()
    async with house_with(tmp_path / "two") as gateway:
        seen_again, streams_again = await stream_of(gateway, deck)
    assert seen_again == seen
    for stream, stream_again in zip(streams, streams_again, strict=True):
        assert without_hashes(stream) == without_hashes(stream_again)
        assert stream != stream_again, "the decks differ, and so do the hashes"
    one_seen = deck.index(seen[0])
    deck[one_seen], deck[a] = deck[a], deck[one_seen]
    same_chance()
    async with house_with(tmp_path / "three") as gateway:
        _, other = await stream_of(gateway, deck)
    assert without_hashes(other[0]) != without_hashes(streams[0]), "a seen card shows"
    assert without_hashes(other[2]) == without_hashes(streams[2]), "but not to a spectator"
