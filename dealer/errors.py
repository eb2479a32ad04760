"""Every exception of the package, as one tree.

    DealerError
    ├── Refused               a command that the game or the server rejects; nothing was changed
    │   ├── NotYourSeat, NotEntitled, NotHost, BadToken, BadKey, TicketUsed, TicketExpired
    │   ├── NoRound, RoundOpen, ShuffleRunning, NoShuffle, NotSealed
    │   ├── DeckEmpty, CardNotInHand, CardNotThere, BadPlace, NothingToTakeBack
    │   ├── UnknownTable, TableFull, SeatOccupied, TableIsClosed, TooManyTables, TableArchived,
    │   │   NameTaken
    │   ├── EntropyOutOfTurn, EntropyMismatch
    │   ├── BadRequest        an invalid parameter
    │   ├── PositionLost      a position in the feed that the log does not have
    │   └── VersionConflict, CommandReused, RateLimited, Overloaded, Unavailable, Disabled
    ├── ProofFault            the fault that a verifier found: check, line and sentence
    ├── NotCanonical          a text or value that has no canonical form (a ValueError too)
    ├── UnknownEvent          an event in the log that this version of dealer cannot read
    ├── HistoryUnavailable    a round that cannot be written in the requested format
    ├── NoteFault             a malformed or wrongly signed note (a ValueError too)
    ├── HouseCheated          proof, found by a player's client, that the server cheated
    ├── HouseUnreachable      no connection to the server
    ├── SessionEnded          the server closed the connection permanently
    ├── DatabaseError         the log cannot be written or read
    │   ├── DatabaseLocked, DatabaseReadOnly, DatabaseFull, DatabaseDamaged
    │   ├── SchemaOutdated, SchemaTooNew
    │   ├── DatabaseUnavailable  its server cannot be reached at present
    │   ├── DatabaseReplaced     its file was deleted or replaced while it was open
    │   ├── ConcurrentUpdate     another process changed the log; nothing was written
    │   └── OutcomeUnknown       the connection was lost during COMMIT
    ├── HouseKeyError         a house key that is missing, unreadable or of another house
    └── ConfigurationError    a setting, an address or a file that the program cannot use

A Refused has a `reason` (one word for programs), a `code` (a positive JSON-RPC error code) and says
whether it is `temporary`, so that the same command may succeed later. Its text is a sentence for
the user: what happened and what to do. No text contains a card, a token or SQL.
"""

from __future__ import annotations


class DealerError(Exception):
    """Any error that this package raises deliberately."""


class Refused(DealerError):
    """A command that is rejected; its sentence is for the client that sent it."""

    reason = "refused"
    code = 1
    temporary = False


class BadRequest(Refused):
    reason = "bad_request"
    code = 2


class NotYourSeat(Refused):
    reason = "not_your_seat"
    code = 3


class NotEntitled(Refused):
    reason = "not_entitled"
    code = 4


class NotHost(NotEntitled):
    pass


class BadToken(Refused):
    reason = "bad_token"
    code = 5


class BadKey(Refused):
    reason = "bad_key"
    code = 6


class TicketUsed(BadToken):
    reason = "ticket_used"
    code = 7


class TicketExpired(BadToken):
    reason = "ticket_expired"
    code = 8


class NoRound(Refused):
    reason = "no_round"
    code = 10


class RoundOpen(Refused):
    reason = "round_open"
    code = 11


class ShuffleRunning(Refused):
    reason = "shuffle_running"
    code = 12
    temporary = True


class NoShuffle(Refused):
    reason = "no_shuffle"
    code = 13


class NotSealed(Refused):
    reason = "not_sealed"
    code = 14


class DeckEmpty(Refused):
    reason = "deck_empty"
    code = 20


class CardNotInHand(Refused):
    reason = "card_not_in_hand"
    code = 21


class CardNotThere(Refused):
    reason = "card_not_there"
    code = 22


class BadPlace(Refused):
    reason = "bad_place"
    code = 23


class NothingToTakeBack(Refused):
    reason = "nothing_to_take_back"
    code = 24


class UnknownTable(Refused):
    reason = "unknown_table"
    code = 30


class TableFull(Refused):
    reason = "table_full"
    code = 31


class SeatOccupied(Refused):
    reason = "seat_occupied"
    code = 32


class TableIsClosed(Refused):
    reason = "table_closed"
    code = 33


class TooManyTables(Refused):
    reason = "too_many_tables"
    code = 34


class TableArchived(Refused):
    reason = "table_archived"
    code = 35


class NameTaken(Refused):
    reason = "name_taken"
    code = 36


class EntropyOutOfTurn(Refused):
    reason = "entropy_out_of_turn"
    code = 40


class EntropyMismatch(Refused):
    reason = "entropy_mismatch"
    code = 41


class VersionConflict(Refused):
    reason = "conflict"
    code = 50
    temporary = True


class CommandReused(Refused):
    reason = "command_reused"
    code = 51


class RateLimited(Refused):
    reason = "rate_limited"
    code = 52
    temporary = True

    def __init__(self, sentence: str, *, retry_after_ms: int) -> None:
        super().__init__(sentence)
        self.retry_after_ms = retry_after_ms


class Overloaded(Refused):
    reason = "overloaded"
    code = 53
    temporary = True


class Unavailable(Refused):
    reason = "unavailable"
    code = 54
    temporary = True


class Disabled(Refused):
    reason = "disabled"
    code = 55
    temporary = True


class PositionLost(Refused):
    reason = "position_lost"
    code = 60


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
    """There is no such round, or the requested format cannot represent it."""


class NoteFault(DealerError, ValueError):
    """A signed note, signature line or verifier key is malformed or does not verify."""


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


class DatabaseError(DealerError):
    """The log cannot be written or read; the sentence says why and what to do."""


class DatabaseLocked(DatabaseError):
    pass


class DatabaseReadOnly(DatabaseError):
    pass


class DatabaseFull(DatabaseError):
    pass


class SchemaOutdated(DatabaseError):
    pass


class SchemaTooNew(DatabaseError):
    pass


class DatabaseDamaged(DatabaseError):
    pass


class DatabaseUnavailable(DatabaseError):
    """The database server cannot be reached at present; the operation may be retried."""


class DatabaseReplaced(DatabaseError):
    """The database file was deleted or replaced while it was open; restart the process."""


class ConcurrentUpdate(DatabaseError):
    """Another process changed the log first; nothing was written."""


class OutcomeUnknown(DatabaseError):
    """The connection was lost during COMMIT; retry with the same command id, it executes once."""


class HouseKeyError(DealerError):
    """The key that encrypts the log is missing, unreadable or belongs to another house."""


class ConfigurationError(DealerError):
    """A setting, an address or a file that the program cannot use."""
