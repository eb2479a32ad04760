"""Canonical JSON: exactly one byte representation for each value.

The format is RFC 8785 (JCS) over a subset of JSON: objects with keys `[a-z][a-z0-9_]*`, arrays,
booleans, integers 0…2^53−1, and strings of Unicode scalar values without U+0000–001F and U+007F,
not normalised. It needs only sorted keys, no spaces, raw UTF-8 and the escapes `\\"` and `\\\\`.

`decode` encodes the parsed value again and rejects a difference. This alone rejects `1.0`, `1e2`,
`-0`, duplicate keys, `\\u00e9` and 2^53+1, independent of the JSON parser. Nesting is limited to
DEPTH_MAX, so that no text can exhaust the stack of a reader.

A line feed ends a line of NDJSON, of server-sent events and of this program's output. Many line
readers, Python's `str.splitlines` among them, also split at U+000B, U+000C, U+001C to U+001E,
U+0085, U+2028 and U+2029. JSON escapes those below U+0020 in any case; `one_line` does it with the
others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from dealer.errors import NotCanonical

NOT_CANONICAL = "This is JSON, but not in its canonical form."
INTEGER_MAX = 2**53 - 1
DEPTH_MAX = 256

_key = re.compile(r"[a-z][a-z0-9_]*").fullmatch
_unfit = re.compile("[\x00-\x1f\x7f\ud800-\udfff]").search
_unfit_note = re.compile("[\x00-\x09\x0b-\x1f\x7f\ud800-\udfff]").search
_splitting = {number: f"\\u{number:04x}" for number in (0x85, 0x2028, 0x2029)}
# A string without an end goes to the end of the text, so that the search takes linear time.
_brackets = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|([\[{])|([\]}])', re.DOTALL)


def encode(value: object) -> bytes:
    """The canonical bytes of `value`: dict, list, tuple, bool, int or str, arbitrarily nested.

    Raises NotCanonical for values outside the subset.
    """
    _check(value, DEPTH_MAX, newlines=False)
    return dump(value).encode()


def decode(text: bytes | str, *, newlines: bool = False) -> Any:
    """The value whose canonical form is `text`; raises NotCanonical if `text` is not canonical.

    With `newlines` a string may contain U+000A, written `\\n`, as notes in bundles do.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise NotCanonical(f"Byte {error.start} is not UTF-8.") from None
    check_depth(text)
    try:
        value = _parse(text)
    except NotCanonical:
        raise
    except ValueError as error:
        raise NotCanonical(f"This is not JSON: {error}.") from None
    _check(value, DEPTH_MAX, newlines=newlines)
    if dump(value) != text:
        raise NotCanonical(NOT_CANONICAL)
    return value


def _check(value: Any, depth: int, *, newlines: bool) -> None:
    unfit = _unfit_note if newlines else _unfit
    if type(value) is dict:
        _descend(depth)
        for key in value:
            if type(key) is not str or not _key(key):
                raise NotCanonical("A key does not match [a-z][a-z0-9_]*.")
        members: Iterable[Any] = value.values()
    elif type(value) is list or type(value) is tuple:
        _descend(depth)
        members = value
    else:
        members = (value,)
    for member in members:
        kind = type(member)
        if kind is str:
            if unfit(member):
                raise NotCanonical(
                    "A string contains a control character or half of a surrogate pair."
                )
        elif kind is int:
            if not 0 <= member <= INTEGER_MAX:
                raise NotCanonical("A number is not an integer from 0 to 2^53-1.")
        elif kind is dict or kind is list or kind is tuple:
            _check(member, depth - 1, newlines=newlines)
        elif kind is not bool:
            raise NotCanonical("A value is null, a fraction or of another type outside the subset.")


def _descend(depth: int) -> None:
    if depth == 0:
        raise NotCanonical(f"Arrays and objects are nested more than {DEPTH_MAX} deep.")


def check_depth(text: str) -> None:
    """Raise NotCanonical for JSON in which arrays and objects are nested more than DEPTH_MAX deep.

    To be called before anything descends into what another program wrote.
    """
    if text.count("[") + text.count("{") > DEPTH_MAX:
        for _, depth in nesting(text):
            _descend(DEPTH_MAX + 1 - depth)


def nesting(text: str) -> Iterator[tuple[int, int]]:
    """Each bracket and brace of a JSON text outside of strings: its place, and the depth after it.

    The text need not be valid, nor have all its ends.
    """
    depth = 0
    for match in _brackets.finditer(text):
        if match[1] or match[2]:
            depth += 1 if match[1] else -1
            yield match.start(), depth


def _no_fraction(_: str) -> NoReturn:
    raise NotCanonical("A number has a fraction or an exponent.")


def _no_constant(_: str) -> NoReturn:
    raise NotCanonical("NaN and Infinity are not allowed.")


_parse = json.JSONDecoder(parse_float=_no_fraction, parse_constant=_no_constant).decode

_print = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))
dump: Callable[[object], str] = _print.encode
"""The canonical text of a value, which must be one that `encode` accepts; not validated."""


def one_line(text: str) -> str:
    """JSON text as one line for every reader; the same value, with the same canonical form."""
    return text if text.isascii() else text.translate(_splitting)
