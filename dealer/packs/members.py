"""Reading members of the files of packs and games: each fault is one sentence that names its place.

`at` is the place of a value in its file, such as `cards, "R5": colour`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from dealer.errors import ConfigurationError

TEXT_MAX = 400
"""Characters of a text."""

SVG_MAX = 64 * 1024
"""Characters of a picture."""

Text = str | dict[str, str]
"""A text in English, or in several languages by their codes, such as `{"en": …, "pt-BR": …}`."""

_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_NAME = re.compile(r"[a-z0-9-]{1,64}")
_PILE = re.compile(r"[!-~]{1,32}")
# Joiners, which some scripts need, are allowed; what changes the direction of other text is not.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SVG = "{http://www.w3.org/2000/svg}svg"


def parse_json(text: str) -> dict[str, Any]:
    """The object in a JSON text; a fault names the line, or the member that occurs twice."""
    try:
        text = text.removeprefix("\ufeff")
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ConfigurationError(
            f"line {error.lineno}, column {error.colno}: this is not JSON: {error.msg}."
        ) from None
    except RecursionError:
        raise ConfigurationError("the objects are nested too deeply.") from None
    except ValueError:
        raise ConfigurationError("a number has too many digits.") from None
    if not isinstance(value, dict):
        raise ConfigurationError("the file must hold one JSON object.")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ConfigurationError(f"the member {json.dumps(name)} occurs twice in one object.")
        found[name] = value
    return found


def _refuse_constant(text: str) -> None:
    raise ConfigurationError(f"{text} is not a number of JSON.")


def only(given: Mapping[str, Any], names: Iterable[str], at: str) -> None:
    """Refuse members that have no meaning."""
    known = list(names)
    for name in given:
        if name not in known:
            similar = get_close_matches(name, known, n=1)
            hint = f"; did you mean {similar[0]}?" if similar else f": use {', '.join(known)}."
            raise ConfigurationError(f"{at}unknown member {json.dumps(name)}{hint}")


def mapping(value: Any, at: str, names: Iterable[str] | None = None) -> Mapping[str, Any]:
    """An object; with `names` one that has no other members."""
    if not isinstance(value, dict):
        raise ConfigurationError(f"{at} must be an object.")
    if names is not None:
        only(value, names, f"{at}: ")
    return value


def items(value: Any, at: str, *, least: int = 0, most: int) -> list[Any]:
    if not isinstance(value, list) or not least <= len(value) <= most:
        raise ConfigurationError(f"{at} must be a list of {least} to {most}.")
    return value


def whole(value: Any, at: str, *, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ConfigurationError(f"{at} must be a whole number from {least} to {most}.")
    return value


def text(value: Any, at: str) -> Text:
    """A string, or an object of strings by language."""
    if isinstance(value, str):
        _check_string(value, at)
        return value
    if not isinstance(value, dict) or not value:
        raise ConfigurationError(f'{at} must be a text, or texts by language like {{"en": "…"}}.')
    for language, text in value.items():
        if not _LANGUAGE.fullmatch(language):
            raise ConfigurationError(
                f"{at}: {json.dumps(language)} is not the code of a language, like en or pt-BR."
            )
        if not isinstance(text, str):
            raise ConfigurationError(f"{at}, {language}: must be a text.")
        _check_string(text, f"{at}, {language}")
    return dict(value)


def in_language(text: Text, tag: str) -> str:
    """A text in a language, otherwise in English or the first language that it has."""
    if isinstance(text, str):
        return text
    return text.get(tag) or text.get("en") or next(iter(text.values()))


def _check_string(value: str, at: str) -> None:
    if not value.strip() or len(value) > TEXT_MAX or _UNSEEN.search(value):
        raise ConfigurationError(
            f"{at} must have 1 to {TEXT_MAX} characters, none of them a control character."
        )


def string(value: Any, at: str, *, most: int = TEXT_MAX) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > most:
        raise ConfigurationError(f"{at} must be a text of 1 to {most} characters.")
    return value


def name(value: Any, at: str) -> str:
    """The name of a pack or a game, as in addresses and in the rules of tables."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ConfigurationError(f"{at} must be a name of 1 to 64 of a to z, 0 to 9 and -.")
    return value


def pile(value: Any, at: str) -> str:
    """The plain name of a pile, as on the wire."""
    if not isinstance(value, str) or not _PILE.fullmatch(value):
        raise ConfigurationError(
            f"{at} must be 1 to 32 printable ASCII characters without spaces; give the name that "
            "players see as its title."
        )
    return value


def colour(value: Any, at: str) -> str:
    if not isinstance(value, str) or not _COLOUR.fullmatch(value):
        raise ConfigurationError(f"{at} must be a colour like #1d4b3a.")
    return value


def svg(value: Any, at: str) -> str:
    """A picture: the text of an SVG document.

    Pages show it as an image, in which no script runs; here only its form is checked.
    """
    if not isinstance(value, str) or not 0 < len(value) <= SVG_MAX:
        raise ConfigurationError(f"{at} must be an SVG document of at most {SVG_MAX} characters.")
    if "<!" in value.replace("<!--", ""):
        raise ConfigurationError(f"{at} must not have a document type or other declarations.")
    from xml.etree import ElementTree  # at first use: few packs have pictures

    try:
        root = ElementTree.fromstring(value)
    except ElementTree.ParseError as error:
        raise ConfigurationError(f"{at} is not XML: {error}.") from None
    if root.tag != _SVG:
        raise ConfigurationError(
            f'{at} must begin with <svg xmlns="http://www.w3.org/2000/svg" …>.'
        )
    return value
