"""How parts are joined before they are hashed: no two lists of parts give the same bytes."""

from __future__ import annotations

import struct

be32 = struct.Struct(">I").pack
"""A number 0…2^32−1 as 4 bytes, big-endian."""

be64 = struct.Struct(">Q").pack
"""A number 0…2^64−1 as 8 bytes, big-endian."""


def lp(*parts: bytes) -> bytes:
    """Each part behind its length: be32(len(x)) ‖ x."""
    return b"".join([be32(len(part)) + part for part in parts])


def T(label: str) -> bytes:
    """What keeps a hash of one purpose from being one of another: "dealer/v1/" ‖ label ‖ 0x00."""
    return b"dealer/v1/%b\x00" % label.encode("ascii")
