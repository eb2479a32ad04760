"""Combines the modules of a page into one script.

Each module is wrapped in a function that returns its exports, in the order of dependencies. So a
page needs one request instead of one for each module, its script compresses better, and a page from
a disk, where modules cannot import each other, works as well.

The client and the verifier are also sent as one file each, at addresses with the version. A page
that names such an address with the file's hash (Subresource Integrity) runs exactly the release
that its author has tested, or nothing. `client.js` alone would not do: the hash of a module does
not cover the modules that it imports.
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable
from posixpath import dirname, join, normpath, relpath

from dealer.version import __version__

INTEGRITY = "/integrity.json"
VERSIONED = re.compile(r"/(?:client|verify)-[\w.+-]+\.js")
"""Addresses with a version, this one's or another's."""

Read = Callable[[str], str]
"""Returns the text of a file by its path in `dealer/web`."""

_IMPORT = re.compile(
    r'^import (?:(?P<names>\{[^}]*\})|\* as (?P<all>\w+)) from "(?P<path>[\w./-]+)";$', re.MULTILINE
)
_REEXPORT = re.compile(r'^export \{(?P<names>[^}]*)\} from "(?P<path>[\w./-]+)";$', re.MULTILINE)
_EXPORT = re.compile(
    r"^export (?=(?:async function\*?|function\*?|class|const) (?P<name>\w+))", re.MULTILINE
)
_LEFT = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)
_RENAMED = re.compile(r"(\w+) as (\w+)")
_NAMES = re.compile(r"^export \{(?P<names>[^}]*)\} from ", re.MULTILINE)
_OWN_ADDRESS = "import.meta.url"
_COMMAND_LINE = re.compile(r"^// —+ command line —+$.*", re.MULTILINE | re.DOTALL)
"""The end of a module that is also a program, which a page does not run."""


def combine(first: Iterable[str], read: Read, *, at: str) -> str:
    """One script with the modules `first` and all that they import, dependencies first.

    `at` is the path at which it is sent: each module's `import.meta.url` stays its own address.
    Raises ValueError for a cycle, and for a form of import or export that is not supported.
    Supported are named and namespace imports, and named exports of functions, classes, constants
    and of other modules.
    """
    texts = texts_of(first, read)
    return "\n".join(
        ("const modules = {};", *(_wrapped(path, text, at) for path, text in texts.items()))
    )


def texts_of(first: Iterable[str], read: Read) -> dict[str, str]:
    """The text of the modules `first` and of all that they import by path, dependencies first."""
    texts: dict[str, str] = {}

    def add(path: str, importers: tuple[str, ...]) -> None:
        if path in texts:
            return
        if path in importers:
            raise ValueError(f"import cycle: {' imports '.join((*importers, path))}")
        text = read(path)
        for form in (_IMPORT, _REEXPORT):
            for found in form.finditer(text):
                add(_resolve(path, found["path"]), (*importers, path))
        texts[path] = text

    for path in first:
        add(path, ())
    return texts


def _wrapped(path: str, text: str, at: str) -> str:
    """A module as an immediately called function that returns its exports."""
    exports: list[str] = []

    def binding(found: re.Match[str]) -> str:
        names = found["all"] or _RENAMED.sub(r"\1: \2", found["names"])
        return f'const {names} = modules["{_resolve(path, found["path"])}"];'

    def passed_on(found: re.Match[str]) -> str:
        source = f'modules["{_resolve(path, found["path"])}"]'
        for listed in filter(None, map(str.strip, found["names"].split(","))):
            name, _, renamed = listed.partition(" as ")
            exports.append(f"{renamed or name}: {source}.{name}")
        return ""

    text = _COMMAND_LINE.sub("", re.sub(r"\A#!.*", "", text))
    text = _REEXPORT.sub(passed_on, _IMPORT.sub(binding, text))
    exports += [found["name"] for found in _EXPORT.finditer(text)]
    text = _EXPORT.sub("", text)
    if left := _LEFT.search(text):
        raise ValueError(f"{path}: {left[0]!r} is not supported")
    own = f'new URL("{relpath(path, dirname(at) or ".")}", {_OWN_ADDRESS}).href'
    text = text.replace(_OWN_ADDRESS, own)
    returned = f"return {{ {', '.join(exports)} }};"
    return f'modules["{path}"] = await (async () => {{\n{text}\n{returned}\n}})();'


def _resolve(path: str, other: str) -> str:
    """The path that module `path` imports as `other`."""
    return normpath(join(dirname(path), other))


def versioned_scripts(read: Read) -> dict[str, bytes]:
    """The scripts by address, such as `/client-0.1.0.js`; `read` returns a file of `dealer/web`."""
    return {
        f"/client-{__version__}.js": _client(read).encode(),
        f"/verify-{__version__}.js": read("verify.js").encode(),
    }


def integrity(data: bytes) -> str:
    """The value of the attribute `integrity` for a script."""
    return "sha384-" + b64encode(hashlib.sha384(data).digest()).decode()


def integrity_document(scripts: dict[str, bytes]) -> bytes:
    """`/integrity.json`: the version, and the hash of each script by its address."""
    hashes = {address: integrity(data) for address, data in scripts.items()}
    return json.dumps({"version": __version__, "scripts": hashes}, indent=1).encode() + b"\n"


def _client(read: Read) -> str:
    """`client.js` with all that it imports, and with its exports."""
    listed = ",".join(found["names"] for found in _NAMES.finditer(read("client.js")))
    names = [name.split(" as ")[-1].strip() for name in listed.split(",") if name.strip()]
    script = combine(["client.js"], read, at="client.js")
    return f'{script}\nexport const {{ {", ".join(names)} }} = modules["client.js"];\n'
