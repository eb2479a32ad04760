"""Addresses of webhooks: which URLs and which IP addresses the server sends requests to.

A webhook's URL is chosen by another party, so it must not reach what only this machine or its
network can reach. A name is resolved, every address of it is checked, and the connection is opened
to each of these in turn: a second answer of the name server has no effect (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from dealer.errors import ConfigurationError, DealerError
from dealer.outgoing import ADDRESSES

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The IP addresses of a host; raises OSError."""

_PLATFORMS: list[IPv4Network | IPv6Network] = [
    IPv4Network("168.63.129.16/32"),  # Azure: wire server and resolver of each virtual machine
    IPv4Network("161.26.0.0/16"),  # IBM Cloud: services of its own network
    IPv4Network("166.8.0.0/14"),  # IBM Cloud: endpoints of services
    IPv4Network("192.0.0.0/24"),  # IETF; Oracle Cloud: metadata at 192.0.0.192
    IPv4Network("192.88.99.0/24"),  # relays of 6to4
    IPv6Network("3fff::/20"),  # for documents
]
"""Networks that are public by their number, and lead from a machine into its own platform."""

_NAT64 = IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")
_PORTS = {"https": 443, "http": 80}
_MAX_URL = 2048


class AddressRefused(DealerError):
    """The URL of a webhook leads to an address that requests are not sent to."""


class Target(NamedTuple):
    """A webhook's URL in parts; `path` has the query, `host` no brackets."""

    tls: bool
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The value of the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (
            host if self.port == _PORTS["https" if self.tls else "http"] else f"{host}:{self.port}"
        )


def parse_url(url: str, *, allow_private: bool) -> Target:
    """The parts of a webhook's URL; http only with `allow_private`.

    Raises ConfigurationError, with a sentence that says what to write.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (
            (parts.hostname or "").encode("idna" if "[" not in parts.netloc else "ascii").decode()
        )
    except (ValueError, UnicodeError):
        raise ConfigurationError(f"{url!r} is not a URL; write one like {_EXAMPLE}.") from None
    printable = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in _PORTS or not host or not printable or len(url) > _MAX_URL:
        raise ConfigurationError(f"{url!r} is not a URL of a webhook; write one like {_EXAMPLE}.")
    if parts.scheme == "http" and not allow_private:
        raise ConfigurationError("A webhook needs https; http is possible with --allow-private.")
    if "@" in parts.netloc or parts.fragment:
        raise ConfigurationError("The URL of a webhook has no user, no password and no fragment.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme == "https", host, port or _PORTS[parts.scheme], path)


_EXAMPLE = "https://shop.example.org/dealer"


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet, also if it contains another."""
    found = ip_address(address)
    if isinstance(found, IPv6Address):
        if found.scope_id is not None or found.is_site_local or found in _LOCAL_NAT64:
            return False
        inner = _inner(found)
        if inner is not None:
            return is_public(str(inner))
    return found.is_global and not (
        any(found in network for network in _PLATFORMS)
        or found.is_private
        or found.is_loopback
        or found.is_link_local
        or found.is_multicast
        or found.is_reserved
        or found.is_unspecified
    )


def _inner(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address leads to, if it is of a kind that translates."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64 or int(address) >> 32 == 0:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


async def checked_addresses(
    target: Target, resolve: Resolve, *, allow_private: bool
) -> Sequence[str]:
    """The IP addresses of the target, each of which may be connected to.

    Raises AddressRefused if one of them is not public, unless those are allowed; OSError if the
    name has no address.
    """
    addresses = await resolve(target.host, target.port)
    if not addresses:
        raise OSError("the name has no address")
    private = [] if allow_private else [each for each in addresses if not is_public(each)]
    if private:
        raise AddressRefused(
            f"{target.host} has an address that is not public: {', '.join(private[:ADDRESSES])}."
        )
    return addresses


async def system_resolve(host: str, port: int) -> list[str]:
    """The addresses of a host as the system resolves it; raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))
