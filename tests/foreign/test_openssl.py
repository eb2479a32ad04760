"""The openssl program computes the same tape and keys, and verifies our signatures."""

from __future__ import annotations

import json
import subprocess
from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from dealer.game.tape import SEGMENT_WORDS, words
from dealer.proof.concatenation import be64, lp
from dealer.proof.round_keys import RoundKeys
from dealer.proof.verify import verify
from tests.harness.installed import openssl
from tests.proof.log_builder import note_of, some_bytes
from tests.web.played_tables import Played, player_signer

_SPKI = bytes.fromhex("302a300506032b6570032100")  # RFC 8410: the bytes before an Ed25519 key
TABLE = some_bytes("table")[:16]


def ask(*arguments: object, sent: bytes = b"") -> bytes:
    done = subprocess.run(
        [openssl(), *map(str, arguments)], input=sent, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def options(name: str, **given: object) -> list[str]:
    return [part for key, value in given.items() for part in (name, f"{key}:{value}")]


def hkdf(length: int, *, ikm: bytes, salt: bytes, info: bytes) -> bytes:
    given = options(
        "-kdfopt", digest="SHA512", hexkey=ikm.hex(), hexsalt=salt.hex(), hexinfo=info.hex()
    )
    return bytes.fromhex(ask("kdf", "-keylen", length, *given, "HKDF").decode().replace(":", " "))


def hmac(key: bytes, message: bytes) -> bytes:
    given = options("-macopt", digest="SHA256", hexkey=key.hex())
    return bytes.fromhex(ask("mac", *given, "HMAC", sent=message).decode())


def signed(folder: Path, *, key: bytes, signature: bytes, message: bytes) -> bool:
    contents = {"key": _SPKI + key, "signature": signature, "message": message}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    done = subprocess.run(
        [
            openssl(),
            "pkeyutl",
            "-verify",
            "-rawin",
            "-pubin",
            "-keyform",
            "DER",
            "-inkey",
            folder / "key",
            "-sigfile",
            folder / "signature",
            "-in",
            folder / "message",
        ],
        capture_output=True,
        check=False,
    )
    return done.returncode == 0 and b"Signature Verified Successfully" in done.stdout


def be32(number: int) -> bytes:
    return number.to_bytes(4, "big")


def segment(number: int, *, parts: Iterable[bytes], root: bytes, k: int, n: int) -> list[int]:
    """Words of one segment, as the protocol defines it, computed by openssl."""
    ikm = b"".join(be32(len(part)) + part for part in parts)
    salt = root + be32(k) + be32(n) + be32(number)
    data = hkdf(64, ikm=ikm, salt=salt, info=b"dealer/v1/shuffle\0")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, 64, 2)]


@pytest.mark.parametrize(
    ("n", "k", "seats"), [(1, 0, 0), (5, 3, 1), (52, 0, 2), (54, 1, 10), (104, 7, 4), (416, 300, 3)]
)
def test_openssl_computes_the_segments_of_the_tape(n: int, k: int, seats: int) -> None:
    secret = some_bytes("S", n) * (13 if n == 416 else 2)
    nonces = [some_bytes("r", n, seat) for seat in range(seats)]
    root = some_bytes("root", n)
    ours = words(secret=secret, nonces=nonces, root=root, k=k, n=n)
    for number in range(4):
        theirs = segment(number, parts=(secret, *nonces), root=root, k=k, n=n)
        assert theirs == list(islice(ours, SEGMENT_WORDS)), number


@pytest.mark.parametrize(("round_", "length"), [(1, 64), (70_000, 416)])
def test_openssl_computes_the_keys_and_salts_of_a_round(round_: int, length: int) -> None:
    secret = some_bytes("S", round_) * (length // 32)
    keys = RoundKeys(table=TABLE, round=round_, secret=secret)
    for name, key in (("salt", keys.salt_key), ("seal", keys.seal_key)):
        info = f"dealer/v1/{name}\0".encode() + be32(round_)
        assert hkdf(32, ikm=secret, salt=TABLE, info=info) == key
    for number in (0, 51, 2**32 - 1):
        card, event = b"dealer/v1/card\0", b"dealer/v1/event\0"
        assert hmac(keys.salt_key, card + be32(number)) == keys.slot_salt(number)
        salt = hmac(keys.salt_key, event + be64(number))
        parts = lp(TABLE, be64(number), salt, b'{"j":7}')
        assert sha256(event + parts).digest() == keys.event_commitment(number, '{"j":7}')


def test_openssl_computes_every_swap_of_real_tables(tables: list[Played]) -> None:
    """The words that the verifier reports for each swap are those of openssl's tape, in order."""
    for played in tables:
        report = verify(played.bundle.lines, key=played.bundle.key)
        read: dict[tuple[int, int], list[int]] = defaultdict(list)
        for swap in report.swaps:
            read[swap.round, swap.shuffle_index] += swap.words
        shuffles = tape_inputs(played)
        swaps = [event["public"] for event in events(played) if event["type"] == "CardsSwapped"]
        assert set(read) == {(swap["round"], swap["k"]) for swap in swaps} & set(shuffles)
        for shuffle, taken in read.items():
            tape: list[int] = []
            while len(tape) < len(taken):
                tape += segment(len(tape) // 32, **shuffles[shuffle])
            assert tape[: len(taken)] == taken, shuffle


def events(played: Played) -> list[dict[str, Any]]:
    lines = map(json.loads, played.bundle.lines[1:])
    return [line for line in lines if "type" in line]


def tape_inputs(played: Played) -> dict[tuple[int, int], dict[str, Any]]:
    """The inputs of the tape of each shuffle of a closed round, read without the verifier."""
    secrets = {
        event["public"]["round"]: bytes.fromhex(event["public"]["secret"])
        for event in events(played)
        if event["type"] == "RoundClosed"
    }
    notes = [note.split("\n") for note in map(note_of, heads(played))]
    roots = {int(size): b64decode(root) for _, size, root, *_ in notes}
    nonces: dict[tuple[int, int], dict[int, bytes]] = defaultdict(dict)
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for event in events(played):
        public = event["public"]
        match event["type"]:
            case "ShuffleStarted":
                found[public["round"], public["k"]] = {"n": public["n"], "k": public["k"]}
            case "EntropyRevealed":
                nonce = bytes.fromhex(public["nonce"])
                nonces[public["round"], public["k"]][public["seat"]] = nonce
            case "EntropyClosed":
                found[public["round"], public["k"]]["root"] = roots[event["version"]]
    return {
        at: {**shuffle, "parts": [secrets[at[0]], *(nonces[at][s] for s in sorted(nonces[at]))]}
        for at, shuffle in found.items()
        if at[0] in secrets
    }


def heads(played: Played) -> list[str]:
    return [line for line in map(str, played.bundle.lines) if line.startswith('{"checkpoint"')]


def test_openssl_verifies_the_signatures(tables: list[Played], tmp_path: Path) -> None:
    keys = [player_signer(seat).public_key for seat in range(11)]
    players = {f"player/{key.hex()}": key for key in keys}
    house = bytes.fromhex(json.loads(tables[0].bundle.lines[0])["key"])
    good: list[str] = []
    for note in map(note_of, heads(tables[0])):
        text, _, lines = note.rpartition("\n\n")
        for line in lines.removesuffix("\n").split("\n"):
            _, name, encoded = line.split(" ")
            body, message = b64decode(encoded)[4:], f"{text}\n"
            if name in players:
                time, body = int.from_bytes(body[:8], "big"), body[8:]
                message = f"cosignature/v1\ntime {time}\n{message}"
            key = players.get(name, house)
            assert signed(tmp_path, key=key, signature=body, message=message.encode())
            assert not signed(tmp_path, key=key, signature=body, message=message.encode() + b"\n")
            good.append(name.partition("/")[0])
    assert len(set(good)) == 2
    assert good.count("player") == 1
