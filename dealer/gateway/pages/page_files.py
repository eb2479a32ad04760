"""Files that are made for the pages: their texts, the web app manifest, and the service worker.

For each language and page there is a file with the sections of texts that the page shows.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from html import escape

from dealer.languages.language import Language

SECTIONS = {
    "lobby": ("language", "shared", "refusals", "lobby"),
    "table": ("language", "shared", "refusals", "table"),
    "audit": ("language", "shared", "audit", "explanation"),
    "finished": ("language", "shared", "refusals", "finished"),
    "history": ("language", "shared", "finished"),
    "broadcast": ("language", "shared", "refusals", "table", "audit"),
}
"""By page, the sections of a language's file that it shows; other pages load less for it."""

_NO_LANGUAGES = 'data-languages=""'
_NO_SCRIPT = re.compile(r'<noscript data-says="(?P<key>[\w.]+)"></noscript>')

_COLOUR = "#1d4b3a"
_ICONS = (
    ("icon-192.png", 192, "any"),
    ("icon-512.png", 512, "any"),
    ("icon-512.png", 512, "maskable"),
)
_UNSET = {"version": 'const VERSION = "";', "files": "const FILES = [];"}


def make_manifest(folder: str, *, title: str | None) -> bytes:
    """The web app manifest; `folder` is the address of the icons, `title` the operator's.

    Its addresses are relative to its own, which is next to the first page. Without an `id` the
    first page identifies the app.
    """
    icons = [
        {"src": folder + name, "sizes": f"{size}x{size}", "type": "image/png", "purpose": purpose}
        for name, size, purpose in _ICONS
    ]
    manifest = {
        "name": title or "dealer",
        "short_name": title or "dealer",
        "description": "A card table that proves its shuffle",
        "start_url": "./",
        "scope": "./",
        "display": "minimal-ui",
        "background_color": _COLOUR,
        "theme_color": _COLOUR,
        "icons": icons,
    }
    return json.dumps(manifest, ensure_ascii=False).encode()


def make_worker(template: str, paths: Iterable[str], *, page: str, folder: str) -> bytes:
    """The service worker of the audit page, which keeps the files at `paths` in `folder`.

    What the operator's appearance adds to `page` is kept, too.
    """
    added = re.findall(rf'(?:href|content)="{re.escape(folder)}([\w./-]+)"', page)
    for name, value in (
        ("version", hashlib.sha256(page.encode()).hexdigest()[:16]),
        ("files", sorted({*paths, *added})),
    ):
        if _UNSET[name] not in template:
            raise ValueError(f"the service worker does not declare its {name}")
        line = f"const {name.upper()} = {json.dumps(value)};"
        template = template.replace(_UNSET[name], line, 1)
    return template.encode()


def texts_of_pages(languages: Mapping[str, Language]) -> dict[str, bytes]:
    """The files by path, such as `texts/de/table.json`."""
    return {
        f"texts/{tag}/{page}.json": json.dumps(
            _part(language, page), ensure_ascii=False, separators=(",", ":")
        ).encode()
        for tag, language in languages.items()
        for page in SECTIONS
    }


def list_languages(html: str, languages: Mapping[str, Language]) -> str:
    """A page whose root element lists the languages with their directions, see `early.js`.

    What it says without JavaScript, which would choose the language, is there in each of them.
    """
    offered = " ".join(f"{tag}:{language.direction}" for tag, language in languages.items())
    html = html.replace(_NO_LANGUAGES, f'data-languages="{offered}"', 1)
    return _NO_SCRIPT.sub(lambda found: _without_script(found["key"], languages), html)


def _without_script(key: str, languages: Mapping[str, Language]) -> str:
    sentences = "\n".join(
        f'<p lang="{tag}" dir="{language.direction}">{escape(language.message(key))}</p>'
        for tag, language in languages.items()
    )
    return f'<noscript>\n<div class="panel">\n{sentences}\n</div>\n</noscript>'


def embedded(languages: Mapping[str, Language], page: str) -> str:
    """A data block with a page's texts in every language, for a page that is one file."""
    texts = {tag: _part(language, page) for tag, language in languages.items()}
    data = json.dumps(texts, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="languages">{data}</script>\n'


def _part(language: Language, page: str) -> dict[str, object]:
    return {name: language.texts[name] for name in SECTIONS[page]}
