"""A game in which every method is called and everything is told, with each frame written down.

    python -m tests.gateway.played

plays it, and writes the examples that the documents for other people's programs show.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dealer.eventlog import Log
from dealer.eventlog.house import key_file, open_house
from dealer.gateway import Gateway, Limits, serve
from dealer.projector.runner import Projector
from dealer.proof.checkpoint import Cosigner
from dealer.service import Service
from tests.gateway.guest import Guest, Refusal
from tests.gateway.tables import Seated, promise, reveal, seat_all
from tests.limits import NO_RATES

EXAMPLES = Path(__file__).parents[2] / "dealer/gateway/described/examples.jsonl"
DECK = ["As", "Ks", "Qs", "Js", "Ah", "Kh", "Qh", "Jh"]
LIMITS = Limits(**NO_RATES, drain=6.0, closing=0.5)

Frame = dict[str, Any]


class Recorder(Guest):
    """A guest that keeps what it sends, too."""

    def __init__(self, socket: Any) -> None:
        super().__init__(socket)
        self.sent: list[Frame] = []

    def send(self, method: str, id: Any = None, **params: Any) -> asyncio.Future[Any]:
        future = super().send(method, id, **params)
        given = {name.rstrip("_"): value for name, value in params.items()}
        self.sent.append({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": given})
        return future


@dataclass
class Said:
    """One frame; `kind` is request, result, refusal or told, `name` what was asked or told."""

    name: str
    kind: str
    frame: Frame
    answer: Frame | None = None  # to a request


async def play(gateway: Gateway) -> list[Said]:
    """All frames of the game, by guest, a request before its answer; the gateway is drained."""
    guests: list[Recorder] = []

    async def arrive(_: Gateway) -> Recorder:
        guests.append(await Recorder.arrive(gateway.port))
        return guests[-1]

    table = await seat_all(arrive, gateway, players=2, deck=DECK, name="Friday")
    carol, pen = await arrive(gateway), Cosigner(secrets.token_bytes(32))
    table.players.append(carol)
    key = pen.public_key.hex()
    table.joined.append(await carol.ask("table.join", table=table.id, name="Carol", key=key))
    onlooker = await arrive(gateway)
    await _meet(table, onlooker)
    await _move_every_way(table)
    await _bring_entropy(table)
    await _err(table)
    await gateway.floor.service.log.schedule(Projector().slice)
    await _part(table, onlooker, pen)
    await gateway.drain()
    for guest in guests:
        await guest.gone()
    return [one for guest in guests for one in _written_down(guest)]


async def _meet(table: Seated, onlooker: Guest) -> None:
    ann = table.players[0]
    await onlooker.ask("ping")
    await onlooker.ask("rpc.discover")
    await onlooker.ask("table.watch", table=table.id)
    await ann.ask("table.presence")
    await ann.ask("table.state")
    await onlooker.ask("table.leave")
    await ann.until(lambda: ann.notices("presence"))
    await onlooker.ask("session.hello", tokens=[{"table": table.id, "token": table.host_token}])
    await onlooker.ask("session.refresh")


async def _move_every_way(table: Seated) -> None:
    host, ann, bob = table.host, *table.players[:2]
    await host.ask("round.open", entropy="house", commit_ms=500, cmd="the first round")
    await host.ask("deck.shuffle")
    await host.ask("deck.cut", at=3)
    await ann.ask("deck.burn")
    await host.ask("deck.deal", each=1)
    drawn = await ann.ask("deck.draw", count=2)
    first, second = drawn["slots"]
    await ann.seen(drawn["version"])
    await ann.ask("hand.show", cards=[first], to=2)
    await ann.ask("hand.show", cards=[first])
    await ann.ask("hand.play", cards=drawn["cards"][:1])
    await ann.ask("hand.give", cards=[second], to=2)
    await bob.ask("hand.return", cards=[second], where="bottom")
    await ann.ask("table.state")
    mine = next(event["private"] for event in ann.events if "private" in event)
    await ann.ask("hand.discard", cards=[mine["slot"]])
    await bob.ask("pile.draw", pile="discard")
    await bob.ask("pile.move", pile="table", to="side", face="up")
    await bob.ask("deck.return", count=1)
    await bob.ask("pile.turn", pile="burn")
    await host.ask("pile.shuffle", pile="side")
    await ann.ask("deck.draw", from_="random")
    await host.ask("round.close")


async def _bring_entropy(table: Seated) -> None:
    host, carol = table.host, table.players[2]
    await host.ask("round.open", commit_ms=60_000, reveal_ms=60_000)
    await host.ask("deck.shuffle")
    await host.ask("table.state")
    await promise(table, round=2)
    await carol.until(lambda: carol.events[-1]["type"] == "EntropyClosed")
    await reveal(table, round=2)
    await carol.until(lambda: carol.events[-1]["type"] == "DeckSealed")
    await host.ask("round.close")
    await host.ask("round.open", commit_ms=100, reveal_ms=100)
    await promise(table, round=3)
    await host.ask("deck.shuffle")  # nobody reveals
    await carol.until(lambda: carol.events[-1]["type"] == "DeckSealed")


async def _err(table: Seated) -> None:
    bob = table.players[1]
    wrong: list[tuple[str, Frame]] = [
        ("deck.draw", {"count": 99}),
        ("deck.draw", {"count": "all"}),
        ("deck.draw", {"expect": 1}),
        ("deck.draw", {"token": "seat.x"}),
        ("deck.steal", {}),
        ("deck.cut", {"at": 99}),
        ("hand.play", {"cards": ["X1"]}),
        ("pile.draw", {"pile": "discard", "cards": [3]}),
        ("table.state", {"table": "elsewhere"}),
        ("round.open", {}),
        ("entropy.commit", {"round": 9, "k": 0, "digest": "0" * 64}),
    ]
    for method, params in wrong:
        with suppress(Refusal):
            await bob.ask(method, **params)
    await bob.say("nonsense")
    await bob.say('{"jsonrpc": "1.0"}')


async def _part(table: Seated, onlooker: Guest, pen: Cosigner) -> None:
    host, ann, carol = table.host, table.players[0], table.players[2]
    drawn = await ann.ask("deck.draw", count=3)
    await carol.seen(drawn["version"])
    line = pen.cosign(carol.notices("checkpoint")[-1]["note"], time=1_800_000_000)
    await carol.ask("table.cosign", cosignature=line)
    await carol.ask("table.resume", table=table.id, token=table.tokens[2], after=10**6)
    await carol.until(lambda: carol.notices("snapshot"))
    await carol.ask("table.resume", table=table.id, token=table.tokens[2], after=drawn["version"])
    await onlooker.ask("table.watch", table=table.id, after=0)
    await onlooker.until(lambda: any(one["type"] == "TableOpened" for one in onlooker.events))
    await onlooker.ask("session.hello", tokens=[{"table": table.id, "token": "seat.x"}])
    await onlooker.ask("audit.bundle")
    await onlooker.ask("table.list")
    await ann.ask("table.leave")
    await host.ask("round.close")
    closed = await host.ask("table.close")
    await carol.seen(closed["version"])


def _written_down(guest: Recorder) -> list[Said]:
    came = [json.loads(text) for text in guest.frames]
    answers = {frame["id"]: frame for frame in came if "id" in frame}
    found = [Said(frame["method"], "request", frame, answers[frame["id"]]) for frame in guest.sent]
    asked = {frame["id"]: frame["method"] for frame in guest.sent}
    for frame in came:
        if "method" in frame:
            found.append(Said(frame["method"], "told", frame))
        else:
            kind = "result" if "result" in frame else "refusal"
            found.append(Said(asked.get(frame["id"], ""), kind, frame))
    return found


def chosen(said: list[Said]) -> dict[str, Said]:
    """The most telling frame of each method and notification: the longest that is short."""
    found: dict[str, Said] = {}
    for one in said:
        refused = one.answer is not None and "error" in one.answer
        if one.kind not in ("request", "told") or (refused and one.name != "deck.draw"):
            continue
        name = "refusal" if refused else one.name
        if name not in found or _telling(one) > _telling(found[name]):
            found[name] = one
    document = found["rpc.discover"].answer["result"]  # type: ignore[index]
    document |= {"methods": [], "components": {}, "x-notifications": [], "x-close-codes": []}
    return dict(sorted(found.items()))


def _telling(one: Said) -> int:
    length = len(json.dumps([one.frame, one.answer]))
    return length if length < 1500 else -length


async def write() -> None:
    """Play on a table of its own, and write the examples."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/dealer.db"
        async with await Log.open(url) as log:
            house = await open_house(log, key_file(url), fresh=secrets.token_bytes(32))
            service = Service(log, house)
            async with serve(service, host="127.0.0.1", port=0, limits=LIMITS) as gateway:
                found = chosen(await play(gateway))
            await service.close()
    lines = []
    for name, one in found.items():
        shown = {"name": name, "frame": one.frame, "answer": one.answer}
        shown = {key: value for key, value in shown.items() if value is not None}
        lines.append(json.dumps(shown, ensure_ascii=False, separators=(",", ":")) + "\n")
    EXAMPLES.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(write())
