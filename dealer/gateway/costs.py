"""What a command costs: commands on top of itself, and bytes that it makes the server write.

Both are estimated before the command runs, so that commands that are sent together cannot exceed
the budget together. The constants are an upper estimate of `write_bytes` in /proc/PID/io on SQLite
with its WAL, checkpoints, indexes and read models (`tests/whole/greedy.py` holds them against it).
"""

from __future__ import annotations

from collections.abc import Sequence

from dealer.game.commands import (
    CloseRound,
    Command,
    Deal,
    Draw,
    DrawAtRandom,
    Move,
    OpenRound,
    Show,
    StartShuffle,
)
from dealer.game.events import Event
from dealer.game.stacks import DECK
from dealer.game.state import Table
from dealer.gateway.params import Params, SessionHello

COMMIT = 48 * 1024
"""Bytes of an append that shares its commits with few others: the pages of the table, of its index
and of its read models, in the WAL and, less often, in the file."""

EVENT = 1024
"""Bytes of each event of a command, its indexes and its read models."""

SWAP = 1280
"""Bytes of each card of a shuffle: its swap, its seal, and the swap's row when the round closes."""

COPIES = 4
"""How often a byte of a row is written: to the WAL and to the file, in the log and read models."""

EVENT_SECONDS = 50e-6
"""Seconds of each event for its frames, its row and its read models; these are made for many
appends together, on the loop and on the writer's thread, which take the interpreter in turn."""

SHUFFLE = 3 * COMMIT
"""Bytes of what follows a shuffle on its own: its entropy is closed, its deck sealed."""


def weight(command: Command, table: Table) -> float:
    """What a command costs beside itself, in commands: one for 52 cards to seal or to shuffle."""
    if type(command) is Draw:
        return 0.0  # most commands are
    match command:
        case OpenRound():
            return len(command.deck) / 52
        case StartShuffle():
            return _cards(table, command.stack) / 52
        case DrawAtRandom():
            return _cards(table, command.source) / 52
        case _:
            return 0.0


def asked(params: Params) -> float:
    """What a request costs beside itself, in messages: one for each further token of a hello."""
    return max(len(params.tokens) - 1, 0) if isinstance(params, SessionHello) else 0.0


def written(command: Command, table: Table) -> int:
    """Bytes that a command makes the server write if it is carried out, at the most."""
    match command:
        case Draw() | Move() | Show():
            return COMMIT + EVENT * _moved(command, table)
        case StartShuffle():
            return COMMIT + SHUFFLE + SWAP * _cards(table, command.stack)
        case DrawAtRandom():
            cards = _cards(table, command.source)
            return COMMIT + SHUFFLE + SWAP * cards + EVENT * min(command.count, cards)
        case OpenRound():
            return COMMIT + COPIES * sum(len(code) + 3 for code in command.deck)
        case CloseRound():
            return COMMIT
        case Deal():
            seats = len(table.seats if command.seats is None else command.seats)
            return COMMIT + EVENT * min(command.each * seats, _cards(table, DECK))
        case _:
            return COMMIT


def elsewhere(events: Sequence[Event]) -> float:
    """Seconds that events take besides the call that decided them, see `EVENT_SECONDS`."""
    return EVENT_SECONDS * len(events)


def written_text(content: bytes) -> int:
    """Bytes that a request writes which puts its own text into the log, like a table's rules."""
    return COMMIT + EVENT + COPIES * len(content)


def _cards(table: Table, stack: str) -> int:
    return 0 if table.round is None else len(table.round.cards(stack))


def _moved(command: Draw | Move | Show, table: Table) -> int:
    cards = _cards(table, command.source)
    if command.cards is not None:
        return min(len(command.cards), cards)
    count = 1 if isinstance(command, Show) else command.count
    return cards if count is None else min(count, cards)
