"""What trusted proxies say of a client: its address, and the scheme and host that it asked for.

Each proxy appends the address that it received the request from, to `X-Forwarded-For` or as an
element of `Forwarded` (RFC 7239). Read from the right, the first address that is not a trusted
proxy is the client's; what is left of it the client may have forged. The headers of a peer that is
not a trusted proxy are ignored.

For each value the `X-Forwarded-…` header counts if a request has it, and `Forwarded` only if
it has not: most proxies set the former and pass the latter on as the client sent it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from itertools import islice
from typing import NamedTuple

from websockets.datastructures import Headers

from dealer.gateway.net.host_names import is_host

_IPV6_CLIENT = 64
"""Prefix length of one IPv6 client (RFC 6177), whose addresses count as one."""

_MAX_HOPS = 32
"""Members of a header that are read, from the right."""

_MAX_LENGTH = 4096
"""Characters of a line of such a header that are read, from the right."""

_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}

# An address with a port, which may be obfuscated (RFC 7239, section 6). IPv6 has brackets then.
_NODE = re.compile(r"(?:\[(?P<ipv6>[^]]*)\]|(?P<ipv4>[^]:[]*))(?::(?:[0-9]{1,5}|_[\w.-]+))?")
_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
# By the standard a value with a colon or a bracket is quoted; some proxies leave the quotes out.
_VALUE = r'"(?:[^"\\]|\\.)*"|[][:!#$%&\'*+.^_`|~0-9A-Za-z-]+'
_PAIR = re.compile(rf"[ \t]*({_NAME})=({_VALUE})[ \t]*")
_ELEMENT = re.compile(rf"[ \t]*{_NAME}=(?:{_VALUE})[ \t]*(?:;[ \t]*{_NAME}=(?:{_VALUE})[ \t]*)*;?")


class Seen(NamedTuple):
    """A request as its client sees it: from `address`, to `scheme` (http or https) and `host`.

    `host` has the port if there is one; it is empty if no header names it. `unread` is the
    member of a header at which the search for the client ended: `address` is then the trusted
    proxy's that sent it.
    """

    address: str
    scheme: str
    host: str
    unread: str | None = None


class TrustedProxies:
    """`trusted` are addresses and networks (CIDR) of proxies; ValueError for anything else."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._networks = [ip_network(network, strict=False) for network in trusted]

    def trusts(self, address: str) -> bool:
        found = _address(address) if self._networks else None
        return found is not None and any(found in network for network in self._networks)

    def seen(self, peer: str, headers: Headers) -> Seen:
        """What the client of a request from `peer` sees."""
        host = "".join(headers.get_all("Host")[:1])
        if not self.trusts(peer):
            return Seen(peer, "http", host)
        elements = list(islice(_elements(headers.get_all("Forwarded")), _MAX_HOPS))

        def said(header: str, parameter: str) -> list[str]:
            """The members of a header, or those of `Forwarded` in their place, last one first."""
            own = list(_members(headers.get_all(header)))
            return own or [element.get(parameter, "") for element in elements]

        nodes = list(_members(headers.get_all("X-Forwarded-For")))
        nodes = nodes or [element.get("for", element[""]) for element in elements]
        address, hops, unread = self._walk(peer, nodes)
        if not nodes:
            hops = _MAX_HOPS  # nothing says how many proxies there are
        schemes = [_SCHEMES.get(one.lower(), "") for one in said("X-Forwarded-Proto", "proto")]
        hosts = [one if is_host(one) else "" for one in said("X-Forwarded-Host", "host")]
        return Seen(
            address, _farthest(schemes[:hops]) or "http", _farthest(hosts[:hops]) or host, unread
        )

    def _walk(self, peer: str, nodes: Iterable[str]) -> tuple[str, int, str | None]:
        """The client's address, how many trusted proxies there are, and what could not be read."""
        last, hops = peer, 1
        for node in nodes:
            found = _read_node(node)
            if found is None:
                return last, hops, node
            last = str(found)
            if not self.trusts(last):
                break
            hops += 1
        return last, hops, None


@lru_cache(maxsize=4096)
def client_network(address: str) -> str:
    """The unit by which limits count an address: IPv4 itself, IPv6 its /64 (`2001:db8::/64`).

    An IPv4 address mapped into IPv6 counts as the IPv4 address; other text is returned unchanged.
    """
    found = _address(address)
    if isinstance(found, IPv6Address):
        return str(IPv6Network((int(found), _IPV6_CLIENT), strict=False))
    return address if found is None else str(found)


def _members(lines: Sequence[str]) -> Iterator[str]:
    """The members of a header that may have several lines, last one first; empty ones are none."""
    found = (part.strip() for line in reversed(lines) for part in reversed(_parts(line)))
    return islice((_unquoted(part) for part in found if part), _MAX_HOPS)


def _elements(lines: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """The elements of `Forwarded`, last one first, each with its own text under the empty name.

    An element ends at a comma outside of quotes. It is looked for from the right, so that a quote
    which the client opened on the left hides no element of a proxy.
    """
    for line in reversed(lines):
        text = ""
        for part in reversed(_parts(line)):
            text = f"{part},{text}" if text else part.strip()
            if _ELEMENT.fullmatch(text):
                pairs = {name.lower(): _unquoted(value) for name, value in _PAIR.findall(text)}
                yield {"": text, **pairs}
                text = ""
        if text:
            yield {"": text.strip()}


def _parts(line: str) -> list[str]:
    """What is between the commas of a line, without the part at which its read length begins."""
    return line.split(",") if len(line) <= _MAX_LENGTH else line[-_MAX_LENGTH:].split(",")[1:]


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _read_node(text: str) -> IPv4Address | IPv6Address | None:
    """The address of a node with or without a port; None for `unknown`, `_hidden` and others."""
    found = _address(text)
    if found is None and (match := _NODE.fullmatch(text)):
        found = _address(match["ipv6"] or match["ipv4"] or "")
    return found


def _farthest(values: Sequence[str]) -> str:
    """The value of the farthest proxy, the client's own; `values` begin with the nearest one's."""
    return next(filter(None, reversed(values)), "")


@lru_cache(maxsize=4096)
def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return found if mapped is None else mapped
