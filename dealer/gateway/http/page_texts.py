"""The texts of the pages: for each language and page, a file with the sections that it shows."""

from __future__ import annotations

import json
from collections.abc import Mapping

from dealer.languages.language import Language

SECTIONS = {
    "lobby": ("language", "shared", "refusals", "lobby"),
    "table": ("language", "shared", "refusals", "table"),
    "audit": ("language", "shared", "audit", "explanation"),
}
"""By page, the sections of a language's file that it shows; other pages load less for it."""

_UNSET = 'data-languages=""'


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
    """A page whose root element lists the languages with their directions, see `early.js`."""
    offered = " ".join(f"{tag}:{language.direction}" for tag, language in languages.items())
    return html.replace(_UNSET, f'data-languages="{offered}"', 1)


def embedded(languages: Mapping[str, Language], page: str) -> str:
    """A data block with a page's texts in every language, for a page that is one file."""
    texts = {tag: _part(language, page) for tag, language in languages.items()}
    data = json.dumps(texts, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="languages">{data}</script>\n'


def _part(language: Language, page: str) -> dict[str, object]:
    return {name: language.texts[name] for name in SECTIONS[page]}
