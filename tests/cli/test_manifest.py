"""`dealer verify --manifest` lists the files that decide about cards, with their hashes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import dealer
from dealer.cli.manifest import listed_files
from tests.harness.programs import output_of

from .conftest import Ask

ROOT = Path(__file__).parents[2]


def test_sha256sum_accepts_the_lines_and_the_total(ask: Ask) -> None:
    answer = ask("verify", "--manifest")
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "--quiet"],
        cwd=ROOT,
        input=answer.out,
        capture_output=True,
        encoding="utf-8",
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    *files, total, client, verifier = answer.out.splitlines(keepends=True)
    assert total.split()[1] == hashlib.sha256("".join(files).encode()).hexdigest()
    paths = [line.split()[1] for line in files]
    assert paths == sorted(set(paths))
    assert f"  {len(paths)} files of dealer {dealer.__version__}\n" in total
    assert client.split()[2] == f"/client-{dealer.__version__}.js"
    digest = hashlib.sha384((ROOT / "dealer/web/verify.js").read_bytes()).digest()
    assert verifier.split()[1] == f"sha384-{b64encode(digest).decode()}"


def test_a_changed_file_has_another_hash(ask: Ask) -> None:
    lines = ask("verify", "--manifest").out.replace(
        "  dealer/game/tape.py", "  dealer/game/shuffle.py"
    )
    checked = subprocess.run(
        ["sha256sum", "--check", "--quiet"], cwd=ROOT, input=lines.encode(), capture_output=True
    )
    assert checked.returncode == 1
    assert b"dealer/game/shuffle.py: FAILED" in checked.stdout


def test_all_that_verifies_and_shuffles_is_listed() -> None:
    """What verifier and tape load, apart from errors; both verifiers; the source of secrets."""
    program = (
        "import sys, dealer.proof.verify, dealer.proof.bundle, dealer.proof.checkpoint\n"
        "import dealer.game.tape, dealer.game.shuffle\n"
        "print(*(each.__file__ for name, each in sys.modules.items()"
        " if name.split('.')[0] == 'dealer'), sep='\\n')"
    )
    printed = output_of(sys.executable, "-c", program, cwd=ROOT)
    loaded = {str(Path(line).relative_to(ROOT)) for line in printed.splitlines()}
    needed = {
        path
        for path in loaded
        if path.count("/") > 1 and path != "dealer/game/__init__.py"  # a sentence
    }
    listed = {path for path, _ in listed_files()}
    assert needed <= listed
    assert {"dealer/web/verify.js", "dealer/web/client/entropy.js"} <= listed
    draws = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "dealer").rglob("*.py")
        if "secret_length" in (text := path.read_text("utf-8")) and "token_bytes" in text
    ]
    assert draws == ["dealer/service/commands/executor.py"]
    assert set(draws) <= listed
