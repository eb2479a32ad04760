"""Words that the project's texts do not use, each with the standard term to write instead.

It reads identifiers, comments, docstrings, messages and documents of `dealer/`, `migrations/`,
`tests/`, the README and the files around them. Names that clients, operators or SQL users depend
on keep their spelling; CONTRACT lists them with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KINDS = {".py", ".js", ".ts", ".css", ".html", ".md", ".sql", ".mako", ".yml", ".cfg"}
AROUND = [
    "README.md",
    "docker-compose.yml",
    ".github/CONTRIBUTING.md",
    ".github/RELEASING.md",
    ".pre-commit-config.yaml",
]

WORDS = {
    # requests, commands, events
    r"wish(?:es|ed|ing)?": "command (game), request (RPC)",
    r"judg(?:e[sd]?|ing)": "decide, validate, handle",
    r"deeds?": "journal entry; action",
    r"news": "commit notice, events",
    r"tell(?:s|ing)?|told": "notify, push, report, say; (logging) fields",
    r"retell(?:s|ing)?|retold": "describe, replay",
    # people and processes
    r"guests?": "client; player, spectator",
    r"whoever|nobody|somebody": "the caller, a client that …; no client, an operator",
    r"(?:for|of|to|by|from|with|than) who": "… the client that, players who",
    r"house (?:is open|closes|stops|starts|runs|goes on)": "the server, this node, the process",
    r"made a mistake": "failure, internal error",
    r"trouble[sd]?": "failure, failing",
    r"believ(?:e[sd]?|ing)": "trusts; applies without validation",
    # connections and subscriptions
    r"lines? (?:is|are|was|were) (?:broken|cut|back)": "the connection is lost, re-established",
    r"hung up|hangs? up": "closed the connection",
    r"at the head": "up to date",
    r"look(?:s|ed|ing)? (?:on|again|around|after)": "read again, spectate, poll, operate",
    # data
    r"put(?:s|ting)? away": "archive",
    r"(?:log|database|state|file|table|was|were) put back": "restored from an older backup",
    r"(?:hangs?|lies|stands?) beside|hung": "is stored next to",
    r"lets? go|letting go": "release, delete, disconnect",
    r"stands? (?:in(?! for)|at|beside|under|there|here)|stood": "is stored, is",
    # time and manner
    r"anew|afresh|once more": "again",
    r"for ever": "permanently",
    r"at one go": "in one batch",
    r"lest": "so that … not, to avoid",
    r"just now": "currently",
    r"by (?:itself|themselves)": "automatically; on its own",
    r"as (?:one|they|it) likes?": "arbitrary, any number of",
    # names of earlier modules
    r"(?:the|a) desk|desks?\.py": "command processor, queue",
    r"lookout": "head poller",
    r"closures": "maintenance mode",
    r"askers": "concurrency limit",
    r"scribe": "projection scheduler",
    r"pump": "broadcaster",
    r"resident": "live table, in memory",
    r"footing": "savepoint",
    r"keyring": "round secret cache",
}

CONTRACT = {
    r"""(["'`])nobody\1|\w+: nobody|(?:anyone or|players,) nobody""": "a value of the rules",
    r"dealer_database_trouble": "a metric",
    r"dealer_tables_resident|process_resident_memory_bytes": "a metric",
    r"\"Guest\"|Guest \$?\{|\bguest:|texts\.guest": "the name of a player who gives none",
    r"\"stood\": ": "a member of the JSON of `dealer rebuild --json`",
    r"tell\.\{name\}": "ids of operations in the published AsyncAPI",
}


def texts() -> Iterator[tuple[str, Path]]:
    """Every file that is checked, with its room: the folder below `dealer/`, or where it is."""
    for path in sorted([*(ROOT / "dealer").rglob("*"), *(ROOT / "migrations").rglob("*")]):
        if path.suffix in KINDS and "__pycache__" not in path.parts:
            parts = path.relative_to(ROOT).parts
            yield parts[1] if parts[0] == "dealer" and len(parts) > 2 else parts[0], path
    for path in sorted((ROOT / "tests").rglob("*")):
        if path.suffix in KINDS and "__pycache__" not in path.parts and path != Path(__file__):
            yield "tests", path
    for name in AROUND:
        yield "documents", ROOT / name
    for folder in (".client", ".compose", ".kubernetes"):
        for path in sorted((ROOT / folder).glob("*.*")):
            yield "documents", path


FILES: dict[str, list[Path]] = {}
for _room, _path in texts():
    FILES.setdefault(_room, []).append(_path)

BETWEEN = r"[\s#*/_\"-]+"  # words of a phrase may be on two lines, of a comment or a literal
SEARCHED = {
    re.compile(rf"(?:{words.replace(' ', BETWEEN)})(?![a-z])"): write
    for words, write in WORDS.items()
}
"""On text in lower case, without a condition before the word: re finds a literal start fastest."""


def found(text: str) -> list[tuple[int, str, str]]:
    """Line, word and what to write, for each use; `takenUp` and `taken_up` are two words each."""
    for name in CONTRACT:
        text = re.sub(name, lambda match: " " * len(match[0]), text)
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()
    return sorted(
        (text.count("\n", 0, start) + 1, " ".join(match[0].split()), write)
        for pattern, write in SEARCHED.items()
        for match in pattern.finditer(text)
        if not ((start := match.start()) and "a" <= text[start - 1] <= "z")
    )


@pytest.mark.parametrize("room", sorted(FILES))
def test_words(room: str) -> None:
    faults = [
        f"{path.relative_to(ROOT)}:{line}: {word!r}, write: {write}"
        for path in FILES[room]
        for line, word, write in found(path.read_text(encoding="utf-8"))
    ]
    assert not faults, f"{len(faults)} words in {room}\n" + "\n".join(faults)


@pytest.mark.parametrize(
    "text",
    [
        "# The guest is told.",
        "def judge(): ...",
        "class GuestConnection: ...",
        "let guestName = 1;",
        "_put_away = True",
        "# it is put\n# away",
        "This happens by\nitself.",
        "Nobody may see it.",
    ],
)
def test_a_word_is_found(text: str) -> None:
    assert found(text)


@pytest.mark.parametrize(
    "text",
    [
        'rules={"collect": "nobody"}',
        "dealer_database_trouble 0",
        "suggests, intelligent, newsletter, misjudgement, deeded",
        "The house signs each checkpoint.",
    ],
)
def test_other_words_are_not(text: str) -> None:
    assert found(text) == []


def test_every_exception_is_used() -> None:
    everything = "\n".join(
        path.read_text(encoding="utf-8") for paths in FILES.values() for path in paths
    )
    for name in CONTRACT:
        assert re.search(name, everything), name
