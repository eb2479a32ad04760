"""Following: how an actor keeps a stream of its table's events, as a client keeps a connection."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tests.simulation.core.stream import Stream
from tests.simulation.loop import Domain

if TYPE_CHECKING:
    from tests.simulation.core.node import CoreNode
    from tests.simulation.core.world import CoreWorld


class Following:
    """The part of an actor that opens a stream at any node, and again where it has ended."""

    random: Random

    def __init__(self, world: CoreWorld, name: str) -> None:
        self.world = world
        self.name = name
        self.domain = Domain(name)
        world.domains.append(self.domain)
        self.table = ""
        self.stream: Stream | None = None
        self.following = False
        self.opening: Domain | None = None  # the node that was asked for a stream
        self.version = 0  # the newest that its streams have delivered

    def choose_node(self) -> CoreNode:
        raise NotImplementedError

    def do_follow(self, random: Random) -> None:
        self.following = True
        self._open_stream()

    def do_unfollow(self, random: Random) -> None:
        self.following = False
        self.lose_stream()

    def lose_stream(self) -> None:
        """The connection ends; it is opened again if the actor follows the table."""
        stream = self.stream
        if stream is not None and stream.node.domain is not None:
            stream.node.domain.context.run(stream.end)

    def stream_ended(self, stream: Stream) -> None:
        if self.stream is stream:
            self.stream = None
            self._open_stream_later()

    def node_died(self, domain: Domain | None) -> None:
        """What was asked of this node is lost."""
        if domain is not None and self.opening is domain:
            self.opening = None
            self._open_stream_later()

    def _open_stream_later(self) -> None:
        if self.following:
            self.world.loop.call_later(0.05, self._open_stream, context=self.domain.context)

    def _open_stream(self) -> None:
        """Ask any node for a stream that continues after the last version received."""
        if not self.following or self.stream is not None:
            return
        if self.opening is not None:
            return
        table, node = self.table, self.choose_node()
        if not table or node.service is None or node.domain is None or node.domain.dead:
            self._open_stream_later()
            return
        after = self.version if self.random.random() < 0.8 else 0
        self.world.open_stream(self, node, table, after)  # type: ignore[arg-type]

    def streaming(self, stream: Stream | None) -> None:
        """A stream was opened, or could not be."""
        if stream is None:
            self._open_stream_later()
            return
        if not self.following or stream.live_table.table_id != self.table:
            assert stream.node.domain is not None
            stream.end()
            self._open_stream_later()
            return
        self.stream = stream

    def lagging(self) -> str:
        """What this actor still waits for of the events of its table."""
        head = len(self.world.witness.log.get(self.table, ()))
        stream = self.stream
        if not self.following or not head:
            return ""
        if stream is None or not stream.live or stream.cursor != head:
            if self.table in self.world.witness.archived():
                return ""
            has = "no stream" if stream is None else f"{stream.cursor}"
            return f"events do not arrive: {self.name} has {has} of {head}"
        return ""
