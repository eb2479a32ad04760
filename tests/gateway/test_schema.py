"""The published schema: OpenRPC and AsyncAPI documents are valid and describe every frame."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from dealer.errors import REFUSALS
from dealer.game.events import TYPES
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.schema import asyncapi, openrpc
from dealer.gateway.schema.components import notifications
from dealer.gateway.schema.documents import examples, refusals_of
from dealer.gateway.session.methods import METHODS
from dealer.gateway.wire.protocol import ErrorCode
from dealer.gateway.wire.results import NOTIFICATIONS
from tests.gateway.http_client import get
from tests.gateway.recorded_game import Frame, RecordedFrame, choose_examples, play
from tests.harness.installed import missing
from tests.harness.programs import output_of

ROOT = Path(__file__).parents[2]
PARSERS = {"asyncapi": "@asyncapi/parser", "openrpc": "@open-rpc/schema-utils-js"}

ASYNCAPI = json.loads(asyncapi())
OPENRPC = json.loads(openrpc())
ERRORS_AND_WARNINGS = ("0", "1")
"""Severities of the AsyncAPI parser."""


def node_modules(package: str) -> str:
    """The folder in which node finds a package: in `build`, or from NODE_PATH."""
    folders = [str(ROOT / "build/node_modules"), *os.environ.get("NODE_PATH", "").split(os.pathsep)]
    found = [folder for folder in folders if folder and (Path(folder) / package).is_dir()]
    if shutil.which("node") is None:
        missing("node is not installed")
    if not found:
        missing(f"{package} is not installed (npm install --prefix build {package})")
    return found[0]


def faults(kind: str, document: Any) -> list[str]:
    """The faults that the standard parser finds in a document."""
    command = ["node", Path(__file__).with_name("validate.mjs"), kind]
    environment = os.environ | {"NODE_PATH": node_modules(PARSERS[kind])}
    printed = output_of(*command, input=json.dumps(document), env=environment)
    found: list[str] = json.loads(printed)
    return [one for one in found if kind == "openrpc" or one.startswith(ERRORS_AND_WARNINGS)]


@pytest.mark.slow
@pytest.mark.timeout(600)  # the parser checks each schema at each reference: 10 s of processor time
def test_the_asyncapi_parser_finds_no_fault():
    assert faults("asyncapi", ASYNCAPI) == []


@pytest.mark.slow
def test_the_asyncapi_parser_finds_a_fault():
    invalid = {name: ASYNCAPI[name] for name in ("asyncapi", "info")}
    invalid["operations"] = {"ping": {"action": "answer"}}
    assert any("operations.ping.action" in fault for fault in faults("asyncapi", invalid))


@pytest.mark.slow
def test_the_openrpc_validator_finds_no_fault():
    assert faults("openrpc", OPENRPC) == []
    invalid = deepcopy(OPENRPC)
    del invalid["methods"][0]["params"]
    assert faults("openrpc", invalid)
    invalid = deepcopy(OPENRPC)
    invalid["methods"][0]["result"]["schema"] = {"$ref": "#/components/schemas/Nothing"}
    assert faults("openrpc", invalid), "references are followed"


async def test_the_documents_are_served_at_their_addresses(gateway, connect):
    for path, document in (("/openrpc.json", OPENRPC), ("/asyncapi.json", ASYNCAPI)):
        got = await get(gateway.port, path)
        assert got.headers["content-type"] == "application/json"
        assert got.headers["access-control-allow-origin"] == "*"
        assert json.loads(got.body) == document
    assert await (await connect(gateway)).call("rpc.discover") == OPENRPC


def test_every_method_is_described_and_nothing_else():
    methods = set(METHODS)
    assert {method["name"] for method in OPENRPC["methods"]} == methods
    operations = ASYNCAPI["operations"].items()
    assert {name for name, one in operations if one["action"] == "receive"} == methods
    sent = {name for name, one in operations if one["action"] == "send"}
    assert sent == {f"tell.{name}" for name in notifications()}
    assert {one["name"] for one in OPENRPC["x-notifications"]} == {"event", *NOTIFICATIONS}


def test_every_event_refusal_close_code_and_method_has_a_description():
    schemas = OPENRPC["components"]["schemas"]
    assert all(re.fullmatch(r"[A-Z].*\.", schemas[name]["description"]) for name in TYPES)
    errors = OPENRPC["components"]["errors"].values()
    assert all(re.fullmatch(r"[A-Z].*\.", error["message"]) for error in errors)
    codes = [error["code"] for error in errors]
    assert codes == [*ErrorCode, *sorted(kind.code for kind in REFUSALS.values())]
    assert schemas["ErrorCode"]["enum"] == sorted(codes)
    assert set(schemas["RefusalReason"]["enum"]) == set(REFUSALS)
    meanings = {one["code"]: one["meaning"] for one in OPENRPC["x-close-codes"]}
    assert meanings == {int(code): code.meaning for code in CloseCode}
    for method in OPENRPC["methods"]:
        assert method["summary"], method["name"]


def test_the_server_closes_connections_with_described_codes_only():
    """`close_with` takes a CloseCode: no other module of the gateway has a number for one.

    `refused.code` is that of a FrameRefused.
    """
    closing = ("close_with", "FrameRefused")
    sources = [
        path for path in (ROOT / "dealer/gateway").rglob("*.py") if path.name != "close_codes.py"
    ]
    used = set()
    for path in sources:
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(closing):
                used.add(ast.unparse(call.args[0]))
    assert used - {"refused.code"} == {f"CloseCode.{code.name}" for code in CloseCode}


def test_each_method_and_notification_has_a_valid_example():
    assert set(examples()) == set(METHODS) | set(notifications()) | {"refusal"}
    for name, (frame, answer) in examples().items():
        kind = "refusal" if name == "refusal" else "result"
        if name in notifications():
            assert is_described(name, frame)
        elif name == "refusal":
            assert is_described("refusal", answer)
        else:
            assert is_described(f"{name}.request", frame)
            assert is_described(f"{name}.{kind}", answer)


def is_described(message: str, frame: Any) -> bool:
    """Whether the AsyncAPI schema of a message accepts a frame."""
    validator = validator_of(message)
    return validator is not None and validator.is_valid(frame)


@cache
def validator_of(message: str) -> Draft7Validator | None:
    if message not in ASYNCAPI["components"]["messages"]:
        return None
    schema = {"$ref": f"#/components/messages/{message}/payload"}
    return Draft7Validator(schema | {"components": ASYNCAPI["components"]})


def message_of(recorded: RecordedFrame) -> str:
    """The name of a frame's message in the AsyncAPI document."""
    if recorded.kind in ("notification", "refusal"):
        return recorded.method if recorded.kind == "notification" else "refusal"
    return f"{recorded.method}.{recorded.kind}"


@pytest.fixture
async def game(gateway) -> list[RecordedFrame]:
    return await play(gateway)


async def test_the_schema_accepts_every_frame_of_a_game(game):
    """All methods, notifications and refusals, except requests with an unknown method or type."""
    messages = set()
    for recorded in game:
        answer = recorded.answer or {}
        if answer.get("error", {}).get("code") in (-32601, -32602):
            assert recorded.kind == "request"
            continue
        messages.add(message_of(recorded))
        assert is_described(message_of(recorded), recorded.frame), recorded.frame
    assert messages == set(ASYNCAPI["components"]["messages"])
    events = {event["type"] for recorded in game for event in _events(recorded)}
    assert events == set(TYPES), "every type of event"
    assert set(choose_examples(game)) == set(examples())


async def test_every_refusal_is_listed_for_its_method(game):
    reasons = set()
    for recorded in game:
        if recorded.kind == "request" and "error" in (recorded.answer or {}):
            error = recorded.answer["error"]
            assert error["code"] in OPENRPC["components"]["schemas"]["ErrorCode"]["enum"]
            if error["code"] > 0:
                assert error["data"]["reason"] in refusals_of(recorded.method)
                reasons.add(error["data"]["reason"])
    assert len(reasons) > 5


@pytest.mark.slow
async def test_the_schema_rejects_a_member_of_another_type(game):
    """Each member of a frame of each message and of each type of event, one at a time."""
    frames: dict[str, Frame] = {}
    # The shortest of each, because every member of it is changed.
    for recorded in sorted(game, key=lambda one: -len(str(one.frame))):
        if is_described(message_of(recorded), recorded.frame):
            frames[message_of(recorded)] = recorded.frame
            for event in _events(recorded) if recorded.method == "event" else ():
                frames[f"event {event['type']}"] = recorded.frame
    changes = 0
    for name, frame in frames.items():
        if name == "rpc.discover.result":
            continue  # any object is valid
        for where, changed in _changes(frame):
            signed = where.startswith(("result/edge", "result/checkpoint"))
            if name == "table.state.result" and signed:
                continue  # a state of an earlier version has none, and any other member is valid
            assert not is_described(name.partition(" ")[0], changed), (name, where)
            changes += 1
    assert changes > 400


def _events(recorded: RecordedFrame) -> list[Frame]:
    if recorded.kind != "notification":
        return []
    params = recorded.frame["params"]
    return {"event": [params], "events": params.get("list", [])}.get(recorded.method, [])


def _changes(frame: Any) -> Iterator[tuple[str, Any]]:
    """Copies of a frame, each with one value of another type, and the path of that value."""
    for path in _paths(frame):
        changed = deepcopy(frame)
        at = changed
        for step in path[:-1]:
            at = at[step]
        of_objects = at[path[-1]] is None or isinstance(at[path[-1]], dict)
        at[path[-1]] = [["not this"]] if of_objects else {"not": ["this"]}
        yield "/".join(map(str, path)), changed


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if path and path[-1] == "rules":
        return  # any members are valid in rules
    if isinstance(value, dict | list):
        for step, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _paths(member, (*path, step))


@pytest.mark.slow
def test_the_schema_is_not_imported_with_the_server():
    program = (
        "import sys, dealer.gateway.server\n"
        "print([name for name in sys.modules if name.startswith('dealer.gateway.schema')])"
    )
    assert output_of(sys.executable, "-c", program, cwd=ROOT).strip() == "[]"
