"""The reference has everything that the program has, and its own parts are right."""

from __future__ import annotations

import json
import re

import pytest

from dealer import errors
from dealer.cli.main import app
from dealer.config import LIMITS, SETTINGS
from dealer.docs import reference
from dealer.errors import REFUSALS
from dealer.eventlog.schema import metadata, postgres
from dealer.game.events import TYPES
from dealer.gateway.schema import openrpc
from dealer.gateway.schema.components import notifications
from dealer.gateway.session.methods import METHODS

pytestmark = pytest.mark.slow


PAGES = ("methods", "notifications", "events", "types", "errors", "settings", "metrics", "sql")


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """The Markdown of each page of the reference, by its name."""
    return {name: "\n".join(getattr(reference, name)()) for name in (*PAGES, "commands")}


def section(text: str, title: str) -> str:
    """The part of a page below this heading of level 2."""
    part = rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)"
    (found,) = re.findall(part, text, re.DOTALL | re.MULTILINE)
    return str(found)


def first_cells(text: str) -> set[str]:
    return set(re.findall(r"^\| `([^`]*)`", text, re.MULTILINE))


@pytest.mark.parametrize("method", json.loads(openrpc())["methods"], ids=lambda one: one["name"])
def test_a_method(texts: dict[str, str], method: dict[str, object]) -> None:
    name = str(method["name"])
    text = section(texts["methods"], name)
    assert str(method["summary"]) in text
    params = METHODS[name].params.__struct_encode_fields__
    assert set(params) <= first_cells(text.partition("\nResult")[0])
    assert "Result" in text
    if rule := method.get("x-rule"):
        assert f"The table's [rule](types.md#rules) `{rule}` says who may." in text
    assert "Refusals: " in text
    assert f'{{"jsonrpc": "2.0", "id": 1, "method": "{name}"' in text
    assert '{"jsonrpc": "2.0", "id": 1, "result":' in text


def test_notifications_and_events(texts: dict[str, str]) -> None:
    for name in notifications():
        text = section(texts["notifications"], name)
        assert f'"method": "{name}"' in text
    for name in TYPES:
        assert {"at", "public", "type", "version"} <= first_cells(section(texts["events"], name))
    assert "public.slot" in section(texts["events"], "CardDrawn")
    assert "private.card" in section(texts["events"], "CardDrawn")


def test_reasons(texts: dict[str, str]) -> None:
    """Each with its exception in Python."""
    for reason, refused in REFUSALS.items():
        text = section(texts["errors"], reason)
        found = re.search(r"Code (\d+), `(\w+)`, (not )?temporary\.", text)
        assert found, reason
        assert issubclass(refused, getattr(errors, found[2]))
        assert (refused.code, refused.temporary) == (int(found[1]), not found[3])
    assert "-32600" in texts["errors"]
    assert "4409" in texts["errors"]


def test_settings(texts: dict[str, str]) -> None:
    for one in SETTINGS:
        assert f"`{one.variable}`" in texts["settings"]
        assert one.help.replace("|", "\\|") in texts["settings"]
    for name in LIMITS:
        assert f"`DEALER_LIMIT_{name.upper()}`" in texts["settings"]


def test_metrics(texts: dict[str, str]) -> None:
    assert re.search(r"`dealer_calls_total` \| counter \| `method`, `outcome` \|", texts["metrics"])
    assert re.search(r"`dealer_request_seconds` \| histogram \| `method` \|", texts["metrics"])
    assert "| gauge |" in texts["metrics"]


def test_columns(texts: dict[str, str]) -> None:
    for database, tables in (("SQLite", metadata.tables), ("PostgreSQL", postgres.tables)):
        for name, table in tables.items():
            text = section(texts["sql"], f"{database}: {name}")
            for column in map(str, table.columns.keys()):
                assert re.search(rf"^\t\"?{column}\"? ", text, re.MULTILINE), (name, column)
    assert "BYTEA" in section(texts["sql"], "PostgreSQL: event")


def test_commands(texts: dict[str, str]) -> None:
    def found(command: object, path: str) -> list[str]:
        children = getattr(command, "commands", {})
        inside = [one for name in children for one in found(children[name], f"{path} {name}")]
        return [path, *inside]

    _, *paths = found(app, "dealer")
    assert len(paths) > 20
    for path in paths:
        assert section(texts["commands"], path)
    assert "`--operator`" in section(texts["commands"], "dealer tables close")
    assert "[Settings](settings.md)" in section(texts["commands"], "dealer serve")


def test_a_schema_in_words() -> None:
    schema = {
        "properties": {
            "a": {"type": "integer", "minimum": 0, "maximum": 2**16, "description": "x <y>"},
            "b": {"type": "array", "items": {"$ref": "#/components/schemas/Seats"}, "maxItems": 3},
            "c": {"type": "object", "properties": {"d": {"const": True}}, "required": ["d"]},
            "e": {"anyOf": [{"enum": ["x", "y"]}, {"type": "null"}], "default": "x"},
        },
        "required": ["a"],
    }
    assert list(reference.members(schema)) == [
        ["`a`", "integer from 0 to 65,536", "required", "x &lt;y>"],
        ["`b`", "array up to 3 of [Seats](types.md#seats)", "", ""],
        ["`c`", "object", "", ""],
        ["`c.d`", "`true`", "required", ""],
        ["`e`", '`"x"` or `"y"` or null', 'default `"x"`', ""],
    ]
    text = {"type": ["string", "null"], "minLength": 1, "maxLength": 9}
    assert reference.kind(text).startswith("string from 1 to 9 characters or null")
    drawn = {"properties": {"event": {"$ref": "#/components/schemas/CardDrawn"}}}
    assert "`event.version`" in {row[0] for row in reference.members(drawn, whole=True)}
    assert len(list(reference.members(drawn))) == 1


def test_a_table() -> None:
    assert reference.table(("a", "b"), [("1|2", "3\n4")]) == (
        "| a | b |\n| --- | --- |\n| 1\\|2 | 3 4 |\n"
    )
    assert reference.table(("a",), []) == "None.\n"
