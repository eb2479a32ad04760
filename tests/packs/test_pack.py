"""Packs: what is accepted, what is refused with which sentence, and CSV."""

from __future__ import annotations

from typing import Any

import pytest

from dealer.errors import ConfigurationError
from dealer.packs.csv_pack import parse_csv
from dealer.packs.members import SVG_MAX, parse_json
from dealer.packs.pack import read

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>'
SUITS = [{"suit": "o", "name": "coins", "svg": SVG}]
RANKS = [{"rank": "1", "name": {"en": "ace", "de": "As"}}]


def pack(**members: Any) -> dict[str, Any]:
    return {"title": "A pack", "cards": {"a": {"name": "first"}}} | members


def test_a_pack_is_completed_for_the_pages() -> None:
    cards = {"红中": {"name": "می\u200cخواهم", "count": 4}, "1": {"suit": "o", "rank": "1"}}
    given = pack(cards=cards, suits=SUITS, ranks=RANKS, named="{rank} of {suit}")
    found = read(given, name="mine")
    assert found["pack"] == "mine"
    assert found["width"] == 1
    assert found["deck"] == ["1.1", "1.2", "1.3", "1.4", "2.1"]
    assert found["cards"]["1"] == {"code": "红中", "name": "می\u200cخواهم"}
    assert found["cards"]["2"] == {"code": "1", "suit": "o", "rank": "1"}


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({"pack": "other"}, 'pack must be "mine", like the name of the file'),
        ({"colour": "#000000"}, 'unknown member "colour": use pack, title'),
        ({"tittle": "x"}, 'unknown member "tittle"; did you mean title?'),
        ({"title": ""}, "title must have 1 to 400 characters"),
        ({"title": "a\u202eb"}, "title must have 1 to 400 characters, none of them a control"),
        ({"title": {"English": "x"}}, 'title: "English" is not the code of a language'),
        ({"title": 5}, "title must be a text, or texts by language"),
        ({"cards": {}}, "cards must have 1 to 1024 members"),
        ({"cards": {"a": {}}}, 'cards, "a": name is missing; a card without one needs suit, rank'),
        ({"cards": {"a": {"name": "x", "suit": "o"}}}, 'cards, "a": suit is none of the suits'),
        ({"cards": {"a": {"name": "x", "colour": "red"}}}, '"a": colour must be a colour like #1d'),
        ({"cards": {"a": {"name": "x", "count": 0}}}, '"a": count must be a whole number from 1'),
        (
            {"cards": {"红": {"name": "x", "counts": 1}}},
            '"红": unknown member "counts"; did you mean',
        ),
        ({"cards": {"a": {"name": "x", "corner": "seven c"}}}, "corner must be a text of 1 to 6"),
        ({"suits": [{"suit": "o"}]}, "suits, 1: name is missing"),
        ({"suits": SUITS * 2}, 'suits: "o" occurs twice'),
        ({"back": {"colour": "#12345"}}, "back: colour must be a colour"),
        ({"licence": ""}, "licence must be a text of 1 to 400"),
    ],
)
def test_a_fault_is_one_sentence_with_its_place(members: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(pack(**members), name="mine")
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("svg", "sentence"),
    [
        ("<svg/>", 'must begin with <svg xmlns="http://www.w3.org/2000/svg"'),
        ("<svg", "is not XML"),
        ('<!DOCTYPE svg [<!ENTITY a "b">]>' + SVG, "must not have a document type"),
        ("x" * (SVG_MAX + 1), "of at most 65536 characters"),
    ],
)
def test_a_picture_is_a_plain_svg_document(svg: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        read(pack(cards={"a": {"name": "x", "svg": svg}}), name="mine")


def test_json_faults_name_the_line_or_the_member() -> None:
    for text, sentence in (
        ('{\n"a": 1,\n}', "line 3, column 1: this is not JSON"),
        ('{"a": 1, "a": 2}', 'the member "a" occurs twice'),
        ("[]", "one JSON object"),
        ('{"a": NaN}', "NaN is not a number"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"a": ' + "1" * 5000 + "}", "too many digits"),
    ):
        with pytest.raises(ConfigurationError, match=sentence):
            parse_json(text)


def test_a_csv_file_is_a_pack() -> None:
    text = "\ufeffcode, name,colour,count\r\nRot +2,Rot plus zwei,#b3202c,2\r\n\r\n红中,red,,\r\n"
    found = read(parse_csv(text, name="my-own"), name="my-own")
    assert found["title"] == "My own"
    assert found["deck"] == ["1.1", "1.2", "2.1"]
    assert found["cards"]["1"] == {"code": "Rot +2", "name": "Rot plus zwei", "colour": "#b3202c"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "line 1: the header must have code and name"),
        ("code,text\n", "line 1: the header must have code and name"),
        ("\n\ncode;text\n", "line 3: the header must have code and name"),
        ("code,name,name\n", "line 1: the header must have code and name, and no column twice"),
        ("code,name,color\n", "line 1: unknown column 'color'; did you mean colour?"),
        ("code;name;Counts\n", "line 1: unknown column 'Counts'; did you mean count?"),
        ("code\tname\tSuit\n", "line 1: unknown column 'Suit'; only a pack in JSON has suits"),
        ("code,name,Anzahl\na,b,\nc,d,2\n", "line 3: unknown column 'Anzahl' with '2'. Call it"),
        ("code;name;Anzahl\na;b;2,0\n", "line 2: unknown column 'Anzahl' with '2,0'"),
        ("code,name,Farbe\na,b,#b3202c\n", "line 2: unknown column 'Farbe' with '#b3202c'"),
        ("code,name,Notizen\na,b,=A1\n", "line 2: unknown column 'Notizen' with '=A1'"),
        ("code,name\na,b\nc\n", "line 3: 1 cell, but the header has 2"),
        ("code,name\na,b\nc,\n", "line 3: name is empty"),
        ("code,name\na,b,c\n", "line 2: 3 cells, but the header has 2"),
        ("code,,name\na,x,b\n", "line 2: column 2 has no name in the header, but 'x'"),
        ('code,name\na,"=""x"""\n', "line 2: name is the formula '=\"x\"': save the values"),
        ("code,name,count\na,b,1.000\n", "line 2: count must be a whole number, like 2"),
        ("code,name,count\na,b,1.5\n", "line 2: count must be a whole number"),
        ("sep=|\ncode|name\n", r"line 1: sep=\|: separate cells by commas, semicolons or tabs"),
        ('code;name\ra;"b\r\rc"\r\rd;"e', "line 6: this is not CSV"),
        ("code,name\na,b\na,c\n", "line 3: the code 'a' occurs twice; use count"),
        ("code,name\n,b\n", "line 2: code is empty"),
        ("code,name,count\na,b,two\n", "line 2: count must be a whole number"),
        ('code,name\na,"b"c\n', "line 2: this is not CSV"),
    ],
)
def test_a_fault_of_a_csv_file_names_its_line(text: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        parse_csv(text, name="mine")
