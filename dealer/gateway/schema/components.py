"""The types that the documents describe: parameters, results, notifications, events, rules."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

from msgspec import Meta, Struct

from dealer.game import events
from dealer.gateway.schema.json_schema import (
    Schema,
    first_paragraph,
    pascal,
    reference,
    said,
    schemas,
    struct,
)
from dealer.gateway.session.methods import METHODS
from dealer.gateway.wire import types as t
from dealer.gateway.wire import views
from dealer.gateway.wire.protocol import Error
from dealer.gateway.wire.results import NOTIFICATIONS
from dealer.gateway.wire.rules import Rules, TableRules
from dealer.proof.codec import SCHEMAS, members

_StackName = Annotated[
    str, Meta(title="StackName", pattern="^(deck|hand:[1-9][0-9]*|pile:[!-~]{1,32})$")
]
_BY_NAME: dict[str, Any] = {
    "algorithm": t.Algorithm,
    "by": Annotated[
        Literal["host", "service"], Meta(title="Remover", description="Who removed a player.")
    ],
    "card": t.CardCode,
    "entropy": t.EntropySource,
    "from": _StackName,
    "kind": t.NoteKind,
    "rules": views.GivenRules,
    "secret": Annotated[str, Meta(title="Secret", pattern="^([0-9a-f]{64})+$")],
    "stack": _StackName,
    "to": _StackName,
}
"""Types of members of events in the log, where the type of the field is not enough."""

_BY_TYPE: dict[Any, Any] = {
    int: t.WholeNumber,
    str: str,
    bytes: t.Hash,
    bool: bool,
    tuple[str, ...]: list[t.CardCode],
    tuple[bytes, ...]: list[t.Hash],
}


class Notification(NamedTuple):
    """The title of its parameters, and what it says."""

    title: str
    summary: str


@cache
def components() -> dict[str, Schema]:
    """The schemas of all these types and of their parts, by title; they are made once."""
    kinds: set[type[Any]] = {Error, Rules, TableRules, *NOTIFICATIONS.values()}
    for method in METHODS.values():
        kinds |= {method.params, *method.results}
    found = schemas([*kinds, *(_leaf(name, kind) for name, kind in events.TYPES.items())])
    for name, method in METHODS.items():
        title = method.params.__name__
        methods = [f"`{name}`" for name in METHODS if METHODS[name].params.__name__ == title]
        found[title].setdefault("description", f"Parameters of {', '.join(methods)}.")
        if len(method.results) > 1:
            title = f"{pascal(name)}Result"
            of = [kind.__name__ for kind in method.results]
            found[title] = _one_of(title, f"What `{name}` answers.", of, "anyOf")
    found["Event"] = _one_of("Event", first_paragraph(views.Event), events.TYPES, "oneOf") | {
        "type": "object",
        "required": ["type"],
        "discriminator": {
            "propertyName": "type",
            "mapping": {name: t.REF + name for name in events.TYPES},
        },
    }
    return dict(sorted(found.items()))


def result_title(method: str) -> str:
    """The title of what a method answers; if that may have several types, their union's."""
    kinds = METHODS[method].results
    return kinds[0].__name__ if len(kinds) == 1 else f"{pascal(method)}Result"


@cache
def notifications() -> dict[str, Notification]:
    """Every notification by its name."""
    event = "One event, as this viewer may see it; every version is sent once, in order."
    return {"event": Notification("Event", event)} | {
        name: Notification(kind.__name__, inspect.getdoc(kind) or "")
        for name, kind in NOTIFICATIONS.items()
    }


def _one_of(title: str, description: str, titles: Iterable[str], kind: str) -> Schema:
    of = [reference(name) for name in titles]
    return {"title": title, "description": description, kind: of}


def _leaf(name: str, kind: type[events.EventType]) -> type[Struct]:
    """The type of an event's leaf in the log: `views.Event` with the members of the event."""
    types = get_type_hints(views.Event, include_extras=True)
    number = SCHEMAS[name]
    types["public"] = Annotated[_public(name, kind), said(types["public"])]
    types["type"] = Annotated[Literal[name], said(types["type"])]
    # Exactly this number; generators make no type of a `const` that is not a text.
    exactly = Meta(title=("", "SchemaNumber", "SecondSchemaNumber")[number], ge=number, le=number)
    types["v"] = Annotated[int, exactly, said(types["v"])]
    always = kind.COMMITMENT == "always" or kind in (events.SeatTaken, events.SeatVacated)
    optional = {"private", "opened"} if always else {"private", "opened", "commit"}
    absent = set() if kind.OPENED or kind.COMMITMENT != "never" else {"commit"}
    absent |= set() if name in events.PRIVATE_FACE_TYPES else {"private"}
    if kind.OPENED:
        types["opened"] = Annotated[_opening(name, kind), said(types["opened"])]
    else:
        absent.add("opened")
    fields = {member: of for member, of in types.items() if member not in absent}
    return struct(name, first_paragraph(kind), fields, optional)


def _opening(name: str, kind: type[events.EventType]) -> type[Struct]:
    """The opening of an event, as `dealer.proof.opened` writes it."""
    fields, optional = _members(kind, opened=True)
    part = struct(f"{name}Part", f"What was written in {name}.", fields, optional)
    types = get_type_hints(views.Opening, include_extras=True)
    types["part"] = Annotated[part, said(types["part"])]
    return struct(f"{name}Opening", first_paragraph(views.Opening), types, set())


def _public(name: str, kind: type[events.EventType]) -> type[Struct]:
    """The public members of a leaf, as `dealer.proof.codec` writes them."""
    fields, optional = _members(kind, opened=False)
    if kind is events.NoteAdded:
        fields |= _members(kind, opened=True)[0]
        optional.add("text")  # of the notes of the server
    if kind is events.TableOpened:
        fields["protocol"] = Annotated[Literal[events.PROTOCOL], "name of the format of the log"]
    return struct(f"{name}Public", f"What all may know of {name}.", fields, optional)


def _members(kind: type[events.EventType], *, opened: bool) -> tuple[dict[str, Any], set[str]]:
    """The types of the members in the opened part, or in the leaf, and the optional ones."""
    described, plain = get_type_hints(kind, include_extras=True), get_type_hints(kind)
    fields, optional = {}, set()
    for member, attribute in members(kind):
        if (attribute in kind.OPENED) != opened:
            continue
        of = plain[attribute]
        if type(None) in get_args(of):
            (of,) = (one for one in get_args(of) if one is not type(None))
            optional.add(member)
        elif of is bool:
            optional.add(member)  # false is left out
        form = _BY_NAME.get(member) or _BY_TYPE[of]
        fields[member] = Annotated[form, said(described[attribute])]
    return fields, optional
