"""A pack as CSV, as spreadsheet programs save it: the same pack, or a sentence that says why."""

from __future__ import annotations

import codecs
import csv
import json
from io import StringIO
from pathlib import Path

import pytest

from dealer.errors import ConfigurationError
from dealer.packs.catalogue import read_file, read_folders

SVG = '<svg xmlns="http://www.w3.org/2000/svg"\n viewBox="0 0 1 1"/>'
TABLE = [
    ["code", "name", "colour", "text", "svg", "count"],
    ["Rot +2", "Rot, plus; „zwei“", "#b3202c", "+2", "", "2"],
    ["红中", 'the "red"\ndragon', "", "中", SVG, ""],
    ["=", "gleich", "", "", "", "10"],
]
LINE_ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
ENCODINGS = {
    "utf-8": ("utf-8", b""),
    "utf-8-bom": ("utf-8", codecs.BOM_UTF8),
    "utf-16-le": ("utf-16-le", codecs.BOM_UTF16_LE),
    "utf-16-be": ("utf-16-be", codecs.BOM_UTF16_BE),
}


def written(table: list[list[str]], delimiter: str = ",", end: str = "\n") -> str:
    """A table as a spreadsheet program writes it; line breaks in cells are those between rows."""
    text = StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(table)
    return text.getvalue().replace("\n", end)


def pack_of(folder: Path, data: bytes, *, notes: list[str] | None = None) -> bytes:
    """The pack in a file with these bytes, as pages get it."""
    file = folder / "mine.csv"
    file.write_bytes(data)
    kind, _ = read_file(file, packs={}, notes=notes)
    assert kind == "pack"
    return read_folders(folder, None).documents()["/packs/mine.json"]()


@pytest.fixture
def expected(tmp_path: Path) -> bytes:
    pack = pack_of(tmp_path, written(TABLE).encode())
    read = json.loads(pack)
    assert read["deck"] == ["1.01", "1.02", "2.01", *(f"3.{n:02}" for n in range(1, 11))]
    assert [card["name"] for card in read["cards"].values()] == [
        "Rot, plus; „zwei“",
        'the "red" dragon',
        "gleich",
    ]
    assert read["cards"]["2"]["svg"] == SVG
    return pack


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("end", LINE_ENDS)
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_same_table_gives_the_same_pack(
    tmp_path: Path, expected: bytes, delimiter: str, end: str, encoding: str
) -> None:
    name, mark = ENCODINGS[encoding]
    text = written(TABLE, delimiter, LINE_ENDS[end])
    assert pack_of(tmp_path, mark + text.encode(name)) == expected
    separated = f"SEP={delimiter}{LINE_ENDS[end]}{text}"
    assert pack_of(tmp_path, mark + separated.encode(name)) == expected


def changed(how: str) -> str:
    table = [[*row] for row in TABLE]
    match how:
        case "header in another case":
            table[0] = [f" {name.upper()} " for name in table[0]]
        case "empty columns":
            table = [[*row[:2], "", *row[2:], "", " "] for row in table]
        case "no empty cells at the end":
            table = [row[: max(n for n, cell in enumerate(row, 1) if cell)] for row in table]
        case "empty rows":
            table = [[""] * 6, *table[:2], [], [" "] * 9, *table[2:], [""] * 6, []]
        case "other columns":
            remarks = ["Notizen", "alt, siehe 2", "?", ""]
            table = [[remark, *row] for row, remark in zip(table, remarks, strict=True)]
        case "columns in another order":
            table = [row[::-1] for row in table]
        case "decimals":
            table[1][5], table[3][5] = "2.0", "10,00"
        case "spaces":
            table = [[f" {cell}\u00a0" for cell in row] for row in table]
        case "everything quoted":
            text = StringIO(newline="")
            csv.writer(text, delimiter=";", quoting=csv.QUOTE_ALL).writerows(table)
            return text.getvalue()
        case "a quoted separator and its columns":
            return '"sep=;";;;;;\n' + written(table, ";")
        case "no line end at the end":
            return written(table).removesuffix("\n")
    return written(table, ";")


@pytest.mark.parametrize(
    "how",
    [
        "header in another case",
        "empty columns",
        "no empty cells at the end",
        "empty rows",
        "other columns",
        "columns in another order",
        "decimals",
        "spaces",
        "everything quoted",
        "a quoted separator and its columns",
        "no line end at the end",
    ],
)
def test_what_programs_add_or_leave_out_does_not_count(
    tmp_path: Path, expected: bytes, how: str
) -> None:
    notes: list[str] = []
    assert pack_of(tmp_path, changed(how).encode(), notes=notes) == expected
    assert notes == (["Ignored columns: Notizen."] if how == "other columns" else [])


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ("code;name\ngrün;x\n".encode("cp1252"), "line 2, byte 3 is 0xFC, which is not UTF-8. "),
        ("code;name\rgrün;x\r".encode("mac-roman"), "line 2, byte 3 is 0x9F, which is not UTF-8. "),
        ("code,name\nü,ü\r\nü,ä".encode()[:-1], "line 3, byte 4 is 0xC3, which is not UTF-8. "),
        ("code,name\n".encode("utf-16-le"), "line 1, byte 2 is 0x00, as in UTF-16 without a byte"),
        ("code,name\n".encode("utf-16-be"), "line 1, byte 1 is 0x00, as in UTF-16 without a byte"),
        ("code,name\na,b\n".encode("utf-16")[:-1], "line 2, byte 7 is 0x0A, which is not UTF-16."),
        ("code,name\n".encode("utf-32"), "it is UTF-32. Save it as UTF-8"),
        (b"PK\x03\x04\x14\x00", "it is a workbook, not a text. Save it as UTF-8"),
        (b"\xd0\xcf\x11\xe0\xa1", "it is a workbook, not a text. Save it as UTF-8"),
    ],
)
def test_other_bytes_are_refused_with_their_place(
    tmp_path: Path, data: bytes, sentence: str
) -> None:
    for name in ("mine.csv", "mine.json"):
        file = tmp_path / name
        file.write_bytes(data)
        with pytest.raises(ConfigurationError) as caught:
            read_file(file, packs={})
        assert str(caught.value).startswith(sentence)
        assert "Save it as UTF-8; spreadsheet programs call that “CSV UTF-8”" in str(caught.value)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_pack_or_game_in_json_may_have_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    name, mark = ENCODINGS[encoding]
    text = '{"title": "Grün", "cards": {"a": {"name": "ä"}}}'
    (tmp_path / "mine.json").write_bytes(mark + text.encode(name))
    assert read_file(tmp_path / "mine.json", packs={})[1]["cards"] == {"a": {"name": "ä"}}


def test_the_ending_of_a_name_may_have_any_case(tmp_path: Path, expected: bytes) -> None:
    (tmp_path / "mine.csv").unlink()
    (tmp_path / "mine.CSV").write_text(written(TABLE), encoding="utf-8")
    (tmp_path / "other.Json").write_text('{"title": "x", "cards": {"a": {"name": "b"}}}')
    found = read_folders(tmp_path, None)
    assert found.documents()["/packs/mine.json"]() == expected
    assert found.packs["other"]["deck"] == ["a"]
    (tmp_path / "mine.txt").write_text(written(TABLE, "\t"), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"ends in \.csv or \.json: rename it"):
        read_file(tmp_path / "mine.txt", packs={})
