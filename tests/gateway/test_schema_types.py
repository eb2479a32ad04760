"""The types in the documents: titles, descriptions, what is required, and unknown members."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft7Validator
from msgspec import Meta, Struct, field

from dealer.errors import BadRequest, NoRound, NotEntitled
from dealer.game.events import TYPES
from dealer.game.rules import ACTIONS, KNOWN, PRESETS
from dealer.gateway.schema import asyncapi, openrpc
from dealer.gateway.schema.json_schema import schemas
from dealer.gateway.session.methods import METHODS
from dealer.gateway.wire.types import REF
from dealer.service.tables.table_ids import check_rules

ASYNCAPI = json.loads(asyncapi())
OPENRPC = json.loads(openrpc())
SCHEMAS: dict[str, Any] = ASYNCAPI["components"]["schemas"]
HEADERS = ASYNCAPI["channels"]["house"]["bindings"]["ws"]["headers"]

LEFT_OUT = re.compile(r"may be (left out|omitted)|by default|optional")
FREE = ("Rules", "TableRules")
"""All of their members may be left out, and others are free."""

Schema = dict[str, Any]


def nested(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """A schema and all those in it, each with its path; references are not followed."""
    yield path, schema
    for name, one in schema.get("properties", {}).items():
        yield from nested(one, f"{path}.{name}")
    for name in ("items", "additionalProperties", "anyOf", "oneOf"):
        found = schema.get(name, [])
        for one in found if isinstance(found, list) else [found]:
            if isinstance(one, dict):
                yield from nested(one, f"{path}/{name}")


def every_schema() -> Iterator[tuple[str, Schema]]:
    for title, schema in SCHEMAS.items():
        yield from nested(schema, title)
    yield from nested(HEADERS, "headers")
    for method in OPENRPC["methods"]:
        for param in method["params"]:
            yield from nested(param["schema"], f"{method['name']}.{param['name']}")
        yield from nested(method["result"]["schema"], f"{method['name']}/result")


def objects() -> Iterator[tuple[str, Schema]]:
    return ((title, one) for title, one in SCHEMAS.items() if "properties" in one)


def form(schema: Schema) -> Schema:
    """What a schema accepts: everything but the description, and a member's default."""
    return {name: one for name, one in schema.items() if name not in ("description", "default")}


def reachable(titles: set[str]) -> set[str]:
    """These components and all that they refer to."""
    found: set[str] = set()
    while titles:
        title = titles.pop()
        found.add(title)
        texts = (one.get("$ref", "") for _, one in nested(SCHEMAS[title], title))
        titles |= {text.removeprefix(REF) for text in texts if text} - found
    return found


def test_every_schema_has_a_title_which_is_that_of_one_form():
    forms: dict[str, tuple[str, Schema]] = {}
    for path, schema in every_schema():
        if "$ref" in schema:
            assert schema["$ref"].removeprefix(REF) in SCHEMAS, path
            continue
        title = schema["title"]
        assert re.fullmatch(r"[A-Z][A-Za-z0-9]*[A-Za-z]", title), path
        where, known = forms.setdefault(title, (path, form(schema)))
        assert form(schema) == known, f"{title} of {path} is another than that of {where}"
    assert all(title == schema["title"] for title, schema in SCHEMAS.items())
    assert len({title.lower() for title in forms}) == len(forms)


def test_objects_enumerations_and_unions_are_components():
    for path, schema in every_schema():
        if path in SCHEMAS or path.startswith("headers"):
            continue
        kinds = [one for one in schema.get("anyOf", []) if one.get("type") != "null"]
        assert len(kinds) <= 1, path
        assert not {"properties", "enum", "oneOf", "allOf"} & set(schema), path
    assert OPENRPC["components"]["schemas"].keys() <= SCHEMAS.keys()


def test_an_event_is_one_of_its_types():
    event = OPENRPC["components"]["schemas"]["Event"]
    assert event["oneOf"] == [{"$ref": REF + name} for name in TYPES]
    mapping = {name: REF + name for name in TYPES}
    assert event["discriminator"] == {"propertyName": "type", "mapping": mapping}
    assert SCHEMAS["Event"] == event | {"discriminator": "type"}, "as AsyncAPI writes it"
    for name in TYPES:
        assert SCHEMAS[name]["properties"]["type"]["const"] == name
        assert "type" in SCHEMAS[name]["required"]


def test_clients_receive_unknown_members_and_send_none():
    payload = {
        name: message["payload"]["$ref"].removeprefix(REF)
        for name, message in ASYNCAPI["components"]["messages"].items()
    }
    asked = {title for name, title in payload.items() if name.endswith(".request")}
    sent, received = reachable(set(asked)), reachable(set(payload.values()) - asked)
    for title, schema in objects():
        if title in received:
            assert schema.get("additionalProperties", True) is True, title
        elif title in sent and title != "Rules":
            assert schema["additionalProperties"] is False, title
    assert "TableShoe" in received
    assert "Shoe" in sent - received


def test_every_component_and_every_member_has_a_description():
    for title, schema in SCHEMAS.items():
        assert schema["description"], title
    count = 0
    for path, schema in every_schema():
        for name, member in schema.get("properties", {}).items():
            assert member.get("description"), f"{path}.{name}"
            count += 1
    for method in OPENRPC["methods"]:
        for param in method["params"]:
            assert param.get("description"), (method["name"], param["name"])
    assert count > 600


def test_only_what_is_not_required_may_be_left_out():
    sent = {kind.params.__name__ for kind in METHODS.values()} | {"Shoe", "ResumeToken"}
    for title, schema in objects():
        for name, member in schema["properties"].items():
            said = LEFT_OUT.search(member["description"])
            if name in schema["required"]:
                assert not said, f"{title}.{name} is required"
                assert "default" not in member, f"{title}.{name}"
            elif title in sent:
                assert said or "default" in member, f"{title}.{name}: what if it is left out?"
    for method in OPENRPC["methods"]:
        schema = SCHEMAS[METHODS[method["name"]].params.__name__]
        required = {param["name"] for param in method["params"] if param["required"]}
        assert required == set(schema["required"])


Seat = Annotated[int, "number of the seat"]


class Undescribed(Struct):
    """A type of which one member has no description."""

    seat: Annotated[int, "number of the seat"]
    card: str


class UndescribedList(Struct):
    """A list of what has a description has none by that."""

    seats: list[Seat]


class Untitled(Struct):
    """A type of which one member has limits, and no title."""

    count: Annotated[int, Meta(ge=1), "how many"]


class Several(Struct):
    """Two choices with one title."""

    end: Annotated[Literal["top", "bottom"], Meta(title="End", description="Either."), "where"]
    face: Annotated[Literal["up", "down"], Meta(title="End", description="Either."), "how"]


def test_a_type_that_is_not_described_is_an_error():
    with pytest.raises(LookupError, match=r"Undescribed\.card"):
        schemas([Undescribed])
    with pytest.raises(LookupError, match=r"UndescribedList\.seats"):
        schemas([UndescribedList])
    with pytest.raises(LookupError, match="no title"):
        schemas([Untitled])
    with pytest.raises(ValueError, match="End is the title of two schemas"):
        schemas([Several])


class Place(Struct):
    """One place."""

    number: Annotated[Annotated[int, Meta(title="Number", ge=0)], "of a place"]


class Move(Struct):
    """Members with their own text, with that of their type, and with that of a type in a union."""

    seat: Seat
    to: Annotated[Seat, "the other seat"]
    partner: Seat | None = None
    places: Annotated[list[Place], "from the bottom"] = []
    third: Annotated[Seat | None, "a third seat"] = None
    source: Annotated[str, "where from"] = field(default="deck", name="from")


def test_a_member_has_the_description_beside_its_type():
    found = schemas([Move])
    assert set(found) == {"Move", "Place"}, "with the types in it"
    said = {name: one["description"] for name, one in found["Move"]["properties"].items()}
    assert said == {
        "seat": "number of the seat",
        "to": "the other seat",
        "partner": "number of the seat",
        "places": "from the bottom",
        "third": "a third seat",
        "from": "where from",
    }
    assert found["Place"]["properties"]["number"] == {
        "title": "Number",
        "type": "integer",
        "minimum": 0,
        "description": "of a place",
    }
    assert found["Move"]["properties"]["partner"]["type"] == "integer", "without null"
    assert found["Move"]["properties"]["from"]["default"] == "deck"


def test_the_sentence_of_an_event_and_of_a_refusal_is_that_of_its_class():
    assert SCHEMAS["SeatLeft"]["description"] == "A player left the seat."
    public = SCHEMAS["NoteAddedPublic"]["properties"]
    assert public["seat"]["description"] == "number of the seat; 0 for the host or a service"
    errors = OPENRPC["components"]["errors"]
    assert errors["not_entitled"]["message"] == inspect.getdoc(NotEntitled), "not that of NotHost"
    assert errors["no_round"]["message"] == inspect.getdoc(NoRound)


def test_the_schema_of_rules_has_every_rule():
    rules = SCHEMAS["Rules"]["properties"]
    assert set(rules) == set(KNOWN)
    assert set(SCHEMAS["Preset"]["enum"]) == set(PRESETS)
    assert {name for name, one in rules.items() if one.get("$ref") == f"{REF}Permission"} == set(
        ACTIONS
    )
    assert set(SCHEMAS["TableRules"]["properties"]) == set(KNOWN)
    assert SCHEMAS["TableOpen"]["properties"]["rules"]["$ref"] == f"{REF}Rules"


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"preset": "dealer", "draw": "players", "collect": "nobody", "pass": "host"},
        {"seats": 100, "join": "invite", "watch": "nobody", "listed": False, "commit_ms": 100},
        {"name": "Friday", "pack": "spanish-40", "game": "Whist, as at home", "x_limit": 5},
        {"stakes": [1, 2], "player": "Ada"},
        {"preset": "casino"},
        {"draw": "dogs"},
        {"seats": 0},
        {"seats": 101},
        {"seats": "4"},
        {"join": "friends"},
        {"watch": True},
        {"listed": "yes"},
        {"commit_ms": 99},
        {"reveal_ms": 600_001},
        {"pack": "Spanish"},
        {"name": ""},
        {"name": 5},
    ],
)
def test_the_schema_of_rules_accepts_what_the_server_accepts(rules):
    schema = {"$ref": f"{REF}Rules", "components": ASYNCAPI["components"]}
    try:
        check_rules(rules)
        accepted = True
    except BadRequest:
        accepted = False
    assert Draft7Validator(schema).is_valid(rules) == accepted
