"""Files that other tools saved: what is undone, what is not, and what the fault says."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import tracemalloc
from collections.abc import Callable

import pytest

from dealer.proof import bundle
from dealer.proof.bundle import (
    DECOMPRESSED,
    EMPTY_LINES,
    LAST_NEWLINE,
    LINE_ENDS,
    UNMARKED,
    Restored,
    restore,
)
from dealer.proof.verify import Report, verify
from tests.proof.log_builder import vectors

LINES = vectors("audit")[0]["in"]["lines"]
BUNDLE = "".join(f"{line}\n" for line in LINES).encode()
MARK = b"\xef\xbb\xbf"
FIRST_NOTE = next(n for n, line in enumerate(LINES) if line.startswith('{"checkpoint"'))


def _crlf(file: bytes) -> bytes:
    return file.replace(b"\n", b"\r\n")


def _named_gzip(file: bytes) -> bytes:
    packed = gzip.compress(file)
    return packed[:3] + b"\x08" + packed[4:10] + b"bundle.jsonl\0" + packed[10:]


LOSSLESS: dict[str, tuple[Callable[[bytes], bytes], list[str]]] = {
    "as it is": (lambda file: file, []),
    "mark": (lambda file: MARK + file, [UNMARKED]),
    "CRLF": (_crlf, [LINE_ENDS]),
    "no newline": (lambda file: file[:-1], [LAST_NEWLINE]),
    "CRLF, no newline": (lambda file: _crlf(file[:-1]), [LINE_ENDS, LAST_NEWLINE]),
    "one newline more": (lambda file: file + b"\n", [EMPTY_LINES]),
    "CRLF, three more": (lambda file: _crlf(file + b"\n\n\n"), [LINE_ENDS, EMPTY_LINES]),
    "gzip": (gzip.compress, [DECOMPRESSED]),
    "gzip, named": (_named_gzip, [DECOMPRESSED]),
    "all": (
        lambda file: gzip.compress(MARK + _crlf(file + b"\n")),
        [DECOMPRESSED, UNMARKED, LINE_ENDS, EMPTY_LINES],
    ),
}
"""What is undone: how a tool changes a file, and the notes."""

REWRITTEN = "This line is JSON, but"


def _reordered(members: dict[str, object]) -> str:
    return json.dumps(dict(reversed(members.items())), separators=(",", ":"), ensure_ascii=False)


def _rewritten(write: Callable[[dict[str, object]], str]) -> bytes:
    return "".join(f"{write(json.loads(line))}\n" for line in LINES).encode()


NAMED = next(n for n, line in enumerate(LINES) if b'"Ada"' in line.encode())
"""The line that has a name: an opening."""

OTHER: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 0, "The file is empty."),
    "newlines": (b"\r\n\r\n", 0, "The file is empty."),
    "HTML": (b"\n <!DOCTYPE HTML><title>502</title>", 0, "This is an HTML page, not a bundle."),
    "XML": (b'<?xml version="1.0"?>', 0, "This is HTML or XML, not a bundle."),
    "UTF-16": (BUNDLE.decode().encode("utf-16"), 0, "This is UTF-16 text"),
    "UTF-16, big endian, no mark": (BUNDLE.decode().encode("utf-16-be"), 0, "This is UTF-16 text"),
    "array": (b"[" + BUNDLE[:-1].replace(b"\n", b",\n") + b"]\n", 0, "This is a JSON array"),
    "indented": (json.dumps(json.loads(LINES[0]), indent=2).encode(), 0, "This JSON was indented"),
    "spaces": (_rewritten(json.dumps), 0, REWRITTEN),
    "order": (_rewritten(_reordered), 0, REWRITTEN),
    "escapes": (BUNDLE.replace(b'"Ada"', b'"\\u0041da"', 1), NAMED, REWRITTEN),
    "zip": (b"PK\x03\x04" + BUNDLE, 0, "This is a zip archive"),
    "bzip2": (bz2.compress(BUNDLE), 0, "This file is compressed with bzip2."),
    "xz": (lzma.compress(BUNDLE), 0, "This file is compressed with xz."),
    "database": (b"SQLite format 3\0", 0, "This is an SQLite database"),
    "answer": (b"HTTP/1.1 200 OK\r\n\r\n" + BUNDLE, 0, "This file begins with the headers"),
    "gzip, cut": (gzip.compress(BUNDLE)[:-9], 0, "This gzip file is cut"),
    "gzip, damaged": (gzip.compress(BUNDLE)[:-8] + bytes(8), 0, "This gzip file is cut, damaged"),
    "gzip, followed": (gzip.compress(BUNDLE) + b"\0", 0, "This gzip file is cut"),
    "gzip, twice": (gzip.compress(gzip.compress(BUNDLE)), 0, "This gzip file is cut"),
    "gzip, bomb": (gzip.compress(bytes(2**22)), 0, "This gzip file is cut"),
    "some CRLF": (BUNDLE.replace(b"\n", b"\r\n", 3), 0, "This line ends with CR"),
    "CRLF but one": (_crlf(BUNDLE).replace(b"\r\n", b"\n", 1), 1, "This line ends with CR"),
    "CRLF, last CR alone": (_crlf(BUNDLE)[:-1], 0, "This line ends with CR"),
    "CR only": (BUNDLE.replace(b"\n", b"\r"), 0, "This line ends with CR"),
    "CR in a string": (BUNDLE.replace(b"Ada", b"A\rda", 1), NAMED, ""),
    "CR in a string, CRLF": (_crlf(BUNDLE.replace(b"Ada", b"A\rda", 1)), 0, "This line ends with"),
    "mark inside": (BUNDLE.replace(b"\n", b"\n" + MARK, 1), 1, "A byte order mark is inside"),
    "two marks": (MARK + MARK + BUNDLE, 0, "A byte order mark is left before the first line"),
    "two marks, CRLF": (MARK + MARK + _crlf(BUNDLE), 0, "A byte order mark is left"),
    "two marks, gzip": (gzip.compress(MARK + MARK + BUNDLE), 0, "A byte order mark is left"),
    "error of JSON-RPC": (
        b'{"jsonrpc":"2.0","error":{"code":30,"message":"There is no such table."},"id":1}',
        0,
        "This is an error of a server",
    ),
    "error of decks": (b'{"success": false, "error": "No such deck."}\n', 0, "This is an error"),
    "error, indented": (b'{\n  "message": "Bad gateway"\n}\n', 0, "This is an error of a server"),
    "error, marked": (MARK + b'{"detail":"Not Found"}\r\n', 0, "This is an error of a server"),
    "sentence": (b"There is no such table.\n", 0, "This is text, not a bundle"),
    "sentences": (b"\nerror: 502\n\nThe log cannot be read.\n", 0, "This is text, not a bundle"),
    "JSON string": (b'"Not Found"', 0, "This is text, not a bundle"),
    "header with an error": (b'{"bundle":"dealer/v1","error":"x"}\n', 0, "The header"),
    "note": (b'{"note":"x"}\n{"note":"y"}\n', 0, "The header"),
    "image": (b"GIF89a\x01\x00\x01\x00", 0, "This is not"),
    "indented after spaces": (b' \n\n {\n  "bundle": "x"\n}\n', 0, "This JSON was indented"),
    "space before": (b" " + BUNDLE, 0, REWRITTEN),
    "line of a space": (BUNDLE + b" \n", len(LINES), ""),
    "empty line inside": (BUNDLE.replace(b"\n", b"\n\n", 1), 1, ""),
}  # fmt: skip
"""What is not undone: the file, and the line and beginning of its fault, which is of `form`."""


def report_on(file: bytes) -> Report:
    data, notes = restore(file)
    return verify(bundle.read(data), notes=notes)


@pytest.mark.parametrize(("change", "notes"), LOSSLESS.values(), ids=LOSSLESS)
def test_lossless_changes_are_undone_and_noted(
    change: Callable[[bytes], bytes], notes: list[str]
) -> None:
    assert restore(change(BUNDLE)) == Restored(BUNDLE, notes)
    report = report_on(change(BUNDLE))
    assert (report.ok, report.notes) == (True, notes)
    assert report.lines()[len(report.lines()) - len(notes) :] == [f"note: {n}." for n in notes]


@pytest.mark.parametrize(("change", "notes"), LOSSLESS.values(), ids=LOSSLESS)
@pytest.mark.parametrize(
    ("old", "new"), [('"name":"Ada"', '"name":"Eve"'), ('"at":', '"at":9'), ('"v":1', '"v":2')]
)
def test_a_changed_event_is_the_same_fault_in_each(
    change: Callable[[bytes], bytes], notes: list[str], old: str, new: str
) -> None:
    forged = BUNDLE.replace(old.encode(), new.encode(), 1)
    expected, report = verify(bundle.read(forged)).fault, report_on(change(forged))
    assert expected is not None
    assert report.fault is not None
    assert (report.fault.check, report.fault.line) == (expected.check, expected.line)
    assert report.notes == notes


@pytest.mark.parametrize(("file", "line", "beginning"), OTHER.values(), ids=OTHER)
def test_other_changes_are_faults_that_say_what_the_file_is(
    file: bytes, line: int, beginning: str
) -> None:
    fault = report_on(file).fault
    assert fault is not None
    assert (fault.check, fault.line) == ("form", line)
    assert fault.sentence.startswith(beginning)


def test_a_cut_file_is_called_cut_wherever_it_ends() -> None:
    whole = [BUNDLE[:size] for size in range(2, len(BUNDLE), 211)]
    for file in (*whole, *(part.replace(b"\n", b"\r\n") for part in whole)):
        report, line = report_on(file), file.count(b"\n")
        assert report.fault is not None
        if file.rpartition(b"\n")[2].decode(errors="replace") in ("", *LINES):
            continue  # at the end of a line
        assert (report.fault.check, report.fault.line) == ("form", line), file[-40:]
        held = f"the header and {line - 1} lines hold" if line else "no line holds"
        assert report.fault.sentence.startswith(f"The file is cut at line {line}; {held}.")
        assert LAST_NEWLINE not in report.notes


@pytest.mark.parametrize("size", [2, 10, FIRST_NOTE])
@pytest.mark.parametrize("end", ["\n", ""])
def test_a_file_that_is_cut_at_the_end_of_a_line_has_no_checkpoint(size: int, end: str) -> None:
    report = report_on(("\n".join(LINES[:size]) + end).encode())
    assert report.fault is not None
    assert report.fault.check == "heads"
    assert report.fault.sentence.startswith(f"The file ends after line {size - 1}, before the")


def test_a_cut_among_the_checkpoints_is_a_fault_of_the_heads() -> None:
    fault = verify(LINES[:-1]).fault
    assert fault is not None
    assert fault.check == "heads"
    assert "cut" not in fault.sentence


def test_a_bomb_takes_no_more_memory_than_its_bound() -> None:
    file = gzip.compress(bytes(2**26))
    bound = bundle.LONGEST_RATIO * len(file)
    assert bound < 2**23
    tracemalloc.start()
    try:
        assert restore(file).data == file + b"\n"
        assert tracemalloc.get_traced_memory()[1] < 4 * bound
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("line", [b"\n", b"{}\n", b'{"checkpoint":""}\n'])
def test_short_lines_take_no_more_memory_than_their_file_does(line: bytes) -> None:
    before = BUNDLE[: BUNDLE.index(b'{"checkpoint"')]
    file = before + line * (2**20 // len(line))
    tracemalloc.start()
    try:
        lines = bundle.read(file)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(file)
    finally:
        tracemalloc.stop()
    assert b"\n".join(lines) == file.removesuffix(b"\n")
    fault = verify(lines).fault
    assert fault is not None
    assert fault.check == ("heads" if line.startswith(b'{"checkpoint"') else "form")


def test_the_shortest_line_is_a_line() -> None:
    assert len('{"checkpoint":""}') == bundle.SHORTEST_LINE
    assert bundle.read(b'{"checkpoint":""}\n' * 3) == [b'{"checkpoint":""}'] * 3
    assert bundle.read(b"a\nb\nc\n") == [b"a", b"b\nc"]


def test_what_is_within_the_bound_is_decompressed() -> None:
    file = gzip.compress(BUNDLE + b"\n" * 4 * len(BUNDLE))
    assert len(BUNDLE) * 5 < bundle.LONGEST_RATIO * len(file)
    assert restore(file) == Restored(BUNDLE, [DECOMPRESSED, EMPTY_LINES])
