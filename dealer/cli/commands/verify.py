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

    ```
    dealer verify game.jsonl
    dealer verify game.jsonl --key 5c2f… --saved checkpoints.jsonl
    curl -s http://…/tables/0199f3c2…/bundle.jsonl | dealer verify -
    ```
    """
    report = examine(read_bundle(file), key=key, saved=_notes(saved or ()))
    if as_json:
        say_json(as_members(report))
    else:
        say_verdicts(report)
    if not report.ok:
        raise typer.Exit(1)


def examine(lines: list[bytes], *, key: str | None = None, saved: Sequence[str] = ()) -> Report:
    """The verifier's report; `key` is hex or a verifier key, which also names the origin."""
    from dealer.proof.verify import CHECKS
    from dealer.proof.verify import verify as prove

    pinned, origin = _key(key)
    with progress("Checking") as step:
        report = prove(lines, key=pinned, saved=saved, progress=step)
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


def _notes(files: list[Path] | tuple[()]) -> list[str]:
    notes = []
    for file in files:
        text = _read_file(file).decode(errors="replace")
        if not text.startswith("{"):
            notes.append(text)
            continue
        try:
            notes += [str(json.loads(line)["note"]) for line in text.splitlines()]
        except (ValueError, KeyError, TypeError):
            raise typer.BadParameter(
                f"{file} has neither a signed note nor lines with a member 'note'."
            ) from None
    return notes


def read_bundle(file: str) -> list[bytes]:
    """The lines of a file, `-` being standard input."""
    data = sys.stdin.buffer.read() if file == "-" else _read_file(Path(file))
    return bundle.read(data)


def _read_file(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}.") from None
