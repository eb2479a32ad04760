"""Token bucket, the unit of every rate limit. Callers pass the time, in seconds of any monotonic
clock.
"""

from __future__ import annotations

LONG_STEP = 0.001
"""Duration in seconds of an event loop step that is charged double."""

HIGHEST_CHARGE = 0.5
"""Seconds that one step is charged at most: a slow machine does not keep a player away for long."""


class Bucket:
    """Refills at `rate` tokens per second up to `burst`; its level can be negative (debt).

    `tokens` is the level at the time `at`.
    """

    __slots__ = ("at", "burst", "rate", "tokens")

    def __init__(self, *, rate: float, burst: float, now: float) -> None:
        self.rate = rate
        self.burst = burst
        self.tokens = burst
        self.at = now

    def level(self, now: float) -> float:
        """The number of tokens at `now`; negative while the bucket is in debt."""
        level = self.tokens + (now - self.at) * self.rate
        self.tokens = level = self.burst if level > self.burst else level
        self.at = now
        return level

    def take(self, now: float) -> float:
        """Take one token: 0.0 if there was one, otherwise the seconds until there is one."""
        level = self.level(now)
        if level >= 1.0:
            self.tokens = level - 1.0
            return 0.0
        return (1.0 - level) / self.rate

    def charge(self, amount: float) -> None:
        """Take `amount` tokens, into debt if necessary; a negative amount is a refund."""
        self.tokens -= amount

    def use_up(self, amount: float) -> bool:
        """Take up to `amount` tokens without going into debt; whether the bucket is empty then."""
        self.tokens = max(0.0, self.tokens - amount)
        return self.tokens == 0.0

    def wait(self, level: float, now: float) -> float:
        """Seconds until there are `level` tokens; 0.0 if there already are."""
        return max(0.0, (level - self.level(now)) / self.rate)

    def debt(self, now: float) -> float:
        """Seconds until the bucket is full."""
        return (self.burst - self.level(now)) / self.rate

    def lower_to(self, other: Bucket, now: float) -> None:
        """Have at most the level of `other`, a bucket of the same rate and burst."""
        self.tokens = min(self.level(now), other.level(now))


class ProcessorTime(Bucket):
    """A bucket of seconds of the event loop and of the writer thread."""

    __slots__ = ()

    def step(self, seconds: float) -> None:
        """Charge an uninterrupted step on the event loop: `seconds + seconds² / LONG_STEP`.

        A request that arrives during the step waits for the rest of it, so the delay that a step
        causes grows with the square of its duration. The square is limited to `HIGHEST_CHARGE`.
        """
        self.tokens -= seconds + min(seconds * seconds / LONG_STEP, HIGHEST_CHARGE)
