"""The reference has everything that the program has, and its own parts are right."""

from __future__ import annotations

import json
import re

import pytest
import typer.main

from dealer.cli.main import app
from dealer.config import LIMITS, SETTINGS
from dealer.docs import markdown
from dealer.docs.reference.schemas import kind, members
from dealer.docs.site import write_sources
from dealer.errors import Refused
from dealer.eventlog.schema import metadata, postgres
from dealer.game.events import TYPES
from dealer.gateway.rpc.methods import METHODS
from dealer.gateway.schema import openrpc
from dealer.gateway.schema.errors import refusals
from dealer.gateway.schema.notifications import NOTIFICATIONS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The Markdown of each page of the reference, by its name."""
    folder = tmp_path_factory.mktemp("source")
    write_sources(folder)
    pages = (folder / "reference").glob("*.md")
    return {page.stem: page.read_text(encoding="utf-8") for page in pages}


def section(text: str, title: str) -> str:
    (found,) = (one.text for one in markdown.sections(text)[1] if one.title == title)
    return found


def first_cells(text: str) -> set[str]:
    return set(re.findall(r"^\| `([^`]*)`", text, re.MULTILINE))


@pytest.mark.parametrize("method", json.loads(openrpc())["methods"], ids=lambda one: one["name"])
def test_a_method(texts: dict[str, str], method: dict[str, object]) -> None:
    name = str(method["name"])
    text = section(texts[f"methods-{name.partition('.')[0]}"], name)
    assert str(method["summary"]) in text
    params = METHODS[name].params.__struct_encode_fields__
    assert set(params) <= first_cells(text.partition("\nResult")[0])
    assert "Result" in text
    assert "Refusals: " in text
    assert f'> {{"jsonrpc":"2.0","id":1,"method":"{name}"' in text
    assert '< {"jsonrpc":"2.0","id":1,"result":' in text


def test_notifications_and_events(texts: dict[str, str]) -> None:
    for name in NOTIFICATIONS:
        text = section(texts["notifications"], name)
        assert f'"method":"{name}"' in text
    for name in TYPES:
        assert {"at", "public", "type", "version"} <= first_cells(section(texts["events"], name))
    assert "public.slot" in section(texts["events"], "CardDrawn")
    assert "private.card" in section(texts["events"], "CardDrawn")


def test_reasons(texts: dict[str, str]) -> None:
    for reason, refused in refusals().items():
        assert issubclass(refused, Refused)
        text = section(texts["errors"], reason)
        assert f"Code {refused.code}, `dealer.errors.{refused.__name__}`." in text
        assert ("Temporary:" in text) is refused.temporary
    assert "-32600" in texts["errors"]
    assert "4409" in texts["errors"]


def test_settings(texts: dict[str, str]) -> None:
    for one in SETTINGS:
        assert f"`{one.variable}`" in texts["settings"]
        assert one.help.replace("|", "\\|") in texts["settings"]
    for name in LIMITS:
        assert f"`DEALER_LIMIT_{name.upper()}`" in texts["settings"]
    assert "Behind a proxy" in texts["settings"]


def test_metrics(texts: dict[str, str]) -> None:
    assert re.search(r"`dealer_calls_total` \| counter \| `method`, `outcome` \|", texts["metrics"])
    assert re.search(r"`dealer_request_seconds` \| histogram \| `method` \|", texts["metrics"])
    assert "| gauge |" in texts["metrics"]


def test_columns(texts: dict[str, str]) -> None:
    for name, table in metadata.tables.items():
        columns = {*table.columns.keys(), *postgres.tables[name].columns.keys()}
        assert first_cells(section(texts["sql"], f"The table {name}")) == columns
    assert "`BYTEA`" in section(texts["sql"], "The table event")


def test_commands(texts: dict[str, str]) -> None:
    def found(command: object, path: str) -> list[str]:
        children = getattr(command, "commands", {})
        inside = [one for name in children for one in found(children[name], f"{path} {name}")]
        return [path, *inside]

    _, *paths = found(typer.main.get_command(app), "dealer")
    assert len(paths) > 20
    for path in paths:
        assert section(texts["commands"], path)
    assert "`--operator`" in section(texts["commands"], "dealer close")
    assert "every [setting](settings.md)" in section(texts["commands"], "dealer serve")


def test_a_schema_in_words() -> None:
    schema = {
        "properties": {
            "a": {"type": "integer", "minimum": 0, "maximum": 2**53 - 1, "description": "x <y>"},
            "b": {"type": "array", "items": {"$ref": "#/components/schemas/Card"}, "maxItems": 3},
            "c": {"type": "object", "properties": {"d": {"const": True}}, "required": ["d"]},
            "e": {"anyOf": [{"enum": ["x", "y"]}, {"type": "null"}], "default": "x"},
        },
        "required": ["a"],
    }
    assert list(members(schema, lambda name: f"[{name}]")) == [
        ["`a`", "integer, 0 to 2^53 − 1", "required", "x &lt;y>"],
        ["`b`", "array of at most 3 [Card]", "", ""],
        ["`c`", "object", "", ""],
        ["`c.d`", "`true`", "required", ""],
        ["`e`", '`"x"` or `"y"` or null', 'default `"x"`', ""],
    ]
    assert (
        kind({"type": ["string", "null"], "maxLength": 9}, str)
        == "string, at most 9 characters or null"
    )
    card = {"properties": {"code": {"type": "string"}}}
    rows = list(members(schema, str, named_schemas={"Card": card}))
    assert ["`b[].code`", "string", "", ""] in rows


def test_markdown() -> None:
    text = "# A `b`\n\n## C: d\n```sh\n# no heading [x](y)\n```\n[p](q#r) `[s](t)`\n"
    assert markdown.title(text) == "A `b`"
    assert markdown.anchors(text) == {"a-b", "c-d"}
    before, (one,) = markdown.sections(text)
    assert (before, one.title) == ("# A `b`\n\n", "C: d")
    assert markdown.promoted(one.text).startswith("# C: d\n```sh\n# no heading")
    assert "[p](Q#R) `[s](t)`" in markdown.map_links(text, str.upper)
    assert "[x](y)" in markdown.map_links(text, str.upper)
    assert markdown.rows(markdown.table(("a", "b"), [("1", "2\n3")])) == [["1", "2 3"]]
