"""The rules of a table: how many sit, who may do what, and anything else the table wants to say.

Rules are a public JSON object. A preset says who may do each action, and a key of the action's name
overrides it: `{"preset": "dealer", "draw": "players"}`. `host` stands for the host alone,
`players` for the host and every seated player, `nobody` for nobody. What concerns one's own hand
(discard, play, give, show, return) is done by the seat that holds it; `collect` moves the cards of
another's hand onto a stack, and is for the host at most.

Rules in a log keep their meaning: a preset lets the host collect, as it always has. A table that is
opened now says `"collect": "nobody"` unless whoever opens it says otherwise (`for_new_table`), so
that the rules shown to players, and every client, old ones too, have the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dealer.errors import BadRequest
from dealer.game.names import check_name

SEATS_DEFAULT = 10
SEATS_MAX = 100
WHO = ("host", "players", "nobody")

_HOSTED = dict.fromkeys(("open", "close", "shuffle", "deal", "collect"), "host")
_STACKS = ("draw", "burn", "cut", "pile", "turn")
_HANDS = ("discard", "play", "give", "show", "return")

PRESETS: dict[str, dict[str, str]] = {
    "free": _HOSTED | dict.fromkeys((*_STACKS, *_HANDS), "players"),
    "dealer": _HOSTED | dict.fromkeys(_STACKS, "host") | dict.fromkeys(_HANDS, "players"),
    "shared": dict.fromkeys((*_HOSTED, *_STACKS, *_HANDS), "players") | {"collect": "host"},
}
ACTIONS = tuple(PRESETS["free"])

_NODE, _MEMBER = 80, 90  # bytes of a small object, and of its name in a dict


@dataclass(frozen=True, slots=True)
class Rules:
    """What a table's `rules` object means; `given` is that object, kept word for word."""

    given: Mapping[str, Any] = field(default_factory=dict)
    seats: int = SEATS_DEFAULT
    invited: bool = False  # whether a seat is only for who holds the invitation
    watched: bool = True  # whether somebody without a seat may watch
    who: Mapping[str, str] = field(default_factory=lambda: PRESETS["free"])
    size: int = 0  # bytes of memory that `given` takes, estimated

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Rules:
        """The meaning of rules as a log has them: what it does not understand it passes over."""
        preset = PRESETS.get(str(given.get("preset")), PRESETS["free"])
        seats = given.get("seats")
        own = {name: given[name] for name in ACTIONS if given.get(name) in WHO}
        return cls(
            given=given,
            seats=seats if type(seats) is int and seats > 0 else SEATS_DEFAULT,
            invited=given.get("join") == "invite",
            watched=given.get("watch") != "nobody",
            who=preset | own,
            size=_size_of(given),
        )

    @classmethod
    def check(cls, given: Mapping[str, Any]) -> Rules:
        """The meaning of rules that somebody asks for; raises BadRequest with what is wrong."""
        for name in given:
            if name in ACTIONS and given[name] not in WHO:
                raise BadRequest(f"The rule {name!r} is one of {', '.join(WHO)}.")
        if given.get("preset", "free") not in tuple(PRESETS):
            raise BadRequest(f"The rules' preset is one of {', '.join(PRESETS)}.")
        seats = given.get("seats", SEATS_DEFAULT)
        if type(seats) is not int or not 1 <= seats <= SEATS_MAX:
            raise BadRequest(f"A table has 1 to {SEATS_MAX} seats.")
        if given.get("join", "anyone") not in ("anyone", "invite"):
            raise BadRequest("The rule 'join' is anyone or invite.")
        if given.get("watch", "anyone") not in ("anyone", "nobody"):
            raise BadRequest("The rule 'watch' is anyone or nobody.")
        if "name" in given:
            if not isinstance(given["name"], str):
                raise BadRequest("The name of a table is a text.")
            check_name(given["name"], of="The name of a table")
        return cls.read(given)


def for_new_table(given: Mapping[str, Any]) -> dict[str, Any]:
    """The rules that go into the log of a table opened with `given`: nobody collects unsaid."""
    return {"collect": "nobody", **given}


def _size_of(value: Any) -> int:
    """Bytes of memory that a JSON value takes, estimated; looks at all of it, once a table."""
    if isinstance(value, str):
        return _NODE + len(value) * (1 if value.isascii() else 4)
    if isinstance(value, Mapping):
        members = (_MEMBER + _size_of(name) + _size_of(one) for name, one in value.items())
        return 3 * _NODE + sum(members)
    if isinstance(value, list | tuple):
        return _NODE + sum(10 + _size_of(one) for one in value)
    return 32
