"""The history of a run: every operation with its begin, its end and its answer, as JSON lines.

README.md in this folder describes the form. An operation without `return` has no known outcome: it
may have happened at any time after its call, or never.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic_ns
from typing import Any


@dataclass(slots=True)
class Operation:
    """One operation of one client; times are nanoseconds of the machine's monotonic clock."""

    table: str
    client: str
    op: str
    seat: int = 0
    count: int = 0
    cmd: str = ""
    expect: int | None = None
    call: int = field(default_factory=monotonic_ns)
    end: int | None = None
    out: dict[str, Any] | None = None

    def line(self) -> str:
        members = {
            "table": self.table,
            "client": self.client,
            "op": self.op,
            "seat": self.seat,
            "count": self.count,
            "cmd": self.cmd,
            "expect": self.expect,
            "call": self.call,
            "return": self.end,
            "out": self.out,
        }
        return json.dumps({name: one for name, one in members.items() if one not in (None, "")})


class History:
    """The operations of a run in the order of their calls, and the signed heads that were seen."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.heads: dict[str, dict[str, str]] = {}

    def begin(self, operation: Operation) -> Operation:
        self.operations.append(operation)
        return operation

    def saw_head(self, note: str, client: str) -> None:
        """A note that `client` was shown; who was first is kept."""
        table = note.partition("\n")[0].rpartition("/")[2]
        self.heads.setdefault(table, {}).setdefault(note, client)

    def write(self, folder: Path) -> None:
        with (folder / "history.jsonl").open("w") as file:
            for operation in self.operations:
                file.write(operation.line() + "\n")
        for table, notes in self.heads.items():
            with (folder / f"{table}.heads.jsonl").open("w") as file:
                for note, client in notes.items():
                    file.write(json.dumps({"note": note, "client": client}) + "\n")


def state_of(answer: dict[str, Any]) -> dict[str, Any]:
    """What a history keeps of an answer to `table.state`."""
    state = answer["state"]
    stacks = state["round"]["stacks"]
    taken = {seat["seat"] for seat in state["seats"]}
    return {
        "version": answer["version"],
        "deck": len(stacks.get("deck", ())),
        "hands": [len(stacks.get(f"hand:{seat}", ())) for seat in range(1, 5)],
        "discard": len(stacks.get("pile:discard", ())),
        "seats": [seat in taken for seat in range(1, 5)],
    }


OPERATIONS = {
    "CardDrawn": "draw",
    "CardMoved": "discard",
    "SeatTaken": "join",
    "SeatLeft": "leave",
}


def done_by(event: dict[str, Any]) -> str:
    """The operation and the seat of an event of the feed, as `draw 2`; empty for other events."""
    if event["type"] not in OPERATIONS:
        return ""
    public = event["public"]
    seat = public["from"].removeprefix("hand:") if event["type"] == "CardMoved" else public["seat"]
    return f"{OPERATIONS[event['type']]} {seat}"
