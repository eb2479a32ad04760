"""Repeated requests: the keys by which they are recognised, and the answers that are given again.

A command at a table is found by its key in the service, which stores it with the events. A request
that opens a table, or takes a seat, has no seat whose command ids it could be one of: on the same
connection its answer is given again, and on another one it is found by an id that is too long to be
guessed.
"""

from __future__ import annotations

from msgspec import Struct

from dealer.errors import CommandReused
from dealer.gateway.wire.protocol import Call, content
from dealer.service import IdempotencyKey
from dealer.service.identity.service_keys import ServiceKey
from dealer.service.identity.service_tables import scope_of
from dealer.service.tables.execution import ANONYMOUS_SCOPE
from dealer.service.tables.table_ids import MIN_SECRET_CMD_LENGTH

CACHED_ANSWERS = 16
"""Answers of one connection that are kept to be repeated."""


def command_key(call: Call, scope: str) -> IdempotencyKey | None:
    """The key of a command that a client sent with an id of its own; None for one without."""
    cmd: str | None = call.params.cmd
    return None if cmd is None else IdempotencyKey(scope, cmd, content(call))


def joining_key(call: Call, service: ServiceKey | None) -> IdempotencyKey | None:
    """The key by which a repetition of this join is recognised on another connection.

    A client that guesses another's id is given that seat; so only ids that are too long to be
    guessed count, and those of a service, which only its own connections can send.
    """
    if service is not None:
        return command_key(call, scope_of(service))
    key = command_key(call, ANONYMOUS_SCOPE)
    return None if key is None or len(key.cmd) < MIN_SECRET_CMD_LENGTH else key


class RepeatableAnswers:
    """The newest answers of one connection to requests that open a table, or take a seat.

    Clients may count from 1 at each table; a request that opens a table belongs to none.
    """

    def __init__(self) -> None:
        self._answers: dict[tuple[str | None, str], tuple[bytes, Struct]] = {}

    def add(self, call: Call, answer: Struct) -> None:
        """Keep an answer, unless its request has no id of its own."""
        if call.params.cmd is not None:
            self._answers[_table_of(call), call.params.cmd] = (content(call), answer)
            if len(self._answers) > CACHED_ANSWERS:
                del self._answers[next(iter(self._answers))]

    def find(self, call: Call) -> Struct | None:
        """The answer to the same request; CommandReused if it was another one with this id."""
        table = _table_of(call)
        for (cached_table, cached_cmd), (cached_content, answer) in self._answers.items():
            same_table = cached_table == table or cached_table is None or table is None
            if cached_cmd == call.params.cmd and same_table:
                if cached_content != content(call):
                    raise CommandReused(
                        "This command id was used for another command; give each its own."
                    )
                return answer
        return None


def _table_of(call: Call) -> str | None:
    """The table that a request names, if any."""
    table: str | None = getattr(call.params, "table", None)
    return table
