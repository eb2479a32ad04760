"""Canonical JSON: every deviation from the canonical form is rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.errors import NotCanonical
from dealer.proof.canonical import DEPTH_MAX, INTEGER_MAX, decode, encode
from tests.proof.log_builder import ids, vectors

text = st.text(st.characters(exclude_categories=("Cs", "Cc"))).filter(
    lambda s: not any(ord(c) < 0x20 or ord(c) == 0x7F for c in s)
)
keys = st.from_regex("[a-z][a-z0-9_]*", fullmatch=True)
values = st.recursive(
    st.booleans() | st.integers(0, INTEGER_MAX) | text,
    lambda inner: st.lists(inner) | st.dictionaries(keys, inner),
    max_leaves=12,
)


@pytest.mark.parametrize("vector", vectors("canonical"), ids=ids)
def test_vectors(vector: dict[str, Any]) -> None:
    source, ok = vector["in"]["text"], vector["out"]["ok"]
    if ok:
        assert encode(decode(source)) == source.encode()
        return
    with pytest.raises(NotCanonical):
        decode(source)


@given(values)
def test_encoded_values_are_decoded_unchanged(value: object) -> None:
    written = encode(value)
    assert decode(written) == decode(written.decode()) == value
    assert json.loads(written) == value


@given(values, st.data())
def test_each_value_has_one_text(value: object, data: st.DataObject) -> None:
    written = encode(value).decode()
    at = data.draw(st.integers(0, len(written)))
    changed = written[:at] + data.draw(st.sampled_from(' \n\t0"\\,')) + written[at:]
    try:
        read = decode(changed)
    except NotCanonical:
        return
    assert encode(read).decode() == changed


@pytest.mark.parametrize(
    "value",
    [
        None,
        1.0,
        -1,
        2**53,
        float("nan"),
        "\x00",
        "\x1f",
        "\x7f",
        "\n",
        "\ud800",
        b"",
        {1: 2},
        {"A": 1},
        {"": 1},
        {"_a": 1},
        {"1a": 1},
        {"é": 1},
        {"a\n": 1},
        {"a": [{"b": None}]},
        {1, 2},
    ],
)
def test_values_without_a_canonical_form_are_refused(value: object) -> None:
    with pytest.raises(NotCanonical):
        encode(value)


@pytest.mark.parametrize(
    "source",
    [
        "",
        " 1",
        "1 ",
        "01",
        "+1",
        "-1",
        "1e2",
        "1E2",
        "1.5",
        "NaN",
        "Infinity",
        "-Infinity",
        "null",
        "9007199254740992",
        "1" * 5000,
        '"\\/"',
        '"\\t"',
        '"\\n"',
        '"\\u0001"',
        '"\t"',
        '"\x7f"',
        '"\\u0022"',
        '"\\ud83c\\udca1"',
        '{"b":1,"a":2}',
        '{"a":1,"a":1}',
        '{"a":1,"a":2}',
        '{"a": 1}',
        "[1, 2]",
        "[1,]",
        "{'a':1}",
        '{"a":1}{',
        "\ufeff1",
        '{"A":1}',
        '{"a-b":1}',
        '"\ud800"',
        "[1",
    ],
)
def test_texts_that_are_not_canonical_are_rejected(source: str) -> None:
    with pytest.raises(NotCanonical):
        decode(source)


@pytest.mark.parametrize("source", [b"\xff", b'"\xed\xa0\x80"', b'"\xc0\xaf"', b"\xef\xbb\xbf1"])
def test_bytes_that_are_not_utf_8_are_rejected(source: bytes) -> None:
    with pytest.raises(NotCanonical):
        decode(source)


def test_true_is_not_one() -> None:
    assert encode(True) == b"true"
    assert encode(1) == b"1"
    assert decode("true") is True


def test_nothing_is_normalised() -> None:
    assert encode("e\u0301\u2028\U0001f0a1") == '"e\u0301\u2028\U0001f0a1"'.encode()


@pytest.mark.parametrize("depth", [DEPTH_MAX + 1, 1_000_000])
def test_deep_nesting_is_rejected_before_the_stack_overflows(depth: int) -> None:
    with pytest.raises(NotCanonical, match="deep"):
        decode("[" * depth + "]" * depth)
    with pytest.raises(NotCanonical):
        decode('{"a":' * depth)


def test_limited_nesting_is_allowed() -> None:
    deep = "[" * DEPTH_MAX + "]" * DEPTH_MAX
    assert encode(decode(deep)).decode() == deep
    wide = f"[{','.join(['[]'] * 1000)}]"
    assert encode(decode(wide)).decode() == wide
    brackets = f'["{"[" * 1000}"]'
    assert encode(decode(brackets)).decode() == brackets


def test_a_cycle_is_refused() -> None:
    cycle: list[object] = []
    cycle.append(cycle)
    with pytest.raises(NotCanonical):
        encode(cycle)


def test_newlines_are_accepted_only_on_request() -> None:
    assert decode('"a\\nb"', newlines=True) == "a\nb"
    for source in ('"a\\tb"', '"a\nb"', '"a\\u000ab"', '{"a\\n":1}'):
        with pytest.raises(NotCanonical):
            decode(source, newlines=True)
