"""Builds the self-contained audit page: one HTML file that works from disk, without a server.

Styles and scripts are inlined, and the Content-Security-Policy allows them by their hashes: nothing
else can run, and no network request is made. Each module is wrapped in a function that returns its
exports, in the order of dependencies, because modules of a page from disk cannot import each other.
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

from dealer.gateway.http.page_texts import embedded, list_languages
from dealer.languages.language import languages

Read = Callable[[str], str]
"""Returns the text of a file by its path in `dealer/web`."""

_STYLE = re.compile(r'<link rel="stylesheet" href="/web/@/(?P<path>[\w./-]+)">\n?')
_SCRIPT = re.compile(r'<script type="module" src="/web/@/(?P<path>[\w./-]+)"></script>\n?')
_ICON = re.compile(r'(?<=<link rel="icon" href=")/web/@/(?P<path>[\w./-]+)(?=">)')
_EARLY = re.compile(r'<script src="/web/@/(?P<path>[\w./-]+)"></script>')
_SERVED_ONLY = re.compile(r'<link rel="manifest" href="[^"]*">\n?| data-texts="[^"]*"')
"""What only a page from the server has: a copy is not installed, and has its texts inside."""
_IMPORT = re.compile(
    r'^import (?:(?P<names>\{[^}]*\})|\* as (?P<all>\w+)) from "(?P<path>[\w./-]+)";$', re.MULTILINE
)
_EXPORT = re.compile(
    r"^export (?=(?:async function\*?|function\*?|class|const) (?P<name>\w+))", re.MULTILINE
)
_LEFT = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)
_RENAMED = re.compile(r"(\w+) as (\w+)")


class SelfContainedPage(NamedTuple):
    """The HTML, and the Content-Security-Policy that it must be sent with."""

    page: bytes
    policy: str


@cache
def audit_page() -> SelfContainedPage:
    """The self-contained audit page of this version."""
    folder = resources.files("dealer") / "web"

    def read(path: str) -> str:
        text = folder.joinpath(path).read_text("utf-8")
        return list_languages(text, languages()) if path == "audit.html" else text

    return compose("audit.html", read, texts=embedded(languages(), "audit"))


def compose(page: str, read: Read, *, texts: str = "") -> SelfContainedPage:
    """Combine a page with its styles, its scripts, and all modules that these import.

    `texts` is a data block that the page has at the end of its body.

    Raises ValueError for a form of import or export that is not supported. Supported are named and
    namespace imports, and named exports of functions, classes and constants.
    """
    html = read(page)
    styles = "\n".join(read(path) for path in _STYLE.findall(html)).strip()
    script = "\n".join(_modules(_SCRIPT.findall(html), read))
    early = [_safe(read(path)) for path in _EARLY.findall(html)]
    hashes = " ".join(f"'{_hash(one)}'" for one in (*early, script))
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {hashes}",
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
    html = _SERVED_ONLY.sub("", _STYLE.sub("", _SCRIPT.sub("", html)))
    html = _EARLY.sub(lambda found: f"<script>{_safe(read(found['path']))}</script>", html)
    html = _ICON.sub(lambda found: f"data:image/svg+xml,{quote(read(found['path']))}", html)
    html = html.replace('<meta charset="utf-8">\n', f'<meta charset="utf-8">\n{head}', 1)
    html = html.replace("</body>", f'{texts}<script type="module">{script}</script>\n</body>', 1)
    if "/web/@/" in html:
        raise ValueError(f"{page} refers to a file in a way that is not supported")
    return SelfContainedPage(html.encode(), policy)


def files_of(page: str, read: Read) -> list[str]:
    """The paths of the files that a served page loads: its styles, icon, scripts and modules."""
    html = read(page)
    found = [path for kind in (_STYLE, _ICON, _EARLY) for path in kind.findall(html)]
    return [*found, *_texts(_SCRIPT.findall(html), read)]


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _modules(first: list[str], read: Read) -> list[str]:
    """The modules `first` and all that they import, wrapped, dependencies first."""
    texts = _texts(first, read)
    return ["const modules = {};", *(_wrapped(path, text) for path, text in texts.items())]


def _texts(first: list[str], read: Read) -> dict[str, str]:
    """The text of the modules `first` and of all that they import by path, dependencies first."""
    texts: dict[str, str] = {}

    def add(path: str, importers: tuple[str, ...]) -> None:
        if path in texts:
            return
        if path in importers:
            raise ValueError(f"import cycle: {' imports '.join((*importers, path))}")
        text = read(path)
        for found in _IMPORT.finditer(text):
            add(_resolve(path, found["path"]), (*importers, path))
        texts[path] = text

    for path in first:
        add(path, ())
    return texts


def _wrapped(path: str, text: str) -> str:
    """A module as an immediately called function that returns its exports."""

    def binding(found: re.Match[str]) -> str:
        names = found["all"] or _RENAMED.sub(r"\1: \2", found["names"])
        return f'const {names} = modules["{_resolve(path, found["path"])}"];'

    names = [found["name"] for found in _EXPORT.finditer(text)]
    text = _EXPORT.sub("", _IMPORT.sub(binding, re.sub(r"\A#!.*", "", text)))
    if left := _LEFT.search(text):
        raise ValueError(f"{path}: {left[0]!r} is not supported")
    text = _safe(text)
    exports = f"return {{ {', '.join(names)} }};"
    return f'modules["{path}"] = await (async () => {{\n{text}\n{exports}\n}})();'


def _safe(script: str) -> str:
    """The script without what would end its element, or start an HTML comment in it."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _resolve(path: str, other: str) -> str:
    """The path that module `path` imports as `other`."""
    return normpath(join(dirname(path), other))
