"""The tape: the unlimited sequence of random words from which a shuffle derives its indices.

Segment s is `HKDF-SHA-512(ikm, salt, info, 64 bytes)` with

    ikm  = lp(S, r, …)          the house's secret, then the players' nonces in order of seats
    salt = root of C1 ‖ be32(k) ‖ be32(n) ‖ be32(s)
    info = "dealer/v1/shuffle" ‖ 0x00

read as 32 big-endian 16-bit words. One block of HKDF-SHA-512 is 64 bytes, so extract and expand
(RFC 5869) are one HMAC each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from hmac import digest as hmac_digest

WORD_RANGE = 65536
BOUND_MAX = 1024
SEGMENT_WORDS = 32
_INFO = b"dealer/v1/shuffle\x00"
_be32 = struct.Struct(">I").pack
_words = struct.Struct(f">{SEGMENT_WORDS}H").unpack


def words(*, secret: bytes, nonces: Sequence[bytes], root: bytes, k: int, n: int) -> Iterator[int]:
    """The words, 0…65535 each, of the tape of shuffle `k` over `n` cards; an infinite iterator.

    `nonces` are the players', 32 bytes each, in order of seats; `root` is checkpoint C1's,
    32 bytes.
    """
    ikm = b"".join(_be32(len(part)) + part for part in (secret, *nonces))
    prefix = root + _be32(k) + _be32(n)
    segment = 0
    while True:
        extract = hmac_digest(prefix + _be32(segment), ikm, "sha512")
        yield from _words(hmac_digest(extract, _INFO + b"\x01", "sha512"))
        segment += 1


class Tape:
    """A tape with a read position: draws unbiased numbers by rejection sampling.

    `read` lists all words taken so far, rejected ones included; `refused` counts the rejected.
    """

    __slots__ = ("_next", "read", "refused")

    def __init__(
        self, *, secret: bytes, nonces: Sequence[bytes], root: bytes, k: int, n: int
    ) -> None:
        self._next = words(secret=secret, nonces=nonces, root=root, k=k, n=n).__next__
        self.read: list[int] = []
        self.refused: int = 0

    def below(self, bound: int) -> int:
        """A number 0…bound−1, each with equal probability, for a bound 1…1024.

        Words at or above the largest multiple of `bound` up to 65536 are rejected; of the rest each
        remainder is equally frequent. Raises ValueError for another bound.
        """
        if not 1 <= bound <= BOUND_MAX:
            raise ValueError(f"the bound must be 1 to {BOUND_MAX}, not {bound}")
        limit = WORD_RANGE - WORD_RANGE % bound
        while True:
            word = self._next()
            self.read.append(word)
            if word < limit:
                return word % bound
            self.refused += 1
