"""Malformed and misplaced notes, some of them with a valid signature of the house."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Sequence
from random import Random
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dealer.proof import bundle
from dealer.proof.canonical import encode
from dealer.proof.concatenation import be64
from dealer.proof.note import COSIGNATURE, ED25519, cosigned, key_id
from dealer.proof.tree import Tree, leaf_hash
from tests.proof.log_builder import LogBuilder, some_bytes

DASH = "\u2014"


class NoteSigner:
    """Signs any text under any name; `public` is its key, 32 bytes."""

    def __init__(self, seed: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = self._key.public_key().public_bytes_raw()

    def sign(self, text: str, name: str) -> str:
        """A signature line of the house, without its newline."""
        signature = self._key.sign(text.encode("utf-8", "surrogatepass"))
        return self._line(name, ED25519, signature)

    def cosign(self, text: str, time: int) -> str:
        """A cosignature line of a player, without its newline."""
        signature = self._key.sign(cosigned(text, time))
        return self._line(f"player/{self.public.hex()}", COSIGNATURE, be64(time) + signature)

    def bare(self, type_: int, length: int) -> str:
        """A signature line with a player's name and key, whose signature is zero bytes."""
        return self._line(f"player/{self.public.hex()}", type_, bytes(length))

    def _line(self, name: str, type_: int, body: bytes) -> str:
        return f"{DASH} {name} {b64encode(key_id(name, type_, self.public) + body).decode()}"


def line(note: str) -> str:
    """The line of a bundle with this note."""
    return json.dumps({"checkpoint": note}, ensure_ascii=False, separators=(",", ":"))


def root_of(leaves: Sequence[str]) -> bytes:
    tree = Tree()
    tree.extend(leaf_hash(leaf.encode("utf-8", "surrogatepass")) for leaf in leaves)
    return tree.root()


def text_of(origin: str, size: Any, root: bytes) -> str:
    return f"{origin}\n{size}\n{b64encode(root).decode()}\n"


def notes(
    leaves: Sequence[str], sizes: Sequence[int], origin: str, signer: NoteSigner
) -> list[str]:
    """A checkpoint at each of these sizes."""
    tree, written = Tree(), []
    for size in sizes:
        tree.extend(
            leaf_hash(leaf.encode("utf-8", "surrogatepass")) for leaf in leaves[tree.size : size]
        )
        text = text_of(origin, size, tree.root())
        written.append(f"{text}\n{signer.sign(text, origin)}\n")
    return written


def other_notes(
    chance: Random, given: list[str], leaves: Sequence[str], signer: NoteSigner
) -> list[str]:
    """The notes, one of them changed, left out, exchanged or added."""
    if not given:
        return []
    at = chance.randrange(len(given))
    text, _, lines = given[at].rpartition("\n\n")
    origin, size = text.split("\n")[:2]
    match chance.randrange(6):
        case 0:
            return [*given[:at], *given[at + 1 :]]
        case 1:
            return [*given[: at + 1], *given[at:]]
        case 2:
            other = chance.randrange(len(given))
            changed = list(given)
            changed[at], changed[other] = changed[other], changed[at]
            return changed
        case 3:  # one on request
            wanted = chance.randrange(len(leaves) + 2)
            added = text_of(origin, wanted, root_of(leaves[:wanted]))
            where = chance.choice((at, at + 1))
            if chance.random() < 0.7:
                sizes = [int(note.split("\n")[1]) for note in given]
                where = sum(other < wanted for other in sizes)
            return [*given[:where], f"{added}\n{signer.sign(added, origin)}\n", *given[where:]]
        case 4:
            signed = chance.choice(other_texts(origin, size, root_of(leaves[: int(size)])))
            changed_note = f"{signed}\n{signer.sign(signed, origin)}\n"
        case _:
            below = chance.choice(other_lines(f"{text}\n", lines, origin, signer))
            changed_note = f"{text}\n\n{below}"
    return [*given[:at], changed_note, *given[at + 1 :]]


def other_texts(origin: str, size: str, root: bytes) -> list[str]:
    """Invalid texts of notes, which a house could sign."""
    code = b64encode(root).decode()
    plain = f"{origin}\n{size}\n{code}\n"
    laxer = f"{code[:-2]}{chr(ord(code[-2]) + 1)}="  # other bits behind the last byte
    return [
        plain,
        f"{plain}extension\n",
        f"{plain}\n",
        f"\n{plain}",
        f"{origin}\n0{size}\n{code}\n",
        f"{origin}\n+{size}\n{code}\n",
        f"{origin}\n{size} \n{code}\n",
        f"{origin}\n-1\n{code}\n",
        f"{origin}\n{2**53}\n{code}\n",
        f"{origin}\n{size}.0\n{code}\n",
        f"{origin}\n\u0661\n{code}\n",
        f"{origin}\n\n{code}\n",
        f"\n{size}\n{code}\n",
        f"{origin}\n{size}\n{laxer}\n",
        f"{origin}\n{size}\n{code.rstrip('=')}\n",
        f"{origin}\n{size}\n{code}=\n",
        f"{origin}\n{size}\n {code}\n",
        f"{origin}\n{size}\n{urlsafe_b64encode(root).decode()}\n",
        f"{origin}\n{size}\n{b64encode(root[:31]).decode()}\n",
        f"{origin}\n{size}\n{b64encode(root + b'0').decode()}\n",
        f"{origin} \n{size}\n{code}\n",
        f"x{origin}\n{size}\n{code}\n",
        f"{origin[:-1]}0\n{size}\n{code}\n",
        plain.replace("\n", "\r\n"),
        f"\ufeff{plain}",
        f"{origin}\n{size}\n",
        code,
    ]


def other_lines(text: str, lines: str, origin: str, signer: NoteSigner) -> list[str]:
    """Changed or added signature lines below a correctly signed text."""
    unknown, player = NoteSigner(some_bytes("stranger")), NoteSigner(some_bytes("player", 1))
    house = lines.split("\n")[0]
    good = player.cosign(text, 1_790_000_000)
    _, name, code = house.split(" ")
    added = [
        unknown.sign(text, origin),
        unknown.sign(text, "x"),
        signer.sign("", "x"),
        signer.sign(text, "a\u00a0b"),
        signer.sign(text, "a\ufeffb"),
        signer.sign(text, "a\u0085b"),
        signer.sign(text, "a\u180eb"),
        signer.sign(text, "a\u001cb"),
        signer.sign(text, "a+b"),
        signer.sign(text, ""),
        signer.sign(text, "\u200b"),
        house,
        signer.sign("other", origin),
        good,
        f"{good}\n{good}",
        player.cosign(text, 2**63 - 1),
        player.cosign(text, 0),
        player.cosign(text, 2**63),
        player.cosign(text, 2**64 - 1),
        player.cosign("other\n", 7),
        good[:-8],
        f"{good}AAAA",
        player.bare(COSIGNATURE, 7),
        signer.bare(ED25519, 1),
        player.bare(COSIGNATURE, 72),
        player.bare(COSIGNATURE, 8),
        unknown.cosign(text, 7),
        player.sign(text, "player/x"),
        player.sign(text, f"player/{player.public.hex()}"),
        f"{DASH} x",
        f"{DASH} x AAAA",
        f"{DASH} x AAAAAA==",
        f"{DASH} x AAAAAB==",
        f"{DASH} x AAAAAA=",
        f"{DASH}  x AAAAAA==",
        f"{DASH} x AAAAAA== ",
        f"{DASH} x AA AAAA==",
        f"{DASH} x AA\tAAAA==",
        "- x AAAAAA==",
        "",
        f"{DASH} x \u00c1AAAAA==",
        f"{DASH} x !!!!",
        f"{DASH} x",
        f" {DASH} x AAAAAA==",
        DASH,
        f"{DASH} \ud800 AAAAAA==",
        f"{DASH} x AAAA\u2028AA==",
        f"{DASH}\u00a0x AAAAAA==",
        f"{DASH} x\x01 AAAAAA==",
        f"{DASH} x\x7f AAAAAA==",
        f"{DASH} x\x80 AAAAAA==",
    ]
    flipped = "B" if code[0] != "B" else "C"
    changed = [
        f"{good}\n{lines}",
        lines + good,
        lines[:-1],
        f"{lines[:-1]}x",
        "",
        f"{good}\n",
        f"{lines}\n",
        lines.replace(code, code.rstrip("="), 1),
        lines.replace(code, f"{code}=", 1),
        lines.replace(code, flipped + code[1:], 1),
        lines.replace(code, code[:20] + code[24:], 1),
        lines.replace(f" {name} ", f" {name}x ", 1),
        lines.replace(" ", "\u00a0"),
    ]
    return [*(f"{lines}{one}\n" for one in added), *changed]


def weak_cosignature(checkpoint: str, key: bytes, signature: bytes) -> str:
    """A bundle's checkpoint line with a cosignature that `key` did not make."""
    name = f"player/{key.hex()}"
    body = key_id(name, COSIGNATURE, key) + be64(7) + signature
    added = f"{DASH} {name} {b64encode(body).decode()}\n"
    return line(json.loads(checkpoint)["checkpoint"] + added)


def weak_house(log: LogBuilder, key: bytes, signature: bytes) -> list[str]:
    """The bundle of a log under another key, with a signature that this key did not make."""
    origin = log.origin
    leaves = [
        {**leaf, "public": {**leaf["public"], "key": key.hex()}}
        if leaf["type"] == "TableOpened"
        else leaf
        for leaf in log.leaves
    ]
    texts = [encode(leaf).decode() for leaf in leaves]
    body = b64encode(key_id(origin, ED25519, key) + signature).decode()
    note = f"{text_of(origin, len(texts), root_of(texts))}\n{DASH} {origin} {body}\n"
    return [bundle.header(origin=origin, key=key), *texts, line(note)]
