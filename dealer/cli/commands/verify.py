"""`dealer verify`: checks a bundle without a server or a database."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dealer.cli.options import AsJson
from dealer.cli.output import echo, progress, safe_text, say_json
from dealer.errors import NoteFault, ProofFault
from dealer.proof import bundle

if TYPE_CHECKING:
    from dealer.proof.verify import Report

KEY_DIGITS = 64


def verify(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A bundle, or - for standard input.", show_default=False
        ),
    ],
    key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="The table's key, if you know it: 64 hex digits or a verifier key. Without it the "
            "key in the bundle is used, which only proves that the bundle is consistent.",
            show_default=False,
        ),
    ] = None,
    saved: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Checkpoints that you saved: a signed note, or a client's checkpoints.jsonl. May "
            "be given several times.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a bundle: every signature, every swap, every card, every move.

    Prints the result of each check, the first fault if there is one, and what the bundle cannot
    prove. The exit code is 0 if all checks pass and 1 if not. Only the file is read.

    What other tools change in a saved file without loss is undone, and a note says so: gzip, a byte
    order mark at its beginning, CRLF at the end of every line, and none or several newlines at its
    end. Any other change is a fault: lines that were indented or written again, some line ends, a
    file that is cut. The fault says what the file is, if it is no bundle.

    ```
    dealer verify game.jsonl
    dealer verify game.jsonl --key 5c2f… --saved checkpoints.jsonl
    curl -s http://…/tables/0199f3c2…/bundle.jsonl | dealer verify -
    ```
    """
    bundle_file = read_bundle(file)
    known, undone = _notes(saved or ())
    notes = [*bundle_file.notes, *undone]
    report = examine(bundle_file.lines(), key=key, saved=known, notes=notes)
    if as_json:
        say_json(as_members(report))
    else:
        say_verdicts(report)
    if not report.ok:
        raise typer.Exit(1)


def examine(
    lines: list[bytes],
    *,
    key: str | None = None,
    saved: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Report:
    """The verifier's report; `key` is hex or a verifier key, which also names the origin."""
    from dealer.proof.verify import CHECKS
    from dealer.proof.verify import verify as prove

    pinned, origin = _key(key)
    with progress("Checking") as step:
        report = prove(lines, key=pinned, saved=saved, notes=notes, progress=step)
    earlier = report.fault is not None and report.fault.check == CHECKS[0]
    if origin is not None and report.origin != origin and not earlier:
        sentence = "The verifier key that you gave belongs to another origin than this table."
        report.fault = ProofFault("heads", 0, sentence)
    return report


def say_verdicts(report: Report) -> None:
    for line in report.lines():
        echo(safe_text(line))


def as_members(report: Report) -> dict[str, Any]:
    """A report as a JSON object."""
    fault = report.fault
    return {
        "ok": report.ok,
        "origin": report.origin,
        "key": report.key,
        "fault": None
        if fault is None
        else {"check": fault.check, "line": fault.line, "sentence": fault.sentence},
        "remarks": asdict(report.remarks),
        "cosigners": [
            {
                "key": key,
                "name": report.names[key],
                "count": times,
                "size": report.cosigned_upto[key],
            }
            for key, times in report.cosigners.items()
        ],
        "verdicts": report.verdicts(),
        "swaps": len(report.swaps),
        "notes": report.notes,
    }


def _key(text: str | None) -> tuple[bytes | None, str | None]:
    """A key's 32 bytes, and the origin that a verifier key names."""
    if text is None:
        return None, None
    try:
        if len(text) == KEY_DIGITS:
            return bytes.fromhex(text), None
        from dealer.proof.note import Verifier

        verifier = Verifier.read(text)
    except (ValueError, NoteFault):
        raise typer.BadParameter(
            f"--key must be {KEY_DIGITS} hex digits, or a verifier key: name+id+base64."
        ) from None
    return verifier.key, verifier.name


def _notes(files: list[Path] | tuple[()]) -> tuple[list[str], list[str]]:
    """The signed notes in these files, and what was undone in them."""
    signed: list[str] = []
    undone: list[str] = []
    for file in files:
        data, notes = bundle.restore(_read_file(file))
        undone += [f"{file}: {note}" for note in notes]
        text = data.decode(errors="replace")
        if not text.startswith("{"):
            signed.append(text)
            continue
        try:
            signed += [str(json.loads(line)["note"]) for line in bundle.read(data)]
        except (ValueError, KeyError, TypeError):
            raise typer.BadParameter(
                f"{file} has neither a signed note nor lines with a member 'note'."
            ) from None
    return signed, undone


def read_bundle(file: str) -> bundle.Restored:
    """The bundle in a file, `-` being standard input, with what was undone in it."""
    return bundle.restore(sys.stdin.buffer.read() if file == "-" else _read_file(Path(file)))


def _read_file(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}.") from None
