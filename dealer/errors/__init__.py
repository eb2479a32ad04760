"""Every exception of the package, as one tree; `dealer` exports them all.

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

Refusals (`refusals.py`) and faults of the database (`database.py`) have no class in common but
DealerError: `except Refused` catches what is answered to a player, and never a fault of the server.
"""

from __future__ import annotations

from dealer.errors.base import (
    ConfigurationError,
    DealerError,
)
from dealer.errors.client import (
    HouseCheated,
    HouseUnreachable,
    SessionEnded,
)
from dealer.errors.database import (
    ConcurrentUpdate,
    DatabaseDamaged,
    DatabaseError,
    DatabaseFull,
    DatabaseLocked,
    DatabaseReadOnly,
    DatabaseReplaced,
    DatabaseUnavailable,
    HouseKeyError,
    OutcomeUnknown,
    SchemaOutdated,
    SchemaTooNew,
)
from dealer.errors.proof import (
    HistoryUnavailable,
    NotCanonical,
    NoteFault,
    ProofFault,
    UnknownEvent,
)
from dealer.errors.refusals import (
    BadKey,
    BadPlace,
    BadRequest,
    BadToken,
    CardNotInHand,
    CardNotThere,
    CommandReused,
    DeckEmpty,
    Disabled,
    EntropyMismatch,
    EntropyOutOfTurn,
    NameTaken,
    NoRound,
    NoShuffle,
    NotEntitled,
    NothingToTakeBack,
    NotHost,
    NotSealed,
    NotYourSeat,
    Overloaded,
    PositionLost,
    RateLimited,
    Refused,
    RoundOpen,
    SeatOccupied,
    ShuffleRunning,
    TableArchived,
    TableFull,
    TableIsClosed,
    TicketExpired,
    TicketUsed,
    TooManyTables,
    Unavailable,
    UnknownTable,
    VersionConflict,
)

__all__ = [
    "BadKey",
    "BadPlace",
    "BadRequest",
    "BadToken",
    "CardNotInHand",
    "CardNotThere",
    "CommandReused",
    "ConcurrentUpdate",
    "ConfigurationError",
    "DatabaseDamaged",
    "DatabaseError",
    "DatabaseFull",
    "DatabaseLocked",
    "DatabaseReadOnly",
    "DatabaseReplaced",
    "DatabaseUnavailable",
    "DealerError",
    "DeckEmpty",
    "Disabled",
    "EntropyMismatch",
    "EntropyOutOfTurn",
    "HistoryUnavailable",
    "HouseCheated",
    "HouseKeyError",
    "HouseUnreachable",
    "NameTaken",
    "NoRound",
    "NoShuffle",
    "NotCanonical",
    "NotEntitled",
    "NotHost",
    "NotSealed",
    "NotYourSeat",
    "NoteFault",
    "NothingToTakeBack",
    "OutcomeUnknown",
    "Overloaded",
    "PositionLost",
    "ProofFault",
    "RateLimited",
    "Refused",
    "RoundOpen",
    "SchemaOutdated",
    "SchemaTooNew",
    "SeatOccupied",
    "SessionEnded",
    "ShuffleRunning",
    "TableArchived",
    "TableFull",
    "TableIsClosed",
    "TicketExpired",
    "TicketUsed",
    "TooManyTables",
    "Unavailable",
    "UnknownEvent",
    "UnknownTable",
    "VersionConflict",
]
