"""Every exception of the package, as one tree; `dealer` exports them all.

Below DealerError are Refused, what a command meets that the game or the server rejects, so that
nothing was changed; DatabaseError, a fault of the log; the faults that verifiers and clients find;
and what ends a client's table or connection. Each of them has a section in this file.

A Refused has a `reason` (one word for programs), a `code` (a positive JSON-RPC error code) and says
whether it is `temporary`, so that the same command may succeed later. Its text is a sentence for
the user: what happened and what to do. No text contains a card, a token or SQL.

Refusals and faults of the database have no class in common but DealerError: `except Refused`
catches what is answered to a player, and never a fault of the server.
"""

from __future__ import annotations


def amount(count: int, one: str, many: str = "") -> str:
    """A number with its noun, as sentences have it: 1 round, 2,000 rounds; 1 is, 2 are."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


class DealerError(Exception):
    """Any error that this package raises deliberately."""


class ConfigurationError(DealerError):
    """A setting, an address or a file that the program cannot use."""


# Refusals: nothing was changed. Their reasons and codes are part of the protocol, and the first
# paragraph of each docstring is published with them (`/openrpc.json`, the reference).


class Refused(DealerError):
    """The command was rejected; the message of the error says why."""

    reason = "refused"
    code = 1
    temporary = False

    def __init_subclass__(cls, *, reason: str = "", code: int = 0, temporary: bool = False) -> None:
        """A kind without a reason of its own has all three of its base class."""
        super().__init_subclass__()
        if reason:
            cls.reason, cls.code, cls.temporary = reason, code, temporary


class BadRequest(Refused, reason="bad_request", code=2):
    """A parameter has an invalid value."""


class NotYourSeat(Refused, reason="not_your_seat", code=3):
    """This connection has no seat at this table."""


class NotEntitled(Refused, reason="not_entitled", code=4):
    """The rules of this table do not permit this to the caller."""


class NotHost(NotEntitled):
    """Only the host may do this."""


class BadToken(Refused, reason="bad_token", code=5):
    """The token is not valid for this table, or is no longer valid."""


class BadKey(Refused, reason="bad_key", code=6):
    """The service key is not valid, or was revoked."""


class TicketUsed(BadToken, reason="ticket_used", code=7):
    """The ticket was used before, by another request; each is for one use."""


class TicketExpired(BadToken, reason="ticket_expired", code=8):
    """The ticket has expired; ask for a new one."""


class NoRound(Refused, reason="no_round", code=10):
    """No round is open."""


class RoundOpen(Refused, reason="round_open", code=11):
    """A round is open already."""


class ShuffleRunning(Refused, reason="shuffle_running", code=12, temporary=True):
    """A shuffle is running; no card moves before it is sealed."""


class NoShuffle(Refused, reason="no_shuffle", code=13):
    """No shuffle is running."""


class NotSealed(Refused, reason="not_sealed", code=14):
    """Cards that were not shuffled cannot be drawn."""


class DeckEmpty(Refused, reason="deck_empty", code=20):
    """There are fewer cards than requested."""


class CardNotInHand(Refused, reason="card_not_in_hand", code=21):
    """A card is not in this hand."""


class CardNotThere(Refused, reason="card_not_there", code=22):
    """A card is not in the named stack."""


class BadPlace(Refused, reason="bad_place", code=23):
    """The stack has no such place."""


class NothingToTakeBack(Refused, reason="nothing_to_take_back", code=24):
    """The last move is another seat's, showed a card, or there is none."""


class UnknownTable(Refused, reason="unknown_table", code=30):
    """There is no such table."""


class TableFull(Refused, reason="table_full", code=31):
    """Every seat is taken."""


class SeatOccupied(Refused, reason="seat_occupied", code=32):
    """This seat is taken."""


class TableIsClosed(Refused, reason="table_closed", code=33):
    """The table is closed."""


class TooManyTables(Refused, reason="too_many_tables", code=34):
    """This connection is at the maximum number of tables."""


class TableArchived(Refused, reason="table_archived", code=35):
    """The table is closed and archived; only its bundle remains."""


class NameTaken(Refused, reason="name_taken", code=36):
    """A seated player has this name, or one that looks the same."""


class PlayerRemoved(Refused, reason="player_removed", code=37):
    """A player of this name was removed for a reason, and the host has not readmitted them."""


class EntropyOutOfTurn(Refused, reason="entropy_out_of_turn", code=40):
    """No such commitment or reveal is expected now."""


class EntropyMismatch(Refused, reason="entropy_mismatch", code=41):
    """The revealed bytes do not match the commitment."""


class VersionConflict(Refused, reason="conflict", code=50, temporary=True):
    """The table is past version `expect`, or changed on each attempt."""


class CommandReused(Refused, reason="command_reused", code=51):
    """The id `cmd` was used for another command."""


class RateLimited(Refused, reason="rate_limited", code=52, temporary=True):
    """Too many requests; wait for `retry_after_ms`."""

    def __init__(self, sentence: str, *, retry_after_ms: int) -> None:
        super().__init__(sentence)
        self.retry_after_ms = retry_after_ms


class Overloaded(Refused, reason="overloaded", code=53, temporary=True):
    """The server is overloaded; send the request again later."""


class Unavailable(Refused, reason="unavailable", code=54, temporary=True):
    """Not possible at the moment; send the request again with the same `cmd`."""


class Disabled(Refused, reason="disabled", code=55, temporary=True):
    """New tables, seats or rounds are disabled at the moment; open ones continue."""


class TooEarly(Refused, reason="too_early", code=56, temporary=True):
    """The broadcast of this table has not come that far; try again shortly."""


class PositionLost(Refused, reason="position_lost", code=60):
    """The log does not have this position of the feed; it was restored."""


REFUSALS: dict[str, type[Refused]] = {
    kind.reason: kind
    for kind in list(vars().values())
    if isinstance(kind, type) and issubclass(kind, Refused) and "reason" in vars(kind)
}
"""Every refusal by its reason, ordered by code."""


# Faults of what is verified: bundles, canonical texts, notes.


class ProofFault(DealerError):
    """The first fault of a bundle.

    `check` is one of form, heads, saved, secrets, tape, seals, moves; `line` is the line of the
    bundle, counted from 0 (the header), so that a leaf's line is its version.
    """

    def __init__(self, check: str, line: int, sentence: str) -> None:
        super().__init__(f"{check}, line {line}: {sentence}")
        self.check = check
        self.line = line
        self.sentence = sentence


class NotCanonical(DealerError, ValueError):
    """A value outside the canonical JSON subset, or a text that is not in canonical form."""


class UnknownEvent(DealerError):
    """The log contains an event that this version of dealer cannot read."""


class HistoryUnavailable(DealerError):
    """There is no such round, or the cards of this table were chosen."""


class NoteFault(DealerError, ValueError):
    """A signed note, signature line or verifier key is malformed or does not verify."""


# How a client's table or connection ends.


class HouseCheated(DealerError):
    """The house sent this client contradictory or invalid data.

    `evidence` is a `dealer.client.event_verifier.Evidence`, or None before the table is known.
    """

    def __init__(self, sentence: str, evidence: object = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.evidence = evidence


class HouseUnreachable(DealerError):
    """The server does not answer at its address, or its connections are lost repeatedly."""


class SessionEnded(DealerError):
    """The server closed the connection with a final close code: 1009, 4401, 4403, 4408 or 4409."""

    def __init__(self, sentence: str, *, code: int) -> None:
        super().__init__(sentence)
        self.code = code


# Faults of the log and of its key. No player causes them, and none reaches a player.


class DatabaseError(DealerError):
    """The log cannot be written or read; the sentence says why and what to do."""


class DatabaseLocked(DatabaseError):
    """Another process has held the lock on the database for too long."""


class DatabaseReadOnly(DatabaseError):
    """The database, its file or its folder cannot be written."""


class DatabaseFull(DatabaseError):
    """The disk or the database has no space left."""


class SchemaOutdated(DatabaseError):
    """The database has the tables of an earlier release; run `dealer migrate`."""


class SchemaTooNew(DatabaseError):
    """The database has the tables of a later release than this one."""


class DatabaseDamaged(DatabaseError):
    """The database, or a row of it, is damaged; `logged` says whether a log line names the row."""

    logged = False


class DatabaseUnavailable(DatabaseError):
    """The database server cannot be reached at present; the operation may be retried."""


class WorkerUnavailable(DatabaseUnavailable):
    """A server of a log in shards cannot be reached: its tables are unavailable, no others."""


class DatabaseReplaced(DatabaseError):
    """The database file was deleted or replaced while it was open; restart the process."""


class ServerReplaced(DatabaseUnavailable):
    """A standby took over from this database server, which must not be written any more."""


class ConcurrentUpdate(DatabaseError):
    """Another process changed the log first; nothing was written."""


class OutcomeUnknown(DatabaseError):
    """The connection was lost during COMMIT; retry with the same command id, it executes once."""


class HouseKeyError(DealerError):
    """The key that encrypts the log is missing, unreadable or belongs to another house."""


__all__ = sorted(name for name, each in globals().items() if isinstance(each, type))
