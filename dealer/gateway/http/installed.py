"""What browsers keep: the web app manifest, and the service worker of the audit page."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable

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
