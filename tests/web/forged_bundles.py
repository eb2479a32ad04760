"""Forged bundles, reproducible by their number.

Both verifiers must report the same first fault in each. The tests try some hundreds of them. More
are tried by

    python -m tests.web.forged_bundles 10000            # numbers 0 … 9999
    python -m tests.web.forged_bundles 500 20000        # starting at number 20000
    python -m tests.web.forged_bundles fields           # each line and field of one bundle: 7,219
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count, islice
from pathlib import Path
from random import Random
from tempfile import gettempdir
from typing import Any, NamedTuple

from dealer.errors import NotCanonical
from dealer.proof.checkpoint import Signer
from dealer.proof.opened import opened_commitment
from tests.proof import forge
from tests.proof.log_builder import DUE, HOUSE_SEED, note_of, openings_of, vectors
from tests.web import mutated_notes
from tests.web.generated_logs import faulty_log, valid_log
from tests.web.js_verifier import Bundle, Line, compare, question
from tests.web.mutated_notes import NoteSigner
from tests.web.played_tables import Played, real_tables

CHUNK = 1000
KINDS = (
    *["fault"] * 4,
    "leaf",
    "leaf",
    "order",
    "order",
    "opening",
    "opening",
    "note",
    "note",
    "text",
    "user",
)


class Base(NamedTuple):
    """A bundle to change: its header, leaves, openings and notes, and a signer with its key."""

    name: str
    head: str
    leaves: list[str]
    openings: list[str]
    notes: list[str]
    signer: NoteSigner

    @classmethod
    def of(cls, name: str, lines: Sequence[Any], seed: bytes) -> Base:
        notes = [note_of(line) for line in lines if line.startswith('{"checkpoint":')]
        openings = openings_of(lines)
        leaves = [*lines[1 : len(lines) - len(openings) - len(notes)]]
        return cls(name, lines[0], leaves, openings, notes, NoteSigner(seed))

    @property
    def origin(self) -> str:
        return str(json.loads(self.head)["origin"])

    def lines(self) -> list[Line]:
        notes = map(mutated_notes.line, self.notes)
        return [self.head, *self.leaves, *self.openings, *notes]

    def signed(self, leaves: list[str]) -> Base:
        """The bundle with other leaves, their openings and the checkpoints that they require."""
        due = [
            size
            for size, leaf in enumerate(leaves, 1)
            if size == len(leaves) or any(f'"type":"{type_}"' in leaf for type_ in DUE)
        ]
        return self._replace(
            leaves=leaves,
            openings=[one for one in self.openings if json.loads(one)["version"] <= len(leaves)],
            notes=mutated_notes.notes(leaves, due, self.origin, self.signer),
        )

    def commit_again(self, leaves: list[dict[str, Any]]) -> Base:
        """The bundle with other leaves, which commit to what they opened, under their versions."""
        opened = [json.loads(one) for one in self.openings]
        known = {json.loads(self.leaves[one["version"] - 1]).get("commit"): one for one in opened}
        openings, texts = [], []
        for leaf in leaves:
            one = known.get(leaf.get("commit"))
            if one is not None:
                openings.append(dump({**one, "version": leaf["version"]}))
                leaf = {**leaf, "commit": commitment(self.origin, json.loads(openings[-1]))}
            texts.append(dump(leaf))
        return self._replace(leaves=texts, openings=openings)


def forged(number: int, real: Sequence[Played] = ()) -> Bundle:
    """The forgery of this number."""
    chance = Random(f"forgery {number}")
    kind = chance.choice(KINDS)
    base = _base(chance, number, real, faulty=kind == "fault" or chance.random() < 0.2)
    house_key = base.signer.public.hex()
    key: str | None = house_key
    saved: list[str] = []
    if kind == "leaf":
        base = _maybe_signed(chance, base, _other_leaf(chance, base.leaves))
    elif kind == "order":
        base = _other_order(chance, base)
        base = _maybe_signed(chance, base, base.leaves)
    elif kind == "opening":
        base = _other_openings(chance, base)
    elif kind == "note":
        base = base._replace(
            notes=mutated_notes.other_notes(chance, base.notes, base.leaves, base.signer)
        )
    elif kind == "user":
        key = chance.choice((house_key, None, house_key.upper(), "", "0" * 64))
        saved = mutated_notes.other_notes(chance, base.notes, base.leaves, base.signer)
        saved = chance.sample(saved, min(len(saved), 3))
        if chance.random() < 0.5:
            base = base.signed(base.leaves[: chance.randrange(1, len(base.leaves) + 1)])
    lines = base.lines()
    if kind == "text":
        lines = _other_text(chance, lines)
    return Bundle(f"{number}, {kind} in {base.name}", lines, key, saved)


def _base(chance: Random, number: int, real: Sequence[Played], *, faulty: bool) -> Base:
    if real and chance.random() < 0.1:
        played = chance.choice(real)
        return Base.of(played.bundle.name, played.bundle.lines, played.seed)
    if chance.random() < 0.1:
        seed = bytes.fromhex(vectors("table")[0]["in"]["house_seed"])
        return Base.of("the vector", vectors("audit")[0]["in"]["lines"], seed)
    log = faulty_log(number) if faulty else valid_log(number)
    return Base.of("generated", log.lines(), HOUSE_SEED)


def _maybe_signed(chance: Random, base: Base, leaves: list[str]) -> Base:
    return base.signed(leaves) if chance.random() < 0.7 else base._replace(leaves=leaves)


# one leaf

ODD: tuple[Any, ...] = (
    0,
    1,
    2,
    7,
    -1,
    -0.0,
    1.0,
    1e2,
    0.5,
    2**32 - 1,
    2**32,
    2**53 - 1,
    2**53,
    2**53 + 1,
    10**400,
    None,
    True,
    False,
    "",
    "x",
    "deck",
    "hand:1",
    "hand:01",
    "hand:0",
    "hand:4294967295",
    "hand:4294967296",
    "hand:99999999999",
    "hand:1\n",
    "pile:",
    "pile:a b",
    "pile:é",
    "pile:" + "x" * 32,
    "pile:" + "x" * 33,
    "??",
    "As",
    "As\n",
    "a" * 16,
    "a" * 17,
    '"',
    "\\",
    "\ud800",
    "\U0001f0a1",
    "\u007f",
    "\u0000",
    "\u2028",
    "\ufeff",
    "\uffff",
    "é",
    "e\u0301",
    "0" * 64,
    "A" * 64,
    "0" * 64 + "\n",
    "0" * 63,
    "\u0660" * 64,
    "dealer/v1",
    "dealer/v2",
    "players",
    "house",
    "backward",
    "forward",
    "cards.example/t/" + "0" * 32,
    [],
    {},
    [[]],
    ["As", "As"],
    ["As", "Kh"],
    ["As", "K"],
    ["??"],
    [1],
    {"a": 1},
    {"A": 1},
    {"__proto__": 1},
    {"constructor": 1},
)
NAMES = (
    "zz",
    "a1",
    "A",
    "1",
    "__proto__",
    "constructor",
    "tostring",
    "checkpoint",
    "commit",
    "key",
    "seat",
    "place",
    "",
)


def _other_leaf(chance: Random, leaves: list[str]) -> list[str]:
    at = chance.randrange(len(leaves))
    leaf = json.loads(leaves[at])
    for _ in range(chance.choice((1, 1, 1, 2))):
        _change(chance, leaf, leaves)
    text = dump(leaf)
    if chance.random() < 0.05:
        text = json.dumps(leaf, ensure_ascii=chance.random() < 0.5)
    return [*leaves[:at], text, *leaves[at + 1 :]]


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _change(chance: Random, leaf: dict[str, Any], leaves: list[str]) -> None:
    """Change a member somewhere in the leaf, mostly in its public part."""
    inside: Any = leaf
    public = leaf.get("public")
    if chance.random() < 0.75 and type(public) in (dict, list):
        inside = public
    while True:
        names = list(inside if type(inside) is dict else range(len(inside)))
        if not names or chance.random() < 0.05:
            break
        name = chance.choice(names)
        if type(inside[name]) in (dict, list) and inside[name] and chance.random() < 0.7:
            inside = inside[name]
            continue
        if chance.random() < 0.1:
            del inside[name]
        else:
            inside[name] = _other(chance, name, inside[name], leaves)
        return
    if type(inside) is dict:
        inside[chance.choice(NAMES)] = chance.choice(ODD)
    else:
        inside.append(chance.choice(ODD))


def _other(chance: Random, name: Any, value: Any, leaves: list[str]) -> Any:
    kind = chance.randrange(4)
    if kind == 0:
        return chance.choice(ODD)
    if kind == 1:  # the value in another leaf
        there = json.loads(chance.choice(leaves))
        return there.get(name, there["public"].get(name, value))
    if type(value) is int:
        return value + chance.choice((1, -1, 2))
    if type(value) is str and value:
        at = chance.randrange(len(value))
        return value[:at] + chance.choice("0123456789abcdefF\u0669 ") + value[at + 1 :]
    if type(value) is list:
        return chance.sample(value, len(value) - chance.randrange(2)) if value else [0]
    return chance.choice(ODD)


# the order of leaves


def _other_order(chance: Random, base: Base) -> Base:
    leaves = base.leaves
    at, to = sorted(chance.randrange(len(leaves)) for _ in range(2))
    changed = list(leaves)
    match chance.randrange(5):
        case 0:
            del changed[at : at + chance.choice((1, 1, 2, 5))]
        case 1:
            changed.insert(at, leaves[to])
        case 2:
            changed[at], changed[to] = changed[to], changed[at]
        case 3:
            changed.insert(at, changed.pop(to))
        case 4:
            del changed[max(to, 1) :]
    if not changed or chance.random() < 0.2:
        return base._replace(leaves=changed)
    parsed = [json.loads(leaf) for leaf in changed]
    times = sorted(leaf["at"] for leaf in parsed)
    numbered = zip(parsed, times, count(1))
    return base.commit_again(
        [{**leaf, "at": at, "version": version} for leaf, at, version in numbered]
    )


# openings


def commitment(origin: str, opening: dict[str, Any]) -> str:
    """The commitment that an opening, parsed, opens."""
    return opened_commitment(
        table=bytes.fromhex(origin[-32:]),
        version=opening["version"],
        salt=bytes.fromhex(opening["salt"]),
        part=opening["opened"],
    ).hex()


def _other_openings(chance: Random, base: Base) -> Base:
    """Openings withheld, doubled, exchanged or changed; or the house commits to the change."""
    changed = list(base.openings)
    if not changed:
        return base
    at, to = sorted(chance.randrange(len(changed)) for _ in range(2))
    opening = json.loads(changed[at])
    match chance.randrange(7):
        case 0 | 1:
            changed = [one for one in changed if chance.random() < 0.6]
        case 2:
            changed.insert(to, changed[at])
        case 3:
            changed[at], changed[to] = changed[to], changed[at]
        case 4:
            changed[at] = dump({**json.loads(changed[to]), "version": opening["version"]})
        case 5:
            _change(chance, opening, base.leaves)
            changed[at] = dump(opening)
        case _:
            _change(chance, opening["opened"], base.leaves)
            changed[at] = dump(opening)
            leaf = json.loads(base.leaves[opening["version"] - 1])
            with suppress(NotCanonical, UnicodeEncodeError):
                leaf["commit"] = commitment(base.origin, opening)
            leaves = list(base.leaves)
            leaves[opening["version"] - 1] = dump(leaf)
            base = base.signed(leaves)
    return base._replace(openings=changed)


# letters and bytes

INSERTED = (
    " ",
    "\t",
    "\r",
    "\ufeff",
    "\u2028",
    "\u00a0",
    "\x00",
    "\x7f",
    "\\",
    '"',
    ",",
    "0",
    "-",
    ".0",
    "e2",
    "}",
    "{}",
    "[",
    "null",
    "\ud800",
    "\\u0041",
    "\\/",
    "\\n",
    '"a":1,',
    '"at":0,',
    "é",
)


def _other_text(chance: Random, lines: list[Line]) -> list[Line]:
    at = chance.randrange(len(lines))
    text = lines[at]
    assert isinstance(text, str)
    place = chance.randrange(len(text) + 1)
    changed: list[Line]
    match chance.randrange(7):
        case 0:
            raw = bytearray(text.encode())
            raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
            changed = [bytes(raw)]
        case 1:
            changed = [text[:place] + chance.choice(INSERTED) + text[place:]]
        case 2:
            changed = [text[:place] + text[place + 1 :]]
        case 3:
            members = list(json.loads(text).items())
            chance.shuffle(members)
            changed = [json.dumps(dict(members), ensure_ascii=False, separators=(",", ":"))]
        case 4:
            odd = ("", "7", "[]", "{}", "null", "[" * 300 + "]" * 300, "[" * 100_000, "\ufeff{}")
            changed = [text, chance.choice(odd)]
        case 5:
            cut = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf")
            raw_text = text.encode()
            where = chance.choice((0, len(raw_text), chance.randrange(len(raw_text))))
            changed = [raw_text[:where] + chance.choice(cut) + raw_text[where:]]
        case _:
            deep = chance.choice((254, 255, 256, 257))
            changed = [text.replace('"rules":{', '"rules":{"a":' + "[" * deep + "]" * deep + ",")]
    return [*lines[:at], *changed, *lines[at + 1 :]]


# by command


def fields() -> Iterator[Bundle]:
    """Forgeries of each line and field of a vector's bundle, with and without new signatures."""
    lines = vectors("audit")[0]["in"]["lines"]
    seed = bytes.fromhex(vectors("table")[0]["in"]["house_seed"])
    key = NoteSigner(seed).public.hex()
    for name, changed in forge.forgeries(lines, Signer(seed)):
        yield Bundle(name, changed, key)


def numbered(wanted: int, start: int) -> Iterator[Bundle]:
    real = real_tables(largest=False)
    return (forged(number, real) for number in range(start, start + wanted))


def _try(bundles: Iterator[Bundle]) -> bool:
    """Whether both verifiers agree on all bundles; those of disagreements are saved."""
    tried, found = 0, 0
    checks: Counter[str] = Counter()
    while chunk := list(islice(bundles, CHUNK)):
        different, reports = compare(chunk)
        checks.update("none" if r.fault is None else r.fault.check for r in reports)
        for disagreement in different:
            print(*disagreement, sep="\n    ")
            bundle = next(one for one in chunk if one.name == disagreement.name)
            file = Path(gettempdir()) / f"forgery {bundle.name}.json"
            file.write_text(json.dumps(question(bundle)))
            print(f"    saved in {file}")
        tried, found = tried + len(chunk), found + len(different)
        print(f"{tried} tried, {found} disagreements; faults: {dict(checks)}")
    return found == 0


if __name__ == "__main__":
    if sys.argv[1:] == ["fields"]:
        agreed = _try(fields())
    else:
        wanted, start, *_ = map(int, [*sys.argv[1:], *("10000", "0")[len(sys.argv) - 1 :]])
        agreed = _try(numbered(wanted, start))
    sys.exit(0 if agreed else 1)
