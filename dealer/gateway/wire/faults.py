"""What is wrong with a request, as a sentence: the errors of msgspec's decoder in plain words.

    count: expected `int`, got `str`   →   count must be a whole number, not a text.

A sentence names the member by its path, `piles[0].name`. What this module does not know of the
decoder is said in its own words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from typing import Any

import msgspec

_LOCATED = re.compile(r"(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<where>[^`]*)`)?", re.DOTALL)
_EXPECTED = re.compile(
    r"Expected `(?P<kinds>[^`]*)`"
    r"(?: of (?P<length>length))?(?: (?P<bound><=|>=) (?P<number>\d+))?"
    r"(?: matching regex '(?P<form>.*)')?(?:, got `(?P<got>\w+)`)?",
    re.DOTALL,
)
_ENUM = re.compile(r"Invalid enum value (?P<got>.*)", re.DOTALL)
_FIELD = re.compile(
    r"Object (?P<fault>missing required|contains unknown) field (?P<name>.*)", re.DOTALL
)
_NO_NUMBER = "Unable to parse string as an integer"

_WORDS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number with a fraction",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_FORMS = {
    "^[0-9a-f]{64}$": "64 hex digits in lower case",
    "^[0-9a-f]{32}$": "32 hex digits in lower case",
    "^[a-z0-9-]{1,64}$": "1 to 64 of a to z, 0 to 9 and -",
    "^[a-z0-9._-]{1,64}$": "1 to 64 of a to z, 0 to 9, ., _ and -",
    r"^[^\\x00]*$": "a text without U+0000",
}


def said(error: Exception, whole: str, kind: Any = None) -> str:
    """A decoder's error as a sentence about a member, or about `whole`, which has this `kind`."""
    match = _LOCATED.fullmatch(str(error))
    if isinstance(error, RecursionError) or match is None:
        return f"{whole} is nested too deeply."
    what, where = match["what"], match["where"] or whole
    verb = "has" if match["where"] or whole.endswith("request") else "have"
    if found := _EXPECTED.fullmatch(what):
        return f"{where} {_must(found)}."
    if found := _ENUM.fullmatch(what):
        allowed = _one_of(_choices(kind, where) or ["another value"])
        return f"{where} must be {allowed}, not {found['got']}."
    if found := _FIELD.fullmatch(what):
        if found["fault"] == "missing required":
            return f"{where} {verb} no member {found['name'].replace('`', '')}, which is needed."
        other = _similar(found["name"].strip("`"), kind, match["where"])
        return f"{where} {verb} the unknown member {other}"
    if what == _NO_NUMBER:
        return f"{where} must be a whole number."
    return f"{where}: {what[:1].lower()}{what[1:].replace('`', '')}."


def unknown_method(name: str, methods: Iterable[str]) -> str:
    """The sentence for a method that there is not."""
    # Those of the same group or with the same verb: to compare all takes a millisecond.
    group, _, verb = name[:64].rpartition(".")
    like = [one for one in methods if group == one.partition(".")[0] or one.endswith(f".{verb}")]
    near = sorted(get_close_matches(name[:64], like, n=2))
    hint = f"Did you mean {_one_of(near)}?" if near else "rpc.discover lists the methods."
    return f"There is no such method. {hint}"


def _must(found: re.Match[str]) -> str:
    kinds, number = found["kinds"], found["number"]
    if found["form"]:
        return f"must be {_FORMS.get(found['form'], 'of the form ' + found['form'])}"
    if number is None:
        got = _WORDS.get(found["got"] or "", found["got"])
        words = [_WORDS.get(one, one) for one in kinds.split(" | ") if one != "null"]
        return f"must be {_one_of(words)}" + (f", not {got}" if got else "")
    bound = "at least" if found["bound"] == ">=" else "at most"
    if found["length"] is None:
        return f"must be {bound} {number}"
    unit = "character" if kinds == "str" else "member"
    return f"must have {bound} {number} {unit}{'' if number == '1' else 's'}"


def _one_of(words: list[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def _similar(name: str, kind: Any, where: str | None) -> str:
    """The name of an unknown member, with one that is similar, or else with all that there are."""
    found = [] if kind is None else _at(kind, where or "")
    known = [field.encode_name for one in found for field in getattr(one, "fields", ())]
    shown = json.dumps(name[:64], ensure_ascii=False)
    if near := get_close_matches(name[:64], known, n=1):
        return f"{shown}; did you mean {near[0]}?"
    return f"{shown}; there are {', '.join(known)}." if known else f"{shown}."


def _choices(kind: Any, path: str) -> list[str]:
    """The strings that a type allows at a path of members, as JSON."""
    if kind is None:
        return []
    literals = (one for one in _at(kind, path) if isinstance(one, msgspec.inspect.LiteralType))
    return [json.dumps(value) for one in literals for value in one.values]


def _at(kind: Any, path: str) -> list[msgspec.inspect.Type]:
    """What a type is at a path such as `piles[0].name`; the type itself at an empty one."""
    found = _alternatives(_described(kind))
    for name in filter(None, path.replace("[", ".[").split(".")):
        found = [
            inner for one in found for next_ in _inside(one, name) for inner in _alternatives(next_)
        ]
    return found


@cache
def _described(kind: Any) -> msgspec.inspect.Type:
    """What msgspec says of one of the parameters' types, which are few: it takes long."""
    return msgspec.inspect.type_info(kind)


def _inside(kind: msgspec.inspect.Type, name: str) -> Iterable[msgspec.inspect.Type]:
    if name.startswith("["):
        item = getattr(kind, "item_type", None)
        return () if item is None else (item,)
    return [field.type for field in getattr(kind, "fields", ()) if field.encode_name == name]


def _alternatives(kind: msgspec.inspect.Type) -> list[msgspec.inspect.Type]:
    if isinstance(kind, msgspec.inspect.Metadata):
        return _alternatives(kind.type)
    if isinstance(kind, msgspec.inspect.UnionType):
        return [inner for one in kind.types for inner in _alternatives(one)]
    return [kind]
