"""`dealer verify`: checks a bundle without a server or a database; and where bundles come from."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Exit

from dealer.cli import options
from dealer.cli.manifest import manifest_lines, total_of
from dealer.cli.output import Step, echo, echo_err, progress, safe_text, say_json
from dealer.errors import BadRequest, HouseUnreachable, NoteFault, ProofFault, UnknownTable, amount
from dealer.proof import bundle
from dealer.version import __version__

if TYPE_CHECKING:
    from email.message import Message

    from dealer.history.replay import Game
    from dealer.proof.verify import Report

KEY_DIGITS = 64
ID_DIGITS = 32
ANSWER_SECONDS = 30.0
PATIENCE_SECONDS = 120.0
"""How long a server that is busy is asked again."""


PRACTICE = 3
"""The exit code for a practice table: another than for a fair game, and than for a fault."""


@options.command(
    help="""Check a bundle: every signature, every swap, every card, every move.

    Prints the result of each check, the first fault if there is one, and what the bundle cannot
    prove. The exit code is 0 if all checks pass, 1 if not, and 3 for a practice table without a
    fault: its first shuffle laid cards out, which is no fair deal. Only the files are read.

    What other tools change in a saved file without loss is undone, and a note says so: gzip, a byte
    order mark at its beginning, CRLF at the end of every line, and none or several newlines at its
    end. Any other change is a fault: lines that were indented or written again, some line ends, a
    file that is cut. The fault says what the file is, if it is no bundle.

    With --manifest instead of a file it prints the SHA-256 of every file of random numbers, shuffle
    and proof, as `sha256sum` does: in the folder of installed packages `sha256sum -c` accepts the
    output. After them, as comments, come the SHA-256 of these lines, one number that installations
    can compare, and the hashes for Subresource Integrity of the scripts that the server offers to
    pages of others.

    ```
    dealer verify game.jsonl
    dealer verify game.jsonl --key 5c2f… --saved checkpoints.jsonl
    dealer verify practice.jsonl --source game.jsonl
    curl -s http://…/tables/7d02f3c2…/bundle.jsonl | dealer verify -
    dealer verify --manifest
    ```
    """
)
@click.argument("file", required=False, help="A bundle, or - for standard input.")
@options.given(
    "--key",
    "KEY",
    "The table's key, if you know it: 64 hex digits or a verifier key. Without it the "
    "key in the bundle is used, which only proves that the bundle is consistent.",
)
@options.given(
    "--saved",
    "FILE",
    "Checkpoints that you saved: a signed note, or a client's checkpoints.jsonl. May "
    "be given several times.",
    multiple=True,
    type=options.PATH,
)
@options.given(
    "--source",
    "FILE",
    "For a practice table the bundle of the table that its cards were laid out from, to "
    "check that they lay so.",
)
@options.flag("--manifest", "Print the SHA-256 of the files that checks and shuffles depend on.")
@options.takes("as_json")
def verify(
    file: str | None,
    key: str | None,
    saved: tuple[Path, ...],
    source: str | None,
    manifest: bool,
    as_json: bool,
) -> None:
    if (file is None) != manifest:
        raise click.BadParameter("Name a bundle's file, or give --manifest instead of one.")
    if file is None:
        _print_manifest()
        return
    bundle_file = read_bundle(file)
    known, undone = _notes(saved)
    notes = [*bundle_file.notes, *undone]
    source_lines = None
    if source is not None:
        source_file = read_bundle(source)
        source_lines = source_file.lines()
        notes += [f"{source}: {note}" for note in source_file.notes]
    report = examine(bundle_file.lines(), key=key, saved=known, notes=notes, source=source_lines)
    if as_json:
        say_json(as_members(report))
    else:
        say_verdicts(report)
    raise Exit(exit_code(report))


def examine(
    lines: list[bytes],
    *,
    key: str | None = None,
    saved: Sequence[str] = (),
    notes: Sequence[str] = (),
    source: list[bytes] | None = None,
) -> Report:
    """The verifier's report; `key` is hex or a verifier key, which also names the origin."""
    from dealer.proof.verify import CHECKS
    from dealer.proof.verify import verify as prove

    pinned, origin = _key(key)
    with progress("Checking") as step:
        report = prove(lines, key=pinned, saved=saved, notes=notes, source=source, progress=step)
    earlier = report.fault is not None and report.fault.check == CHECKS[0]
    if origin is not None and report.origin != origin and not earlier:
        sentence = "The verifier key that you gave belongs to another origin than this table."
        report.fault = ProofFault("heads", 0, sentence)
    return report


def exit_code(report: Report) -> int:
    """0 for a fair game, 1 for a fault, `PRACTICE` for a practice table without one."""
    if report.fault is not None:
        return 1
    return 0 if report.practice is None else PRACTICE


def say_verdicts(report: Report) -> None:
    fault = report.fault
    # Of a file that is no bundle nothing else can be said.
    no_bundle = fault is not None and (fault.check, fault.line) == ("form", 0)
    for line in report.lines()[:1] if no_bundle else report.lines():
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
        "withheld_parts": report.withheld_parts,
        "withheld_cosigners": report.withheld_cosigners,
        "practice": None if report.practice is None else asdict(report.practice),
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
        raise click.BadParameter(
            f"--key must be {KEY_DIGITS} hex digits, or a verifier key: name+id+base64."
        ) from None
    return verifier.key, verifier.name


def _notes(files: Sequence[Path]) -> tuple[list[str], list[str]]:
    """The signed notes in these files, and what was undone in them."""
    signed: list[str] = []
    undone: list[str] = []
    for file in files:
        data, notes = bundle.restore(_read_file(str(file)))
        undone += [f"{file}: {note}" for note in notes]
        text = data.decode(errors="replace")
        if not text.startswith("{"):
            signed.append(text)
            continue
        try:
            signed += [str(json.loads(line)["note"]) for line in bundle.read(data)]
        except (ValueError, KeyError, RecursionError, TypeError):
            raise click.BadParameter(
                f"{file} has neither a signed note nor lines with a member 'note'."
            ) from None
    return signed, undone


def read_bundle(file: str) -> bundle.Restored:
    """The bundle in a file, `-` being standard input, with what was undone in it."""
    return bundle.restore(sys.stdin.buffer.read() if file == "-" else _read_file(file))


def _read_file(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        says = f"{file} cannot be read: {error.strerror}."
        if options.is_table(file):
            says += f" If it is a table, `dealer audit {file}` checks it."
        elif "://" in file:
            says = f"{file} is no file; {options.address_help(file)}."
        raise click.BadParameter(says) from None


async def read_table_or_file(
    source: str, database: str, *, url: str | None = None, house_key: Path | None = None
) -> tuple[list[bytes], list[str]]:
    """The lines of a bundle's file, `-` being standard input, or of a table's bundle; the notes."""
    if is_file(source, url=url):
        file = read_bundle(source)
        return file.lines(), file.notes
    return await of_table(database, source, url=url, house_key=house_key), []


def is_file(source: str, *, url: str | None = None) -> bool:
    """Whether `source` names a bundle's file, not a table; a usage error if it is neither."""
    # Not Path's methods, which raise if no file can have such a name.
    if source == "-" or (url is None and os.path.isfile(source)):
        return True
    if not options.is_table(source):
        if "://" in source:
            raise click.BadParameter(f"{source} is no file; {options.address_help(source)}.")
        kind = "is a folder" if os.path.isdir(source) else "is no file"
        raise click.BadParameter(f"{source} {kind}, and no table's id, which has hex digits only.")
    return False


async def read_game(
    source: str, database: str, *, url: str | None = None, house_key: Path | None = None
) -> Game:
    """The verified game of a table or of a bundle's file."""
    from dealer.history.replay import Game

    lines, notes = await read_table_or_file(source, database, url=url, house_key=house_key)
    return Game.read(lines, examine(lines, notes=notes))


async def of_table(
    database: str, table: str, *, url: str | None = None, house_key: Path | None = None
) -> list[bytes]:
    """The lines of a table's bundle, from the server at `url` or, without one, from the log."""
    if url is not None:
        return from_house(url, table)

    with progress("Reading the log") as step:
        lines = from_log(database, table, house_key=house_key, step=step)
        return [line async for line in lines]


async def from_log(
    database: str, table: str, *, house_key: Path | None, step: Step
) -> AsyncGenerator[bytes]:
    """The lines of the bundle of a table in the log, by its id or a prefix of it.

    Prints a remark if the bundle ends before the head of the log.
    """
    from dealer.service.reading.bundle import bundle_lines, bundle_range

    async with options.read_log(database) as log:
        table_id = await options.find_table(log, table)
        extent = await bundle_range(log, database, table_id, house_key=house_key)
        if extent.size < extent.head:
            echo_err(
                f"The bundle ends at version {extent.size} of {extent.head}, the last that the "
                f"house has signed: {extent.unsigned_reason}."
            )
        async for line in bundle_lines(log, extent, step=step):
            yield line.encode()


def from_house(url: str, table: str) -> list[bytes]:
    """The lines of the bundle of a table, by its whole id, that the server at `url` sends."""
    if len(table) != ID_DIGITS:
        raise click.BadParameter(f"--url needs the table's whole id, not {table!r}.")
    return bundle.read(download(f"{web_address(url)}/tables/{table}/bundle.jsonl"))


def download(address: str, *, seconds: float = ANSWER_SECONDS) -> bytes:
    """What a server has at the address of a bundle, or at another one.

    A server that is busy is asked again when it said. Raises UnknownTable if it has nothing there,
    and HouseUnreachable if it does not answer, or stays busy.
    """
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError

    from dealer.urls import opener

    until = time.monotonic() + PATIENCE_SECONDS
    try:
        while True:
            try:
                with opener().open(address, timeout=seconds) as answer:
                    data: bytes = answer.read()
                    return data
            except HTTPError as error:
                with error:
                    sentence = safe_text(error.read(500).decode(errors="replace").strip())
                if error.code not in (429, 503):
                    raise UnknownTable(f"{address} is no bundle: {sentence}") from None
                wait = retry_after(error.headers)
                if wait is None or time.monotonic() + wait > until:
                    raise HouseUnreachable(f"The server is busy ({address}): {sentence}") from None
                echo_err(f"The server is busy; asking again in {amount(wait, 'second')}.")
                time.sleep(wait)
    except (URLError, HTTPException, OSError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise HouseUnreachable(f"The server does not answer at {address}: {reason}") from None


def retry_after(headers: Message) -> int | None:
    """The seconds that a busy server asks for, at least 1; None if it names none."""
    seconds = headers.get("Retry-After", "")
    return max(int(seconds), 1) if re.fullmatch("[0-9]{1,6}", seconds) else None


def web_address(url: str) -> str:
    """The address of a server's pages, without a slash at the end; see `socket_address`."""
    from dealer.bots.links import page_address

    return page_address(socket_address(url))


def socket_address(url: str) -> str:
    """The WebSocket address of a server, given like that or as the address of its pages.

    Without a scheme it is an address of pages: `127.0.0.1:8080` or `example.org/cards/`.
    """
    from dealer.bots import links

    try:
        return links.socket_address(url if "://" in url else f"http://{url}")
    except BadRequest:
        raise click.BadParameter(
            f"{url!r} is not a server's address, like http://127.0.0.1:8080/."
        ) from None


def _print_manifest() -> None:
    from dealer.gateway.pages.modules import integrity
    from dealer.gateway.pages.static_files import StaticFiles

    lines = manifest_lines()
    for line in lines:
        echo(line.rstrip())
    echo(f"# {total_of(lines)}  {len(lines)} files of dealer {__version__}")
    for address, file in StaticFiles().versioned.items():
        echo(f"# {integrity(file.data)}  {address}")
