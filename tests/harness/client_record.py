"""A record of one client: every frame that it received, in order, and every answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from dealer.client import House
from dealer.proof import canonical


class Answer(NamedTuple):
    """A request and its answer; `refusal` is the error's reason, None if there was no error."""

    method: str
    params: dict[str, Any]
    result: dict[str, Any]
    refusal: str | None


class Record:
    """Everything that a client received on its sockets since this was created.

    `leaves` has the leaf of each version as received. `again` counts the events that were received
    more than once, `different` those whose later copy differed.
    """

    def __init__(self, house: House) -> None:
        self.frames: list[str] = []
        self.answers: list[Answer] = []
        self.leaves: dict[int, bytes] = {}
        self.again = 0
        self.different = 0
        self.resumes = 0
        self._connection = house._connection
        self._receive = house._connection._receive
        house._connection._receive = self._received  # type: ignore[method-assign]

    def changes(self) -> Iterator[Answer]:
        """The successful answers to commands."""
        return (one for one in self.answers if one.refusal is None and "cmd" in one.params)

    def _received(self, text: str | bytes) -> None:
        assert isinstance(text, str)
        self.frames.append(text)
        frame = json.loads(text)
        if "method" in frame:
            self._notified(frame["method"], frame["params"])
        else:
            self._answered(frame)
        self._receive(text)

    def _notified(self, method: str, params: dict[str, Any]) -> None:
        if method == "events":
            for event in params["list"]:
                self._event(event)
        elif method == "event":
            self._event(params)
        elif method == "resumed":
            self.resumes += 1

    def _event(self, event: dict[str, Any]) -> None:
        leaf = canonical.encode(
            {name: event[name] for name in event if name not in ("private", "opened")}
        )
        version = event["version"]
        if version in self.leaves:
            self.again += 1
            self.different += self.leaves[version] != leaf
        self.leaves[version] = leaf

    def _answered(self, frame: dict[str, Any]) -> None:
        request = self._connection._requests.get(frame["id"])
        if request is None:
            return
        refusal = frame.get("error", {}).get("data", {}).get("reason", "")
        self.answers.append(
            Answer(
                request.method,
                request.params,
                frame.get("result") or {},
                refusal if "error" in frame else None,
            )
        )
