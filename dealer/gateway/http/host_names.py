"""`Host` check: the names under which a browser may have reached this server.

It prevents DNS rebinding: a page of another site whose name resolves to this server's address has,
to the browser, the same origin as this server; only the name in `Host` differs. A literal IP
address needs no DNS, and `localhost` is resolved by the machine itself, so these are allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

EVERY = "*"

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{0,5})?", re.IGNORECASE)


class HostNames:
    """The server's `names`, `*` for any; `*.example.org` means every name below that one.

    With `single_label`, names without a dot are allowed too: only the machine's search list or its
    network's name service resolves them, as for containers.
    """

    def __init__(self, names: Iterable[str] = (), *, single_label: bool = False) -> None:
        given = [_normal(name) for name in names]
        self._any = EVERY in given
        self._names = frozenset(name for name in given if not name.startswith("*."))
        self._suffixes = tuple(name[1:] for name in given if name.startswith("*."))
        self._single_label = single_label

    def allows(self, host: str | None) -> bool:
        """Whether a request with this `Host` is for this server; browsers always send one."""
        if host is None or self._any:
            return True
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = _normal(found["name"])
        if name in self._names or name == "localhost" or name.endswith(".localhost"):
            return True
        if name.endswith(self._suffixes) or _is_address(name):
            return True
        return self._single_label and "." not in name


def name_of(origin: str) -> str | None:
    """The host name in a web origin; None where there is none."""
    try:
        return urlsplit(origin).hostname
    except ValueError:
        return None


def _normal(name: str) -> str:
    return name.lower().removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
