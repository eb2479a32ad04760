"""What a file is instead of a bundle, for readers of the fault `form`.

Some files fail because a program wrote or sent something else, not because an event was changed.
The check, the line and the verdict of such a fault stay; only its sentence says what the file is.
An independent verifier names the same kinds with the same sentences.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from dealer.errors import ProofFault
from dealer.proof.bundle import GZIP, LAST_NEWLINE, LONGEST, LONGEST_RATIO, MARK
from dealer.proof.canonical import NOT_CANONICAL

AGAIN = "Download the bundle again."
PACKED = "Unpack it, and verify the bundle that is in it."

BEGINNINGS: Sequence[tuple[bytes, str]] = (
    (
        GZIP,
        "This gzip file is cut, damaged, followed by something else, or when decompressed longer "
        f"than {LONGEST_RATIO} times its length or {LONGEST // 2**20} MiB. Decompress it, and "
        "verify the result.",
    ),
    (b"PK\x03\x04", f"This is a zip archive, not a bundle. {PACKED}"),
    (b"PK\x05\x06", "This is an empty zip archive, not a bundle."),
    (b"BZh", f"This file is compressed with bzip2. {PACKED}"),
    (b"\xfd7zXZ\0", f"This file is compressed with xz. {PACKED}"),
    (b"\x28\xb5\x2f\xfd", f"This file is compressed with zstd. {PACKED}"),
    (b"7z\xbc\xaf\x27\x1c", f"This is a 7z archive, not a bundle. {PACKED}"),
    (b"SQLite format 3\0", "This is an SQLite database, not a bundle: `dealer export` makes one."),
    (b"%PDF-", f"This is a PDF file, not a bundle. {AGAIN}"),
    (
        b"HTTP/",
        "This file begins with the headers of an HTTP answer. Save the bundle without them.",
    ),
)
"""Kinds of files by their first bytes."""

UTF_16 = (b"\xff\xfe", b"\xfe\xff", b"{\0", b"\0{")
SPACE = b" \t\r\n"
HTML = (b"<!doctype html", b"<html", b"<head", b"<body")
TEXT = re.compile(rb"[A-Za-z\"][^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*")
"""A sentence, like the answer `There is no such table.`"""

ERROR = {"error", "errors", "detail", "message"}
"""Members of the errors that servers and proxies send as JSON; `error` is also JSON-RPC's."""

ERROR_MAX = 64 * 1024
"""Bytes of a file that may be such an error."""


def named(fault: ProofFault, lines: Sequence[object], notes: Sequence[str]) -> ProofFault:
    """The fault, with a sentence about the file if that is the cause.

    `notes` say what was undone in the file, see `bundle.restore`.
    """
    sentence = None
    if fault.check == "form":
        sentence = _kind(fault, lines, notes)
    elif fault.check == "heads" and not _bytes(lines[-1]).startswith(b'{"checkpoint":'):
        sentence = (
            f"The file ends after line {len(lines) - 1}, before the checkpoints: it was cut there, "
            f"or they were removed. {AGAIN}"
        )
    return fault if sentence is None else ProofFault(fault.check, fault.line, sentence)


def _kind(fault: ProofFault, lines: Sequence[object], notes: Sequence[str]) -> str | None:
    if fault.line >= len(lines):
        return None
    line, last = _bytes(lines[fault.line]), fault.line == len(lines) - 1
    if fault.line == 0 and (kind := _kind_by_beginning(line, lines)):
        return kind
    if line.endswith(b"\r"):
        return f"This line ends with CR: only CRLF at the end of every line is undone. {AGAIN}"
    if line.startswith(MARK):
        where = "inside the file" if fault.line else "left before the first line"
        return f"A byte order mark is {where}: only one at its beginning is undone. {AGAIN}"
    if fault.sentence == NOT_CANONICAL:
        return (
            "This line is JSON, but not in its canonical form: its spaces, escapes or numbers or "
            "the order of its members were changed, as by a program that reads and writes JSON. "
            f"{AGAIN}"
        )
    if last and LAST_NEWLINE in notes and line.startswith(b"{") and not _is_json(line):
        held = f"the header and {fault.line - 1} lines hold" if fault.line else "no line holds"
        return f"The file is cut at line {fault.line}; {held}. Download the rest, or all of it."
    return None


def _kind_by_beginning(first: bytes, lines: Sequence[object]) -> str | None:
    """What a file with this first line is."""
    text = next(filter(None, map(_first_text, lines)), None)
    if text is None:
        return f"The file is empty. {AGAIN}"
    for beginning, sentence in BEGINNINGS:
        if first.startswith(beginning):
            return sentence
    if first.startswith(UTF_16):
        return "This is UTF-16 text; a bundle is UTF-8. Save it as UTF-8, or download it again."
    if text.startswith(b"<"):
        what = "an HTML page" if text.lower().startswith(HTML) else "HTML or XML"
        return f"This is {what}, not a bundle. {AGAIN}"
    if text.startswith(b"["):
        return f"This is a JSON array; a bundle is lines, each with one JSON object. {AGAIN}"
    if _is_error(lines):
        return f"This is an error of a server, not a bundle; its text says what failed. {AGAIN}"
    if text == b"{":
        return f"This JSON was indented; each line of a bundle is one JSON object. {AGAIN}"
    if TEXT.fullmatch(text):
        return f"This is text, not a bundle; an error of a server says what failed. {AGAIN}"
    return None


def _first_text(line: object) -> bytes:
    """The first bytes of a line after its spaces; of what was left as one line the first line."""
    return _bytes(line).lstrip(SPACE)[:64].split(b"\n", 1)[0].rstrip(SPACE)


def _is_error(lines: Sequence[object]) -> bool:
    """Whether the file is a JSON object in which a server says what failed."""
    parts = [_bytes(line) for line in lines]
    if sum(map(len, parts)) > ERROR_MAX:
        return False
    try:
        value = json.loads(b"\n".join(parts).decode())
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "bundle" not in value and bool(ERROR & value.keys())


def _bytes(line: object) -> bytes:
    if isinstance(line, str):
        return line.encode(errors="replace")
    return line if isinstance(line, bytes) else b""


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
