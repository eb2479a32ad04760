"""The names of this server: origins and hosts compared (RFC 6454), and the check of `Host`.

The check prevents DNS rebinding: a page of another site whose name resolves to this server's
address has, to the browser, the same origin as this server; only the name in `Host` differs. A
literal IP address needs no DNS, and `localhost` is resolved by the machine itself, so these are
allowed.

Names, hosts and origins are compared in one form: in small ASCII letters (IDNA), without a dot at
the end, IPv6 as short as possible, and without the default port of the scheme.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from unicodedata import normalize

EVERY = "*"
OPAQUE = "null"
"""The origin of a page without an own one, as of a file or a sandboxed frame."""

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_HOST = r"(?P<name>\[[0-9a-f:.]+\]|[\w.-]+)(?::(?P<port>[0-9]{0,5}))?"
_HOST_HEADER = re.compile(_HOST, re.IGNORECASE)
_ORIGIN = re.compile(rf"(?P<scheme>[a-z][a-z0-9+.-]*)://(?:{_HOST})?", re.IGNORECASE)
_DOTS = re.compile("[\u3002\uff61]")


_NAME_MAX, _LABEL_MAX = 253, 63
"""Characters of a name and of each of its labels (RFC 1035)."""


class HostNames:
    """The server's `names`, `*` for any; `*.example.org` means every name below that one.

    With `single_label`, names without a dot are allowed too: only the machine's search list or its
    network's name service resolves them, as for containers.
    """

    def __init__(self, names: Iterable[str] = (), *, single_label: bool = False) -> None:
        given = [ascii_name(name) for name in names]
        self._any = EVERY in given
        self._names = frozenset(name for name in given if not name.startswith("*."))
        self._suffixes = tuple(name[1:] for name in given if name.startswith("*."))
        self._single_label = single_label

    def allows(self, host: str | None) -> bool:
        """Whether a request with this `Host` is for this server; browsers always send one."""
        if host is None or self._any:
            return True
        found = _HOST_HEADER.fullmatch(host)
        if found is None:
            return False
        name = ascii_name(found["name"])
        if name in self._names or name == "localhost" or name.endswith(".localhost"):
            return True
        if name.endswith(self._suffixes) or _is_address(name):
            return True
        return self._single_label and "." not in name


def is_host(text: str) -> bool:
    """Whether a header's value is a host, with or without a port."""
    return _HOST_HEADER.fullmatch(text) is not None


def normal_origin(text: str) -> str | None:
    """A web origin in the form in which origins are compared; None if the text is none."""
    if text == OPAQUE:
        return OPAQUE
    found = _ORIGIN.fullmatch(text)
    if found is None:
        return None
    scheme = found["scheme"].lower()
    default = _PORTS.get(scheme)
    port = int(found["port"]) if found["port"] else default
    if port is not None and port > 65535:
        return None
    return f"{scheme}://{ascii_name(found['name'] or '')}{'' if port == default else f':{port}'}"


def is_own(origin: str, host: str) -> bool:
    """Whether pages that are reached at `host`, the value of `Host`, have this `origin`.

    The scheme is the origin's: a proxy may have ended TLS.
    """
    found = normal_origin(origin)
    scheme = "" if found is None else found.partition("://")[0]
    return scheme in ("http", "https") and found == normal_origin(f"{scheme}://{host}")


def name_of(origin: str) -> str | None:
    """The host name in a web origin, as names are compared; None if there is none."""
    found = _ORIGIN.fullmatch(origin)
    return ascii_name(found["name"]) if found and found["name"] else None


def is_private(host: str) -> bool:
    """Whether this `Host` is a name or address of one machine or one network."""
    name = name_of(f"http://{host}") or ""
    try:
        return not ip_address(name.strip("[]")).is_global
    except ValueError:
        return name == "localhost" or name.endswith((".localhost", ".local"))


def ascii_name(name: str) -> str:
    """A name or address in the form in which names are compared.

    What is longer than a name of the DNS stays as it is: no server has it, and punycode takes a
    time that grows with the square of the length.
    """
    if not name.isascii() and len(name) <= _NAME_MAX:
        # Browsers send a name as UTS 46 maps it (non-transitional), which differs from this for a
        # few letters that no registry admits.
        folded = "".join(map(str.lower, _DOTS.sub(".", normalize("NFKC", name))))
        labels = normalize("NFC", folded).split(".")
        if max(map(len, labels)) <= _LABEL_MAX:
            name = ".".join(map(_ascii_label, labels))
    name = name.lower().removesuffix(".")
    if name.startswith("["):
        try:
            return f"[{IPv6Address(name[1:-1])}]"
        except ValueError:
            return name
    return name


def _ascii_label(label: str) -> str:
    return label if label.isascii() else f"xn--{label.encode('punycode').decode('ascii')}"


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
