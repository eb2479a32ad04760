"""The witness: compares, at every step, what clients received with what is in the database.

It sees each transaction as it happens, so it has the log that must never lose or change anything,
and every frame that a client receives. What it finds wrong it reports as a sentence.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dealer.client import House
from dealer.client.requests import Members
from dealer.eventlog.rows import Append, Result, leaf_of
from dealer.proof import canonical
from tests.simulation.exchange import Frame
from tests.simulation.store import new_rows

if TYPE_CHECKING:
    from tests.simulation.world import World


class Witness:
    """`log` has the leaves of each table as committed, `ever` also those that a restore undid."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.log: dict[str, list[str]] = {}
        self.types: dict[str, list[str]] = {}
        self.ever: dict[tuple[str, int], set[str]] = {}
        self.takers: dict[str, str] = {}  # who took a seat, by the leaf
        self.commands: dict[tuple[str, str], int] = {}
        self.answers: dict[str, tuple[str, str]] = {}
        self.acknowledged: dict[str, dict[str, int]] = {}
        self._begun: dict[str, int] = {}
        self._roles_changed = 0
        self._asked_as: dict[str, int] = {}
        self.privates: dict[tuple[str, str, str], Members] = {}
        self.received: dict[str, int] = {}
        self.frames = 0
        self.frames_of: defaultdict[str, list[Frame]] = defaultdict(list)
        self._count = 0

    def restored(self, kept: dict[str, int]) -> None:
        """An older copy of the database was restored: of each table it has this many events."""
        for table, leaves in list(self.log.items()):
            del leaves[kept.get(table, 0) :]
            del self.types[table][kept.get(table, 0) :]
            if not leaves:
                del self.log[table], self.types[table]
        self.commands = {
            (table, name): version
            for (table, name), version in self.commands.items()
            if version <= kept.get(table, 0)
        }
        self.acknowledged.clear()
        self._begun.clear()
        self.answers.clear()

    def same_role(self, cmd: str) -> bool:
        """Whether the client surely has the role in which it first sent a command.

        The id of a command is one of its role: a host who sits down, or a player who leaves and is
        the host, has another. A leave counts when it is asked for, too, which may be long before.
        """
        return self._asked_as.get(cmd) == self._roles_changed

    # Transactions

    def written(self, requests: Sequence[Append], results: Sequence[Result]) -> None:
        for request in new_rows(requests, results):
            table = request.table.hex()
            leaves = self.log.setdefault(table, [])
            types = self.types.setdefault(table, [])
            for row in request.rows:
                if row.version != len(leaves) + 1:
                    self._world.fault(f"version {row.version} of {table[:8]} follows {len(leaves)}")
                leaf = leaf_of(request.table, row)
                leaves.append(leaf)
                types.append(row.type)
                self.ever.setdefault((table, row.version), set()).add(leaf)
                if row.type == "SeatTaken":
                    self.takers[leaf] = row.members()["name"]
                if row.command is not None:
                    name = table, row.command
                    if name in self.commands:
                        self._world.fault(
                            f"command {row.command} is at {self.commands[name]} and {row.version}"
                        )
                    self.commands[name] = row.version
                self._roles_changed += row.type in ("SeatTaken", "SeatLeft", "SeatVacated")
                if row.type == "NoteAdded":
                    self._noted(table, json.loads(leaf) | {"public": row.members()})

    def _noted(self, table: str, note: Members) -> None:
        """A player's notes begin with the name of the player, who holds the seat then."""
        public, seat = note["public"], note["public"].get("seat")
        if public["kind"] != "chat" or not seat:  # 0 is the host without a seat
            return
        holder = self._holder(table, seat, note["version"])
        if holder != public["text"].split()[0] and not self._world.restores:
            self._world.fault(f"{public['text']!r} is a note of {holder}, seat {seat}")

    def _holder(self, table: str, seat: int, version: int) -> str | None:
        """The name of the player who held a seat at a version."""
        holder = None
        types, leaves = self.types.get(table, ()), self.log.get(table, ())
        for kind, leaf in zip(types[:version], leaves, strict=False):
            if kind == "SeatTaken" and json.loads(leaf)["public"]["seat"] == seat:
                holder = self.takers[leaf]
        return holder

    # Frames

    def follow(self, name: str, house: House) -> None:
        """See everything that this connection receives, and what it asks."""
        connection = house._connection
        receive, ask = connection._receive, connection.ask

        def received(text: str | bytes) -> None:
            self.frames += 1
            assert isinstance(text, str)
            self.frames_of[name].append(Frame(self._world.loop.now, text))
            self._world.trace(text)
            frame = json.loads(text)
            if "method" in frame:
                self._notified(name, frame["method"], frame["params"])
            else:
                request = connection._requests.get(frame["id"])
                if request is not None and "error" in frame:
                    self._refused(name, request.params, frame["error"])
                if request is not None and "cmd" in request.params:
                    self._answered(name, request.method, request.params, frame)
            receive(text)

        def asked(method: str, params: Members, **options: Any) -> Any:
            if options.get("changes") and "cmd" not in params:
                self._count += 1
                params = params | {"cmd": f"{name}-{self._count}"}
            if method == "table.leave":
                self._roles_changed += 1
            if "cmd" in params:
                self._asked_as.setdefault(params["cmd"], self._roles_changed)
            if "cmd" in params and "table" in params:
                known = self.acknowledged.get(params["table"], {})
                self._begun.setdefault(params["cmd"], max(known.values(), default=0))
            return ask(method, params, **options)

        connection._receive = received  # type: ignore[method-assign]
        connection.ask = asked  # type: ignore[method-assign]

    def _notified(self, name: str, method: str, params: Members) -> None:
        if method == "events":
            for one in params["list"]:
                self._event(name, one)
        elif method == "event":
            self._event(name, params)

    def _event(self, name: str, event: Members) -> None:
        table, version = event["table"], event["version"]
        leaf = canonical.encode(
            {k: v for k, v in event.items() if k not in ("private", "opened")}
        ).decode()
        if leaf not in self.ever.get((table, version), ()):
            self._world.fault(f"{name} received a version {version} that is not in the log")
        self.received[table] = max(version, self.received.get(table, 0))
        if "private" in event:
            self._private(name, event)
            shown = self.privates.setdefault((name, table, leaf), event["private"])
            if shown != event["private"]:
                self._world.fault(f"{name} received {shown}, and then {event['private']}")

    def _private(self, name: str, event: Members) -> None:
        """A face is opened to the player who held that seat at that version."""
        public, version = event["public"], event["version"]
        seat = public.get("seat")
        if event["type"] == "CardMoved":
            seat = int(public["to"].removeprefix("hand:"))
        holder = self._holder(event["table"], seat, version)
        if holder != name and not self._world.restores:
            self._world.fault(f"{name} received a face of {holder}, seat {seat}, version {version}")

    def _refused(self, name: str, params: Members, error: Members) -> None:
        """A token is refused only if the log says that its seat was left."""
        token = str(params.get("token")).split(".")
        if error.get("data", {}).get("reason") != "bad_token" or token[0] != "seat":
            return
        table, seat, since = params["table"], int(token[1]), int(token[2])
        types, leaves = self.types.get(table, []), self.log.get(table, [])
        left = any(
            kind in ("SeatLeft", "SeatVacated") and json.loads(leaf)["public"]["seat"] == seat
            for kind, leaf in zip(types[since:], leaves[since:], strict=True)
        )
        if not left and not self._world.restores:
            self._world.fault(f"{name}'s token of seat {seat} is refused, which it still has")

    def _answered(self, name: str, method: str, params: Members, frame: Members) -> None:
        cmd = params["cmd"]
        if "error" in frame:
            return
        result = frame["result"]
        table, version = result.get("table") or params.get("table"), result.get("version")
        if not isinstance(version, int) or table is None or method == "table.cosign":
            return
        self._world.seen(f"{method} answered")
        if self._world.restores:
            return
        if version > len(self.log.get(table, ())):
            self._world.fault(f"{name}'s {method} was answered {version}, which is not on disk")
        if self._begun.get(cmd, 0) > version and method not in ("table.join", "table.leave"):
            self._world.fault(
                f"{name}'s {method} was answered {version} after {self._begun[cmd]} was answered"
            )
        text = json.dumps({k: v for k, v in result.items() if k not in ("state", "edge")})
        self.acknowledged.setdefault(table, {})[cmd] = version
        if not self.same_role(cmd):
            return
        kept = self.answers.setdefault(cmd, (method, text))
        if kept != (method, text) and method not in ("table.open", "table.join", "table.leave"):
            self._world.fault(f"{name}'s {method} was answered {kept[1]}, then {text}")
