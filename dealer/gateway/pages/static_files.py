"""Static files: the pages, styles and scripts of `dealer/web`, compressed and cacheable.

The folder is read once. Its files are served at `/web/<hash>/…`, where the hash is of the whole
folder: the content of an address never changes, so browsers may cache it permanently, and
modules that import each other by relative paths are always of one version. Scripts are sent there
without comments and indentation, a fifth of a page's bytes, and styles without space. The module of
a page is sent with all that it imports (`modules.py`), and a stylesheet with those that it imports,
so that a page needs one request for each. The client and the verifier are also served under
addresses without a hash, as they are in the folder, for programs of other origins and for readers,
and each as one file under an address with the version (`modules.py`).
"""

from __future__ import annotations

import gzip
import hashlib
import posixpath
import re
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from importlib import resources
from importlib.resources.abc import Traversable

from websockets.http11 import Request, Response

from dealer.gateway.net.responses import PAGE, PICTURE, response
from dealer.gateway.pages import modules as js_modules
from dealer.gateway.pages import page_files
from dealer.gateway.pages.appearance import Appearance
from dealer.gateway.pages.self_contained_page import files_of, scripts_of
from dealer.languages.language import languages

PLAIN_APPEARANCE = Appearance()
SCRIPT = "text/javascript"  # modules are always decoded as UTF-8
STYLES = "text/css; charset=utf-8"
KINDS = {
    ".css": STYLES,
    ".html": PAGE,
    ".jpg": "image/jpeg",
    ".js": SCRIPT,
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".png": "image/png",
    ".svg": PICTURE,
    ".ts": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".webp": "image/webp",
}
IMMUTABLE = "max-age=31536000, immutable"
REVALIDATE = "no-cache"
NO_STORE = "no-store"
HASHED = "/web/@/"
"""How pages refer to the folder; the `@` is replaced by its hash."""

OF_SERVER = '="/'
"""How an attribute begins that is an address of the server, in the files of the pages."""

PUBLIC = re.compile(r"/(?P<path>(?:client|verify)(?:\.d\.ts|\.js)|client/\w+\.js)")
"""Addresses without a hash: the client and the verifier, their types, and the client's modules."""

_COMMENTS = re.compile(r"^[ \t]*(?:/\*\*.*?\*/[ \t]*$|//[^\n]*$)", re.DOTALL | re.MULTILINE)

_ENDS = re.compile(r"""^\s+|[ \t]+//[^\n"'`]*$|/\*\* @type [^*]*\*/ ?""", re.MULTILINE)
"""Blank lines and indentation, a type within code, and a comment behind code, which has no
quotation mark: with one it may be within a string."""

_MODULES = re.compile(r"^(?=modules\[)", re.MULTILINE)
_PRIVATE = re.compile(r"((?:\.|^)(?:static |async |get |set |\*)*#)(\w+)", re.MULTILINE)
"""A private name of a class, `#name`, which no other module can use: where it is declared, or
after a dot."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

_STYLE_COMMENTS = re.compile(r"/\*.*?\*/\s*", re.DOTALL)

_STYLE_SPACE = re.compile(r"\s*([{};,])\s*|(:) ")
"""Space that means nothing: beside a brace, a semicolon or a comma, and before a value."""

_CSS_IMPORT = re.compile(r'^@import "([^"]+)";$', re.MULTILINE)

_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))")

_TAGS = re.compile(r'(?:W/)?("[^"]*")')


def accepts_gzip(request: Request) -> bool:
    """Whether the client decompresses gzip."""
    return _GZIP.search(request.headers.get("Accept-Encoding", "")) is not None


def weak(etag: str) -> str:
    """The tag for compressed bytes: another version of zlib makes other bytes of the content."""
    return f"W/{etag}"


def is_known(request: Request, etag: str) -> bool:
    """Whether the client has this content, compressed or not (`If-None-Match`)."""
    given = ", ".join(request.headers.get_all("If-None-Match"))
    return bool(etag) and (given.strip() == "*" or etag in _TAGS.findall(given))


@dataclass(frozen=True, eq=False)
class File:
    """The bytes of a file, with its media type, ETag and compressed form."""

    data: bytes
    kind: str

    @cached_property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.data).hexdigest()[:32]}"'

    @cached_property
    def gzipped(self) -> bytes:
        return gzip.compress(self.data, mtime=0)

    def answer(self, request: Request, *, caching: str, **more: str) -> Response:
        """The response with this file: plain, gzipped, or 304 for a matching ETag.

        What must not be stored may have other bytes at the next request. Compression is safe
        (BREACH), because these files contain no secrets.
        """
        packed = accepts_gzip(request)
        more |= {"Cache_Control": caching, "Vary": "Accept-Encoding"}
        if caching != NO_STORE:
            more["ETag"] = weak(self.etag) if packed else self.etag
            if is_known(request, self.etag):
                return response(HTTPStatus.NOT_MODIFIED, b"", kind=self.kind, **more)
        if packed:
            more["Content_Encoding"] = "gzip"
        data = self.gzipped if packed else self.data
        return response(HTTPStatus.OK, data, kind=self.kind, **more)


class StaticFiles:
    """The files of `dealer/web`, read at the first request for one of them, and the operator's."""

    def __init__(self, appearance: Appearance = PLAIN_APPEARANCE) -> None:
        self._appearance = appearance
        self._pages: dict[tuple[str, str], File] = {}
        self._sent: dict[str, File] = {}

    @cached_property
    def files(self) -> dict[str, File]:
        """By path in the folder, such as `table/hand.js`."""
        files = dict(_read(resources.files("dealer") / "web", ""))
        added = page_files.texts_of_pages(languages()) | self._appearance.files()
        for path, data in added.items():
            files[path] = File(data, KINDS[path[path.rfind(".") :]])
        return files

    @cached_property
    def hash(self) -> str:
        """16 hex digits of the SHA-256 of all paths and files."""
        digest = hashlib.sha256()
        for path, file in sorted(self.files.items()):
            digest.update(f"{path}\0{len(file.data)}\0".encode() + file.data)
        return digest.hexdigest()[:16]

    def page(self, name: str, *, root: str) -> File:
        """`<name>.html`, with its references to the folder resolved to this version.

        `root` is the relative address of the server's first page from this one.
        """
        if (name, root) not in self._pages:
            text = self.files[f"{name}.html"].data.decode().replace(HASHED, f"/web/{self.hash}/")
            text = page_files.list_languages(text.replace(OF_SERVER, f'="{root}'), languages())
            text = self._appearance.apply(text, folder=f"{root}web/{self.hash}/")
            self._pages[name, root] = File(text.encode(), PAGE)
        return self._pages[name, root]

    @cached_property
    def installed(self) -> dict[str, File]:
        """The files with which browsers keep the pages, by address; see `page_files.py`."""
        folder = f"web/{self.hash}/"
        manifest = page_files.make_manifest(folder, title=self._appearance.title)
        template = self.files["audit_worker.js"].data.decode().replace(HASHED, f"/{folder}")
        paths = files_of("audit.html", self._read)
        paths += [f"texts/{tag}/audit.json" for tag in languages()]
        page = self.page("audit", root="./").data.decode()
        worker = page_files.make_worker(template, paths, page=page, folder=f"./{folder}")
        return {
            "/manifest.webmanifest": File(manifest, KINDS[".webmanifest"]),
            "/audit-worker.js": File(worker, SCRIPT),
        }

    @cached_property
    def _scripts(self) -> frozenset[str]:
        """The modules that pages name."""
        pages = [path for path in self.files if path.endswith(".html")]
        return frozenset(script for page in pages for script in scripts_of(page, self._read))

    @cached_property
    def versioned(self) -> dict[str, File]:
        """The scripts that never change, by address; see `modules.py`."""
        scripts = js_modules.versioned_scripts(self._read)
        return {address: File(data, SCRIPT) for address, data in scripts.items()}

    def find_public(self, request: Request, path: str) -> Response | None:
        """The response for an address without a hash of the folder; None if there is no file.

        Any origin may use these files.
        """
        file, caching = None, REVALIDATE
        if js_modules.VERSIONED.fullmatch(path):
            file, caching = self.versioned.get(path), IMMUTABLE
        elif path == js_modules.INTEGRITY:
            scripts = {address: file.data for address, file in self.versioned.items()}
            file = File(js_modules.integrity_document(scripts), KINDS[".json"])
        elif match := PUBLIC.fullmatch(path):
            file = self.files.get(match["path"])
        if file is None:
            return None
        return file.answer(request, caching=caching, Access_Control_Allow_Origin="*")

    def find(self, request: Request, folder: str, path: str) -> Response | None:
        """The response for `/web/<folder>/<path>`; None if there is no such file.

        Under another hash, from another version of the server next to this one, this version's file
        is sent, but must not be cached.
        """
        if path not in self.files:
            return None
        if path not in self._sent:
            self._sent[path] = self._as_sent(path)
        caching = IMMUTABLE if folder == self.hash else NO_STORE
        return self._sent[path].answer(request, caching=caching)

    def _as_sent(self, path: str) -> File:
        file = self.files[path]
        if file.kind == SCRIPT:
            named = path in self._scripts
            script = js_modules.combine([path], self._read, at=path) if named else self._read(path)
            modules = _MODULES.split(shortened(script.encode()).decode())
            return File("".join(map(_with_short_names, modules)).encode(), SCRIPT)
        return File(self._styles(path).encode(), STYLES) if file.kind == STYLES else file

    def _read(self, path: str) -> str:
        return self.files[path].data.decode()

    def _styles(self, path: str) -> str:
        """A stylesheet without comments and space; what it imports replaces `@import`s.

        No string of a stylesheet may have a brace, a semicolon, a comma or a colon.
        """
        folder = posixpath.dirname(path)

        def imported(found: re.Match[str]) -> str:
            return self._styles(posixpath.normpath(posixpath.join(folder, found[1])))

        text = _ENDS.sub("", _STYLE_COMMENTS.sub("", self._read(path)))
        text = _CSS_IMPORT.sub(imported, text)
        return _STYLE_SPACE.sub(r"\1\2", text).replace(";}", "}").strip()


def shortened(script: bytes) -> bytes:
    """The script without blank lines, indentation and most comments.

    A multi-line string must have no line that is blank, or begins like a comment or with spaces.
    """
    return _ENDS.sub("", _COMMENTS.sub("", script.decode())).encode()


def _with_short_names(module: str) -> str:
    """A module without indentation, the private names of whose classes are letters."""
    names: dict[str, str] = {}

    def short(found: re.Match[str]) -> str:
        number = len(names)
        return found[1] + names.setdefault(found[2], f"{_LETTERS[number % 26]}{number // 26 or ''}")

    return _PRIVATE.sub(short, module)


def _read(folder: Traversable, prefix: str) -> list[tuple[str, File]]:
    found: list[tuple[str, File]] = []
    for entry in folder.iterdir():
        suffix = entry.name[entry.name.rfind(".") :]
        if entry.is_dir():
            found += _read(entry, f"{prefix}{entry.name}/")
        elif suffix in KINDS:
            found.append((prefix + entry.name, File(entry.read_bytes(), KINDS[suffix])))
    return found
