"""The exchange of two cards that a viewer may not see changes nothing in the frames it receives.

The same game is played on two servers with the same random bytes, clock and shuffle. The decks
differ only in the order of two codes, chosen so that these cards are where the viewer never sees
them: in another hand, face down in a pile, or in the deck. The viewer reads the table live,
resumes, gets snapshots, and requests every hidden card by its code. Then the bytes of both games
are compared. Commitments, roots and signatures, of fixed length, are the one exception, besides the
public list of the deck itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from hashlib import sha256
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from dealer.eventlog import Log
from dealer.eventlog.keys import key_file, load_house_keys
from dealer.game.cards import build
from dealer.game.commands import FinishShuffle
from dealer.game.state import Table
from dealer.gateway import Limits, serve
from dealer.gateway.presence.presence import Presence
from dealer.proof.round_keys import player_digest
from dealer.service import Service, clock
from dealer.service.commands import executor
from tests.gateway.rpc_client import Refusal, RpcClient
from tests.harness.limits import NO_RATES

LIMITS = Limits(**NO_RATES, patience=1e6, drain=5.0, closing=0.5, resume=100)
VIEWER, OTHER = 1, 2
AT = 1_790_000_000_000
DECK = [f"<<{code}>>" for code in build()]

HASHES = ("commit", "slots", "edge", "proof", "commitments")
_BASE64 = re.compile(r"(?<=\n)[A-Za-z0-9+/]{43}=(?=\n)|(?<= )[A-Za-z0-9+/]{80,}={0,2}(?=\n)")


class Seen(NamedTuple):
    """What the viewer and a spectator received, and the stack of each code at the end."""

    frames: list[str]
    where: dict[str, str]


async def test_frames_do_not_depend_on_cards_that_the_viewer_may_not_see(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = await play(tmp_path / "first", monkeypatch, DECK, hidden=())
    hidden = sorted(set(DECK) - codes(first.frames))
    hidden_by_stack: dict[str, list[str]] = {}
    for code in hidden:
        hidden_by_stack.setdefault(first.where[code], []).append(code)
    assert set(hidden_by_stack) == {"deck", f"hand:{OTHER}", "pile:burn", "pile:discard"}
    unchanged = await play(tmp_path / "unchanged", monkeypatch, DECK, hidden=hidden)
    assert codes(unchanged.frames) == codes(first.frames)
    assert unchanged.where == first.where
    pairs = [
        (hidden_by_stack["deck"][0], hidden_by_stack["deck"][-1]),
        (hidden_by_stack["deck"][1], hidden_by_stack[f"hand:{OTHER}"][0]),
        (hidden_by_stack["pile:burn"][0], hidden_by_stack[f"hand:{OTHER}"][-1]),
        (hidden_by_stack["pile:discard"][0], hidden_by_stack["deck"][2]),
    ]
    for number, (one, two) in enumerate(pairs):
        deck = [{one: two, two: one}.get(code, code) for code in DECK]
        folder = tmp_path / str(number)
        exchanged = await play(folder, monkeypatch, deck, hidden=hidden)
        assert exchanged.where[one] == first.where[two]
        assert exchanged.where[two] == first.where[one]
        for before, after in zip(unchanged.frames, exchanged.frames, strict=True):
            assert len(before) == len(after)
            assert masked(before) == masked(after)


async def play(
    folder: Path, monkeypatch: pytest.MonkeyPatch, deck: Sequence[str], *, hidden: Sequence[str]
) -> Seen:
    """Play the game on a new server; the viewer requests the cards in `hidden`."""
    url = f"sqlite:///{folder}.db"
    make_deterministic(monkeypatch)
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(await Log.open(url))
        service = Service(log, await load_house_keys(log, key_file(url), fresh=bytes(range(32))))
        stack.push_async_callback(service.close)
        gateway = await stack.enter_async_context(serve(service, port=0, limits=LIMITS))

        async def connect() -> RpcClient:
            client = await RpcClient.connect(gateway.port)
            stack.push_async_callback(client.close)
            return client

        table, clients = await game(connect, deck, hidden)
        live_table = service.tables.get(table)
        assert live_table is not None
        round_ = live_table.table.round
        assert round_ is not None
        where = {
            round_.face(card) or "": name for name, cards in round_.stacks.items() for card in cards
        }
        return Seen([text for client in clients for text in in_order(client)], where)


def make_deterministic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fix the server's random bytes, its clock and the root that enters the tape."""
    drawn = 0

    def token_bytes(count: int) -> bytes:
        nonlocal drawn
        drawn += 1
        block = sha256(drawn.to_bytes(8, "big")).digest()
        return (block * (count // 32 + 1))[:count]

    monkeypatch.setattr(executor, "secrets", SimpleNamespace(token_bytes=token_bytes))
    # By the version: how often the clock is read, by polls too, depends on the machine.
    monkeypatch.setattr(Table, "next_at", lambda table, _: AT + table.version)
    monkeypatch.setattr(clock, "time", SimpleNamespace(time_ns=lambda: AT * 1_000_000))
    monkeypatch.setattr(Presence, "changed", lambda *_: None)  # at times of the machine
    # C1's root covers the deck's list, so it would shuffle each of the decks differently.
    monkeypatch.setattr(
        executor, "FinishShuffle", lambda root, deck: FinishShuffle(bytes(len(root)), deck)
    )


async def game(
    connect: Callable[[], Awaitable[RpcClient]], deck: Sequence[str], hidden: Sequence[str]
) -> tuple[str, list[RpcClient]]:
    """The table's id, and all connections of the viewer and the spectator."""
    host, viewer, other, spectator = [await connect() for _ in range(4)]
    table = (await host.call("table.open", cmd="o" * 32))["table"]
    token = (await viewer.call("table.join", table=table, name="Viewer"))["token"]
    await other.call("table.join", table=table, name="Other")
    await spectator.call("table.watch", table=table)
    await host.call("round.open", deck=deck, entropy="players")
    await shuffle(table, host, [viewer, other], k=0)
    await host.call("deck.deal", each=5)
    own, theirs = await hand(viewer, VIEWER), await hand(viewer, OTHER)
    await other.call("hand.discard", cards=theirs[:2])
    await viewer.call("hand.give", cards=own[:1], to=OTHER)
    await other.call("hand.give", cards=theirs[2:3], to=VIEWER)
    await other.call("deck.burn", count=2)
    await viewer.call("hand.show", cards=own[1:2])
    await other.call("deck.cut", at=7)
    await request_hidden(viewer, hidden)

    back = await connect()
    await back.call("table.resume", table=table, token=token, after=20)
    await back.until(lambda: back.notices("resumed"))
    await shuffle(table, host, [back, other], k=1)
    await other.call("deck.draw", count=3)
    await back.call("deck.draw", count=1, from_="bottom")
    await request_hidden(back, hidden)

    late = await connect()
    await late.call("table.resume", table=table, token=token, after=0)
    await late.until(lambda: late.notices("resumed"))
    assert late.notices("snapshot")
    await request_hidden(late, hidden)
    version = (await other.call("hand.discard", cards=(await hand(other, OTHER))[:1]))["version"]
    for client in (late, spectator):
        await client.until_version(version)
        await client.call("table.state")
    return table, [viewer, back, late, spectator]


async def shuffle(table: str, host: RpcClient, players: Sequence[RpcClient], *, k: int) -> None:
    nonces = {seat: sha256(b"%d %d" % (k, seat)).digest() for seat in (VIEWER, OTHER)}
    await host.call("deck.shuffle")
    for seat, client in enumerate(players, 1):
        digest = player_digest(
            table=bytes.fromhex(table), round=1, k=k, seat=seat, nonce=nonces[seat]
        )
        await client.call("entropy.commit", round=1, k=k, digest=digest.hex())
    for seat, client in enumerate(players, 1):
        await client.call("entropy.reveal", round=1, k=k, nonce=nonces[seat].hex())


async def hand(client: RpcClient, seat: int) -> list[int]:
    """The slots of a hand, which are public."""
    stacks = (await client.call("table.state"))["state"]["round"]["stacks"]
    return list(stacks[f"hand:{seat}"])


async def request_hidden(viewer: RpcClient, hidden: Sequence[str]) -> None:
    """Request each hidden card by its code, in every stack; each request is refused."""
    requests: list[tuple[str, dict[str, Any]]] = [
        ("hand.show", {}),
        ("hand.discard", {}),
        ("hand.give", {"to": OTHER}),
        ("deck.return", {"from": "pile:discard"}),
        ("pile.turn", {"pile": "burn"}),
        ("pile.draw", {"pile": "discard"}),
        ("pile.move", {"from": "deck", "to": "hand"}),
        ("pile.move", {"from": f"hand:{OTHER}", "to": "table"}),
    ]
    for code, (method, params) in product(hidden, requests):
        with pytest.raises(Refusal):
            await viewer.call(method, cards=[code], **params)


# Comparison


def in_order(client: RpcClient) -> list[str]:
    """The frames that a client received: answers in order, then events in order, then the rest.

    Whether an answer or an event is written first, and which events share a frame, depends on
    timing.
    """
    answers, events, others = [], [], []
    for text in client.frames:
        frame = json.loads(text)
        assert compact(frame) == text
        if "id" in frame:
            answers.append(text)
        elif frame["method"] == "events":
            events += [compact(event) for event in frame["params"]["list"]]
        elif frame["method"] == "event":
            events.append(compact(frame["params"]))
        else:
            others.append(text)
    return answers + events + others


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def codes(frames: Sequence[str]) -> set[str]:
    """The codes in frames, except for the public list of the deck."""
    rest = "".join(compact(masked(frame)) for frame in frames).replace(compact(sorted(DECK)), "")
    return {code for code in DECK if code in rest}


def masked(text: str) -> Any:
    """The members of a text, with hashes and signatures masked and the deck's list sorted."""
    return _masked("", json.loads(text))


def _masked(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _masked(key, one) for key, one in value.items()}
    if name == "deck":
        return sorted(value)
    if isinstance(value, list):
        return [_masked(name, one) for one in value]
    if isinstance(value, str) and name in HASHES and re.fullmatch("[0-9a-f]{64}", value):
        return "#" * 64
    if isinstance(value, str) and name in ("note", "checkpoint"):
        return _BASE64.sub(lambda found: "#" * len(found[0]), value)
    return value
