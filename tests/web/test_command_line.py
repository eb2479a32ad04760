"""The verifier on the command line: its output, its exit codes, and that it is one file."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dealer.proof.bundle import DECOMPRESSED, LAST_NEWLINE, LINE_ENDS, UNMARKED
from dealer.proof.verify.report import TITLES
from tests.proof.log_builder import HOUSE_SEED, LogBuilder, note_of, vectors
from tests.web import js_verifier
from tests.web.js_verifier import FILE, node
from tests.web.mutated_notes import NoteSigner

pytestmark = pytest.mark.slow

HONEST, WRONG = (vector["in"] for vector in vectors("audit")[:2])
KEY = HONEST["key"]
CHECKS = ["form", "heads", "saved", "secrets", "tape", "seals", "moves"]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [node(), *map(str, arguments)], capture_output=True, check=False, encoding="utf-8"
    )


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    file = tmp_path / "bundle.jsonl"
    file.write_text("\n".join(HONEST["lines"]) + "\n", "utf-8")
    return file


def test_a_valid_bundle_is_reported(bundle: Path, tmp_path: Path) -> None:
    note = tmp_path / "note"
    note.write_text(HONEST["saved"][0], "utf-8")
    kept = tmp_path / "checkpoints.jsonl"
    kept.write_text("".join(json.dumps({"note": note}) + "\n" for note in HONEST["saved"]), "utf-8")
    done = run(FILE, bundle, "--key", KEY.upper(), "--saved", note, "--saved", kept)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split("): ")[0] for line in lines[:7]] == [
        f"passed: {TITLES[check]} ({check}" for check in CHECKS
    ]
    assert lines[-1] == "The table's key is the one you gave."


def test_a_fault_is_reported(bundle: Path) -> None:
    bundle.write_text("\n".join(WRONG["lines"]), "utf-8")
    done = run(FILE, bundle)
    answers = done.stdout.splitlines()[:7]
    assert done.returncode == 1
    assert answers[2].startswith(f"not checked: {TITLES['saved']} (saved): no saved checkpoint")
    assert answers[3].startswith(f"passed: {TITLES['secrets']} (secrets): ")
    assert answers[3].endswith(", up to line 17, where the replay stopped.")
    assert answers[4].startswith(f"failed: {TITLES['tape']} (tape): line 17: ")
    assert run(FILE, bundle, "--key", "00").stdout.splitlines()[1:3] == [
        "failed: The house has signed (heads): line 0: The table's key is not the one that you "
        "gave.",
        f"not checked: {TITLES['saved']} (saved): an earlier check failed.",
    ]


def test_the_report_is_printed_as_json(bundle: Path) -> None:
    done = run(FILE, bundle, "--json")
    report = json.loads(done.stdout)
    assert report["fault"] is None
    assert report["remarks"]["cosigned"] == 5
    assert len(report["swaps"]) > 0


def test_what_other_tools_changed_is_undone_and_noted(bundle: Path, tmp_path: Path) -> None:
    note, kept = tmp_path / "note", tmp_path / "checkpoints.jsonl"
    note.write_bytes(b"\xef\xbb\xbf" + HONEST["saved"][0].replace("\n", "\r\n").encode())
    lines = "\r\n".join(json.dumps({"note": each}) for each in HONEST["saved"])
    kept.write_bytes(gzip.compress(lines.encode()))
    bundle.write_bytes(bundle.read_bytes().replace(b"\n", b"\r\n"))
    done = run(FILE, bundle, "--saved", note, "--saved", kept)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-6:] == [
        f"note: {LINE_ENDS}.",
        f"note: {note}: {UNMARKED}.",
        f"note: {note}: {LINE_ENDS}.",
        f"note: {kept}: {DECOMPRESSED}.",
        f"note: {kept}: {LINE_ENDS}.",
        f"note: {kept}: {LAST_NEWLINE}.",
    ]
    assert json.loads(run(FILE, bundle, "--json").stdout)["notes"] == [LINE_ENDS]


@pytest.mark.parametrize("arguments", [[], ["--key"], ["no such file"], ["a", "b"], ["--what"]])
def test_usage_errors_are_reported(arguments: list[str]) -> None:
    done = run(FILE, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


@pytest.mark.parametrize("option", [["--json"], ["--key", KEY]])
def test_an_option_that_is_given_twice_is_refused(tmp_path: Path, option: list[str]) -> None:
    done = run(FILE, *option, str(tmp_path / "bundle"), *option)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip() == f"{option[0]} is given more than once."


def test_control_characters_in_names_are_escaped(tmp_path: Path) -> None:
    log = LogBuilder().open_table()
    name = "\u009b31mEve\u202e"
    log.append("SeatTaken", seat=1, name=name, key=log.cosigner(1).public_key.hex())
    log.close_table(cosign=[1])
    file = tmp_path / "bundle.jsonl"
    file.write_text("\n".join(log.lines()), "utf-8")
    assert note_of(log.lines()[-1]).count("player/") == 1
    done = run(FILE, file, "--key", NoteSigner(HOUSE_SEED).public.hex())
    assert done.returncode == 0
    assert "\ufffd31mEve\ufffd" in done.stdout


def test_the_file_works_without_any_other(bundle: Path, tmp_path: Path) -> None:
    """A copy of the one file is enough, and it imports only file access from node."""
    copy = tmp_path / "verify.mjs"
    shutil.copy(FILE, copy)
    assert run(copy, bundle).returncode == 0
    text = FILE.read_text("utf-8")
    assert not re.search(r"^\s*import\b.*\bfrom\b(?! \"\./verify\.js\")", text, re.MULTILINE)
    assert re.findall(r"import\((.*?)\)", text) == ['"node:fs"', '"node:url"']
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|eval|require|Math\.random)\b", text)


def test_missing_node_fails_in_ci_and_skips_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(js_verifier.shutil, "which", lambda name: None)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="node"):
        node()
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="node"):
        node()


def test_the_command_of_the_package_is_executable() -> None:
    """npm makes it so when it installs the folder: a clone would seem to have a change."""
    folder = Path(__file__).parents[2] / "dealer/web"
    for name in json.loads((folder / "package.json").read_text())["bin"].values():
        assert (folder / name).stat().st_mode & 0o111 == 0o111


@pytest.mark.parametrize("argument", ["foo", "no/such/file", ""])
def test_the_module_is_imported_beside_any_argument(tmp_path: Path, argument: str) -> None:
    """With `node -e` the first argument is not the program."""
    program = f"import({FILE.as_uri()!r}).then(({{ VERSION }}) => console.log(typeof VERSION))"
    done = run("-e", program, argument, str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "string\n", "")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for name, sentence in (
        (tmp_path / "none", f"There is no file {tmp_path / 'none'}."),
        (tmp_path, f"{tmp_path} is a folder: name a file in it."),
    ):
        done = run(FILE, name)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{sentence}\n")
