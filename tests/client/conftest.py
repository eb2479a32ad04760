"""A house in memory with the real rules and proofs, a real server, and a proxy.

The house in memory makes the frames that a client receives, so that tests can alter them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect as dial
from websockets.asyncio.server import serve as listen
from websockets.exceptions import ConnectionClosed

import dealer
from dealer.client.connection import SUBPROTOCOL
from dealer.client.event_verifier import EventVerifier
from dealer.client.house import House
from dealer.client.requests import RetryPolicy
from dealer.client.storage import TableStore
from dealer.errors import RateLimited
from dealer.eventlog import Log
from dealer.eventlog.keys import key_file, load_house_keys
from dealer.game.cards import build
from dealer.game.commands import (
    Actor,
    CheckDeadlines,
    CloseRound,
    CommitEntropy,
    Deal,
    Draw,
    FinishShuffle,
    OpenRound,
    OpenTable,
    RevealEntropy,
    StartShuffle,
    TakeSeat,
)
from dealer.game.decide import NoRoundSecrets, decide
from dealer.game.events import (
    CardDrawn,
    CardsSwapped,
    DeckSealed,
    EntropyClosed,
    RoundClosed,
    TableClosed,
)
from dealer.game.state import SeatHolder, Table, evolve
from dealer.game.view import snapshot
from dealer.gateway.limits import Limits
from dealer.gateway.server import Gateway, serve
from dealer.proof import canonical, codec
from dealer.proof.checkpoint import Signer
from dealer.proof.opened import opened_commitment, separate
from dealer.proof.round_keys import RoundKeys, secret_length, slot_commitment
from dealer.proof.tree import Tree, leaf_hash
from dealer.service.service import Service
from tests.harness.card_truth import may_see
from tests.harness.limits import NO_RATES
from tests.proof.whole_tree import consistency_proof

TABLE = "0123456789abcdef0123456789abcdef"
ORIGIN = f"house.example/t/{TABLE}"
HOST = Actor(host=True)
SIGNED = (EntropyClosed, DeckSealed, RoundClosed, TableClosed)
Frame = dict[str, Any]


def other_card(card: str | None) -> str:
    return "As" if card != "As" else "Ks"


class RoundSecret:
    """The secret of a round, with the functions that the rules need."""

    def __init__(self, round_: int, n: int) -> None:
        self.secret = bytes([round_]) * secret_length(n)
        self.keys = RoundKeys(table=bytes.fromhex(TABLE), round=round_, secret=self.secret)
        self.commitment = self.keys.commitment
        self.slot_salt = self.keys.slot_salt
        self.slot_commitments = self.keys.slot_commitments
        self.player_digest = self.keys.player_digest


class InMemoryHouse:
    """`frames` are all events as seat 1 sees them; `notes` the signed heads by size."""

    def __init__(self, *, seed: int = 7) -> None:
        self.signer = Signer(bytes([seed]) * 32)
        self.table = Table()
        self.tree = Tree()
        self.hashes: list[bytes] = []
        self.secret: RoundSecret | NoRoundSecrets = NoRoundSecrets()
        self.frames: list[Frame] = []
        self.notes: dict[int, str] = {}
        self.clock = 1000
        self.viewer = SeatHolder(1, 0)
        self.do(OpenTable(ORIGIN, self.signer.public_key, {"preset": "free"}))

    def do(self, command: Any) -> list[Frame]:
        """Apply a command; returns the frames of its events."""
        events = decide(command, self.table, self.secret)
        return [self.record(event) for event in events]

    def record(self, event: Any, *, hidden: str | None = None) -> Frame:
        """Append an event without validation; `hidden` replaces its hidden part."""
        version = self.table.version + 1
        part = codec.encode_hidden(event) if hidden is None else hidden
        commit = None
        if part is not None and isinstance(self.secret, RoundSecret):
            commit = self.secret.keys.event_commitment(version, part).hex()
        public, opened = separate(type(event).__name__, codec.public(event))
        salt = bytes(31) + bytes([version % 256])
        if opened:
            commit = opened_commitment(
                table=bytes.fromhex(TABLE), version=version, salt=salt, part=opened
            ).hex()
        leaf = codec.leaf(
            at=self.clock,
            commit=commit,
            public=canonical.dump(public),
            table=TABLE,
            type=type(event).__name__,
            v=codec.SCHEMAS[type(event).__name__],
            version=version,
        )
        evolve(self.table, event, self.clock)
        self.clock += 1
        hashed = leaf_hash(leaf.encode())
        self.tree.append(hashed)
        self.hashes.append(hashed)
        frame: Frame = json.loads(leaf)
        if opened:
            frame["opened"] = {"part": opened, "salt": salt.hex()}
        face = event.private_face()
        if face is not None and may_see(self.viewer, face.seat, version):
            assert isinstance(self.secret, RoundSecret)
            opening = self.secret.slot_salt(face.slot).hex()
            frame["private"] = {"card": face.card, "salt": opening, "slot": face.slot}
        if isinstance(event, SIGNED):
            self.notes[version] = self.sign()
        if isinstance(event, RoundClosed):
            self.secret = NoRoundSecrets()
        self.frames.append(frame)
        return frame

    def sign(self) -> str:
        return self.signer.sign(origin=ORIGIN, size=self.tree.size, root=self.tree.root())

    def root_at(self, size: int) -> bytes:
        tree = Tree()
        tree.extend(self.hashes[:size])
        return tree.root()

    def open_round(self, *, entropy: str = "house", deck: Sequence[str] | None = None) -> None:
        codes = build() if deck is None else tuple(deck)
        self.secret = RoundSecret(len(self.table.round_versions) + 1, len(codes))
        self.do(OpenRound(HOST, codes, entropy, 10_000, 10_000))

    def shuffle(self, **options: Any) -> None:
        """A complete shuffle with the house's entropy only."""
        self.do(StartShuffle(HOST, **options))
        self.finish()

    def finish(self) -> None:
        assert self.table.round is not None
        assert self.table.round.shuffle is not None
        self.do(FinishShuffle(self.root_at(self.table.round.shuffle.closed_version)))

    def describe(self) -> dict[str, Any]:
        """The snapshot for seat 1."""
        state = json.loads(json.dumps(snapshot(self.table, self.viewer)))
        for card in state.get("round", {}).get("cards", []):
            assert isinstance(self.secret, RoundSecret)
            card.append(self.secret.slot_salt(card[0]).hex())
        return {
            "version": self.table.version,
            "state": state,
            "edge": [node.hex() for node in self.tree.edge],
            "note": self.sign(),
        }

    def swap_of(self, frame: Frame) -> CardsSwapped:
        """The swap of a frame, with the j that its commitment hides."""
        assert isinstance(self.secret, RoundSecret)
        public = frame["public"]
        for j in range(52):
            hidden = f'{{"j":{j}}}'
            commit = self.secret.keys.event_commitment(frame["version"], hidden).hex()
            if commit == frame["commit"]:
                return CardsSwapped(1, 0, public["step"], public["i"], j)
        raise AssertionError(f"no j fits {frame}")

    def proof(self, old: int) -> list[str]:
        return [node.hex() for node in consistency_proof(self.hashes, old)]

    def feed(self, verifier: EventVerifier, *, until: Frame | None = None) -> None:
        """Pass all further frames, or those before one, with their heads to the verifier."""
        end = None if until is None else until["version"] - 1
        for frame in self.frames[verifier.version : end]:
            verifier.event(frame)
            if frame["version"] in self.notes:
                verifier.checkpoint(self.notes[frame["version"]])

    # Cheating

    def swap_nothing(self) -> None:
        """A shuffle in which no card is exchanged, whatever the tape says."""
        self.open_round()
        self.do(StartShuffle(HOST))
        order = self.table.round
        assert order is not None
        for step in range(51):
            self.record(CardsSwapped(1, 0, step, 51 - step, 51 - step))
        codes = [order.face(card) for card in order.cards("deck")]
        self.record(DeckSealed(1, 0, 0, self.sealed(codes)))

    def seal_another_order(self) -> None:
        """A shuffle whose seal has two cards in each other's place."""
        self.open_round()
        self.do(StartShuffle(HOST))
        fork = self.fork()
        fork.finish()
        assert self.table.round is not None
        assert fork.table.round is not None
        *swaps, seal = fork.frames[self.table.version :]
        assert len(swaps) == 51
        first, second, *rest = fork.table.round.faces
        cheat = self.sealed([second, first, *rest])
        assert cheat[2:] == tuple(map(bytes.fromhex, seal["public"]["slots"][2:]))
        for frame in swaps:
            self.record(self.swap_of(frame))
        self.record(DeckSealed(1, 0, 0, cheat))
        self.table.round.faces[:] = [second, first, *rest]

    def sealed(self, codes: Sequence[Any]) -> tuple[bytes, ...]:
        assert isinstance(self.secret, RoundSecret)
        return tuple(self.secret.slot_commitments(0, codes))

    def draw_another_card(self) -> None:
        """Bob is given the true card, but the log commits to another one."""
        assert self.table.round is not None
        slot = self.table.round.cards("deck")[-1]
        face = self.table.round.faces[slot]
        hidden = f'{{"card":"{other_card(face)}"}}'
        self.record(CardDrawn(1, 2, "deck", slot, face), hidden=hidden)

    def start_with_digests(self) -> None:
        """A shuffle to which both players have sent the digest of a nonce of zeros."""
        self.open_round(entropy="players")
        assert isinstance(self.secret, RoundSecret)
        for seat in (1, 2):
            digest = self.secret.player_digest(k=0, seat=seat, nonce=bytes(32))
            self.do(CommitEntropy(Actor(seat=seat), 1, 0, digest))
        self.do(StartShuffle(HOST))

    def describe_with_wrong_salt(self) -> dict[str, Any]:
        """The snapshot with another salt of a card, and the seal that fits it."""
        described = self.describe()
        view = described["state"]["round"]
        slot, card, _ = view["cards"][0]
        view["cards"][0][2] = "00" * 32
        table = bytes.fromhex(TABLE)
        fitting = slot_commitment(table=table, round=1, slot=slot, salt=bytes(32), card=card)
        view["commitments"] = [
            [place, fitting.hex() if place == slot else text] for place, text in view["commitments"]
        ]
        return described

    def fork(self) -> InMemoryHouse:
        """A copy of this house whose log can diverge."""
        secret, signer = self.secret, self.signer
        self.secret, self.signer = NoRoundSecrets(), None  # type: ignore[assignment]
        other = deepcopy(self)
        self.secret = other.secret = secret
        self.signer = other.signer = signer
        return other


@pytest.fixture
def house() -> InMemoryHouse:
    """A house with Ada at seat 1 and Bob at seat 2."""
    house = InMemoryHouse()
    house.do(TakeSeat("Ada"))
    house.do(TakeSeat("Bob"))
    return house


@pytest.fixture
def dealt(house: InMemoryHouse) -> InMemoryHouse:
    """The same house after a shuffle and a deal of two cards to each seat."""
    house.open_round()
    house.shuffle()
    house.do(Deal(HOST, 2))
    return house


@pytest.fixture
def verifier() -> EventVerifier:
    verifier = EventVerifier(TABLE)
    verifier.seat = 1
    return verifier


@pytest.fixture
def store() -> TableStore:
    return TableStore()


@pytest.fixture
def game() -> Any:
    """Commands for the house in memory."""

    class Game:
        ada, bob, host = Actor(seat=1), Actor(seat=2), HOST
        close = CloseRound(HOST)
        start = StartShuffle(HOST)
        commit, reveal, late = CommitEntropy, RevealEntropy, CheckDeadlines
        draw = staticmethod(lambda actor, count=1: Draw(actor, count))
        replace = staticmethod(replace)
        table, house = TABLE, InMemoryHouse

    return Game


FAST = RetryPolicy(backoff=0.01, backoff_max=0.05, away=20.0, answer=5.0)


class RealServer:
    """The real service and gateway on a database file; it can be closed and opened again."""

    def __init__(self, folder: Path) -> None:
        self._url = f"sqlite:///{folder / 'dealer.db'}"
        self._stack = AsyncExitStack()
        self.port = 0
        self.gateway: Gateway

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    async def open(self, **limits: Any) -> None:
        stack = self._stack
        log = await stack.enter_async_context(await Log.open(self._url))
        key = await load_house_keys(log, key_file(self._url), fresh=b"\x07" * 32)
        service = Service(log, key)
        stack.push_async_callback(service.close)
        stack.callback(asyncio.create_task(service.broadcasts.run()).cancel)
        bounds = Limits(**(NO_RATES | {"closing": 0.2, "drain": 3.0} | limits))
        self.gateway = await stack.enter_async_context(
            serve(service, port=self.port, limits=bounds)
        )
        self.port = self.gateway.port

    async def close(self) -> None:
        await self._stack.aclose()

    async def restart(self, **limits: Any) -> None:
        await self.close()
        await self.open(**limits)


@pytest.fixture
async def real_server(tmp_path: Path) -> AsyncIterator[RealServer]:
    server = RealServer(tmp_path)
    await server.open()
    yield server
    await server.close()


@pytest.fixture
def connect(real_server: RealServer) -> Callable[..., House]:
    """`dealer.connect` to the real server, with short timeouts."""

    def connect(url: str | None = None, **options: Any) -> House:
        return dealer.connect(url or real_server.url, **{"patience": FAST} | options)

    return connect


class Proxy:
    """A proxy; `alter(frame)` may change a frame of the server or drop it (None).

    `alter_request` does the same with frames of the client.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self.alter: Callable[[Frame], Frame | None] = lambda frame: frame
        self.alter_request: Callable[[Frame], Frame | None] = lambda frame: frame
        self.sockets: list[Any] = []
        self.aborted = 0
        self.opened = 0
        self.url = ""

    async def __aenter__(self) -> Proxy:
        self._server = await listen(self._serve, "127.0.0.1", 0, subprotocols=[SUBPROTOCOL])
        self.url = f"ws://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/ws"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    def cut(self) -> None:
        """Abort all connections without a closing handshake."""
        for socket in self.sockets:
            socket.transport.abort()
        self.sockets.clear()

    def watch_cosigning(self) -> list[int | None]:
        """Returns a list for the size of each answered cosignature, None for a refusal."""
        cosign_requests: set[int] = set()
        sizes: list[int | None] = []

        def ask(frame: Frame) -> Frame:
            if frame["method"] == "table.cosign":
                cosign_requests.add(frame["id"])
            return frame

        def answer(frame: Frame) -> Frame:
            if frame.get("id") in cosign_requests:
                sizes.append(frame.get("result", {}).get("size"))
            return frame

        self.alter_request, self.alter = ask, answer
        return sizes

    def abort_at_draw(self, lost: str) -> None:
        """Abort the connections once, at the "request" for cards or at the "answer" to it."""

        def abort(frame: Frame) -> Frame | None:
            is_draw = frame.get("method") == "deck.draw" or "cards" in frame.get("result", {})
            if self.aborted or not is_draw:
                return frame
            self.aborted += 1
            self.cut()
            return None

        if lost == "request":
            self.alter_request = abort
        else:
            self.alter = abort

    def lose_drawn_card(self) -> list[Frame]:
        """Drop the first frame with a drawn card and cut; returns a list for the dropped frame."""
        lost: list[Frame] = []

        def lose(frame: Frame) -> Frame | None:
            if lost or "CardDrawn" not in json.dumps(frame):
                return frame
            lost.append(frame)
            self.cut()
            return None

        self.alter = lose
        return lost

    def cut_at_tokens(self) -> list[str]:
        """Drop the first answer with each kind of token and cut; returns a list of these kinds."""
        cuts: list[str] = []

        def abort(frame: Frame) -> Frame | None:
            result = frame.get("result", {})
            for member in ("host_token", "token"):
                if member in result and member not in cuts:
                    cuts.append(member)
                    self.cut()
                    return None
            return frame

        self.alter = abort
        return cuts

    def hold(self, method: str) -> asyncio.Event:
        """Drop all requests of this method; returns an event that is set at the first one."""
        held = asyncio.Event()

        def drop(frame: Frame) -> Frame | None:
            if frame.get("method") != method:
                return frame
            held.set()
            return None

        self.alter_request = drop
        return held

    async def _serve(self, client: Any) -> None:
        async with dial(self.target, subprotocols=[SUBPROTOCOL], max_size=None) as server:
            self.sockets.append(client)
            self.opened += 1
            there = asyncio.create_task(self._pass(client, server, "alter_request"))
            back = asyncio.create_task(self._pass(server, client, "alter"))
            await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
            there.cancel(), back.cancel()
            await asyncio.gather(there, back, return_exceptions=True)

    async def _pass(self, source: Any, target: Any, hook: str) -> None:
        with suppress(ConnectionClosed):
            async for text in source:
                frame = getattr(self, hook)(json.loads(text))
                if frame is not None:
                    await target.send(json.dumps(frame))


class RefusedJoin:
    """A proxy has the next join sent again 500 ms later, and the server does not see the first."""

    def __init__(self, proxy: Proxy) -> None:
        self.refused = asyncio.Event()
        self._id: Any = None
        proxy.alter, proxy.alter_request = self._answer, self._asked

    def _asked(self, frame: Frame) -> Frame:
        if self._id is None and frame["method"] == "table.join":
            self._id = frame["id"]
            return frame | {"method": "ping", "params": {}}
        return frame

    def _answer(self, frame: Frame) -> Frame:
        if self.refused.is_set() or self._id is None or frame.get("id") != self._id:
            return frame
        self.refused.set()
        return rate_limited(frame["id"])


class RefusedResume:
    """A proxy loses the next event, and has the resume that follows sent again 500 ms later."""

    def __init__(self, proxy: Proxy) -> None:
        self.refused = asyncio.Event()
        self.sent_again = asyncio.Event()
        self._event_lost = False
        self._request: Frame = {}
        proxy.alter, proxy.alter_request = self._answer, self._asked

    def _asked(self, frame: Frame) -> Frame:
        if self._event_lost and frame["method"] == "table.resume":
            if not self._request:
                self._request = frame
            elif self.refused.is_set() and frame["params"] == self._request["params"]:
                self.sent_again.set()
        return frame

    def _answer(self, frame: Frame) -> Frame | None:
        if not self._event_lost and frame.get("method") == "event":
            self._event_lost = True
            return None
        if not self.refused.is_set() and self._request.get("id") == frame.get("id", self):
            self.refused.set()
            return rate_limited(frame["id"])
        return frame


def rate_limited(id: Any) -> Frame:
    """The refusal of a request that is to be sent again after 500 ms."""
    data = {"reason": "rate_limited", "temporary": True, "retry_after_ms": 500}
    error = {"code": RateLimited.code, "message": "Too many requests.", "data": data}
    return {"jsonrpc": "2.0", "id": id, "error": error}


@pytest.fixture
async def proxy(real_server: RealServer) -> AsyncIterator[Proxy]:
    async with Proxy(real_server.url) as proxy:
        yield proxy
