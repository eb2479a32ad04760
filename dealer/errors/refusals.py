"""Refusals: commands that the game or the server rejects. Nothing was changed by them.

Their reasons and codes are part of the protocol.
"""

from __future__ import annotations

from dealer.errors.base import DealerError


class Refused(DealerError):
    """A command that is rejected; its sentence is for the client that sent it."""

    reason = "refused"
    code = 1
    temporary = False


class BadRequest(Refused):
    """A parameter has an invalid value."""

    reason = "bad_request"
    code = 2


class NotYourSeat(Refused):
    """This connection has no seat at the table."""

    reason = "not_your_seat"
    code = 3


class NotEntitled(Refused):
    """The rules of the table do not permit this to the caller."""

    reason = "not_entitled"
    code = 4


class NotHost(NotEntitled):
    """Only the host may do this."""


class BadToken(Refused):
    """The token is not valid for the table, or is no longer valid."""

    reason = "bad_token"
    code = 5


class BadKey(Refused):
    """The service key is not valid, or was revoked."""

    reason = "bad_key"
    code = 6


class TicketUsed(BadToken):
    """The ticket was used before, by another request; each is for one use."""

    reason = "ticket_used"
    code = 7


class TicketExpired(BadToken):
    """The ticket has expired; ask for a new one."""

    reason = "ticket_expired"
    code = 8


class NoRound(Refused):
    """No round is open."""

    reason = "no_round"
    code = 10


class RoundOpen(Refused):
    """A round is open already."""

    reason = "round_open"
    code = 11


class ShuffleRunning(Refused):
    """A shuffle is running; no card moves before it is sealed."""

    reason = "shuffle_running"
    code = 12
    temporary = True


class NoShuffle(Refused):
    """No shuffle is running."""

    reason = "no_shuffle"
    code = 13


class NotSealed(Refused):
    """Cards that were not shuffled cannot be drawn."""

    reason = "not_sealed"
    code = 14


class DeckEmpty(Refused):
    """There are fewer cards than requested."""

    reason = "deck_empty"
    code = 20


class CardNotInHand(Refused):
    """A card is not in this hand."""

    reason = "card_not_in_hand"
    code = 21


class CardNotThere(Refused):
    """A card is not in the named stack."""

    reason = "card_not_there"
    code = 22


class BadPlace(Refused):
    """The stack has no such place."""

    reason = "bad_place"
    code = 23


class NothingToTakeBack(Refused):
    """The last move is another seat's, showed a card, or there is none."""

    reason = "nothing_to_take_back"
    code = 24


class UnknownTable(Refused):
    """There is no such table."""

    reason = "unknown_table"
    code = 30


class TableFull(Refused):
    """Every seat is taken."""

    reason = "table_full"
    code = 31


class SeatOccupied(Refused):
    """This seat is taken."""

    reason = "seat_occupied"
    code = 32


class TableIsClosed(Refused):
    """The table is closed."""

    reason = "table_closed"
    code = 33


class TooManyTables(Refused):
    """The connection is at the maximum number of tables."""

    reason = "too_many_tables"
    code = 34


class TableArchived(Refused):
    """The table was archived; its bundle can still be had."""

    reason = "table_archived"
    code = 35


class NameTaken(Refused):
    """A seated player has this name, or one that looks the same."""

    reason = "name_taken"
    code = 36


class EntropyOutOfTurn(Refused):
    """No such commitment or reveal is expected now."""

    reason = "entropy_out_of_turn"
    code = 40


class EntropyMismatch(Refused):
    """The revealed bytes do not match the commitment."""

    reason = "entropy_mismatch"
    code = 41


class VersionConflict(Refused):
    """The table is past the version `expect`, or changed on each attempt."""

    reason = "conflict"
    code = 50
    temporary = True


class CommandReused(Refused):
    """The id `cmd` was used for another command."""

    reason = "command_reused"
    code = 51


class RateLimited(Refused):
    """Too many requests; wait for `retry_after_ms` milliseconds."""

    reason = "rate_limited"
    code = 52
    temporary = True

    def __init__(self, sentence: str, *, retry_after_ms: int) -> None:
        super().__init__(sentence)
        self.retry_after_ms = retry_after_ms


class Overloaded(Refused):
    """The server is overloaded; send the request again later."""

    reason = "overloaded"
    code = 53
    temporary = True


class Unavailable(Refused):
    """Not possible at the moment; send the request again with the same `cmd`."""

    reason = "unavailable"
    code = 54
    temporary = True


class Disabled(Refused):
    """The operator has disabled this for a time."""

    reason = "disabled"
    code = 55
    temporary = True


class PositionLost(Refused):
    """The feed has no such position; begin again from an earlier one or from now."""

    reason = "position_lost"
    code = 60
