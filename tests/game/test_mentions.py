"""Names of a person in texts and in lines of a bundle."""

from __future__ import annotations

import json
from unicodedata import normalize

import pytest

from dealer.game.mentions import Mentions


def both(text: str) -> list[str]:
    return [normalize("NFC", text), normalize("NFD", text)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Ann", "ask Ann, please"), ("Ann", "ANN's turn"), ("Ann", "pile:ann-books"),
        ("Ann", "\uff21\uff4e\uff4e"), ("Ann", "A\u200bnn"), ("Ann", "Annさん"), ("Ann", "「Ann」"),
        ("José", "ciao josé!"), ("Åsa", "ÅSA vann"), ("Straße", "STRASSE"),
        ("Ὀδυσσεύς", "ὀδυσσεύσ"),
        ("太郎", "山田太郎さんの番"), ("さくら", "さくらが勝った"), ("李", "李赢了"),
        ("สมชาย", "วันนี้สมชายชนะ"), ("ສົມ", "ມື້ນີ້ສົມຊະນະ"), ("သီရိ", "ဒီနေ့သီရိနိုင်"),
        ("សុខ", "ថ្ងៃនេះសុខឈ្នះ"), ("민수", "민수가 이겼다"), ("नेहा", "नेहा जीती"),
        ("Ann Lee", "by ann lee"),
        ("O'Neil", "o'neil's"), ("a.b", "a.b"), ("👏", "x👏"),
    ],
)  # fmt: skip
def test_a_text_with_the_name(name: str, text: str) -> None:
    for written in both(name):
        for said in both(text):
            assert Mentions([written]).within(said), (written, said)


@pytest.mark.parametrize(
    ("name", "text"),
    [("Ann", "Anna"), ("Ann", "planning"), ("Ann", "_ann_"), ("José", "Josef"), ("Jose", "José"),
     ("太郎", "太 郎"), ("a.b", "axb"), ("Иван", "Иванов"), ("", "x")],
)  # fmt: skip
def test_a_text_without_it(name: str, text: str) -> None:
    assert not Mentions([name]).within(text)


def test_names_are_the_same_however_they_are_composed() -> None:
    composed, decomposed = both("Zoë")
    assert composed != decomposed
    assert composed in Mentions([decomposed])
    assert decomposed in Mentions([composed])
    assert "zoë" not in Mentions([composed])
    assert None not in Mentions([composed])
    assert not Mentions([]).within("anything")


def test_where_a_name_still_stands() -> None:
    moves = [{"from": "pile:ann", "to": "pile:x"}, {"from": "pile:ann", "to": "pile:ann"}]
    rules = {"name": "Ann's table", "house_rules": {"Ann": ["no", "ann deals"]}}
    events = [
        ("TableOpened", {"rules": rules}),
        ("SeatTaken", {"seat": 1, "name": "Ann Lee"}),
        ("NoteAdded", {"kind": "ann", "text": "", "seat": 2}),
        *(("CardMoved", move) for move in moves),
    ]
    lines = [
        {"format": "dealer/bundle/v1", "table": "00"},
        *(
            {"at": 1, "type": type_, "version": version, "public": public}
            for version, (type_, public) in enumerate(events, 1)
        ),
        {"note": {"version": 6, "part": {"text": "well played, ANN"}}},
        {"checkpoint": "house/t/00\n6\nAnn=\n\n\u2014 house +ann/\n"},
    ]
    found = Mentions(["Ann"]).places(json.dumps(line).encode() for line in lines)
    assert found == {
        "TableOpened.rules.name": [1],
        "TableOpened.rules.house_rules.Ann": [1],
        "SeatTaken.name": [2],
        "NoteAdded.kind": [3],
        "CardMoved.from": [4, 5],
        "CardMoved.to": [5],
        "note.part.text": [6],
    }
