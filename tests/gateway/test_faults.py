"""Requests that cannot be decoded are answered with a sentence in plain words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dealer.gateway.session.methods import METHODS
from dealer.gateway.wire import protocol as wire

READER = wire.Reader({name: method.params for name, method in METHODS.items()})
TABLE = "a" * 32


def answer(text: bytes | str) -> str:
    read = READER.read(text.encode() if isinstance(text, str) else text)
    assert isinstance(read, wire.Fault)
    return read.message


@pytest.mark.parametrize(
    ("method", "params", "sentence"),
    [
        ("table.opn", {}, "There is no such method. Did you mean table.join or table.open?"),
        ("draw", {}, "There is no such method. Did you mean deck.draw or pile.draw?"),
        ("dek.shufle", {}, "There is no such method. rpc.discover lists the methods."),
        ("x" * 999, {}, "There is no such method. rpc.discover lists the methods."),
        ("table.join", {"table": 5, "name": "x"}, "table must be a text, not a whole number."),
        ("table.join", {}, "The parameters have no member name, ticket or jwt, which is needed."),
        ("deck.draw", {"count": "1"}, "count must be a whole number, not a text."),
        ("deck.draw", {"count": 0}, "count must be at least 1."),
        ("deck.draw", {"count": 9999}, "count must be at most 1024."),
        (
            "deck.draw",
            {"count": 1.5},
            "count must be a whole number, not a number with a fraction.",
        ),
        (
            "deck.draw",
            {"from": "side"},
            'from must be "bottom", "random" or "top", not \'side\'.',
        ),
        (
            "deck.draw",
            {"cont": 1},
            'The parameters have the unknown member "cont"; did you mean count?',
        ),
        (
            "ping",
            {"a\n": 1},
            'The parameters have the unknown member "a\\n".',
        ),
        (
            "deck.draw",
            {"sideways": 1},
            'The parameters have the unknown member "sideways"; there are table, token, cmd, '
            "expect, count, from.",
        ),
        ("table.open", {"rules": []}, "rules must be an object, not a list."),
        (
            "table.open",
            {"deck": 5},
            "deck must be a text, an object or a list, not a whole number.",
        ),
        ("table.open", {"deck": ["As", "x" * 17]}, "deck[1] must have at most 16 characters."),
        ("table.open", {"ref": ""}, "ref must have at least 1 character."),
        ("table.open", {"cmd": "a\0"}, "cmd must be a text without U+0000."),
        ("hand.play", {"cards": []}, "cards must have at least 1 member."),
        (
            "entropy.commit",
            {"table": TABLE, "round": 1, "k": 0, "digest": "F" * 64},
            "digest must be 64 hex digits in lower case.",
        ),
        (
            "deck.deal",
            {"piles": [{"name": 1}]},
            "piles[0].name must be a text, not a whole number.",
        ),
        (
            "deck.deal",
            {"piles": [{"nam": "x"}]},
            'piles[0] has the unknown member "nam"; did you mean name?',
        ),
        (
            "deck.deal",
            {"piles": [{"name": "x", "face": "side"}]},
            'piles[0].face must be "down" or "up", not \'side\'.',
        ),
        ("session.hello", {"tokens": [{}]}, "tokens[0] has no member table, which is needed."),
    ],
)
def test_a_parameter_that_is_refused(method: str, params: dict[str, Any], sentence: str) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    assert answer(json.dumps(request)) == sentence


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        ("5", "The request must be an object, not a whole number."),
        ("{}", "The request has no member jsonrpc, which is needed."),
        ('{"jsonrpc":"1.0","method":"ping"}', "jsonrpc must be \"2.0\", not '1.0'."),
        ('{"jsonrpc":"2.0","method":5}', "method must be a text, not a whole number."),
        (
            '{"jsonrpc":"2.0","method":"ping","parms":{}}',
            'The request has the unknown member "parms"; did you mean params?',
        ),
        (
            '{"jsonrpc":"2.0","method":"ping","params":[]}',
            "The parameters must be an object, not a list.",
        ),
        ("[]", "Batches are not accepted: send each request on its own."),
    ],
)
def test_a_request_that_is_refused(request_: str, sentence: str) -> None:
    assert answer(request_) == sentence


@pytest.mark.parametrize("name", sorted(METHODS))
@pytest.mark.parametrize(
    "value", [None, True, 5, -1, 1.5, "", "x" * 99_999, [], [[]], {}, {"a": 1}]
)
def test_no_word_of_the_decoder_is_left(name: str, value: Any) -> None:
    """Whatever type is given for whichever parameter."""
    fields = METHODS[name].params.__struct_encode_fields__
    for field in fields:
        request = {"jsonrpc": "2.0", "id": 1, "method": name, "params": {field: value}}
        read = READER.read(json.dumps(request).encode())
        if isinstance(read, wire.Fault):
            for word in ("str", "int", "array", "regex", "enum", "Expected", "expected", "`"):
                assert word not in read.message.replace(field, "").split(), read.message
