"""Go's sumdb, the library of the Go checksum database, verifies our notes, roots and proofs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dealer.proof.bundle import checkpoint
from dealer.proof.checkpoint import Signer
from dealer.proof.tree import leaf_hash
from tests.harness.installed import GO_SOURCES, go
from tests.proof.log_builder import note_of, vectors
from tests.proof.whole_tree import consistency_proof, inclusion_proof
from tests.web.played_tables import Played

Run = Callable[..., subprocess.CompletedProcess[str]]
_FILE = Path(__file__).with_name("notes.go")


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The Go program, built from Debian packages without a network."""
    program = tmp_path_factory.mktemp("go") / "notes"
    environment = {**os.environ, "GO111MODULE": "off", "GOPATH": str(GO_SOURCES), "GOFLAGS": ""}
    environment.setdefault("GOCACHE", str(program.with_name("cache")))
    subprocess.run([go(), "build", "-o", program, _FILE], check=True, env=environment)

    def run(
        lines: list[str], key: str, *proofs: dict[str, Any]
    ) -> subprocess.CompletedProcess[str]:
        bundle, requests = program.with_name("game.jsonl"), program.with_name("proofs.jsonl")
        bundle.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        requests.write_text("".join(f"{json.dumps(proof)}\n" for proof in proofs), "utf-8")
        return subprocess.run(
            [program, "-proofs", requests, bundle, key],
            capture_output=True,
            check=False,
            encoding="utf-8",
        )

    return run


def parts(played: Played) -> tuple[list[str], list[bytes], str]:
    """Lines, hashes of the leaves, and the table's key in hex."""
    lines = [line if isinstance(line, str) else line.decode() for line in played.bundle.lines]
    leaves = [line for line in lines if line.startswith('{"at"')]
    assert played.bundle.key is not None
    return lines, [leaf_hash(leaf.encode()) for leaf in leaves], played.bundle.key


def vkey(played: Played) -> str:
    origin: str = json.loads(played.bundle.lines[0])["origin"]
    return Signer(played.seed).vkey(origin)


def inclusion(leaves: list[bytes], leaf: int, size: int) -> dict[str, Any]:
    proof = inclusion_proof(leaves[:size], leaf)
    return {"leaf": leaf, "size": size, "proof": [hash_.hex() for hash_ in proof]}


def consistency(leaves: list[bytes], old: int, size: int) -> dict[str, Any]:
    proof = consistency_proof(leaves[:size], old)
    return {"old": old, "size": size, "proof": [hash_.hex() for hash_ in proof]}


def proofs_of(leaves: list[bytes]) -> Iterator[dict[str, Any]]:
    for size in (1, 2, 7, 8, 64, len(leaves) - 1, len(leaves)):
        for place in sorted({0, size // 3, size // 2, size - 1}):
            yield inclusion(leaves, place, size)
            yield consistency(leaves, place + 1, size)


def test_go_verifies_real_tables(tables: list[Played], notes: Run) -> None:
    """Go computes the same key id from the bare key, so the key is given in both forms."""
    cosigned = 0
    for played in tables:
        lines, leaves, key = parts(played)
        proofs = list(proofs_of(leaves))
        for name in (key, vkey(played)):
            done = notes(lines, name, *proofs)
            assert (done.returncode, done.stderr) == (0, "")
        heads = [note_of(line) for line in lines if line.startswith('{"checkpoint"')]
        players = sum(note.count("\n\u2014 player/") for note in heads)
        assert done.stdout == (
            f"leaves {len(leaves)}, checkpoints {len(heads)}, cosignatures {players}, "
            f"proofs {len(proofs)}: all hold\n"
        )
        cosigned += players
    assert cosigned


def test_go_detects_a_changed_leaf_key_or_signature(tables: list[Played], notes: Run) -> None:
    """The Go program reports the faults that it should find."""
    lines, _, key = parts(tables[0])
    last = len(lines) - 1
    changed = [*lines]
    changed[3] = changed[3].replace('"at":', '"at":1', 1)
    assert "the signed root is not that of the leaves" in notes(changed, key).stderr
    other = Signer(bytes(32)).public_key.hex()
    assert "note has no verifiable signatures" in notes(lines, other).stderr
    changed = [*lines[:last], lines[last].replace("/t/", "/u/", 1)]
    assert f"line {last} " in notes(changed, key).stderr
    at = next(n for n, line in enumerate(lines) if "\u2014 player/" in line)
    start, dash, end = lines[at].rpartition(" ")
    flipped = end[:40] + ("A" if end[40] != "A" else "B") + end[41:]
    changed = [*lines[:at], start + dash + flipped, *lines[at + 1 :]]
    assert "invalid signature for key player/" in notes(changed, key).stderr


# Go's library ignores a second line by a known key, and bits of base64 that no byte has; it refuses
# more than 100 lines. What a checkpoint, a cosignature or a line of JSON is, is not its subject.
OTHERWISE_IN_GO = {
    "120 unknown lines",
    "U+007F in an unknown name, which no line of a bundle may have",
    "the house's line twice",
    "the house's line and a wrong one",
    "a cosignature after the last second",
    "cosigned twice",
    "the same cosignature twice",
    "base64 with other unused bits",
    "empty",
    "a size with a leading zero",
    "a size with a sign",
    "a size of 0",
}


def test_go_reads_notes_in_the_same_way(notes: Run) -> None:
    for log in vectors("heads"):
        *leaves, last = log["in"]["lines"]
        for one in log["out"]:
            done = notes([*leaves, checkpoint(one["note"]), last], log["in"]["key"])
            same = (done.returncode == 0) == (one["in_bundle"] is None)
            assert same == (one["name"] not in OTHERWISE_IN_GO), (one["name"], done.stderr)


def test_go_rejects_invalid_proofs(tables: list[Played], notes: Run) -> None:
    lines, leaves, key = parts(tables[0])
    for honest in (inclusion(leaves, 5, 60), consistency(leaves, 5, 60)):
        assert notes(lines, key, honest).returncode == 0
        first, *others = honest["proof"]
        for proof in (others, [first[::-1], *others], [first, first, *others]):
            done = notes(lines, key, {**honest, "proof": proof})
            assert (done.returncode, done.stdout) == (1, "")
            assert "line 0 of " in done.stderr
