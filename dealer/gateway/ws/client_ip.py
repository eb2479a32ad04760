"""Client address behind trusted proxies, from `X-Forwarded-For`.

Each proxy appends the address that it received the request from. Read from the right, the first
address that is not a trusted proxy is the client's; what is left of it the client may have forged.
The header of a peer that is not a trusted proxy is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

_IPV6_CLIENT = 64
"""Prefix length of one IPv6 client (RFC 6177), whose addresses count as one."""

_MAX_HOPS = 32
"""Addresses of X-Forwarded-For that are read, from the right."""


class TrustedProxies:
    """`trusted` are addresses and networks (CIDR) of proxies; ValueError for anything else."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._networks = [ip_network(network, strict=False) for network in trusted]

    def trusts(self, address: str) -> bool:
        found = _address(address) if self._networks else None
        return found is not None and any(found in network for network in self._networks)

    def client_ip(self, peer: str, forwarded: Sequence[str]) -> str:
        """The client's address; `forwarded` are the values of X-Forwarded-For, in their order."""
        if not self.trusts(peer):
            return peer
        last = peer
        hops = ",".join(forwarded).rsplit(",", _MAX_HOPS)[-_MAX_HOPS:]
        for hop in reversed(hops):
            found = _address(hop.strip())
            if found is None:
                break
            last = str(found)
            if not self.trusts(last):
                break
        return last


@lru_cache(maxsize=4096)
def client_network(address: str) -> str:
    """The unit by which limits count an address: IPv4 itself, IPv6 its /64 (`2001:db8::/64`).

    An IPv4 address mapped into IPv6 counts as the IPv4 address; other text is returned unchanged.
    """
    found = _address(address)
    if isinstance(found, IPv6Address):
        return str(IPv6Network((int(found), _IPV6_CLIENT), strict=False))
    return address if found is None else str(found)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return found if mapped is None else mapped
