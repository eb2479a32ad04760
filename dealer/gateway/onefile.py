"""The audit page as one file, which a person keeps and opens from the disk, with no house at all.

Its styles and its script stand in it, and its policy names them by their hashes: nothing else runs
there, and nothing is asked of any network. The modules are put one behind the other, each in a
function that gives what it exports, because modules of a page that came from a disk may not import
each other.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from html import escape
from importlib import resources
from posixpath import dirname, join, normpath
from typing import NamedTuple
from urllib.parse import quote

Read = Callable[[str], str]
"""Gives the text of a file of `dealer/web` by its path there."""

_STYLE = re.compile(r'<link rel="stylesheet" href="/web/@/(?P<path>[\w./-]+)">\n?')
_SCRIPT = re.compile(r'<script type="module" src="/web/@/(?P<path>[\w./-]+)"></script>\n?')
_ICON = re.compile(r'(?<=<link rel="icon" href=")/web/@/(?P<path>[\w./-]+)(?=">)')
_IMPORT = re.compile(
    r'^import (?:(?P<names>\{[^}]*\})|\* as (?P<all>\w+)) from "(?P<path>[\w./-]+)";$', re.MULTILINE
)
_EXPORT = re.compile(
    r"^export (?=(?:async function\*?|function\*?|class|const) (?P<name>\w+))", re.MULTILINE
)
_LEFT = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)
_RENAMED = re.compile(r"(\w+) as (\w+)")


class OneFile(NamedTuple):
    """A page that needs nothing beside it, and the policy that it has to be sent with."""

    page: bytes
    policy: str


@cache
def audit_page() -> OneFile:
    """The audit page of this version."""
    folder = resources.files("dealer") / "web"
    return compose("audit.html", lambda path: folder.joinpath(path).read_text("utf-8"))


def compose(page: str, read: Read) -> OneFile:
    """Make one file of a page, its styles, its modules and what these import.

    Raises ValueError where a module imports or exports in a way that is not known here: named
    imports and exports of functions, classes and constants are.
    """
    html = read(page)
    styles = "\n".join(read(path) for path in _STYLE.findall(html)).strip()
    script = "\n".join(_modules(_SCRIPT.findall(html), read))
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(styles)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        )
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        f"<style>{styles}</style>\n"
    )
    html = _STYLE.sub("", _SCRIPT.sub("", html))
    html = _ICON.sub(lambda found: f"data:image/svg+xml,{quote(read(found['path']))}", html)
    html = html.replace('<meta charset="utf-8">\n', f'<meta charset="utf-8">\n{head}', 1)
    html = html.replace("</body>", f'<script type="module">{script}</script>\n</body>', 1)
    if "/web/@/" in html:
        raise ValueError(f"{page} refers to a file in a way that is not known here")
    return OneFile(html.encode(), policy)


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _modules(first: list[str], read: Read) -> list[str]:
    """The text of all modules that `first` need, each behind what it imports itself."""
    texts: dict[str, str] = {}

    def bring(path: str, waiting: tuple[str, ...]) -> None:
        if path in texts:
            return
        if path in waiting:
            raise ValueError(f"{' imports '.join((*waiting, path))}: modules import in a circle")
        text = read(path)
        for found in _IMPORT.finditer(text):
            bring(_beside(path, found["path"]), (*waiting, path))
        texts[path] = _wrapped(path, text)

    for path in first:
        bring(path, ())
    return ["const modules = {};", *texts.values()]


def _wrapped(path: str, text: str) -> str:
    """A module as a function that is called at once, and gives what the module exports."""

    def bound(found: re.Match[str]) -> str:
        names = found["all"] or _RENAMED.sub(r"\1: \2", found["names"])
        return f'const {names} = modules["{_beside(path, found["path"])}"];'

    names = [found["name"] for found in _EXPORT.finditer(text)]
    text = _EXPORT.sub("", _IMPORT.sub(bound, re.sub(r"\A#!.*", "", text)))
    if left := _LEFT.search(text):
        raise ValueError(f"{path}: {left[0]!r} is not known here")
    # Inside a script these would end it, or begin what looks like a comment.
    text = text.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    given = f"return {{ {', '.join(names)} }};"
    return f'modules["{path}"] = await (async () => {{\n{text}\n{given}\n}})();'


def _beside(path: str, other: str) -> str:
    return normpath(join(dirname(path), other))
