"""No client receives a card before it may know it: not live, not later, not in a refusal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from dealer.errors import Refused
from dealer.game.cards import build
from dealer.proof.bundle import read
from tests.harness.card_truth import Leaf, faces, leaves
from tests.harness.limits import NO_RATES_OPTIONS
from tests.harness.server_process import ServerProcess
from tests.harness.table_of_clients import (
    NAMES,
    Clients,
    RecordedClient,
    client,
    connect_clients,
    play_everything,
)

# Codes that no hash, signature, name or number can contain by chance.
DECK = [f"<<{code}>>" for code in build()]
LISTED = json.dumps(DECK, separators=(",", ":"))


async def test_no_client_receives_a_card_early(tmp_path: Path) -> None:
    limits = (*NO_RATES_OPTIONS, "closing=0.5", "resume=150")
    pages = []
    async with ServerProcess(tmp_path, limit=limits) as server:
        async with connect_clients(server.url, folder=tmp_path) as clients:
            await clients.sit_down(deck=DECK)
            dan = clients.players[3]
            await play_everything(clients)
            await drop_all_sockets(clients)
            async with client(server.url, "Eve") as eve:
                await clients.joins(eve, seat=4)
                await clients.tables[0].deal(1)
                await server.kill()
                await server.open()
                await clients.tables[1].cut(5)
                await clients.all_caught_up()
                await provoke(clients)
            received = [*clients.clients, dan]
            pages += [await server.fetch(path) for path in ("/", f"/tables/{clients.id}")]
            pages.append(await server.bundle(clients.id))
        async with connect_clients(server.url, folder=tmp_path, names=NAMES[:3]) as clients:
            await clients.rejoin(eve.table.id)
            await provoke(clients)
            await clients.tables[0].round_close()
            await clients.all_caught_up()
            received += clients.clients
            log = leaves(read(await server.bundle(clients.id)))
    known = Known(log, faces(log))
    for page in pages:
        assert codes(page.decode()) <= known.to_all(len(log) - 1)
    seen = 0
    for one in received:
        seen += check(one, known, seats_of(one.name, log))
    assert seen > 100
    assert any('"snapshot"' in frame for one in received for frame in one.record.frames)


async def drop_all_sockets(clients: Clients) -> None:
    """Abort every socket, cut the deck, and wait until all clients have resumed."""
    for one in clients.clients:
        one.house._connection.drop_socket()
    await clients.tables[0].cut(3)
    await clients.all_caught_up()


async def provoke(clients: Clients) -> None:
    """Request the whole state, and every card of the deck in every way that might reveal it."""
    for one in clients.clients:
        table, ask = one.table.id, one.house._connection.ask
        await ask("table.state", {"table": table}, table=None)
        round_ = one.table.state.round
        assert round_ is not None
        visible = {code for stack in round_.stacks for code in one.table.stack(stack)}
        for code in DECK:
            if code in visible:
                continue
            for method, params in (
                ("hand.show", {"cards": [code]}),
                ("hand.discard", {"cards": [code]}),
                ("pile.turn", {"pile": "discard", "cards": [code]}),
                ("pile.move", {"from": "hand:4", "to": "hand", "cards": [code]}),
                ("pile.draw", {"pile": "side", "cards": [code]}),
            ):
                try:
                    await ask(method, params | {"table": table}, table=None)
                except Refused:
                    continue
                raise AssertionError(f"{one.name} was granted {method} {params}")


# Cards that a client may know


class Known:
    """The codes that each seat, and every client, may know at each version, computed from the log.

    `truth` maps (round, slot) of the closed rounds to the code.
    """

    def __init__(self, log: list[Leaf], truth: dict[tuple[int, int], str]) -> None:
        self._shown: list[tuple[int, int | None, str]] = []  # version, seat (None: all), code
        self._closed = len(log)
        hands: dict[int, int] = {}  # slot → the seat whose hand it is in
        for leaf in log:
            public, version, seats = leaf["public"], leaf["version"], []
            slot: int = public.get("slot", -1)
            match leaf["type"]:
                case "CardDrawn":
                    seats = [public["seat"]]
                    hands[slot] = public["seat"]
                case "CardPeeked":
                    seats = [public["seat"]]
                case "CardMoved":
                    hands.pop(slot, None)
                    if public["to"].startswith("hand:"):
                        seats = [int(public["to"].removeprefix("hand:"))]
                        hands[slot] = seats[0]
                case "CardShown":
                    seats = [None]
                    assert truth[public["round"], slot] == public["card"]
                case "SeatTaken":
                    # A new player of a seat gets its hand.
                    for held in (one for one, seat in hands.items() if seat == public["seat"]):
                        self._shown.append((version, public["seat"], truth[1, held]))
                case "RoundClosed":
                    self._closed = version
            self._shown += [(version, seat, truth[public["round"], slot]) for seat in seats]

    def to(self, seat: int, *, since: int, until: int, version: int) -> set[str]:
        """The codes that the seat's holder between two versions may know at a version."""
        if version >= self._closed:
            return set(DECK)
        return {
            code
            for when, one, code in self._shown
            if when <= version and (one is None or (one == seat and since <= when < until))
        }

    def to_all(self, version: int) -> set[str]:
        return self.to(0, since=0, until=0, version=version)


# Frames that a client received


def check(one: RecordedClient, known: Known, sittings: list[tuple[int, int, int]]) -> int:
    """Check everything this client received against what it may know; the number of codes."""
    count, latest = 0, 0
    for text, version in received_events(one.record.frames):
        latest = max(latest, version or 0)
        allowed = known.to_all(version or latest)
        for seat, since, until in sittings:
            allowed |= known.to(seat, since=since, until=until, version=version or latest)
        found = codes(text)
        assert found <= allowed, f"{one.name} received {found - allowed} at {latest}: {text}"
        count += len(found)
    return count


def seats_of(name: str, log: list[Leaf]) -> list[tuple[int, int, int]]:
    """(seat, version at which it was taken, version at which it was left) of a client's name."""
    sittings: list[tuple[int, int, int]] = []
    for leaf in log:
        public, version = leaf["public"], leaf["version"]
        if leaf["type"] == "SeatTaken" and public["name"] == name:
            sittings.append((public["seat"], version, 2**32))
        if leaf["type"] == "SeatLeft" and sittings and sittings[-1][0] == public["seat"]:
            sittings[-1] = (*sittings[-1][:2], version)
    return sittings


def received_events(frames: list[str]) -> Iterator[tuple[str, int | None]]:
    """Each received event with the version that it describes."""
    for text in frames:
        frame = json.loads(text)
        body = frame.get("params") or frame.get("result") or {}
        if frame.get("method") == "events":
            for event in body["list"]:
                yield json.dumps(event, separators=(",", ":")), event["version"]
        else:
            yield text, body.get("version")


def codes(text: str) -> set[str]:
    """The deck's codes in a text, except for the public list of them."""
    rest = text.replace(LISTED, "")
    return {code for code in DECK if code in rest}
