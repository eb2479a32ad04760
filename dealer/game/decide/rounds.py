"""Opening a round with a fresh deck, and closing it by showing the house's secret."""

from __future__ import annotations

from dealer.errors import BadRequest, RoundOpen
from dealer.game.cards import check_deck
from dealer.game.commands import CloseRound, CloseTable, OpenRound
from dealer.game.decide.house import House
from dealer.game.decide.permission import permit, still_round
from dealer.game.events import Event, RoundClosed, RoundOpened, TableClosed
from dealer.game.state import Table

ENTROPY = ("players", "house")
WAIT_MS_MIN = 100
WAIT_MS_MAX = 3_600_000


def open_round(command: OpenRound, table: Table, house: House) -> list[Event]:
    permit(table, command.actor, "open")
    if table.round is not None:
        raise RoundOpen(f"Round {table.round.number} is open; close it before the next one.")
    check_deck(command.deck)
    if command.entropy not in ENTROPY:
        raise BadRequest("A round's entropy is players or house.")
    for name, wait in (("commit_ms", command.commit_ms), ("reveal_ms", command.reveal_ms)):
        if not WAIT_MS_MIN <= wait <= WAIT_MS_MAX:
            raise BadRequest(f"{name} is {WAIT_MS_MIN} to {WAIT_MS_MAX} milliseconds.")
    return [
        RoundOpened(
            round=len(table.openings) + 1,
            deck=command.deck,
            entropy=command.entropy,
            commit_ms=command.commit_ms,
            reveal_ms=command.reveal_ms,
            commitment=house.commitment,
        )
    ]


def close_round(command: CloseRound, table: Table, house: House) -> list[Event]:
    permit(table, command.actor, "close")
    return [RoundClosed(still_round(table).number, house.secret)]


def close_table(command: CloseTable, table: Table, house: House) -> list[Event]:
    """An open round is closed with the table: what was played can then be proved."""
    if not command.forced:
        permit(table, command.actor, "close")
    if table.round is None:
        return [TableClosed()]
    return [RoundClosed(still_round(table).number, house.secret), TableClosed()]
