"""Builds the self-contained audit page: one HTML file that works from disk, without a server.

Styles and scripts are inlined, and the Content-Security-Policy allows them by their hashes: nothing
else can run, and no network request is made. Its modules are one script (`modules.py`), because
modules of a page from disk cannot import each other.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from functools import cache
from html import escape
from importlib import resources
from typing import NamedTuple
from urllib.parse import quote

from dealer.gateway.pages.modules import Read, combine
from dealer.gateway.pages.page_files import embedded, list_languages
from dealer.languages.language import languages

_STYLE = re.compile(r'<link rel="stylesheet" href="/web/@/(?P<path>[\w./-]+)">\n?')
_SCRIPT = re.compile(r'<script type="module" src="/web/@/(?P<path>[\w./-]+)"></script>\n?')
_ICON = re.compile(r'(?<=<link rel="icon" href=")/web/@/(?P<path>[\w./-]+)(?=">)')
_EARLY = re.compile(r'<script src="/web/@/(?P<path>[\w./-]+)"></script>')
_SERVED_ONLY = re.compile(r'<link rel="manifest" href="[^"]*">\n?| data-texts="[^"]*"')
"""What only a page from the server has: a copy is not installed, and has its texts inside."""


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

    Raises ValueError for modules that cannot be combined.
    """
    html = read(page)
    styles = "\n".join(read(path) for path in _STYLE.findall(html)).strip()
    script = _safe(combine(_SCRIPT.findall(html), read, at=page))
    early = [_safe(read(path)) for path in _EARLY.findall(html)]
    hashes = " ".join(f"'{_hash(text)}'" for text in (*early, script))
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
    """The paths of the files that a served page loads: its styles, icon and scripts."""
    html = read(page)
    return [path for kind in (_STYLE, _ICON, _EARLY, _SCRIPT) for path in kind.findall(html)]


def scripts_of(page: str, read: Read) -> list[str]:
    """The paths of a page's modules, which are sent with all that they import."""
    return _SCRIPT.findall(read(page))


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _safe(script: str) -> str:
    """The script without what would end its element, or start an HTML comment in it."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
