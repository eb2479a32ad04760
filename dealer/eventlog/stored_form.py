"""The stored form of a row, in about half the bytes of its canonical texts.

    column    read as                                  stored as
    type      CardDrawn                                D
    public    {"from":"deck","round":1,"seat":1,…}     ["deck",1,1,51]: the values, in order
    hidden    (of a DeckSealed there is none)          its slots, 32 bytes each
    command   seat:1:2/4b0f1c0e-…, 45 characters       UUID (16 bytes) ‖ "1:2"; in PostgreSQL's text
                                                       column ~ ‖ base64 of the UUID ‖ "1:2"
    digest    16 bytes ‖ number of events, be32        16 bytes ‖ number of events, 1 byte

Each row has exactly one stored form, from which it is read again byte for byte. What the form on
the right cannot say is stored as it is on the left: a public part with other members or values, the
types that SQL looks for (the beginning and end of tables, rounds and seats), an id without a UUID,
a number of events above 255. A stored `public` begins with `[`, an object with `{`. After a UUID
`/` precedes a scope other than of a seat.

The view `events` of the database makes type, public part and command readable, for SQL.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from dealer.eventlog.rows import EventRecord

_NUMBER = r"(-?(?:0|[1-9][0-9]{0,17}))"
# Without comma, quote and backslash, so that the values can be separated again.
_TEXT = r'("[ !#-+\--\[\]-~]*")'

KINDS = {
    "S": ("CardsSwapped", {"i": _NUMBER, "k": _NUMBER, "round": _NUMBER, "step": _NUMBER}),
    "D": ("CardDrawn", {"from": _TEXT, "round": _NUMBER, "seat": _NUMBER, "slot": _NUMBER}),
    "L": ("DeckSealed", {"first": _NUMBER, "k": _NUMBER, "round": _NUMBER}),
    "M": (
        "CardMoved",
        {"from": _TEXT, "place": _NUMBER, "round": _NUMBER, "slot": _NUMBER, "to": _TEXT},
    ),
    "P": ("CardPeeked", {"round": _NUMBER, "seat": _NUMBER, "slot": _NUMBER}),
    "F": ("CardShown", {"card": _TEXT, "round": _NUMBER, "salt": _TEXT, "slot": _NUMBER}),
    "E": ("EntropyClosed", {"k": _NUMBER, "round": _NUMBER}),
    "C": ("EntropyCommitted", {"digest": _TEXT, "k": _NUMBER, "round": _NUMBER, "seat": _NUMBER}),
    "R": ("EntropyRevealed", {"k": _NUMBER, "nonce": _TEXT, "round": _NUMBER, "seat": _NUMBER}),
    "B": (
        "ShuffleStarted",
        {
            "algorithm": _TEXT, "k": _NUMBER, "n": _NUMBER, "round": _NUMBER, "stack": _TEXT,
            "steps": _NUMBER,
        },
    ),
}  # fmt: skip
"""Code of a type → the type, and the members of its public part, in canonical order."""

SEALED = "L"
"""The code whose slots, the last member, are in the column `hidden`."""

_SLOT = 32
_SEALED_TYPE = "DeckSealed"
_UUID = 36
_SCOPE = 16
_ZEROS = bytes(3)
_REMEMBERED = 4096
"""Public parts whose short form is kept in memory, about 1 MB."""

DIGEST = 16
"""Bytes of a command's digest, an HMAC under a key of the house; digests are only compared."""

_SHORT_DIGEST = DIGEST + 1
_ID = 16
_MARK = "~"
_SEAT = "seat:"
_ID_CHARACTERS = 22


class _Kind(NamedTuple):
    code: str
    type: str
    match: Callable[[str], re.Match[str] | None]
    template: str
    values: int


def _kind(code: str) -> _Kind:
    name, members = KINDS[code]
    texts = [f'"{member}":{value}' for member, value in members.items()]
    template = ",".join(f'"{member}":%s' for member in members)
    if code == SEALED:
        texts.append(r'"slots":\[(.*)\]')
        template += ',"slots":[%s]'
    pattern = re.compile(r"\{" + ",".join(texts) + r"\}")
    return _Kind(code, name, pattern.fullmatch, f"{{{template}}}", len(members))


_BY_CODE = {code: _kind(code) for code in KINDS}
_BY_TYPE = {kind.type: kind for kind in _BY_CODE.values()}
_PLAIN_TYPES = _BY_TYPE.keys() - {_SEALED_TYPE}


def encode(row: EventRecord) -> tuple[Any, ...]:
    """The columns to store for a row; its command is bytes if its id has a UUID.

    Raises ValueError for a row that would be read as a short one; its public part is no object.
    """
    ((_, *stored),) = encode_all([(None, (row,))])
    return tuple(stored)


def encode_all(parts: Iterable[tuple[object, Sequence[EventRecord]]]) -> list[tuple[Any, ...]]:
    """`encode` for the rows of many tables, each after the key of its table."""
    found: list[tuple[Any, ...]] = []
    for key, rows in parts:
        for row in rows:
            type, public, hidden, digest = row.type, row.public, row.hidden, row.digest
            if type in _PLAIN_TYPES:
                type, public = _shorten(type, public)
            elif type == _SEALED_TYPE:
                if hidden is None:
                    type, public, hidden = _shorten_sealed(public)
            elif type in _BY_CODE and public[:1] == "[":
                raise ValueError(f"the public part of a {type!r} is a list")
            if digest is not None and digest[DIGEST:-1] == _ZEROS:
                digest = digest[:DIGEST] + digest[-1:]
            found.append(
                (
                    key, row.version, type, row.schema, row.at, public, row.commitment, hidden,
                    row.command and stored_command(row.command), digest,
                )
            )  # fmt: skip
    return found


@lru_cache(maxsize=_REMEMBERED)
def _shorten(type: str, public: str) -> tuple[str, str]:
    """Type and public part in the short form if they have one; many tables have equal ones."""
    kind = _BY_TYPE[type]
    match = kind.match(public)
    return (type, public) if match is None else (kind.code, f"[{','.join(match.groups())}]")


def _shorten_sealed(public: str) -> tuple[str, str, bytes | None]:
    """Type, public and hidden part of a DeckSealed, short if there is a short form."""
    match = _BY_CODE[SEALED].match(public)
    if match is not None:
        *values, slots = match.groups()
        short = f"[{','.join(values)}]"
        with suppress(ValueError):
            hidden = bytes.fromhex(slots.replace('","', "").strip('"'))
            whole = hidden and len(hidden) % _SLOT == 0
            if whole and decode_public(SEALED, short, hidden) == (_SEALED_TYPE, public):
                return SEALED, short, hidden
    return _SEALED_TYPE, public, None


def decode(stored: Any) -> tuple[Any, ...]:
    """The members of a `EventRecord` from the columns that were stored.

    The public part of a damaged row stays as it is, which is no JSON object.
    """
    version, type, schema, at, public, commitment, hidden, command, digest = stored
    if type in _BY_CODE and public[:1] == "[":
        slots, hidden = hidden, None if type == SEALED else hidden
        type, public = decode_public(type, public, slots)
    if command is not None:
        command, digest = decode_command(command, digest)
    return version, type, schema, at, public, commitment, hidden, command, digest


def decode_public(type: str, public: str, hidden: bytes | None) -> tuple[str, str]:
    """Type and canonical public part from the three columns of a row."""
    kind = _BY_CODE.get(type)
    if kind is None or public[:1] != "[":
        return type, public
    values = public[1:-1].split(",")
    if len(values) != kind.values:
        return kind.type, public
    if type == SEALED:
        slots = (hidden or b"").hex()
        width = 2 * _SLOT
        parts = [f'"{slots[at : at + width]}"' for at in range(0, len(slots), width)]
        values.append(",".join(parts))
    return kind.type, kind.template % tuple(values)


def stored_command(command: str) -> str | bytes:
    """A command's id as it is stored: bytes if it has a UUID, and else as it is."""
    scope, _, text = command.rpartition("/")
    digits = text.replace("-", "")
    if len(text) != _UUID or len(digits) != 2 * _ID or not 0 < len(scope) <= _SCOPE:
        return command
    if not text[8] == text[13] == text[18] == text[23] == "-" or "/" in scope:
        return command
    try:
        packed = bytes.fromhex(digits)
    except ValueError:
        return command
    if packed.hex() != digits:
        return command
    short = scope[len(_SEAT) :] if scope.startswith(_SEAT) else f"/{scope}"
    return packed + short.encode()


def stored_text(command: str) -> str:
    """A command's id as it is stored in PostgreSQL's text column."""
    stored = stored_command(command)
    if isinstance(stored, str):
        return stored
    return _MARK + b64encode(stored[:_ID])[:_ID_CHARACTERS].decode() + stored[_ID:].decode()


def decode_command(command: str | bytes, digest: bytes | None) -> tuple[str, bytes | None]:
    """Id and digest of a command from their columns; a damaged id stays as it is."""
    if digest is not None and len(digest) == _SHORT_DIGEST:
        digest = digest[:DIGEST] + _ZEROS + digest[DIGEST:]
    if isinstance(command, str):
        encoded, scope = command[1 : 1 + _ID_CHARACTERS], command[1 + _ID_CHARACTERS :]
        if not command.startswith(_MARK) or len(encoded) < _ID_CHARACTERS:
            return command, digest
        try:
            stored = b64decode(encoded + "==", validate=True) + scope.encode()
        except ValueError:
            return command, digest
    else:
        stored = command
    text = stored[:_ID].hex()
    uuid = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
    scope = stored[_ID:].decode(errors="replace")
    return f"{scope[1:] if scope[:1] == '/' else _SEAT + scope}/{uuid}", digest
