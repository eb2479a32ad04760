"""Every way the house says no.

    DealerError
    ├── Refused               a wish that the game does not grant; nothing was changed
    │   ├── NotYourSeat, NotEntitled, NotHost, BadToken
    │   ├── NoRound, RoundOpen, ShuffleRunning, NoShuffle, NotSealed
    │   ├── DeckEmpty, CardNotInHand, CardNotThere, BadPlace
    │   ├── UnknownTable, TableFull, SeatOccupied, TableEnded, TooManyTables, TableArchived
    │   ├── EntropyOutOfTurn, EntropyMismatch
    │   ├── BadRequest        a value that no command can have
    │   └── Conflicted, CommandReused, RateLimited, Overloaded, Unavailable, Disabled
    ├── ProofFault            what a verifier finds: the check, the line, a sentence
    ├── NotCanonical          a text or value that has no canonical form (a ValueError too)
    ├── UnknownEvent          the log holds an event that this program is too old to read
    ├── NoHistory             a round that cannot be written in the form that was asked for
    ├── NoteFault             a signed note that does not hold (a ValueError too)
    ├── HouseCheated          what a player's client finds, with the evidence; it leaves the table
    ├── HouseUnreachable      no connection to the house, or none that it keeps up
    ├── SessionEnded          the house closed the connection for good, and says why
    ├── DatabaseError         the log cannot be kept or read
    │   ├── DatabaseLocked, DatabaseReadOnly, DatabaseFull
    │   ├── DatabaseOld, DatabaseNew, DatabaseDamaged
    │   ├── DatabaseAway      its server cannot be reached just now
    │   ├── DatabaseReplaced  its file was deleted or replaced while it was open
    │   ├── RaceLost          another process did the same work; nothing was written
    │   └── OutcomeUnknown    the connection broke at COMMIT; the same command id settles it
    ├── HouseKeyError         missing, unreadable or another house's key
    └── SetupError            a setting, an address or a file that the program cannot work with

A refusal has a `reason` (one word for machines), a `code` (a positive JSON-RPC error code), says
whether it is `temporary`, and its text is a sentence that a person can act on. No text names a
card, a token or SQL.
"""

from __future__ import annotations


class DealerError(Exception):
    """Anything this package raises on purpose."""


class Refused(DealerError):
    """A wish that is not granted. Whoever made it may read the sentence and try another."""

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


class UnknownTable(Refused):
    reason = "unknown_table"
    code = 30


class TableFull(Refused):
    reason = "table_full"
    code = 31


class SeatOccupied(Refused):
    reason = "seat_occupied"
    code = 32


class TableEnded(Refused):
    reason = "table_closed"
    code = 33


class TooManyTables(Refused):
    reason = "too_many_tables"
    code = 34


class TableArchived(Refused):
    reason = "table_archived"
    code = 35


class EntropyOutOfTurn(Refused):
    reason = "entropy_out_of_turn"
    code = 40


class EntropyMismatch(Refused):
    reason = "entropy_mismatch"
    code = 41


class Conflicted(Refused):
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


class ProofFault(DealerError):
    """The first thing in a bundle that does not hold.

    `check` is one of form, heads, saved, secrets, tape, seals, moves; `line` counts the lines of
    the bundle from 0 (the header), so that a leaf's line is its version.
    """

    def __init__(self, check: str, line: int, sentence: str) -> None:
        super().__init__(f"{check}, line {line}: {sentence}")
        self.check = check
        self.line = line
        self.sentence = sentence


class NotCanonical(DealerError, ValueError):
    """A value that fairness.md's JCS does not know, or a text that is not its canonical form."""


class UnknownEvent(DealerError):
    """A log holds an event that this program is too old to read."""


class NoHistory(DealerError):
    """There is no such round, or no words for it in the format that was asked for."""


class NoteFault(DealerError, ValueError):
    """A signed note, a signature line or a verifier key that is malformed or does not verify."""


class HouseCheated(DealerError):
    """The house told this client two things that cannot both be true.

    `evidence` is what the client keeps: a `dealer.client.witness.Evidence` once the table is known.
    """

    def __init__(self, sentence: str, evidence: object = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.evidence = evidence


class HouseUnreachable(DealerError):
    """The house does not answer at its address, or the connection to it does not hold."""


class SessionEnded(DealerError):
    """The house closed the connection with a code (4401, 4403, 4408, 4409) that is final."""

    def __init__(self, sentence: str, *, code: int) -> None:
        super().__init__(sentence)
        self.code = code


class DatabaseError(DealerError):
    """The log cannot be kept or read; the sentence says why and what to do."""


class DatabaseLocked(DatabaseError):
    pass


class DatabaseReadOnly(DatabaseError):
    pass


class DatabaseFull(DatabaseError):
    pass


class DatabaseOld(DatabaseError):
    pass


class DatabaseNew(DatabaseError):
    pass


class DatabaseDamaged(DatabaseError):
    pass


class DatabaseAway(DatabaseError):
    """The database's server cannot be reached just now; what was asked of it may be tried again."""


class DatabaseReplaced(DatabaseError):
    """The file was deleted or replaced while it was open; this process cannot use it any more."""


class RaceLost(DatabaseError):
    """The log was changed meanwhile, mostly by a process that was quicker; nothing was written."""


class OutcomeUnknown(DatabaseError):
    """The connection broke at COMMIT: sent again under the same id, a command is done once."""


class HouseKeyError(DealerError):
    """The key that the log is sealed under is missing, unreadable or another house's."""


class SetupError(DealerError):
    """A setting, an address or a file that the program cannot work with."""
