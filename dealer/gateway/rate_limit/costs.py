"""Cost of a command: additional commands, and bytes that the server writes to disk for it.

Both are estimated before the command runs, so that commands sent together cannot exceed the budget
together. The constants are an upper estimate of `write_bytes` in /proc/PID/io on SQLite with its
WAL, checkpoints, indexes and read models (`tests/chaos/greedy.py` checks them).
"""

from __future__ import annotations

from dealer.game import commands
from dealer.game.stacks import DECK
from dealer.game.state import Table

BYTES_PER_COMMIT = 48 * 1024
"""Bytes of an append that shares its commit with few others: the pages of the table, of its index
and of its read models, in the WAL and, less often, in the file."""

BYTES_PER_EVENT = 1024
"""Bytes per event of a command, with its indexes and read models."""

ONE_EVENT = BYTES_PER_COMMIT + BYTES_PER_EVENT
"""Bytes of most commands: they move one card."""

BYTES_PER_SWAP = 1280
"""Bytes per card of a shuffle: its swap, its seal, and the row of the swap at the round's end."""

COPIES = 4
"""Times that a byte of a row is written: to the WAL and to the file, in the log and read models."""

MESSAGE_SECONDS = 100e-6
"""Seconds on the event loop for a message whose work is constant: to decode, decide and answer it.
Measuring each would take two system calls, a tenth of that."""

BYTE_SECONDS = 0.2e-6
"""Seconds to decode a byte of a message, at most."""

EVENT_SECONDS = 75e-6
"""Seconds per event for its frames, its row and its read models; most are spent on the writer
thread, in one transaction for which all other appends wait."""

FOLDED_PER_MESSAGE = 64
"""Events of a round that are read, decrypted and folded for the cost of one message, some 1 ms."""

SHUFFLE = 3 * BYTES_PER_COMMIT
"""Bytes of the commands that the server runs after a shuffle: closing its entropy, sealing."""


def weight(command: commands.Command, table: Table) -> float:
    """The additional cost of a command, in commands: one per 52 cards to seal or to shuffle."""
    match command:
        case commands.OpenRound():
            return len(command.deck) / 52
        case commands.StartShuffle():
            return _cards(table, command.stack) / 52
        case commands.DrawAtRandom():
            return _cards(table, command.source) / 52
        case _:
            return 0.0


def past_state_weight(folded: int) -> float:
    """The additional cost of a past state, for which `folded` events of a round are read."""
    return folded / FOLDED_PER_MESSAGE


def bytes_written(command: commands.Command, table: Table) -> int:
    """Upper bound of the bytes that the server writes to disk for a command that is accepted."""
    match command:
        case commands.Draw() | commands.Move() | commands.Show():
            return BYTES_PER_COMMIT + BYTES_PER_EVENT * _moved(command, table)
        case commands.StartShuffle():
            return BYTES_PER_COMMIT + SHUFFLE + BYTES_PER_SWAP * _cards(table, command.stack)
        case commands.DrawAtRandom():
            cards = _cards(table, command.source)
            shuffled = BYTES_PER_COMMIT + SHUFFLE + BYTES_PER_SWAP * cards
            return shuffled + BYTES_PER_EVENT * min(command.count, cards)
        case commands.OpenRound():
            return BYTES_PER_COMMIT + COPIES * sum(len(code) + 3 for code in command.deck)
        case commands.Deal():
            seats = len(table.seats if command.seats is None else command.seats)
            dealt = command.each * seats + sum(pile.number for pile in command.piles)
            return BYTES_PER_COMMIT + BYTES_PER_EVENT * min(dealt, _cards(table, DECK))
        case commands.Pass():
            passed = 2 * len(command.cards or ()) + _passed(table)
            return BYTES_PER_COMMIT + BYTES_PER_EVENT * passed
        case commands.TakeBack():
            return BYTES_PER_COMMIT + BYTES_PER_EVENT * (1 + _reversible(table))
        case _:
            return BYTES_PER_COMMIT


def text_bytes_written(content: bytes) -> int:
    """Bytes for a request whose own text goes into the log, such as a table's rules."""
    return ONE_EVENT + COPIES * len(content)


def practice_bytes_written(cards: int) -> int:
    """Bytes for the cards of a practice table: each is shuffled, placed, and may be shown.

    The seat of a hand is taken, and left.
    """
    return cards * (BYTES_PER_SWAP + 4 * BYTES_PER_EVENT)


def _cards(table: Table, stack: str) -> int:
    return 0 if table.round is None else len(table.round.cards(stack))


def _passed(table: Table) -> int:
    """Number of cards that wait to be passed."""
    passed = {} if table.round is None else table.round.moves.passed
    return sum(len(moved.cards) for moved in passed.values())


def _reversible(table: Table) -> int:
    """Upper bound of the cards that one command can take back."""
    last = None if table.round is None else table.round.moves.last
    return max(0 if last is None else len(last.cards), _passed(table))


def _moved(command: commands.Draw | commands.Move | commands.Show, table: Table) -> int:
    cards = _cards(table, command.source)
    if command.cards is not None:
        return min(len(command.cards), cards)
    if command.whole:
        return cards
    count = 1 if isinstance(command, commands.Show) else command.count
    return cards if count is None else min(count, cards)
