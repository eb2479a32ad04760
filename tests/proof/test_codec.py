"""The codec: one byte representation for each event, and old schemas stay readable.

`vectors/events.jsonl` is the corpus: one stored example, at least, of every type and schema. A line
is added when a type gets a new schema, and no line is ever changed. The types with an opened part
begin with schema 2: their first one, with names in the leaf, was never published.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.errors import UnknownEvent
from dealer.game import events
from dealer.proof import canonical, codec
from dealer.proof.verify.form import PUBLIC
from dealer.proof.verify.replay import EVENTS

CORPUS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "vectors/events.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("stored", CORPUS, ids=lambda stored: stored["public"][:60])
def test_stored_events_are_decoded_unchanged(stored: dict[str, Any]) -> None:
    hidden = json.loads(stored["hidden"] or "{}")
    if stored["type"] == "CardPeeked":
        hidden = {"card": "X1"}
    event = codec.decode(stored["type"], stored["v"], json.loads(stored["public"]), hidden)
    assert event == eval(stored["event"], vars(events))


@pytest.mark.parametrize("stored", CORPUS, ids=lambda stored: stored["public"][:60])
def test_decoded_events_are_encoded_unchanged(stored: dict[str, Any]) -> None:
    hidden = json.loads(stored["hidden"] or "{}")
    event = codec.decode(stored["type"], stored["v"], json.loads(stored["public"]), hidden)
    assert codec.encode_public(event) == stored["public"]
    assert (codec.encode_hidden(event) or "") == stored["hidden"]
    assert canonical.encode(json.loads(stored["public"])).decode() == stored["public"]


def test_the_corpus_has_every_type_and_schema() -> None:
    stored = {(line["type"], line["v"]) for line in CORPUS}
    assert stored == {
        (kind.__name__, v)
        for kind in get_args(events.Event)
        for v in range(1 + bool(kind.OPENED), codec.SCHEMAS[kind.__name__] + 1)
    }


def test_upcasters_lead_from_every_old_schema_to_the_newest() -> None:
    wanted = {
        (name, v)
        for name, newest in codec.SCHEMAS.items()
        for v in range(1 + (name in events.OPENED_TYPES), newest)
    }
    assert set(codec.UPCASTERS) == wanted


def test_an_old_schema_is_upcast_and_its_stored_part_unchanged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(codec.SCHEMAS, "SeatLeft", 3)
    upcasters = {
        ("SeatLeft", 1): lambda public: public | {"chair": public["place"]},
        ("SeatLeft", 2): lambda public: {"seat": public["chair"]},
    }
    monkeypatch.setattr(codec, "UPCASTERS", upcasters)
    stored = {"place": 7}
    assert codec.decode("SeatLeft", 1, stored, {}) == events.SeatLeft(7)
    assert stored == {"place": 7}


def test_the_verifier_has_a_form_and_a_rule_for_every_type() -> None:
    assert set(PUBLIC) == set(EVENTS) == set(events.TYPES)


@pytest.mark.parametrize(
    ("kind", "v", "public"),
    [
        ("CardBurnt", 1, {}),
        ("SeatLeft", 2, {"seat": 1}),
        ("SeatLeft", 0, {"seat": 1}),
        ("SeatLeft", 1, {}),
        ("RoundClosed", 1, {"round": 1, "secret": "no hex"}),
        ("DeckSealed", 1, {"round": 1, "k": 0, "first": 0, "slots": 7}),
    ],
)
def test_unknown_events_are_rejected(kind: str, v: int, public: dict[str, Any]) -> None:
    with pytest.raises(UnknownEvent):
        codec.decode(kind, v, public, {})


NUMBERS = st.integers(min_value=0, max_value=2**32 - 1)
PILES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=32)
SWAPS = st.builds(events.CardsSwapped, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS)
DRAWS = st.builds(
    events.CardDrawn, NUMBERS, NUMBERS, PILES.map("pile:{}".format), NUMBERS, st.none()
)


@given(SWAPS | DRAWS)
def test_the_fast_encoder_agrees_with_the_canonical_one(event: events.Event) -> None:
    written = codec.encode_public(event)
    assert written.encode() == canonical.encode(codec.public(event))
    hidden = json.loads(codec.encode_hidden(event) or "{}")
    assert codec.decode(type(event).__name__, 1, json.loads(written), hidden) == event


@given(NUMBERS, NUMBERS, st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=5))
def test_the_swaps_of_a_shuffle_are_encoded_as_single_events(
    round_: int, k: int, steps: list[tuple[int, int, int]]
) -> None:
    swaps = [events.CardsSwapped(round_, k, *step) for step in steps]
    publics, hidden = codec.encode_swaps(swaps)
    assert publics == [codec.encode_public(swap) for swap in swaps]
    assert hidden == [codec.encode_hidden(swap) for swap in swaps]


@given(st.data())
def test_a_leaf_is_canonical(data: st.DataObject) -> None:
    stored = data.draw(st.sampled_from(CORPUS))
    members = {
        "at": data.draw(st.integers(0, 2**53 - 1)),
        "public": json.loads(stored["public"]),
        "table": data.draw(st.binary(min_size=16, max_size=16)).hex(),
        "type": stored["type"],
        "v": 1,
        "version": data.draw(st.integers(1, 2**53 - 1)),
    }
    commit = data.draw(st.none() | st.binary(min_size=32, max_size=32).map(bytes.hex))
    leaf = codec.leaf(**(members | {"public": stored["public"], "commit": commit}))
    committed = {} if commit is None else {"commit": commit}
    assert leaf.encode() == canonical.encode(members | committed)


def test_an_event_is_decoded_without_its_hidden_part() -> None:
    swap = codec.decode("CardsSwapped", 1, {"i": 5, "k": 0, "round": 1, "step": 0}, {})
    assert swap == events.CardsSwapped(1, 0, 0, 5, None)
    assert codec.encode_hidden(swap) is None
    assert dataclasses.replace(swap, j=3) != swap
