"""Commands that open and close rounds, and close the table. Closing a round reveals its secret."""

from __future__ import annotations

from dealer.errors import BadRequest, RoundOpen
from dealer.game import events
from dealer.game.cards import check_deck
from dealer.game.commands import CloseRound, CloseTable, OpenRound
from dealer.game.decide.permission import idle_round, require_permission
from dealer.game.decide.round_secrets import RoundSecrets
from dealer.game.events import Event
from dealer.game.rules import ENTROPY
from dealer.game.state import Table

WAIT_MS_MIN = 100
WAIT_MS_MAX = 3_600_000


def open_round(command: OpenRound, table: Table, house: RoundSecrets) -> list[Event]:
    """Open the next round; RoundOpen if one is open, BadRequest for a deck that is too large."""
    require_permission(table, command.actor, "open")
    if table.round is not None:
        raise RoundOpen(f"Round {table.round.number} is open; close it before the next one.")
    check_deck(command.deck)
    if command.entropy not in ENTROPY:
        raise BadRequest("A round's entropy is players or house.")
    for name, wait in (("commit_ms", command.commit_ms), ("reveal_ms", command.reveal_ms)):
        if not WAIT_MS_MIN <= wait <= WAIT_MS_MAX:
            raise BadRequest(f"{name} is {WAIT_MS_MIN} to {WAIT_MS_MAX} milliseconds.")
    return [
        events.RoundOpened(
            round=len(table.round_versions) + 1,
            deck=command.deck,
            entropy=command.entropy,
            commit_ms=command.commit_ms,
            reveal_ms=command.reveal_ms,
            commitment=house.commitment,
        )
    ]


def close_round(command: CloseRound, table: Table, house: RoundSecrets) -> list[Event]:
    """Close the open round, which no shuffle may be running in."""
    require_permission(table, command.actor, "close")
    return [events.RoundClosed(idle_round(table).number, house.secret)]


def close_table(command: CloseTable, table: Table, house: RoundSecrets) -> list[Event]:
    """Close the table, and an open round with it, so that the whole game can be verified."""
    if not command.forced:
        require_permission(table, command.actor, "close")
    if table.round is None:
        return [events.TableClosed()]
    return [events.RoundClosed(idle_round(table).number, house.secret), events.TableClosed()]
