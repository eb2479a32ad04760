"""The stored form of rows: exact for every event and every text, and the same in SQL."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.errors import DatabaseDamaged
from dealer.eventlog import Append, Appended, EventRecord
from dealer.eventlog.stored_form import (
    KINDS,
    decode,
    decode_command,
    encode,
    stored_command,
    stored_text,
)
from dealer.game.events import TYPES
from dealer.proof.canonical import dump
from dealer.proof.codec import SCHEMAS, members
from tests.eventlog.conftest import TemporaryDatabase
from tests.eventlog.requests import A

CARD_NAMES = st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1)
HEX = st.binary(min_size=32, max_size=32).map(bytes.hex)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | CARD_NAMES,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(CARD_NAMES, values, max_size=3),
    max_leaves=6,
)
BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    "slots": st.lists(HEX, max_size=5),
    "deck": st.lists(CARD_NAMES, max_size=5),
    "rules": st.dictionaries(CARD_NAMES, VALUES, max_size=3),
}
TEXTS = {"from", "to", "card", "stack", "algorithm", "entropy", "name", "origin"}
BYTES = {"key", "commitment", "digest", "nonce", "salt", "secret"}
COMMANDS = st.one_of(
    st.none(),
    st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"]), max_size=20),
    st.tuples(st.sampled_from(["seat:1:2", "seat:", "host:1", "a/b", "é", ""]), st.uuids()).map(
        lambda pair: f"{pair[0]}/{pair[1]}"
    ),
    st.uuids().map(lambda one: f"1/{one}".upper()),
    st.uuids().map(lambda one: f"1/{one}/draw"),
)


def value_of(name: str) -> st.SearchStrategy[Any]:
    if name in TEXTS:
        return CARD_NAMES | st.sampled_from(["deck", "hand:1", 'a"b', "a,b", "a\\b", "é", ""])
    return BY_NAME.get(name, HEX if name in BYTES else NUMBERS)


def public_of(kind: str) -> st.SearchStrategy[str]:
    names = [name for name, _ in members(TYPES[kind])]
    return st.fixed_dictionaries({name: value_of(name) for name in names}).map(dump)


PUBLIC = st.sampled_from(sorted(TYPES)).flatmap(
    lambda kind: st.tuples(st.just(kind), public_of(kind))
)
ANYTHING = st.tuples(
    st.sampled_from([*TYPES, *KINDS, "CardsBurnt", ""]),
    st.dictionaries(CARD_NAMES, VALUES, max_size=4).map(dump),
)


@given(
    PUBLIC | ANYTHING, st.integers(1, 9), st.none() | st.binary(max_size=70), COMMANDS, st.data()
)
def test_every_row_is_made_again_exactly(
    kind: tuple[str, str], schema: int, hidden: bytes | None, command: str | None, data: Any
) -> None:
    digest = None if command is None else data.draw(packed_digests())
    row = EventRecord(7, kind[0], schema, 2**41, kind[1], None, hidden, command, digest)
    assert EventRecord(*decode(encode(row))) == row


def packed_digests() -> st.SearchStrategy[bytes]:
    counts = st.sampled_from([1, 54, 255, 256, 2**31])
    return st.tuples(st.binary(min_size=16, max_size=16), counts).map(
        lambda pair: pair[0] + pair[1].to_bytes(4)
    )


@given(COMMANDS.filter(lambda command: command is not None))
def test_a_command_has_the_same_meaning_in_the_text_column(command: str) -> None:
    assert decode_command(stored_command(command), None) == (command, None)
    if isinstance(stored_command(command), bytes):
        assert decode_command(stored_text(command), None) == (command, None)
    else:
        assert stored_text(command) == command


def test_the_stored_form_is_short() -> None:
    name = f"seat:1:2/{uuid.uuid4()}"
    drawn = EventRecord(
        58, "CardDrawn", 1, 0, '{"from":"deck","round":1,"seat":1,"slot":51}', b"c" * 32,
        b"h" * 44, name, b"d" * 16 + (1).to_bytes(4),
    )  # fmt: skip
    stored = encode(drawn)
    assert stored[1:5] == ("D", 1, 0, '["deck",1,1,51]')
    assert isinstance(stored[7], bytes)
    assert (len(stored[7]), len(stored[8] or b"")) == (19, 17)
    slots = json.dumps(["ab" * 32] * 52, separators=(",", ":"))
    sealed = EventRecord(59, "DeckSealed", 1, 0, f'{{"first":0,"k":0,"round":1,"slots":{slots}}}')
    assert encode(sealed)[4:7] == ("[0,0,1]", None, b"\xab" * 32 * 52)


def test_a_list_under_the_code_of_a_type_is_no_event() -> None:
    with pytest.raises(ValueError, match="list"):
        encode(EventRecord(1, "D", 1, 0, "[1]"))


@pytest.mark.parametrize("public", ['["deck",1,1]', "[]", "["])
def test_a_damaged_row_is_reported(public: str) -> None:
    row = EventRecord(*decode((1, "D", 1, 0, public, None, None, None, None)))
    with pytest.raises(DatabaseDamaged, match="backup"):
        row.members()


def test_the_kinds_have_the_members_of_their_types() -> None:
    for name, fields in KINDS.values():
        assert SCHEMAS[name] == 1
        names = [member for member, _ in members(TYPES[name]) if member != "slots"]
        assert list(fields) == names


def examples() -> Iterator[EventRecord]:
    """Rows of every type."""
    values: dict[str, Any] = {"slots": ["ab" * 32, "cd" * 32], "deck": ["As", "Kd"], "rules": {}}
    version = 0
    for name, kind in TYPES.items():
        for text, scope in (("deck", "seat"), ('é"\\,', "host"), ("x,y", "seat:3")):
            public = {}
            for member, _ in members(kind):
                other = text if member in TEXTS else "ab" * 32 if member in BYTES else 17
                public[member] = values.get(member, other)
            version += 1
            digest = bytes(range(16)) + (100 * version).to_bytes(4)
            command = f"{scope}:{version}/{uuid.UUID(int=version << 100)}"
            hidden = None if name == "DeckSealed" else b"\x01\x02"
            yield EventRecord(version, name, 1, 5, dump(public), b"c" * 32, hidden, command, digest)
    yield EventRecord(version + 1, "Said", 1, 5, '{"i":1}', None, None, "~abcd", bytes(20))
    sealed = '{"first":0,"k":0,"round":1,"slots":[]}'
    yield EventRecord(version + 2, "DeckSealed", 1, 5, sealed, None, None, None, None)


async def test_the_view_has_the_rows_in_their_canonical_form(database: TemporaryDatabase) -> None:
    rows = list(examples())
    async with await database.open() as log:
        assert await log.append(Append(A, 0, rows)) == Appended(len(rows))
        assert await log.read(A) == rows
        for row in rows:
            if row.command is not None:
                assert await log.find_command(A, row.command) == row
    columns = "version, type, schema, at, public, commitment, hidden, command"
    shown = database.execute(f"SELECT {columns} FROM events ORDER BY version")
    assert [tuple(each) for each in shown] == [row.columns_as_read()[:8] for row in rows]
    short = database.execute("SELECT DISTINCT type FROM event WHERE length(type) = 1")
    assert {code for (code,) in short} == set(KINDS)
