"""Where it is kept: the log of every table's events, and the seal on what nobody may read there."""

from dealer.eventlog.house import key_file, open_house
from dealer.eventlog.log import Log
from dealer.eventlog.reading import Reading
from dealer.eventlog.rows import (
    Append,
    Appended,
    Chain,
    Conflict,
    Known,
    Result,
    Row,
)
from dealer.eventlog.sealing import HouseKeys, RoundSeal

__all__ = [
    "Append",
    "Appended",
    "Chain",
    "Conflict",
    "HouseKeys",
    "Known",
    "Log",
    "Reading",
    "Result",
    "RoundSeal",
    "Row",
    "key_file",
    "open_house",
]
