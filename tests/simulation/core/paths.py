"""Paths between actors and nodes, which may be blocked; calls take them in `calls.py`."""

from __future__ import annotations

from tests.simulation.loop import Domain, SimulatedLoop


class Paths:
    """What disturbances need of a network, without connections."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._blocked: dict[frozenset[str], float] = {}

    def block(self, one: str, other: str, seconds: float) -> None:
        self._blocked[frozenset((one, other))] = self._loop.now + seconds

    def blocked(self, one: str, other: str) -> bool:
        if not self._blocked:
            return False
        return self._blocked.get(frozenset((one, other)), 0.0) > self._loop.now

    def open_paths(self) -> None:
        self._blocked.clear()

    def machine_started(self, name: str) -> None:
        """Nothing is kept of machines: a call to one that does not run is lost."""

    def machine_died(self, domain: Domain, *, silently: bool) -> None:
        """The same."""
