"""The files of random numbers, shuffle and proof, with their hashes."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable

from dealer.version import __version__

RANDOM_NUMBERS = (
    "client/auto_responder.py",  # the nonces of players
    "game/tape.py",  # the words that both determine, and unbiased numbers from them
    "service/commands/executor.py",  # the secret of the house
    "service/tables/round_secret.py",
    "web/client/entropy.js",
)
SHUFFLE = (
    "game/cards.py",
    "game/commands.py",
    "game/decide/round_secrets.py",
    "game/decide/rounds.py",
    "game/events.py",
    "game/events.py",
    "game/insecure_deck.py",
    "game/shuffle.py",
    "game/stacks.py",
    "game/state.py",
    "service/tables/insecure_decks.py",
    "service/commands/random_draws.py",
)
PROOF = ("proof", "web/verify.js")
"""A folder stands for all its modules."""


def program_note() -> str:
    """What a server notes in the logs of its tables: the version, and the manifest's one number."""
    return f"dealer {__version__}, manifest {total_of(manifest_lines())}"


def manifest_lines() -> list[str]:
    """A line for each file, as `sha256sum` prints it."""
    return [f"{sha256(data).hexdigest()}  {path}\n" for path, data in listed_files()]


def total_of(lines: list[str]) -> str:
    """The one number of a manifest."""
    return sha256("".join(lines).encode()).hexdigest()


def listed_files() -> list[tuple[str, bytes]]:
    """Path, from `dealer/` on, and content of each file, in the order of paths."""
    package = resources.files("dealer")
    found = dict[str, bytes]()
    for path in (*RANDOM_NUMBERS, *SHUFFLE, *PROOF):
        found |= _files(f"dealer/{path}", package.joinpath(path))
    return sorted(found.items())


def _files(path: str, entry: Traversable) -> Iterator[tuple[str, bytes]]:
    if entry.is_file():
        yield path, entry.read_bytes()
        return
    for inner in entry.iterdir():
        if inner.is_dir() or inner.name.endswith(".py"):
            yield from _files(f"{path}/{inner.name}", inner)
