"""Writing a bundle to a file and reading it."""

from __future__ import annotations

from dealer.proof import bundle
from dealer.proof.canonical import decode
from tests.proof.log_builder import HOUSE_SEED, LogBuilder, vectors


def test_the_lines_of_a_bundle_are_read_back() -> None:
    lines = vectors("audit")[0]["in"]["lines"]
    header = decode(lines[0])
    notes = [decode(line, newlines=True)["checkpoint"] for line in lines if "checkpoint" in line]
    leaves = [line for line in lines[1:] if "checkpoint" not in line]
    first = bundle.header(origin=header["origin"], key=bytes.fromhex(header["key"]))
    assert [first, *leaves, *map(bundle.checkpoint, notes)] == lines


def test_only_newline_ends_a_line_and_the_last_may_lack_it() -> None:
    name = "a\u2028b\u2029c\u0085d"
    lines = LogBuilder(house_seed=HOUSE_SEED).open_table().sit(1, name).close_table().lines()
    raw = [line.encode() for line in lines]
    assert bundle.read("\n".join(lines).encode()) == raw
    assert bundle.read("".join(f"{line}\n" for line in lines).encode()) == raw


def test_other_content_of_a_file_is_left_to_the_verifier() -> None:
    assert bundle.read(b"") == [b""]
    assert bundle.read(b"a\n\n") == [b"a", b""]
    assert bundle.read(b"\na\r\n") == [b"", b"a\r"]
