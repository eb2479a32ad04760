"""The commands in the document of `dealer/proof` are run as they are written there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dealer.proof.verify import verify
from tests.harness.installed import go, openssl
from tests.web.js_verifier import node
from tests.web.played_tables import Played

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "dealer/proof/README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
BY_OPENSSL = [block for block in BLOCKS if not re.match(r"GO111MODULE|node |dealer ", block)]
SENTENCES = [
    "The secret matches the commitment.",
    "The first swap is of places 51 and ",
    "Slot ",
    "Signature Verified Successfully",
    "Version 2 opens to {",
]


def run(blocks: list[str], bundle: Path) -> subprocess.CompletedProcess[str]:
    """Run the blocks in order in one bash."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "bundle": str(bundle), "TMPDIR": str(bundle.parent)}
    environment.setdefault("GOCACHE", str(bundle.with_name("cache")))
    return subprocess.run(
        ["bash", "-uo", "pipefail"],
        input="\n".join(blocks),
        capture_output=True,
        check=False,
        cwd=ROOT,
        env=environment,
        encoding="utf-8",
    )


def test_the_openssl_commands_verify_a_bundle(bundle: Path, tables: list[Played]) -> None:
    openssl()
    done = run(BY_OPENSSL, bundle)
    assert (done.returncode, done.stderr) == (0, "")
    secret, tape, *others = done.stdout.splitlines()
    assert all(map(str.startswith, [secret, *others], SENTENCES))
    assert len(others) == len(SENTENCES) - 1
    swaps = [
        swap
        for swap in verify(tables[0].bundle.lines).swaps
        if (swap.round, swap.shuffle_index) == (1, 0)
    ]
    assert [int(word, 16) for word in tape.split()] == [w for swap in swaps for w in swap.words][
        :32
    ]
    assert f"places {swaps[0].i} and {swaps[0].j}," in others[0]


@pytest.mark.parametrize(
    ("where", "member", "missing"),
    [
        ('"type":"RoundOpened"', "commitment", 0),
        ('"type":"CardsSwapped"', "commit", 1),
        ('"type":"CardShown"', "salt", 2),
        ('"bundle":', "key", 3),
        ('"opened":', "salt", 4),
    ],
)
def test_the_openssl_commands_detect_a_fault(
    bundle: Path, where: str, member: str, missing: int
) -> None:
    openssl()
    lines = bundle.read_text("utf-8").split("\n")
    at = next(number for number, line in enumerate(lines) if where in line)
    start, name, value = lines[at].partition(f'"{member}":"')
    assert name
    lines[at] = start + name + ("1" if value[0] == "0" else "0") + value[1:]
    bundle.write_text("\n".join(lines), "utf-8")
    output = run(BY_OPENSSL, bundle).stdout
    assert [sentence in output for sentence in SENTENCES] == [n != missing for n in range(5)]


def test_the_other_commands_verify_a_bundle(bundle: Path) -> None:
    go()
    node()
    others = [block for block in BLOCKS if block not in BY_OPENSSL]
    assert len(others) == 3
    for block in others:
        done = run([BLOCKS[0], block], bundle)
        assert (done.returncode, done.stderr) == (0, "")
        assert "all hold" in done.stdout or "\npassed: Each move is legal" in done.stdout
