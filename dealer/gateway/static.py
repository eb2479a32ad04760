"""What lies ready for every browser: pages, styles and scripts, the same for everybody.

The folder `dealer/web` is read once. Its files stand at `/web/<hash>/…`, where the hash is that of
the whole folder: an address never changes its content, so it is kept for ever, and modules that
name each other by relative paths are always of one version. Scripts are sent there without their
comments; for who wants to read them, `/client.js` and `/verify.js` are as they were written.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from importlib import resources
from importlib.resources.abc import Traversable

from websockets.http11 import Request, Response

from dealer.gateway.comments import without_comments
from dealer.gateway.http import PAGE, PICTURE, response

SCRIPT = "text/javascript"  # modules are UTF-8 whatever is said
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": PAGE,
    ".js": SCRIPT,
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".svg": PICTURE,
    ".ts": "text/plain; charset=utf-8",
}
FOR_EVER = "max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
NOT_KEPT = "no-store"
HASHED = "/web/@/"
"""How a page names the folder; the hash is put in the place of the `@`."""

_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))")


@dataclass(frozen=True, eq=False)
class File:
    """Bytes with their kind, and what lets a browser know them again."""

    data: bytes
    kind: str

    @cached_property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.data).hexdigest()[:32]}"'

    @cached_property
    def packed(self) -> bytes:
        return gzip.compress(self.data, mtime=0)

    def answer(
        self, request: Request, *, caching: str, status: HTTPStatus = HTTPStatus.OK, **more: str
    ) -> Response:
        """The file for this request: in full, packed, or that it is still the same.

        Packing is safe here: nothing in these files is secret or somebody's own.
        """
        more |= {"Cache_Control": caching, "Vary": "Accept-Encoding"}
        if caching == ASK_AGAIN:
            more["ETag"] = self.etag
        if self.etag in request.headers.get("If-None-Match", ""):
            return response(HTTPStatus.NOT_MODIFIED, b"", kind=self.kind, **more)
        if _GZIP.search(request.headers.get("Accept-Encoding", "")):
            more["Content_Encoding"] = "gzip"
            return response(status, self.packed, kind=self.kind, **more)
        return response(status, self.data, kind=self.kind, **more)


class Web:
    """The files of `dealer/web`, read when the first of them is asked for."""

    def __init__(self) -> None:
        self._pages: dict[str, File] = {}

    @cached_property
    def files(self) -> dict[str, File]:
        """As they were written, by path in the folder, `table/hand.js`."""
        return dict(_read(resources.files("dealer") / "web", ""))

    @cached_property
    def loaded(self) -> dict[str, File]:
        """The same as pages load them."""
        return {path: _lightened(file) for path, file in self.files.items()}

    @cached_property
    def hash(self) -> str:
        """16 hex digits of the SHA-256 of all files that pages load, with their paths."""
        digest = hashlib.sha256()
        for path, file in sorted(self.loaded.items()):
            digest.update(f"{path}\0{len(file.data)}\0".encode() + file.data)
        return digest.hexdigest()[:16]

    def page(self, name: str) -> File:
        """`<name>.html`, its references to the folder made those of this version."""
        if name not in self._pages:
            text = self.files[f"{name}.html"].data.decode().replace(HASHED, f"/web/{self.hash}/")
            self._pages[name] = File(text.encode(), PAGE)
        return self._pages[name]

    def find(self, request: Request, folder: str, path: str) -> Response | None:
        """The answer for `/web/<folder>/<path>`, None where there is no such file.

        Under another hash, that of another version of this program beside this one, the file is
        sent as it is here, and not kept.
        """
        file = self.loaded.get(path)
        if file is None:
            return None
        return file.answer(request, caching=FOR_EVER if folder == self.hash else NOT_KEPT)


def _lightened(file: File) -> File:
    if file.kind != SCRIPT:
        return file
    return File(without_comments(file.data.decode()).encode(), file.kind)


def _read(folder: Traversable, prefix: str) -> list[tuple[str, File]]:
    found: list[tuple[str, File]] = []
    for entry in folder.iterdir():
        suffix = entry.name[entry.name.rfind(".") :]
        if entry.is_dir():
            found += _read(entry, f"{prefix}{entry.name}/")
        elif suffix in KINDS:
            found.append((prefix + entry.name, File(entry.read_bytes(), KINDS[suffix])))
    return found
