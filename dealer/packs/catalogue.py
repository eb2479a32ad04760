"""The packs and games of a server: those of this version, and those in an operator's folders."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache, partial
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

from dealer.errors import BadRequest, ConfigurationError
from dealer.game.rules import FREE, PACK_NAME, STANDARD
from dealer.packs import game, members, pack
from dealer.packs.csv_pack import parse_csv

FILE_MAX = 2 * 1024 * 1024
"""Bytes of a file of a pack or a game."""

FILES_MAX = 200
"""Files of a folder."""

SAVE = "Save it as UTF-8; spreadsheet programs call that “CSV UTF-8” or “Unicode (UTF-8)”."

_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # of spreadsheet programs: .xlsx and .ods, .xls
_LINE_END = re.compile("\r\n?|\n")

_CSV, _JSON = ".csv", ".json"

Files = dict[str, dict[str, Any]]
"""Packs or games by their names."""

Read = Callable[[Traversable, str], dict[str, Any]]
"""Reads a file at a path with this text."""


class Catalogue(NamedTuple):
    """The packs and games by name, as their readers return them."""

    packs: Files
    games: Files

    def documents(self) -> dict[str, Callable[[], bytes]]:
        """JSON documents by address: the two lists, and each pack and game."""
        lists = {"/packs.json": self._packs, "/games.json": self._games}
        return lists | {
            f"/{kind}/{name}.json": partial(_dump, file)
            for kind, files in (("packs", self.packs), ("games", self.games))
            for name, file in files.items()
        }

    def pile_titles(self, tag: str) -> dict[str, dict[str, str]]:
        """The titles of piles in a language, by game and by the plain name of the pile."""
        return {
            name: {pile["name"]: members.in_language(pile["title"], tag) for pile in game["piles"]}
            for name, game in self.games.items()
        }

    def rules_for(self, rules: Mapping[str, Any]) -> dict[str, Any]:
        """The rules of a table to be opened: a game's or a pack's deck is its own if none is given.

        So the log says which cards are dealt, and every node deals the same, whatever its folders
        have. Raises BadRequest for a game or a pack that this server does not know; what is not
        even a name is left to `Rules.check`.
        """
        named = dict(rules)
        game, pack = rules.get("game"), rules.get("pack")
        if isinstance(game, str):
            found = _known(self.games, game, "game")
            pack = named.setdefault("pack", found["pack"]) if "pack" in found else pack
            named.setdefault("deck", found["deck"])
        if isinstance(pack, str) and PACK_NAME.fullmatch(pack) and pack != STANDARD:
            named.setdefault("deck", list(_known(self.packs, pack, "pack")["deck"]))
        return named

    def _packs(self) -> bytes:
        return _dump(
            [
                {"pack": name, "title": pack["title"], "cards": len(pack["deck"])}
                for name, pack in self.packs.items()
            ]
        )

    def _games(self) -> bytes:
        shown = ("game", "title", "players", "picture", "cards", "pack", "deck", "rules")
        return _dump([{k: game[k] for k in shown if k in game} for game in self.games.values()])


def _known(files: Files, name: str, kind: str) -> dict[str, Any]:
    if name in files:
        return files[name]
    similar = get_close_matches(name, files, n=1)
    hint = f" Did you mean {similar[0]}?" if similar else ""
    raise BadRequest(
        f"This server has no {kind} {name!r:.70}.{hint} /{kind}s.json lists those that it has; a "
        f"{kind} of another name is a rule that begins with {FREE}."
    )


@cache
def shipped() -> Catalogue:
    """The packs and games of this version."""
    web = resources.files("dealer") / "web"
    packs = _read_folder(web / "packs", _read_pack)
    return Catalogue(packs, _read_folder(web / "games", partial(_read_game, packs=packs)))


def read_folders(packs: Path | None, games: Path | None) -> Catalogue:
    """The shipped packs and games, and those of two folders, which replace shipped ones.

    ConfigurationError, naming the file and the place in it, for a wrong file.
    """
    own_packs = {} if packs is None else _read_folder(packs, _read_pack)
    all_packs = shipped().packs | own_packs
    own_games = {} if games is None else _read_folder(games, partial(_read_game, packs=all_packs))
    return Catalogue(all_packs, shipped().games | own_games)


def read_file(
    path: Path, *, packs: Mapping[str, Any], notes: list[str] | None = None
) -> tuple[str, dict[str, Any]]:
    """`pack` or `game`, and what the file has; a game's file has members that no pack has.

    A sentence about what a pack does not use is added to `notes`.
    """
    text = _text(path)
    if _kind(path) == _JSON and game.ONLY & members.parse_json(text).keys():
        return "game", _read_game(path, text, packs=packs)
    return "pack", _read_pack(path, text, notes=notes)


def _read_folder(folder: Traversable, read: Read) -> Files:
    try:
        paths = sorted(
            (file for file in folder.iterdir() if _kind(file) in (_JSON, _CSV)),
            key=lambda file: file.name,
        )
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be read: {error.strerror}.") from None
    if len(paths) > FILES_MAX:
        raise ConfigurationError(f"{folder} has more than {FILES_MAX} files.")
    found: Files = {}
    for path in paths:
        name = Path(path.name).stem
        if name in found:
            raise ConfigurationError(f"{path}: there is another file of this name.")
        try:
            found[name] = read(path, _text(path))
        except ConfigurationError as error:
            raise ConfigurationError(f"{path}: {error}") from None
    return found


def _text(path: Traversable) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"it cannot be read: {error.strerror}.") from None
    if len(data) > FILE_MAX:
        raise ConfigurationError(f"it has more than {FILE_MAX} bytes.")
    return decode(data)


def _kind(path: Traversable) -> str:
    """The ending of a file's name, in lower case, with its point."""
    return "".join(path.name.rpartition(".")[1:]).lower()


def _read_pack(path: Traversable, text: str, *, notes: list[str] | None = None) -> dict[str, Any]:
    name = members.name(Path(path.name).stem, "the name of the file")
    if _kind(path) == _CSV:
        return pack.read(parse_csv(text, name=name, notes=notes), name=name)
    if _kind(path) == _JSON:
        return pack.read(members.parse_json(text), name=name)
    raise ConfigurationError("The name of a pack's file ends in .csv or .json: rename it.")


def _read_game(path: Traversable, text: str, *, packs: Mapping[str, Any]) -> dict[str, Any]:
    name = members.name(Path(path.name).stem, "the name of the file")
    return game.read(members.parse_json(text), name=name, packs=packs)


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def decode(data: bytes) -> str:
    """The text of a file that a person saved: UTF-8, or UTF-16 with its mark, which stays.

    Raises ConfigurationError, with the place of the first byte that cannot be read. Text in another
    character set would have other letters, and bytes do not say which set it was.
    """
    if data.startswith(_WORKBOOKS):
        raise ConfigurationError(f"it is a workbook, not a text. {SAVE}")
    if data.startswith(_UTF_32):
        raise ConfigurationError(f"it is UTF-32. {SAVE}")
    encoding = _UTF_16.get(data[:2], "utf-8")
    zero = -1 if encoding in _UTF_16.values() else data.find(0)
    if zero >= 0:
        at = _place(data, zero, encoding)
        raise ConfigurationError(
            f"{at} is 0x00, as in UTF-16 without a byte order mark at its beginning. {SAVE}"
        )
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        at = _place(data, error.start, encoding)
        found = f"0x{data[error.start]:02X}, which is not {encoding[:6].upper()}"
        raise ConfigurationError(f"{at} is {found}. {SAVE}") from None


def _place(data: bytes, start: int, encoding: str) -> str:
    """The line of a byte and its place in the line, both from 1 on."""
    lines = _LINE_END.split(data[:start].decode(encoding, "replace"))
    return f"line {len(lines)}, byte {len(lines[-1].encode(encoding)) + 1}"
