"""A game that uses every method and every notification, with all frames recorded.

    python -m tests.gateway.recorded_game

plays it and writes the examples in the published schema.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dealer.gateway import Gateway
from dealer.projector.runner import Projector
from dealer.proof.checkpoint import Cosigner
from tests.gateway.conftest import serving
from tests.gateway.rpc_client import Refusal, RpcClient
from tests.gateway.tables import SeatedTable, commit_entropy, reveal_entropy, seat_players
from tests.harness.service_keys import add_key, with_key
from tests.service.bare_service import bare_service

EXAMPLES = Path(__file__).parents[2] / "dealer/gateway/schema/examples.jsonl"
DECK = ["As", "Ks", "Qs", "Js", "Ah", "Kh", "Qh", "Jh"]


Frame = dict[str, Any]


class Recorder(RpcClient):
    """A client that also keeps the requests that it sends."""

    def __init__(self, socket: Any) -> None:
        super().__init__(socket)
        self.sent: list[Frame] = []

    def send(self, method: str, id: Any = None, **params: Any) -> asyncio.Future[Any]:
        future = super().send(method, id, **params)
        members = {name.rstrip("_"): value for name, value in params.items()}
        request = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": members}
        self.sent.append(request)
        return future


@dataclass
class RecordedFrame:
    """A frame and its method.

    `kind` is request, result, refusal or notification; `answer` is that of a request.
    """

    method: str
    kind: str
    frame: Frame
    answer: Frame | None = None


async def play(gateway: Gateway) -> list[RecordedFrame]:
    """All frames of a game, by client, requests first; the gateway is drained."""
    clients: list[Recorder] = []

    async def connect(_: Gateway, **settings: Any) -> Recorder:
        clients.append(await Recorder.connect(gateway.port, **settings))
        return clients[-1]

    table = await seat_players(connect, gateway, players=2, deck=DECK, name="Friday")
    carol, cosigner = await connect(gateway), Cosigner(secrets.token_bytes(32))
    table.players.append(carol)
    key = cosigner.public_key.hex()
    table.joined.append(await carol.call("table.join", table=table.id, name="Carol", key=key))
    spectator = await connect(gateway)
    await _send_requests_without_a_round(table, spectator)
    await _seat_by_ticket(gateway, clients)
    await _make_every_move(table)
    await _contribute_entropy(table)
    await _send_invalid_requests(table)
    await gateway.context.service.log.run_when_idle(Projector().slice)
    await _resume_cosign_and_close(table, spectator, cosigner)
    practising = await connect(gateway)
    await practising.call("table.open", from_={"table": table.id, "round": 1})
    await _follow_the_feed(gateway, connect)
    await gateway.drain()
    for client in clients:
        await client.wait_closed()
    return [frame for client in clients for frame in _frames_of(client)]


async def _send_requests_without_a_round(table: SeatedTable, spectator: RpcClient) -> None:
    ann = table.players[0]
    await spectator.call("ping")
    await spectator.call("rpc.discover")
    await spectator.call("table.watch", table=table.id)
    await ann.call("table.presence")
    await ann.call("table.state")
    await spectator.call("table.leave")
    await ann.until(lambda: ann.notices("presence"))
    await spectator.call("session.hello", tokens=[{"table": table.id, "token": table.host_token}])
    await spectator.call("session.refresh")


async def _seat_by_ticket(gateway: Gateway, clients: list[Recorder]) -> None:
    key = await add_key(gateway.context.service)
    service, user = [await Recorder.connect(gateway.port, **more) for more in (with_key(key), {})]
    clients += [service, user]
    opening = {"ref": "game 17", "host": False, "rules": {"broadcast": 300}}
    table = (await service.call("table.open", **opening))["table"]
    await service.call("broadcast.link", table=table)
    await service.call("broadcast.revoke", table=table)
    user_of_service = {"name": "Dora", "seat": 3, "subject": "user 4711"}
    ticket = await service.call("seat.ticket", table=table, **user_of_service)
    await user.call("table.join", table=table, ticket=ticket["ticket"])
    await service.call("round.open", entropy="house")
    await service.call("deck.shuffle")
    drawn = await user.call("deck.draw")
    await service.call("round.close")
    await service.call("table.state", at=drawn["version"], seat=3)
    await service.call("table.close")


async def _make_every_move(table: SeatedTable) -> None:
    host, ann, bob = table.host, *table.players[:2]
    await host.call("round.open", entropy="house", commit_ms=500, cmd="the first round")
    await host.call("deck.shuffle")
    await host.call("deck.cut", at=3)
    await ann.call("deck.burn")
    await host.call("deck.deal", each=1, piles=[{"name": "board", "count": 1, "face": "up"}])
    drawn = await ann.call("deck.draw", count=2)
    first, second = drawn["slots"]
    await ann.until_version(drawn["version"])
    await ann.call("hand.show", cards=[first], to=2)
    await ann.call("hand.show", cards=[first])
    await ann.call("hand.play", cards=drawn["cards"][:1])
    await ann.call("hand.give", cards=[second], to=2)
    await bob.call("hand.return", cards=[second], where="bottom")
    state = await ann.call("table.state")
    await ann.call("table.state", at=state["version"] - 3)
    own = next(event["private"] for event in ann.events if "private" in event)
    await ann.call("hand.discard", cards=[own["slot"]])
    await ann.call("hand.take_back")
    await ann.call("hand.discard", cards=[own["slot"]])
    taken = await bob.call("pile.draw", pile="discard", all=True)
    await bob.call("hand.pass", cards=taken["slots"], to=1)
    await host.call("hand.pass")
    await bob.call("pile.move", pile="table", to="side", face="up")
    await bob.call("deck.return", count=1)
    await bob.call("pile.turn", pile="burn")
    await host.call("pile.shuffle", pile="side")
    await ann.call("deck.draw", from_="random")
    await host.call("round.close")


async def _contribute_entropy(table: SeatedTable) -> None:
    host, carol = table.host, table.players[2]
    await host.call("round.open", commit_ms=60_000, reveal_ms=60_000)
    await host.call("deck.shuffle")
    await host.call("table.state")
    await commit_entropy(table, round=2)
    await carol.until(lambda: carol.events[-1]["type"] == "EntropyClosed")
    await reveal_entropy(table, round=2)
    await carol.until(lambda: carol.events[-1]["type"] == "DeckSealed")
    await host.call("round.close")
    await host.call("round.open", commit_ms=100, reveal_ms=100)
    await commit_entropy(table, round=3)
    await host.call("deck.shuffle")  # no player reveals its nonce
    await carol.until(lambda: carol.events[-1]["type"] == "DeckSealed")


async def _send_invalid_requests(table: SeatedTable) -> None:
    bob = table.players[1]
    invalid: list[tuple[str, Frame]] = [
        ("deck.draw", {"count": 99}),
        ("deck.draw", {"count": "all"}),
        ("deck.draw", {"expect": 1}),
        ("deck.draw", {"token": "seat.x"}),
        ("deck.steal", {}),
        ("deck.cut", {"at": 99}),
        ("hand.play", {"cards": ["X1"]}),
        ("hand.take_back", {}),
        ("hand.pass", {"cards": ["X1"], "to": 1}),
        ("hand.pass", {"to": 1}),
        ("hand.show", {"to": 1}),
        ("pile.draw", {"pile": "discard", "cards": [3]}),
        ("table.state", {"table": "elsewhere"}),
        ("round.open", {}),
        ("entropy.commit", {"round": 9, "k": 0, "digest": "0" * 64}),
    ]
    for method, params in invalid:
        with suppress(Refusal):
            await bob.call(method, **params)
    await bob.send_raw("nonsense")
    await bob.send_raw('{"jsonrpc": "1.0"}')


async def _resume_cosign_and_close(
    table: SeatedTable, spectator: RpcClient, cosigner: Cosigner
) -> None:
    host, ann, carol = table.host, table.players[0], table.players[2]
    drawn = await ann.call("deck.draw", count=3)
    await carol.until_version(drawn["version"])
    line = cosigner.cosign(carol.notices("checkpoint")[-1]["note"], time=1_800_000_000)
    await carol.call("table.cosign", cosignature=line)
    await carol.call("table.resume", table=table.id, token=table.tokens[2], after=10**6)
    await carol.until(lambda: carol.notices("snapshot"))
    await carol.call("table.resume", table=table.id, token=table.tokens[2], after=drawn["version"])
    await spectator.call("table.watch", table=table.id, after=0)
    await spectator.until(lambda: any(one["type"] == "TableOpened" for one in spectator.events))
    await spectator.call("session.hello", tokens=[{"table": table.id, "token": "seat.x"}])
    await spectator.call("audit.bundle")
    await spectator.call("table.list")
    await ann.call("table.leave")
    await carol.call("table.note", kind="poker.bet", text='{"bet":5}')
    await host.call("seat.move", seat=3, to=4)
    await host.call("seat.vacate", seat=2, reason="away for ten minutes")
    await host.call("table.transfer_host", seat=3)
    await carol.call("round.close")
    closed = await carol.call("table.close")
    await carol.until_version(closed["version"])


async def _follow_the_feed(gateway: Gateway, connect: Any) -> None:
    service = gateway.context.service
    key = await add_key(service, "analyst", "admin")
    follower = await connect(gateway, **with_key(key))
    await service.feed.scheduler.up_to_date()
    await follower.call("feed.follow", after="start", type=["SeatTaken", "CardDrawn"])
    await follower.until(lambda: follower.notices("feed"))


def _frames_of(client: Recorder) -> Iterator[RecordedFrame]:
    received = [json.loads(text) for text in client.frames]
    answers = {frame["id"]: frame for frame in received if "id" in frame}
    for frame in client.sent:
        yield RecordedFrame(frame["method"], "request", frame, answers[frame["id"]])
    methods = {frame["id"]: frame["method"] for frame in client.sent}
    for frame in received:
        if "method" in frame:
            yield RecordedFrame(frame["method"], "notification", frame)
        else:
            kind = "result" if "result" in frame else "refusal"
            yield RecordedFrame(methods.get(frame["id"], ""), kind, frame)


def choose_examples(frames: list[RecordedFrame]) -> dict[str, RecordedFrame]:
    """For each method and notification the longest frame that is not too long to read."""
    examples: dict[str, RecordedFrame] = {}
    for one in frames:
        refused = one.answer is not None and "error" in one.answer
        if one.kind not in ("request", "notification") or (refused and one.method != "deck.draw"):
            continue
        name = "refusal" if refused else one.method
        if name not in examples or _score(one) > _score(examples[name]):
            examples[name] = one
    document = examples["rpc.discover"].answer["result"]  # type: ignore[index]
    document |= {"methods": [], "components": {}, "x-notifications": [], "x-close-codes": []}
    return dict(sorted(examples.items()))


def _score(one: RecordedFrame) -> int:
    length = len(json.dumps([one.frame, one.answer]))
    return length if length < 1500 else -length


async def write_examples() -> None:
    """Play a game on a temporary database and write its examples."""
    with tempfile.TemporaryDirectory() as folder:
        async with serving(bare_service(f"sqlite:///{folder}/dealer.db")) as gateway:
            examples = choose_examples(await play(gateway))
    lines = []
    for name, one in examples.items():
        members = {"name": name, "frame": one.frame, "answer": one.answer}
        members = {key: value for key, value in members.items() if value is not None}
        lines.append(json.dumps(members, ensure_ascii=False, separators=(",", ":")) + "\n")
    EXAMPLES.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(write_examples())
