"""The client and the verifier as one file each, at addresses with the version.

A page that names such an address with the file's hash (Subresource Integrity) runs exactly the
release that its author has tested, or nothing. `client.js` alone would not do: the hash of a module
does not cover the modules that it imports, so they are combined with it here.
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode

from dealer.gateway.http.modules import Read, combine
from dealer.version import __version__

INTEGRITY = "/integrity.json"
VERSIONED = re.compile(r"/(?:client|verify)-[\w.+-]+\.js")
"""Addresses with a version, this one's or another's."""

_NAMES = re.compile(r"^export \{(?P<names>[^}]*)\} from ", re.MULTILINE)


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
