"""Frames on the wire: read into typed requests or answered with an error, and written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.game.state import SeatHolder
from dealer.game.view import SPECTATOR
from dealer.gateway.session.methods import METHODS
from dealer.gateway.wire import protocol as wire
from dealer.gateway.wire.protocol import event_frame
from dealer.service import EventRecord

READER = wire.Reader({name: method.params for name, method in METHODS.items()})


def frame(method: str = "deck.draw", /, *, id: Any = 1, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


def test_a_request_becomes_typed_parameters() -> None:
    call = READER.read(frame(count=2, **{"from": "bottom"}))
    assert isinstance(call, wire.Call)
    assert (call.id, call.method) == (b"1", "deck.draw")
    assert (call.params.count, call.params.source) == (2, "bottom")


@pytest.mark.parametrize("id", ['"a\\u00e9"', "0", "-7", "null", '""'])
def test_an_id_is_returned_byte_for_byte(id: str) -> None:
    call = READER.read(b'{"jsonrpc":"2.0","method":"ping","id": %b }' % id.encode())
    assert isinstance(call, wire.Call)
    assert call.id == id.encode()


def test_a_request_without_an_id_has_none() -> None:
    call = READER.read(b'{"jsonrpc":"2.0","method":"ping"}')
    assert isinstance(call, wire.Call)
    assert call.id is None
    fault = READER.read(b'{"jsonrpc":"2.0","method":"deck.steal"}')
    assert isinstance(fault, wire.Fault)
    assert fault.id is None


DEEP = b"[" * 6000 + b"]" * 6000

UNREADABLE = [
    (b"", wire.ErrorCode.PARSE_ERROR, b"null"),
    (b"{", wire.ErrorCode.PARSE_ERROR, b"null"),
    (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":}}',
        wire.ErrorCode.PARSE_ERROR,
        b"null",
    ),
    (b'{"jsonrpc":"2.0","id":1,"method":"p\xffng"}', wire.ErrorCode.PARSE_ERROR, b"null"),
    (b'{"jsonrpc":"2.0","id":"\xed\xa0\x80","method":"ping"}', wire.ErrorCode.PARSE_ERROR, b"null"),
    (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', wire.ErrorCode.PARSE_ERROR, b"null"),
    (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800x"}', wire.ErrorCode.PARSE_ERROR, b"null"),
    (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + DEEP + b"}",
        wire.ErrorCode.INVALID_REQUEST,
        b"1",
    ),
    (b"\xef\xbb\xbf{}", wire.ErrorCode.PARSE_ERROR, b"null"),
    (b"[]", wire.ErrorCode.INVALID_REQUEST, b"null"),
    (b"[" + frame() + b"]", wire.ErrorCode.INVALID_REQUEST, b"null"),
    (b"7", wire.ErrorCode.INVALID_REQUEST, b"null"),
    (b'"ping"', wire.ErrorCode.INVALID_REQUEST, b"null"),
    (b"{}", wire.ErrorCode.INVALID_REQUEST, b"null"),
    (b'{"jsonrpc":"1.0","id":3,"method":"ping"}', wire.ErrorCode.INVALID_REQUEST, b"3"),
    (b'{"jsonrpc":"2.0","id":3}', wire.ErrorCode.INVALID_REQUEST, b"3"),
    (b'{"jsonrpc":"2.0","id":3,"method":7}', wire.ErrorCode.INVALID_REQUEST, b"3"),
    (b'{"jsonrpc":"2.0","id":3,"method":"ping","more":1}', wire.ErrorCode.INVALID_REQUEST, b"3"),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', wire.ErrorCode.INVALID_REQUEST, b"null"),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', wire.ErrorCode.INVALID_REQUEST, b"null"),
    (b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', wire.ErrorCode.INVALID_REQUEST, b"null"),
    (b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', wire.ErrorCode.INVALID_REQUEST, b"null"),
    (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}',
        wire.ErrorCode.INVALID_REQUEST,
        b"1",
    ),
    (frame("deck.steal"), wire.ErrorCode.UNKNOWN_METHOD, b"1"),
]


@pytest.mark.parametrize(("data", "code", "id"), UNREADABLE)
def test_an_unreadable_frame_is_answered_with_an_error(data: bytes, code: int, id: bytes) -> None:
    fault = READER.read(data)
    assert isinstance(fault, wire.Fault)
    assert (fault.code, fault.id) == (code, id)
    assert fault.message.endswith((".", "?"))


@pytest.mark.parametrize("depth", [255, 300, 500, 990, 1_000, 2_000, 8_000])
@pytest.mark.parametrize(
    ("begin", "end"),
    [(b'{"a":', b"}"), (b"[", b"]"), (b'[{"\\"[":"]","a":[', b"]}]")],
)
@pytest.mark.parametrize("method", [b"table.open", b"deck.draw", b"deck.steal"])
def test_no_request_is_read_that_is_nested_too_deeply(
    depth: int, begin: bytes, end: bytes, method: bytes
) -> None:
    """The same sentence at any depth, with the id of the request."""
    within = begin * depth + b"1" + end * depth
    data = b'{"jsonrpc":"2.0","method":"%b","params":{"rules":%b},"id":"[7"}' % (method, within)
    fault = READER.read(data)
    assert isinstance(fault, wire.Fault)
    assert fault.message == "Arrays and objects are nested more than 256 deep."
    assert (fault.code, fault.id) == (wire.ErrorCode.INVALID_REQUEST, b'"[7"')


def test_the_brackets_of_texts_do_not_count() -> None:
    call = READER.read(frame("table.open", rules={"x_note": "[{" * 4_000 + '\\"[' * 9}))
    assert isinstance(call, wire.Call)
    unended = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"' + b'\\"[' * 5_000
    assert READER.read(unended) == wire.Fault(
        b"null", wire.ErrorCode.PARSE_ERROR, "This is not JSON in UTF-8."
    )


@pytest.mark.parametrize(
    ("params", "field"),
    [
        (b"[1]", "The parameters"),
        (b"null", "The parameters"),
        (b'{"count":"2"}', "count"),
        (b'{"count":0}', "count"),
        (b'{"count":1025}', "count"),
        (b'{"count":1.0}', "count"),
        (b'{"count":1e400}', "count"),
        (b'{"count":99999999999999999999999999}', "count"),
        (b'{"count":null}', "count"),
        (b'{"from":"middle"}', "from"),
        (b'{"cuont":2}', "cuont"),
        (b'{"cmd":"%b"}' % (b"x" * 65), "cmd"),
        (b'{"cmd":""}', "cmd"),
        (b'{"expect":-1}', "expect"),
    ],
)
def test_a_wrong_parameter_is_named(params: bytes, field: str) -> None:
    fault = READER.read(b'{"jsonrpc":"2.0","id":9,"method":"deck.draw","params":' + params + b"}")
    assert isinstance(fault, wire.Fault)
    assert (fault.code, fault.id) == (wire.ErrorCode.INVALID_PARAMS, b"9")
    assert field in fault.message


@pytest.mark.parametrize(
    ("method", "params", "choices"),
    [
        ("table.open", b'{"deck":"53"}', 'deck must be "52" or "54", not '),
        (
            "round.open",
            b'{"cmd":"x","table":"x","entropy":"nobody"}',
            'entropy must be "house" or "players", not ',
        ),
    ],
)
def test_a_value_that_is_none_of_the_allowed_is_answered_with_these(
    method: str, params: bytes, choices: str
) -> None:
    fault = READER.read(
        b'{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}' % (method.encode(), params)
    )
    assert isinstance(fault, wire.Fault)
    assert fault.message.startswith(choices)


@pytest.mark.parametrize(
    "params",
    [b'{"count":1,"count":2}', b'{"count":1,"co\\u0075nt":2}', b'{"count":1, "count" :1}'],
)
def test_a_repeated_member_is_refused(params: bytes) -> None:
    fault = READER.read(b'{"jsonrpc":"2.0","id":9,"method":"deck.draw","params":' + params + b"}")
    assert isinstance(fault, wire.Fault)
    assert fault.code == wire.ErrorCode.INVALID_REQUEST


MEMBERS = {
    "table": '"a:b"',
    "token": '"{"',
    "cmd": '"\\""',
    "expect": "7",
    "count": "1",
    "from": '"top"',
}


@given(st.lists(st.sampled_from(sorted(MEMBERS)), max_size=5), st.sampled_from(["", " ", "\t\n"]))
def test_members_are_repeated_or_not(names: list[str], space: str) -> None:
    """With any content of strings, and with white space at any place."""
    members = ",".join(f'"{name}"{space}:{space}{MEMBERS[name]}' for name in names)
    text = f'{{"jsonrpc":"2.0","id"{space}:9,"method":"deck.draw","params":{{{members}}}}}'
    repeated = len(set(names)) < len(names)
    assert isinstance(READER.read(text.encode()), wire.Fault) == repeated


def test_a_name_may_be_in_several_objects() -> None:
    tokens = [{"table": "a", "token": "t"}, {"table": "b", "token": "t"}]
    assert isinstance(READER.read(frame("session.hello", tokens=tokens)), wire.Call)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(
    st.binary(max_size=80)
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.tuples(st.sampled_from(sorted(METHODS)), JSON, JSON).map(
        lambda parts: json.dumps(
            {"jsonrpc": "2.0", "method": parts[0], "id": parts[1], "params": parts[2]}
        ).encode()
    )
)
def test_no_frame_breaks_the_reader(data: bytes) -> None:
    found = READER.read(data)
    if isinstance(found, wire.Fault) and found.id is not None:
        answer = json.loads(wire.fault(found.id, found.code, found.message))
        assert set(answer) == {"jsonrpc", "id", "error"}


@given(st.sampled_from(sorted(METHODS)), st.dictionaries(st.text(max_size=8), JSON, max_size=3))
def test_no_parameters_break_the_reader(method: str, params: dict[str, Any]) -> None:
    found = READER.read(frame(method, **{"table": "x"} | params))
    assert isinstance(found, wire.Call) or found.code < 0


def content(**params: Any) -> bytes:
    call = READER.read(frame(**params))
    assert isinstance(call, wire.Call)
    return wire.content(call)


def test_content_is_without_table_token_and_ids() -> None:
    first = content(table="a", cmd="1", token="t", count=1)
    assert first == content(cmd="2") != content(count=2)


LEAF = '{"at":1,"public":{"n":"é"},"table":"t","type":"T","v":1,"version":5}'


def text_of(frame: bytes) -> str:
    """The text of a frame, after its head."""
    return frame[4 if frame[1] == 126 else 2 :].decode()


def test_an_event_frame_is_the_leaf_unchanged() -> None:
    entry = EventRecord(
        5, "CardDrawn", 1, 0, "", leaf=LEAF, seat=2, private='{"card":"As","salt":"00","slot":1}'
    )
    head = '{"jsonrpc":"2.0","method":"event","params":'
    assert text_of(event_frame([entry], SPECTATOR)) == head + LEAF + "}"
    assert text_of(event_frame([entry], SeatHolder(1, 0))) == head + LEAF + "}"
    assert text_of(event_frame([entry], SeatHolder(2, 5))) == head + LEAF + "}"
    own = LEAF[:-1] + ',"private":{"card":"As","salt":"00","slot":1}}'
    assert text_of(event_frame([entry], SeatHolder(2, 4))) == head + own + "}"


def test_an_append_of_several_events_is_one_frame() -> None:
    entries = [EventRecord(n, "CardDrawn", 1, 0, "", leaf=LEAF) for n in (5, 6)]
    expected = f'{{"jsonrpc":"2.0","method":"events","params":{{"list":[{LEAF},{LEAF}]}}}}'
    assert text_of(event_frame(entries, SPECTATOR)) == expected


@pytest.mark.parametrize(
    ("length", "head"),
    [
        (0, b"\x81\x00"),
        (125, b"\x81\x7d"),
        (126, b"\x81\x7e\x00\x7e"),
        (65535, b"\x81\x7e\xff\xff"),
        (65536, b"\x81\x7f" + (65536).to_bytes(8, "big")),
    ],
)
def test_the_header_of_a_text_frame_is_that_of_rfc_6455(length: int, head: bytes) -> None:
    assert wire.text_frame(b"x" * length) == head + b"x" * length
