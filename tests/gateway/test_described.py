"""The documents for other people's programs: valid, and true of every frame of a whole game."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from dealer.gateway.commands import WISHES
from dealer.gateway.described import asyncapi, openrpc
from dealer.gateway.described.examples import examples
from dealer.gateway.described.openrpc import refusals_of
from dealer.gateway.described.schemas import METHODS, TOLD, codes, components, refusals
from dealer.gateway.described.words import CLOSES, EVENTS, MEMBERS, NOTIFICATIONS, REFUSALS
from dealer.gateway.described.words import METHODS as SUMMARIES
from dealer.gateway.questions import QUESTIONS
from dealer.proof.codec import TYPES
from tests.foreign.installed import missing
from tests.gateway.asking import get
from tests.gateway.played import Frame, Said, chosen, play

ROOT = Path(__file__).parents[2]
PARSERS = {"asyncapi": "@asyncapi/parser", "openrpc": "@open-rpc/schema-utils-js"}

ASYNCAPI = json.loads(asyncapi())
OPENRPC = json.loads(openrpc())
SERIOUS = ("0", "1")  # an error, a warning


def node_modules(package: str) -> str:
    """Where node finds a package; the checkout's `build` is a place for such."""
    places = [str(ROOT / "build/node_modules"), *os.environ.get("NODE_PATH", "").split(os.pathsep)]
    found = [place for place in places if place and (Path(place) / package).is_dir()]
    if shutil.which("node") is None:
        missing("node is not installed")
    if not found:
        missing(f"{package} is not installed (npm install --prefix build {package})")
    return found[0]


def faults(kind: str, document: Any) -> list[str]:
    """What the parser that others use finds wrong with a document."""
    done = subprocess.run(
        ["node", str(Path(__file__).with_name("validate.mjs")), kind],
        input=json.dumps(document),
        capture_output=True,
        check=True,
        encoding="utf-8",
        env=os.environ | {"NODE_PATH": node_modules(PARSERS[kind])},
    )
    said: list[str] = json.loads(done.stdout)
    return [one for one in said if kind == "openrpc" or one.startswith(SERIOUS)]


def test_asyncapis_own_parser_finds_nothing_wrong():
    assert faults("asyncapi", ASYNCAPI) == []
    wrong = deepcopy(ASYNCAPI)
    wrong["operations"]["ping"]["action"] = "answer"
    assert faults("asyncapi", wrong)


def test_openrpcs_own_validator_finds_nothing_wrong():
    assert faults("openrpc", OPENRPC) == []
    wrong = deepcopy(OPENRPC)
    del wrong["methods"][0]["params"]
    assert faults("openrpc", wrong)
    wrong = deepcopy(OPENRPC)
    wrong["methods"][0]["result"]["schema"] = {"$ref": "#/components/schemas/Nothing"}
    assert faults("openrpc", wrong), "references are followed, too"


async def test_the_documents_are_where_tools_look_for_them(gateway, arrive):
    for path, document in (("/openrpc.json", OPENRPC), ("/asyncapi.json", ASYNCAPI)):
        got = await get(gateway.port, path)
        assert got.headers["content-type"] == "application/json"
        assert got.headers["access-control-allow-origin"] == "*"
        assert json.loads(got.body) == document
    assert await (await arrive(gateway)).ask("rpc.discover") == OPENRPC


def test_every_method_is_described_and_nothing_else():
    methods = set(WISHES) | set(QUESTIONS)
    assert {method["name"] for method in OPENRPC["methods"]} == methods == set(SUMMARIES)
    asked = {name for name, one in ASYNCAPI["operations"].items() if one["action"] == "receive"}
    assert asked == methods
    told = {name for name, one in ASYNCAPI["operations"].items() if one["action"] == "send"}
    assert told == {f"tell.{name}" for name in NOTIFICATIONS}
    assert {one["name"] for one in OPENRPC["x-notifications"]} == set(NOTIFICATIONS)
    assert set(NOTIFICATIONS) == {"event", "events", *TOLD}


def test_everything_has_its_words():
    assert set(EVENTS) == set(TYPES)
    assert set(REFUSALS) == set(refusals())
    said = {one["code"]: one["meaning"] for one in OPENRPC["x-close-codes"]}
    assert said == CLOSES
    for method in OPENRPC["methods"]:
        for given in method["params"]:
            assert given.get("description"), (method["name"], given["name"])
    members = {name for one in components().values() for name in one.get("properties", {})}
    assert set(MEMBERS) <= members, "words for members that there are"


def test_every_code_with_which_the_house_closes_is_described():
    sources = (ROOT / "dealer/gateway").glob("*.py")
    lines = [line for source in sources for line in source.read_text("utf-8").splitlines()]
    named = {int(line.split(" = ")[1]) for line in lines if _is_close_code(line)}
    assert len(named) > 5
    assert named == set(CLOSES)


def _is_close_code(line: str) -> bool:
    name, _, value = line.partition(" = ")
    coded = name.isupper() and value.isdigit() and len(value) == 4
    return coded and (1000 < int(value) < 1016 or value[:2] in ("44", "45"))


def test_there_is_an_example_of_everything():
    assert set(examples()) == set(METHODS) | set(NOTIFICATIONS) | {"refusal"}
    for name, (frame, answer) in examples().items():
        kind = "refusal" if name == "refusal" else "result"
        if name in NOTIFICATIONS:
            assert is_described(name, frame)
        elif name == "refusal":
            assert is_described("refusal", answer)
        else:
            assert is_described(f"{name}.request", frame)
            assert is_described(f"{name}.{kind}", answer)


def is_described(message: str, frame: Any) -> bool:
    """Whether a frame is as the AsyncAPI document says of a message."""
    validator = validator_of(message)
    return validator is not None and validator.is_valid(frame)


@cache
def validator_of(message: str) -> Draft7Validator | None:
    if message not in ASYNCAPI["components"]["messages"]:
        return None
    schema = {"$ref": f"#/components/messages/{message}/payload"}
    return Draft7Validator(schema | {"components": ASYNCAPI["components"]})


def message_of(said: Said) -> str:
    if said.kind in ("told", "refusal"):
        return said.name if said.kind == "told" else "refusal"
    return f"{said.name}.{said.kind}"


@pytest.fixture
async def game(gateway) -> list[Said]:
    return await play(gateway)


async def test_every_frame_of_a_game_is_as_described(game):
    """All methods, all notifications, refusals; but for the requests that were refused as such."""
    seen = set()
    for said in game:
        answer = said.answer or {}
        if answer.get("error", {}).get("code") in (-32601, -32602):
            assert said.kind == "request"
            continue
        seen.add(message_of(said))
        assert is_described(message_of(said), said.frame), said.frame
    assert seen == set(ASYNCAPI["components"]["messages"])
    events = {event["type"] for said in game for event in _events(said)}
    assert events == set(TYPES), "every type of event"
    assert set(chosen(game)) == set(examples())


async def test_every_refusal_is_one_of_those_that_its_method_has(game):
    met = set()
    for said in game:
        if said.kind == "request" and "error" in (said.answer or {}):
            error = said.answer["error"]
            assert error["code"] in codes()
            if error["code"] > 0:
                assert error["data"]["reason"] in refusals_of(said.name)
                met.add(error["data"]["reason"])
    assert len(met) > 5


async def test_a_frame_with_a_member_of_another_type_is_not_as_described(game):
    """Each member of one frame of each message, in turn; of each event, too."""
    tried: dict[str, Frame] = {}
    for said in game:
        if is_described(message_of(said), said.frame):
            tried[message_of(said)] = said.frame
            for event in _events(said) if said.name == "event" else ():
                tried[f"event {event['type']}"] = said.frame
    changes = 0
    for name, frame in tried.items():
        if name == "rpc.discover.result":
            continue  # its parts are free
        for where, changed in _changes(frame):
            assert not is_described(name.partition(" ")[0], changed), (name, where)
            changes += 1
    assert changes > 400


def _events(said: Said) -> list[Frame]:
    if said.kind != "told":
        return []
    params = said.frame["params"]
    return {"event": [params], "events": params.get("list", [])}.get(said.name, [])


def _changes(frame: Any) -> Iterator[tuple[str, Any]]:
    """Copies of a frame, each with one value of another type, and where that is."""
    for path in _paths(frame):
        changed = deepcopy(frame)
        at = changed
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = "other" if isinstance(at[path[-1]], dict) else {"not": ["this"]}
        yield "/".join(map(str, path)), changed


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if path and path[-1] == "rules":
        return  # what stands in rules is for the table to say
    if isinstance(value, dict | list):
        for step, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _paths(member, (*path, step))


def test_nothing_is_described_before_somebody_asks():
    program = (
        "import sys, dealer.gateway.server; print([m for m in sys.modules if 'described' in m])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"
