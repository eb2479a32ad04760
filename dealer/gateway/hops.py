"""Who stands behind a proxy: the guest's own address, as far as the proxies on the way are known.

`X-Forwarded-For` lists whom each proxy heard from, the last one last. Read from the right, the
first address that is no trusted proxy's is the guest's; what stands left of it the guest may have
made up. From a peer that is no trusted proxy nothing of it is believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

_IPV6_CLIENT = 64
"""Length of the prefix that one IPv6 client has to itself (RFC 6177): its addresses are one."""

_MOST = 32
"""How many hops are looked at: nobody's proxies are so many."""


class Hops:
    """`trusted` are addresses and networks (CIDR) of proxies; ValueError on what is neither."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._networks = [ip_network(one, strict=False) for one in trusted]

    def trusts(self, address: str) -> bool:
        found = _address(address) if self._networks else None
        return found is not None and any(found in network for network in self._networks)

    def guest(self, peer: str, forwarded: Sequence[str]) -> str:
        """The guest's address; `forwarded` are the values of X-Forwarded-For, in their order."""
        if not self.trusts(peer):
            return peer
        last = peer
        hops = ",".join(forwarded).rsplit(",", _MOST)[-_MOST:]
        for hop in reversed(hops):
            found = _address(hop.strip())
            if found is None:
                break
            last = str(found)
            if not self.trusts(last):
                break
        return last


def client_network(address: str) -> str:
    """What limits count an address by: IPv4 whole, IPv6 by its /64, like `2001:db8::/64`.

    An IPv4 address mapped into IPv6 counts as itself; what is no address stays as it is.
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
