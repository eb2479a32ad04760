"""Builds the log of one table from arbitrary events, legal or not, with valid signatures."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from dealer.game.events import OPENED_TYPES
from dealer.game.shuffle import full, steps_of
from dealer.game.tape import Tape
from dealer.proof import bundle
from dealer.proof.canonical import decode, encode
from dealer.proof.checkpoint import Cosigner, Signer, attach_once, player
from dealer.proof.codec import SCHEMAS
from dealer.proof.opened import opened_commitment, separate
from dealer.proof.round_keys import RoundKeys, player_digest, secret_length
from dealer.proof.tree import Tree, leaf_hash

DUE = ("EntropyClosed", "DeckSealed", "RoundClosed", "TableClosed")
_FOLDER = Path(__file__).parents[1] / "vectors"
VECTORS = [
    vector
    for name in ("fairness.json", "services.json", "heads.json", "opened.json")
    for vector in json.loads((_FOLDER / name).read_text())
]
Leaf = dict[str, Any]


def vectors(kind: str) -> list[Any]:
    return [vector for vector in VECTORS if vector["kind"] == kind]


def ids(vector: Mapping[str, Any]) -> str:
    return str(vector["name"])


def some_bytes(*names: object, length: int = 32) -> bytes:
    """Bytes that look random and depend only on the arguments."""
    parts = (sha256(repr((names, n)).encode()).digest() for n in range(length // 32 + 1))
    return b"".join(parts)[:length]


HOUSE_SEED = some_bytes("house")
CARDS = ("As", "Kh", "Qd", "Jc", "X1", "X2", "7s")


class LogBuilder:
    """The leaves of one table; it does not check that they are legal.

    `nonces` are by "round.k.seat", `secrets` in order of rounds; the others are `some_bytes`.
    """

    def __init__(
        self,
        *,
        table: bytes = some_bytes("table", length=16),
        house: str = "cards.example",
        house_seed: bytes = HOUSE_SEED,
        at: int = 1_790_000_000_000,
        player_seeds: Mapping[str, bytes] | None = None,
        nonces: Mapping[str, bytes] | None = None,
        secrets: Sequence[bytes] = (),
    ) -> None:
        self.signer = Signer(house_seed)
        self.table = table
        self.origin = f"{house}/t/{table.hex()}"
        self.at = at
        self.leaves: list[Leaf] = []
        self.hidden: list[tuple[int, str]] = []
        self.openings: dict[int, str] = {}
        self.cosigned: dict[int, list[int]] = {}
        self.tree = Tree()
        self.player_seeds = dict(player_seeds or {})
        self.nonces = dict(nonces or {})
        self.secrets = list(secrets)
        self.round = 0

    # Any event

    def append(self, type_: str, hidden: object = None, **public: Any) -> Self:
        """Append any event; its member `from` is given as `source`."""
        if "source" in public:
            public["from"] = public.pop("source")
        self.at += 1000
        version = len(self.leaves) + 1
        leaf: Leaf = {
            "at": self.at,
            "public": public,
            "table": self.table.hex(),
            "type": type_,
            "v": SCHEMAS[type_],
            "version": version,
        }
        if type_ in OPENED_TYPES:
            leaf["public"], opened = separate(type_, public)
            if opened:
                self.openings[version] = commit_to(leaf, opened, some_bytes("salt", version))
        if hidden is not None:
            text = encode(hidden).decode()
            leaf["commit"] = self.keys.event_commitment(version, text).hex()
            self.hidden.append((version, text + " " * (-len(text) % 32)))
        self.leaves.append(leaf)
        self.tree.append(leaf_hash(encode(leaf)))
        return self

    def lines(self) -> list[str]:
        leaves, openings = self.leaves, list(self.openings.values())
        return sign(leaves, self.signer, self.origin, openings, self.cosigned, self.cosigner)

    def cosigner(self, seat: int) -> Cosigner:
        return Cosigner(self.player_seeds.get(str(seat)) or some_bytes("player", seat))

    # Events by name, with their effect on the stacks

    def open_table(self, *, named: str | None = None, **rules: Any) -> Self:
        key = self.signer.public_key.hex()
        name = {} if named is None else {"name": named}
        return self.append(
            "TableOpened", protocol="dealer/v1", origin=self.origin, key=key, rules=rules, **name
        )

    def sit(self, seat: int, name: str = "Ada", *, keyed: bool = False, bot: bool = False) -> Self:
        optional: dict[str, Any] = {"key": self.cosigner(seat).public_key.hex()} if keyed else {}
        if bot:
            optional["bot"] = True
        return self.append("SeatTaken", seat=seat, name=name, **optional)

    def vacate(self, seat: int, *, by: str = "host", reason: str = "") -> Self:
        return self.append("SeatVacated", seat=seat, by=by, reason=reason)

    def transfer(self, seat: int) -> Self:
        return self.append("HostTransferred", seat=seat)

    def note(self, seat: int = 0, kind: str = "chat", text: str = "hello") -> Self:
        return self.append("NoteAdded", seat=seat, kind=kind, text=text)

    def open_round(
        self, deck: Sequence[str] = CARDS, entropy: str = "house", *, secret: bytes | None = None
    ) -> Self:
        self.round += 1
        if secret is None:
            given = self.secrets[self.round - 1 : self.round]
            length = secret_length(len(deck))
            secret = given[0] if given else some_bytes("S", self.round, length=length)
        self.secret = secret
        self.keys = RoundKeys(table=self.table, round=self.round, secret=secret)
        self.stacks: dict[str, list[int]] = {"deck": [~place for place in range(len(deck))]}
        self.deck, self.k = list(deck), 0
        self.faces: list[str] = []
        return self.append(
            "RoundOpened",
            round=self.round,
            deck=list(deck),
            entropy=entropy,
            commit_ms=10000,
            reveal_ms=10000,
            commitment=self.keys.commitment.hex(),
        )

    def face(self, card: int) -> str:
        return str(self.faces[card] if card >= 0 else self.deck[~card])

    def nonce(self, seat: int, k: int | None = None) -> bytes:
        k = self.k if k is None else k
        return self.nonces.get(f"{self.round}.{k}.{seat}") or some_bytes("r", self.round, k, seat)

    def start(
        self, *, stack: str = "deck", algorithm: str = "backward", steps: int | None = None
    ) -> Self:
        self.stack, self.algorithm = stack, algorithm
        self.n = len(self.stacks.get(stack, []))
        self.steps = full(self.n) if steps is None else steps
        return self.append(
            "ShuffleStarted",
            round=self.round,
            k=self.k,
            stack=stack,
            n=self.n,
            algorithm=algorithm,
            steps=self.steps,
        )

    def commit(self, seat: int, k: int | None = None) -> Self:
        k = self.k if k is None else k
        digest = player_digest(
            table=self.table, round=self.round, k=k, seat=seat, nonce=self.nonce(seat, k)
        )
        return self.append(
            "EntropyCommitted", round=self.round, k=k, seat=seat, digest=digest.hex()
        )

    def close(self) -> Self:
        self.append("EntropyClosed", round=self.round, k=self.k)
        self.c1 = self.tree.root()
        return self

    def reveal(self, seat: int) -> Self:
        nonce = self.nonce(seat).hex()
        return self.append("EntropyRevealed", round=self.round, k=self.k, seat=seat, nonce=nonce)

    def void(self) -> Self:
        self.append("ShuffleVoided", round=self.round, k=self.k)
        self.k += 1
        return self

    def plan(self, seats: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        nonces = [self.nonce(seat) for seat in sorted(seats)]
        tape = Tape(secret=self.secret, nonces=nonces, root=self.c1, k=self.k, n=self.n)
        return steps_of(self.algorithm, n=self.n, steps=self.steps, below=tape.below)

    def swap(self, step: int, i: int, j: int) -> Self:
        cards = self.stacks[self.stack]
        cards[i], cards[j] = cards[j], cards[i]
        return self.append("CardsSwapped", {"j": j}, round=self.round, k=self.k, step=step, i=i)

    def seal(self) -> Self:
        cards = self.stacks.setdefault(self.stack, [])
        faces = [self.face(card) for card in cards]
        first = len(self.faces)
        slots = [commitment.hex() for commitment in self.keys.slot_commitments(first, faces)]
        self.faces += faces
        cards[:] = range(first, first + len(cards))
        self.append("DeckSealed", round=self.round, k=self.k, first=first, slots=slots)
        self.k += 1
        return self

    def shuffle(
        self,
        *,
        stack: str = "deck",
        algorithm: str = "backward",
        steps: int | None = None,
        seats: Sequence[int] = (),
        reveal: Sequence[int] | None = None,
        cosign: Sequence[int] = (),
    ) -> Self:
        self.start(stack=stack, algorithm=algorithm, steps=steps)
        for seat in seats:
            self.commit(seat)
        self.close()
        self.cosigned[len(self.leaves)] = list(cosign)
        for seat in seats if reveal is None else reveal:
            self.reveal(seat)
        for step in self.plan(seats):
            self.swap(*step)
        return self.seal()

    def draw(self, seat: int, slot: int | None = None, source: str = "deck") -> Self:
        cards = self.stacks[source]
        slot = cards[-1] if slot is None else slot
        cards.remove(slot)
        self.stacks.setdefault(f"hand:{seat}", []).append(slot)
        return self.append(
            "CardDrawn",
            {"card": self.face(slot)},
            round=self.round,
            seat=seat,
            source=source,
            slot=slot,
        )

    def move(self, slot: int, source: str, to: str, place: int = 0) -> Self:
        self.stacks[source].remove(slot)
        self.stacks.setdefault(to, []).insert(place, slot)
        hidden = {"card": self.face(slot)} if to.startswith("hand:") else None
        return self.append(
            "CardMoved", hidden, round=self.round, slot=slot, source=source, to=to, place=place
        )

    def show(self, slot: int) -> Self:
        salt = self.keys.slot_salt(slot).hex()
        card = self.face(slot)
        return self.append("CardShown", round=self.round, slot=slot, card=card, salt=salt)

    def peek(self, slot: int, seat: int) -> Self:
        return self.append("CardPeeked", round=self.round, slot=slot, seat=seat)

    def cut(self, at: int, stack: str = "deck") -> Self:
        cards = self.stacks[stack]
        cards[:] = cards[at:] + cards[:at]
        return self.append("StackCut", round=self.round, stack=stack, at=at)

    def close_round(self) -> Self:
        return self.append("RoundClosed", round=self.round, secret=self.secret.hex())

    def close_table(self, *, cosign: Sequence[int] = ()) -> Self:
        self.append("TableClosed")
        self.cosigned[len(self.leaves)] = list(cosign)
        return self


def sign(
    leaves: Sequence[Leaf],
    signer: Signer,
    origin: str,
    openings: Sequence[str] = (),
    cosigned: Mapping[int, Sequence[int]] | None = None,
    cosigner: Any = None,
) -> list[str]:
    """The bundle of these unchanged leaves, with each checkpoint that their types require."""
    texts = [encode(leaf) for leaf in leaves]
    tree = Tree()
    notes = []
    for size, (leaf, text) in enumerate(zip(leaves, texts, strict=True), 1):
        tree.append(leaf_hash(text))
        if leaf.get("type") in DUE or size == len(leaves):
            note = signer.sign(origin=origin, size=size, root=tree.root())
            for seat in (cosigned or {}).get(size, ()):
                cosigning = cosigner(seat)
                line = cosigning.cosign(note, time=leaf["at"] // 1000)
                note = attach_once(note, line, key=cosigning.public_key)
            notes.append(note)
    return [
        bundle.header(origin=origin, key=signer.public_key),
        *(text.decode() for text in texts),
        *openings,
        *map(bundle.checkpoint, notes),
    ]


def commit_to(leaf: Leaf, part: dict[str, Any], salt: bytes) -> str:
    """Let a leaf commit to an opened part; the line of the bundle that opens it."""
    table, version = bytes.fromhex(leaf["table"]), leaf["version"]
    commitment = opened_commitment(table=table, version=version, salt=salt, part=part)
    leaf["commit"] = commitment.hex()
    return bundle.opened(version, part, salt)


def leaves_of(lines: Sequence[str]) -> list[Leaf]:
    return [decode(line) for line in lines if line.startswith('{"at"')]


def openings_of(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.startswith('{"opened"')]


def note_of(line: str) -> str:
    return str(decode(line, newlines=True)["checkpoint"])


def from_script(script: Mapping[str, Any]) -> LogBuilder:
    """The log that the script of a `table` vector builds."""
    log = LogBuilder(
        table=bytes.fromhex(script["table"]),
        house=script["house"],
        house_seed=bytes.fromhex(script["house_seed"]),
        at=script["at"],
        player_seeds={seat: bytes.fromhex(seed) for seat, seed in script["player_seeds"].items()},
        nonces={name: bytes.fromhex(nonce) for name, nonce in script["nonces"].items()},
        secrets=[bytes.fromhex(secret) for secret in script["secrets"]],
    )
    for step in script["script"]:
        match step["do"]:
            case "open_table":
                log.open_table(**step["rules"])
            case "sit":
                log.sit(step["seat"], step["name"], keyed="keyed" in step, bot="bots" in step)
            case "vacate":
                log.vacate(step["seat"], by=step["by"], reason=step["reason"])
            case "transfer":
                log.transfer(step["seat"])
            case "note":
                log.note(step["seat"], step["kind"], step["text"])
            case "commit":
                for seat in step["seats"]:
                    log.commit(seat, step["k"])
            case "open_round":
                log.open_round(step["deck"], step["entropy"])
            case "shuffle":
                log.shuffle(
                    stack=step["stack"],
                    algorithm=step["algorithm"],
                    steps=step["steps"],
                    seats=step["seats"],
                    reveal=step["reveal_order"],
                    cosign=step["cosign"],
                )
            case "draw":
                log.draw(step["seat"], source=step["from"])
            case "close_round":
                log.close_round()
            case "close_table":
                log.close_table(cosign=step["cosign"])
            case unknown:
                raise AssertionError(unknown)
    return log


def cosignature(note: str, cosigner: Cosigner, blob: bytes) -> str:
    """The note with a signature line of this player whose signature is `blob`."""
    verifier = player(cosigner.public_key)
    line = f"\u2014 {verifier.name} {b64encode(verifier.key_id + blob).decode()}\n"
    return note + line
