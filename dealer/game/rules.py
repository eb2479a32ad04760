"""The rules of a table: number of seats, permissions, admission, and arbitrary further members.

Rules are a public JSON object. A preset defines who may perform each action, and a member named
like an action overrides it: `{"preset": "dealer", "draw": "players"}`. `host` means the host only,
`players` the host and every seated player, `nobody` no client. Actions on a hand (discard, play,
give, show, return, pass) are limited to the seat that holds it; `collect` moves cards of another
seat's hand onto a stack and is available to the host at most.

The members that have a meaning are `KNOWN`. Others are free; those whose names begin with `x_` stay
free in later releases too. A new table may not have a free member that looks like a misspelled
known one (`check_names`): it would have no effect, without a word.

`pack` and `game` name the pack of cards and the preset that the pages use to show the table; the
server does not enforce a game. `listed: false` keeps the table out of the lobby's list.
`insecure_test_deck` is for tests, and refused by other servers (`insecure_deck`). `practice` is
written by the server alone, see `decide.practice`.

Rules in an existing log keep their meaning, in which each preset allows the host to collect. New
tables get an explicit `"collect": "nobody"` unless they are opened with another value
(`for_new_table`), so that old clients too display the rule that applies.

`commit_ms` and `reveal_ms` are the waits of rounds that are opened without their own.

`broadcast`: seconds after which broadcast links show what each player has seen; without it, never.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher, get_close_matches
from typing import Any

from dealer.errors import BadRequest
from dealer.game.insecure_deck import RULE as INSECURE_DECK
from dealer.game.insecure_deck import check_insecure_deck
from dealer.game.names import check_name

SEATS_DEFAULT = 10
SEATS_MAX = 100
PRACTICE = "practice"
BROADCAST = "broadcast"
BROADCAST_MAX = 86_400  # seconds
SOURCE = dict.fromkeys(("table", "round", "version", "root"))
"""The members of the rule `practice`, which names what a table was laid out from."""

WHO = ("host", "players", "nobody")
ENTROPY = ("players", "house")
WAITS = ("commit_ms", "reveal_ms")
WAIT_MS_DEFAULT = 10_000
WAIT_MS_MIN = 100
WAIT_MS_MAX = 600_000
_WAIT = (WAIT_MS_MIN, WAIT_MS_MAX, "milliseconds")
_BOUNDS = dict.fromkeys(WAITS, _WAIT) | {BROADCAST: (0, BROADCAST_MAX, "seconds")}
FREE = "x_"
"""Names of members that begin with this never get a meaning."""

_HOSTED = dict.fromkeys(("open", "close", "shuffle", "deal", "collect"), "host")
_STACKS = ("draw", "burn", "cut", "pile", "turn")
_HANDS = ("discard", "play", "give", "show", "return", "pass")
ACTIONS = (*_HOSTED, *_STACKS, *_HANDS, "annotate", "take_back", "move_seat")

PRESETS: dict[str, dict[str, str]] = {
    "free": dict.fromkeys(ACTIONS, "players") | _HOSTED,
    "dealer": _HOSTED
    | dict.fromkeys((*_STACKS, "take_back"), "host")
    | dict.fromkeys((*_HANDS, "annotate", "move_seat"), "players"),
    "shared": dict.fromkeys(ACTIONS, "players") | {"collect": "host"},
}
_GUARDED = ("preset", "join", "watch", "entropy", "deck", "seats", "name", *WAITS, *ACTIONS)
KNOWN = (*_GUARDED, "pack", "game", "listed", INSECURE_DECK, PRACTICE, BROADCAST)
"""The names of all members that have a meaning.

Those that came later are not guarded against misspellings: similar names, such as `packs`, are free
members of clients that are older than they are.
"""

STANDARD = "standard"
"""The pack of the French cards, of which there is no file."""

PACK_NAME = re.compile(r"[a-z0-9-]{1,64}")

_SIMILAR = 0.8

_NODE, _MEMBER = 80, 90  # estimated bytes of a small object, and of a key and entry in a dict


@dataclass(frozen=True, slots=True)
class Rules:
    """The interpreted rules of a table; `given` is the unchanged JSON object."""

    given: Mapping[str, Any] = field(default_factory=dict)
    seats: int = SEATS_DEFAULT
    invited: bool = False  # taking a seat requires the invitation
    watched: bool = True  # spectators are allowed
    listed: bool = True  # the lobby may list the table
    broadcast: int | None = None  # seconds until hands are shown by broadcast links; None: never
    who: Mapping[str, str] = field(default_factory=lambda: PRESETS["free"])
    size: int = 0  # estimated memory of `given` in bytes

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Rules:
        """Interpret rules of an existing log; unknown members and values are ignored."""
        preset = PRESETS.get(str(given.get("preset")), PRESETS["free"])
        seats, seconds = given.get("seats"), given.get(BROADCAST)
        own = {name: given[name] for name in ACTIONS if given.get(name) in WHO}
        return cls(
            given=given,
            seats=seats if type(seats) is int and seats > 0 else SEATS_DEFAULT,
            invited=given.get("join") == "invite",
            watched=given.get("watch") != "nobody",
            listed=given.get("listed") is not False,
            broadcast=seconds if _is_within(seconds, 0, BROADCAST_MAX) else None,
            who=preset | own,
            size=_size_of(given),
        )

    @classmethod
    def check(cls, given: Mapping[str, Any]) -> Rules:
        """Validate and interpret the rules of a table to be opened; raises BadRequest."""
        for name in given:
            if name not in KNOWN and name.lower() in _GUARDED:
                raise _unknown(name, name.lower())
            if name in ACTIONS and given[name] not in WHO:
                raise BadRequest(f"The rule {name!r} must be one of {', '.join(WHO)}.")
        if given.get("preset", "free") not in tuple(PRESETS):
            raise BadRequest(f"The rules' preset must be one of {', '.join(PRESETS)}.")
        seats = given.get("seats", SEATS_DEFAULT)
        if type(seats) is not int or not 1 <= seats <= SEATS_MAX:
            raise BadRequest(f"A table has 1 to {SEATS_MAX} seats.")
        if given.get("join", "anyone") not in ("anyone", "invite"):
            raise BadRequest("The rule 'join' must be anyone or invite.")
        if given.get("watch", "anyone") not in ("anyone", "nobody"):
            raise BadRequest("The rule 'watch' must be anyone or nobody.")
        if given.get("entropy", "players") not in ENTROPY:
            raise BadRequest("The rule 'entropy' must be players or house.")
        for name, (least, most, unit) in _BOUNDS.items():
            if not _is_within(given.get(name, least), least, most):
                raise BadRequest(
                    f"The rule {name!r} must be {least} to {most} {unit}, a whole number."
                )
        if type(given.get("listed", True)) is not bool:
            raise BadRequest("The rule 'listed' must be true or false.")
        check_insecure_deck(given)
        source = given.get(PRACTICE, SOURCE)
        if not isinstance(source, Mapping) or source.keys() != SOURCE.keys():
            raise BadRequest(f"The rule 'practice' is an object with {', '.join(SOURCE)}.")
        pack = given.get("pack", STANDARD)
        if not isinstance(pack, str) or not PACK_NAME.fullmatch(pack):
            raise BadRequest(
                "The rule 'pack' must be the name of a pack: 1 to 64 of a to z, 0 to 9 and -."
            )
        if not isinstance(given.get("game", ""), str):
            raise BadRequest("The rule 'game' must be the name of a game, a string.")
        if "name" in given:
            if not isinstance(given["name"], str):
                raise BadRequest("The name of a table must be a string.")
            check_name(given["name"], of="The name of a table")
        return cls.read(given)

    def wait_ms(self, name: str) -> int:
        """The wait `commit_ms` or `reveal_ms` of a round that is opened without its own."""
        wait = self.given.get(name)
        if isinstance(wait, int) and WAIT_MS_MIN <= wait <= WAIT_MS_MAX:
            return wait
        return WAIT_MS_DEFAULT  # rules of an old log may have any value


def _is_within(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def check_names(given: Mapping[str, Any]) -> None:
    """Raise BadRequest for a member that looks like a misspelled known one.

    That is one more similar than 0.8 (`difflib`). So `stakes` is free, and `player` and `dealer`
    too, which have two letters more than `play` and `deal`.
    """
    for name in given:
        if name in KNOWN or name.startswith(FREE):
            continue
        similar = get_close_matches(name, _GUARDED, n=1, cutoff=_SIMILAR)
        if similar and SequenceMatcher(None, similar[0], name).ratio() > _SIMILAR:
            raise _unknown(name, similar[0])


def _unknown(name: str, meant: str) -> BadRequest:
    return BadRequest(
        f"Unknown rule {name}; did you mean {meant}? Names that begin with {FREE} are free."
    )


def for_new_table(given: Mapping[str, Any]) -> dict[str, Any]:
    """The rules that are logged for a table opened with `given`: collecting is off by default."""
    # Not in the presets: tables in a log and old clients have their meaning.
    return {"collect": "nobody", **given}


def _size_of(value: Any) -> int:
    """Estimated memory of a JSON value in bytes, however deep; called once for each table."""
    size, left = 0, [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            size += _NODE + len(one) * (1 if one.isascii() else 4)
        elif isinstance(one, Mapping):
            size += 3 * _NODE + _MEMBER * len(one)
            left += (*one, *one.values())
        elif isinstance(one, list | tuple):
            size += _NODE + 10 * len(one)
            left += one
        else:
            size += 32
    return size
