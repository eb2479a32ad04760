"""Modifies each line and each field of a bundle, with and without new signatures.

The forgeries depend only on the bundle, so that two verifiers can be compared on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from dealer.proof import bundle
from dealer.proof.canonical import decode, encode
from dealer.proof.checkpoint import Signer
from tests.proof.log_builder import commit_to, leaves_of, note_of, openings_of, sign

Forgery = tuple[str, list[str]]


def forgeries(lines: Sequence[str], signer: Signer) -> Iterator[Forgery]:
    """Name and lines of each forgery of a bundle whose house signs with `signer`."""
    yield from whole_lines(lines)
    yield from header(lines)
    yield from notes(lines)
    yield from openings(lines)
    yield from as_they_are(lines)
    yield from signed_again(lines, signer)
    yield from renumbered(lines, signer)


def whole_lines(lines: Sequence[str]) -> Iterator[Forgery]:
    """Lines dropped, doubled, exchanged, cut off, or inserted in a wrong place."""
    for n in range(len(lines)):
        yield f"drop {n}", [*lines[:n], *lines[n + 1 :]]
        yield f"double {n}", [*lines[: n + 1], *lines[n:]]
        yield f"cut at {n}", list(lines[:n])
        if n + 1 < len(lines):
            yield f"exchange {n}", [*lines[:n], lines[n + 1], lines[n], *lines[n + 2 :]]
        yield f"empty line at {n}", [*lines[:n], "", *lines[n:]]
        yield f"space after {n}", [*lines[:n], f"{lines[n]} ", *lines[n + 1 :]]
        yield f"no object in {n}", [*lines[:n], "7", *lines[n + 1 :]]


def header(lines: Sequence[str]) -> Iterator[Forgery]:
    head = decode(lines[0])
    for name, changed in changes(head):
        yield f"header {name}", [encode(changed).decode(), *lines[1:]]


def notes(lines: Sequence[str]) -> Iterator[Forgery]:
    """Each line of each note left out, doubled, or with a changed letter."""
    for n, line in enumerate(lines):
        if not line.startswith('{"checkpoint"'):
            continue
        parts = note_of(line).split("\n")
        for at, part in enumerate(parts):
            kept = [*parts[:at], *parts[at + 1 :]]
            others = [("without", kept), ("twice", [*parts[: at + 1], *parts[at:]])]
            for letter in sorted({0, len(part) // 2, len(part) - 4, len(part) - 1}):
                if 0 <= letter < len(part):
                    text = part[:letter] + other_letter(part[letter]) + part[letter + 1 :]
                    others.append((f"letter {letter}", [*parts[:at], text, *parts[at + 1 :]]))
            for name, changed in others:
                forged = bundle.checkpoint("\n".join(changed))
                yield f"note {n} line {at} {name}", [*lines[:n], forged, *lines[n + 1 :]]


def openings(lines: Sequence[str]) -> Iterator[Forgery]:
    """Each field of each opening changed."""
    for n, line in enumerate(lines):
        if line.startswith('{"opened"'):
            for name, changed in changes(decode(line)):
                yield f"opening {n} {name}", [*lines[:n], encode(changed).decode(), *lines[n + 1 :]]


def as_they_are(lines: Sequence[str]) -> Iterator[Forgery]:
    """Each field of each leaf changed, and nothing else."""
    for n, leaf in enumerate(leaves_of(lines)):
        for name, changed in changes(leaf):
            forged = [*lines[: n + 1], encode(changed).decode(), *lines[n + 2 :]]
            yield f"as is {n + 1} {name}", forged


def signed_again(
    lines: Sequence[str], signer: Signer, wanted: Callable[[int, str], bool] = lambda n, name: True
) -> Iterator[Forgery]:
    """Each changed field of each leaf that `wanted(number, name)` selects, with new signatures."""
    leaves = leaves_of(lines)
    origin = decode(lines[0])["origin"]
    number = 0
    for n, leaf in enumerate(leaves):
        for field, changed in changes(leaf):
            name = f"signed {n + 1} {field}"
            if wanted(number, name):
                forged = [*leaves[:n], changed, *leaves[n + 1 :]]
                yield name, sign(forged, signer, origin, openings_of(lines))
            number += 1


def renumbered(lines: Sequence[str], signer: Signer) -> Iterator[Forgery]:
    """Events dropped, doubled or exchanged, with renumbered versions and new signatures."""
    leaves = leaves_of(lines)
    origin = decode(lines[0])["origin"]
    opened = {opening["version"]: opening for opening in map(decode, openings_of(lines))}
    for n in range(len(leaves)):
        for name, changed in (
            ("drop", [*leaves[:n], *leaves[n + 1 :]]),
            ("double", [*leaves[: n + 1], *leaves[n:]]),
            ("exchange", [*leaves[:n], *leaves[n : n + 2][::-1], *leaves[n + 2 :]]),
            ("end at", leaves[:n]),
        ):
            if changed != leaves and changed:
                times = sorted(leaf["at"] for leaf in changed)
                fitted, kept = [], []
                for version, (leaf, at) in enumerate(zip(changed, times, strict=True), 1):
                    fitted.append({**leaf, "at": at, "version": version})
                    if opening := opened.get(leaf["version"]):  # the house commits to it again
                        part, salt = opening["opened"], bytes.fromhex(opening["salt"])
                        kept.append(commit_to(fitted[-1], part, salt))
                yield f"renumbered {name} {n + 1}", sign(fitted, signer, origin, kept)


def changes(value: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The object with one member left out, changed or added."""
    yield f"{path}+", {**value, "zz": 1}
    for name, member in value.items():
        yield f"{path}{name} left out", {k: v for k, v in value.items() if k != name}
        for what, other in others(member, f"{path}{name}"):
            changed = deepcopy(value)
            changed[name] = other
            yield what, changed


def others(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if type(value) is int:
        yield f"{path} + 1", value + 1
        if value:
            yield f"{path} - 1", value - 1
        yield f"{path} huge", 2**53 - 1
        yield f"{path} as text", str(value)
    elif type(value) is str:
        yield f"{path} first", other_letter(value[0]) + value[1:]
        yield f"{path} last", value[:-1] + other_letter(value[-1])
        yield f"{path} longer", f"{value}0"
        yield f"{path} empty", ""
        if value in WORDS:
            yield f"{path} other", WORDS[value]
    elif type(value) is list:
        yield f"{path} shorter", value[:-1]
        yield f"{path} longer", [*value, *value[:1]]
        yield f"{path} turned", value[::-1]
        for n, member in enumerate(value):
            for what, other in others(member, f"{path}[{n}]"):
                yield what, [*value[:n], other, *value[n + 1 :]]
    elif type(value) is dict:
        yield from changes(value, f"{path}.")


WORDS = {
    "players": "house",
    "house": "players",
    "backward": "forward",
    "forward": "backward",
    "deck": "pile:burn",
    "pile:burn": "deck",
    "pile:up": "deck",
    "hand:1": "hand:2",
    "hand:2": "hand:1",
    "SeatTaken": "SeatLeft",
    "EntropyClosed": "ShuffleVoided",
    "ShuffleVoided": "EntropyClosed",
    "RoundOpened": "RoundClosed",
}


def other_letter(letter: str) -> str:
    """Another letter of the same kind: the next digit, or the other case."""
    if letter.isascii() and letter.isdigit():
        return str((int(letter) + 1) % 10)
    if letter in "abcdef":
        return "bcdefa"["abcdef".index(letter)]
    return letter.swapcase() if letter.swapcase() != letter else "x"
