"""The `Host` check: which names of a server a browser may have reached it by.

Against DNS rebinding: a page of another site whose name resolves to this server's address is, to
the browser, of the same origin as this server; only the name in `Host` gives it away. A literal IP
address is resolved by no DNS and `localhost` by none but the machine's own, so these pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

EVERY = "*"

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{0,5})?", re.IGNORECASE)


class HostNames:
    """The server's `names`, `*` for any; `*.example.org` stands for every name below that one.

    `single_label` lets in names without a dot, too, which only a machine's own search list or
    its network's name service resolves, like a container's.
    """

    def __init__(self, names: Iterable[str] = (), *, single_label: bool = False) -> None:
        given = [_normal(name) for name in names]
        self._any = EVERY in given
        self._names = frozenset(name for name in given if not name.startswith("*."))
        self._suffixes = tuple(name[1:] for name in given if name.startswith("*."))
        self._single_label = single_label

    def allows(self, host: str | None) -> bool:
        """Whether a request with this `Host` is for this server; one without comes from no page."""
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
    """The host's name in a web origin; None where there is none."""
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
