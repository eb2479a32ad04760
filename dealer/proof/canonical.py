"""Every fact is written in one way only, so that two people who have it have the same bytes.

The format is RFC 8785 (JCS) over less than JSON: objects with keys `[a-z][a-z0-9_]*`, arrays,
booleans, integers 0…2^53−1, and strings of Unicode scalar values without U+0000–001F and U+007F,
not normalised. Sorted keys, no spaces, raw UTF-8 and the escapes `\\"` and `\\\\` are all of it.

Who reads, writes again and refuses a difference: `1.0`, `1e2`, `-0`, doubled keys, `\\u00e9` and
2^53+1 fail for that alone, whatever a JSON parser makes of them. Arrays and objects stand at most
DEPTH_MAX deep in each other, so that no text can exhaust a reader's stack.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from dealer.errors import NotCanonical

INTEGER_MAX = 2**53 - 1
DEPTH_MAX = 256

_key = re.compile(r"[a-z][a-z0-9_]*").fullmatch
_unfit = re.compile("[\x00-\x1f\x7f\ud800-\udfff]").search
_unfit_note = re.compile("[\x00-\x09\x0b-\x1f\x7f\ud800-\udfff]").search
_brackets = re.compile(r'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])', re.DOTALL)


def encode(value: object) -> bytes:
    """The only bytes of `value`: dict, list or tuple, bool, int or str, nested as one likes.

    Raises NotCanonical for anything else that it holds.
    """
    _check(value, DEPTH_MAX, newlines=False)
    return dump(value).encode()


def decode(text: bytes | str, *, newlines: bool = False) -> Any:
    """The value that `text` is the canonical form of; NotCanonical if it is not that of any.

    With `newlines` a string may hold U+000A, written `\\n`: a note in a bundle does.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise NotCanonical(f"Byte {error.start} is not UTF-8.") from None
    if text.count("[") + text.count("{") > DEPTH_MAX:
        _check_depth(text)
    try:
        value = json.loads(text, parse_float=_no_fraction, parse_constant=_no_constant)
    except NotCanonical:
        raise
    except ValueError as error:
        raise NotCanonical(f"This is not JSON: {error}.") from None
    _check(value, DEPTH_MAX, newlines=newlines)
    if dump(value) != text:
        raise NotCanonical("This is JSON, but not in its canonical form.")
    return value


def dump(value: object) -> str:
    """Canonical text of a value that `encode` accepts, without its checks."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _check(value: Any, depth: int, *, newlines: bool) -> None:
    kind = type(value)
    if kind is str:
        if (_unfit_note if newlines else _unfit)(value):
            raise NotCanonical("A string holds a control character or half of a surrogate pair.")
    elif kind is int:
        if not 0 <= value <= INTEGER_MAX:
            raise NotCanonical("A number is not an integer from 0 to 2^53-1.")
    elif kind is dict:
        _descend(depth)
        for key, member in value.items():
            if type(key) is not str or not _key(key):
                raise NotCanonical("A key is not a-z and then any of a-z, 0-9 and _.")
            _check(member, depth - 1, newlines=newlines)
    elif kind is list or kind is tuple:
        _descend(depth)
        for member in value:
            _check(member, depth - 1, newlines=newlines)
    elif kind is not bool:
        raise NotCanonical("There is a null, a fraction or another value that has no place here.")


def _descend(depth: int) -> None:
    if depth == 0:
        raise NotCanonical(f"Arrays and objects stand more than {DEPTH_MAX} deep in each other.")


def _check_depth(text: str) -> None:
    depth = 0
    for match in _brackets.finditer(text):
        if match[1]:
            depth += 1
            _descend(DEPTH_MAX + 1 - depth)
        elif match[2]:
            depth -= 1


def _no_fraction(_: str) -> NoReturn:
    raise NotCanonical("A number has a fraction or an exponent.")


def _no_constant(_: str) -> NoReturn:
    raise NotCanonical("NaN and Infinity are no numbers.")
