"""Unambiguous concatenation of parts for hashing: different lists result in different bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable

be32: Callable[[int], bytes] = struct.Struct(">I").pack
"""A number 0…2^32−1 as 4 bytes, big-endian."""

be64: Callable[[int], bytes] = struct.Struct(">Q").pack
"""A number 0…2^64−1 as 8 bytes, big-endian."""


def lp(*parts: bytes) -> bytes:
    """Length-prefixed concatenation: be32(len(x)) ‖ x for each part."""
    return b"".join([be32(len(part)) + part for part in parts])


def T(label: str) -> bytes:
    """Domain separation tag of a hash: "dealer/v1/" ‖ label ‖ 0x00."""
    return b"dealer/v1/%b\x00" % label.encode("ascii")
