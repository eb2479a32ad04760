"""Grammar for fuzzing: JSON-RPC requests generated from the gateway's parameter types.

The values of a member come from the types in `gateway/wire/params.py`, so a new method is covered
automatically. Most members are valid, some are not; some frames are then mutated byte by byte.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import NODEFAULT, UNSET, inspect

from dealer.gateway.session.methods import METHODS
from dealer.gateway.wire.protocol import is_utf8

PARAMS = {name: inspect.type_info(one.params) for name, one in METHODS.items()}
RARE = {"table.open": 0.1, "table.close": 0.002, "table.leave": 0.02, "round.close": 0.1}
"""Share of the messages that these methods get, which end a game or a session."""

WRONG = 0.04
"""Probability that a member has a value that its type does not allow."""

MUTATED = 0.2
"""Probability that a frame is mutated."""

NOT_UTF8 = 0.01
"""Share of the frames which are not UTF-8 that are sent so: each ends its connection."""

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 2**31, 2**53, 2**64, -(2**63), 10**30, 1e308, "", " ", "\x00",
    "\ud800", "é", "😀", "a" * 300, "' OR 1=1 --", "../../etc/passwd", "%s%n", "null", [], {}, [[]],
    {"a": {"b": []}}, [None], "hand:1", "hand:99", "pile:", "deck", "As",
)  # fmt: skip


@dataclass
class Context:
    """What a client at a table knows, for plausible values."""

    table: str
    tokens: list[str]
    cards: list[str]
    version: int = 0
    cmds: list[str] = field(default_factory=list)


class Grammar:
    """Frames for the table of `context`, drawn from `chance`."""

    def __init__(self, context: Context, chance: random.Random) -> None:
        self.context = context
        self._chance = chance
        self._names = list(PARAMS)
        self._weights = [RARE.get(name, 1.0) for name in PARAMS]

    def frame(self, id: str) -> bytes:
        """One request; most have this id."""
        chance = self._chance
        (method,) = chance.choices(self._names, self._weights)
        request: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
        request["params"] = self._struct(PARAMS[method])
        if method == "round.open":
            request["params"]["entropy"] = "house"  # otherwise answers would wait for other players
        if chance.random() < WRONG:
            key = chance.choice((*request, "extra"))
            request[key] = chance.choice(ODD)
        if chance.random() < WRONG:
            request.pop(chance.choice(list(request)))
        text = json.dumps(request, ensure_ascii=chance.random() < 0.5, allow_nan=False)
        data = text.encode(errors="surrogatepass")
        if chance.random() < MUTATED:
            data = self._mutated(data)
        if is_utf8(data) or chance.random() < NOT_UTF8:
            return data
        return data.decode(errors="replace").encode()

    def _struct(self, kind: Any) -> dict[str, Any]:
        chance, made = self._chance, {}
        for one in kind.fields:
            needed = one.default is NODEFAULT and one.default_factory in (NODEFAULT, UNSET)
            if needed or chance.random() < 0.4 or one.encode_name in ("table", "token"):
                made[one.encode_name] = self._member(one.encode_name, one.type)
        if chance.random() < WRONG:
            made[chance.choice(("extra", "Table", "cards", "seat", "expect"))] = chance.choice(ODD)
        if made and chance.random() < WRONG:
            made.pop(chance.choice(list(made)))
        return made

    def _member(self, name: str, kind: Any) -> Any:
        chance, context = self._chance, self.context
        if chance.random() < WRONG:
            return chance.choice(ODD)
        plausible: dict[str, list[Any]] = {
            "table": [context.table],
            "token": context.tokens,
            "expect": [context.version, context.version + 3, 2**40],
            "after": [0, context.version, context.version - 5, 2**40],
            "pile": ["discard", "pile:discard", "table", "side"],
            "stack": ["deck", "pile:discard"],
            "source": ["deck", "pile:discard", "hand"],
        }
        if name == "cmd":
            new = f"{chance.getrandbits(96):024x}"
            context.cmds = [*context.cmds[-50:], new]
            return new if chance.random() < 0.8 else chance.choice(context.cmds)
        known = plausible.get(name)
        if known and chance.random() < 0.9 and not isinstance(kind, inspect.LiteralType):
            return chance.choice(known)
        return self._value(kind)

    def _value(self, kind: Any) -> Any:
        chance = self._chance
        match kind:
            case inspect.UnionType(types=types):
                return self._value(chance.choice(types))
            case inspect.LiteralType(values=values):
                return chance.choice(values)
            case inspect.IntType(ge=low, le=high):
                edge = chance.choice((low or 0, high if high is not None else 2**53))
                return edge if chance.random() < 0.1 else (low or 0) + chance.randrange(6)
            case inspect.StrType(pattern=str()):
                return chance.randbytes(32).hex()
            case inspect.StrType(max_length=longest):
                if longest is not None and longest <= 16:
                    return chance.choice(self.context.cards)
                return chance.choice(("Ada", "deck", "hand", "discard", "x" * (longest or 9)))
            case inspect.ListType(item_type=item):
                return [self._value(item) for _ in range(chance.choice((1, 1, 2, 5)))]
            case inspect.StructType():
                return self._struct(kind)
            case inspect.NoneType():
                return None
            case _:
                return {chance.choice(("preset", "draw", "seats", "x")): chance.choice(ODD)}

    def _mutated(self, data: bytes) -> bytes:
        chance = self._chance
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            at = chance.randrange(len(data) + 1)
            upto = min(len(data), at + chance.choice((1, 1, 2, 8, 40)))
            data = chance.choice(
                (
                    data[:at] + chance.randbytes(1) + data[at + 1 :],
                    data[:at] + data[upto:],
                    data[:upto] + data[at:upto] + data[upto:],
                    data[:at],
                    data[:at] + chance.choice(INSERTED) + data[at:],
                )
            )
            data = data or b" "
        return data


INSERTED: Sequence[bytes] = (
    b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\\u0000", b"\\ud800", b'"', b"{",
    b"}", b"[" * 200, b'{"a":' * 100, b",", b":", b"NaN", b"1e999", b"-0", b"\x00", b"\n",
    b'"id":1,', b'"method":"ping",', b"9" * 400,
)  # fmt: skip
