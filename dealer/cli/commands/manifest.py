"""`dealer manifest`: SHA-256 of the files that random numbers, shuffles and proofs depend on."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable

from dealer.cli.output import echo
from dealer.version import __version__

RANDOM_NUMBERS = (
    "client/entropy.py",  # the nonces of players
    "game/tape.py",  # the words that both determine, and unbiased numbers from them
    "service/commands/executor.py",  # the secret of the house
    "service/tables/round_secret.py",
    "web/client/entropy.js",
)
SHUFFLE = (
    "game/cards.py",
    "game/commands.py",
    "game/decide/round_secrets.py",
    "game/decide/shuffles.py",
    "game/events.py",
    "game/immutable.py",
    "game/insecure_deck.py",
    "game/shuffle.py",
    "game/stacks.py",
    "game/state.py",
    "service/tables/insecure_decks.py",
    "service/commands/random_draws.py",
)
PROOF = ("proof", "web/verify.js")
"""A folder stands for all its modules."""


def manifest() -> None:
    """Print the SHA-256 of every file of random numbers, shuffle and proof, as `sha256sum` does.

    The paths are those in the folder of installed packages, in which `sha256sum -c` accepts the
    output. After them, as comments, come the SHA-256 of these lines, one number that installations
    can compare, and the hashes for Subresource Integrity of the scripts that the server offers to
    pages of others.
    """
    from dealer.gateway.pages.modules import integrity
    from dealer.gateway.pages.static_files import StaticFiles

    total = sha256()
    lines = [f"{sha256(data).hexdigest()}  {path}\n" for path, data in listed_files()]
    for line in lines:
        total.update(line.encode())
        echo(line.rstrip())
    echo(f"# {total.hexdigest()}  {len(lines)} files of dealer {__version__}")
    for address, file in StaticFiles().versioned.items():
        echo(f"# {integrity(file.data)}  {address}")


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
