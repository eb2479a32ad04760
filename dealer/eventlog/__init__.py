"""The event log of every table in SQL, with group commit, and encryption of hidden parts at rest.

See README.md in this folder for the databases, and `log.Log` for the interface.
"""

from dealer.eventlog.keys import HouseKeys, RoundCipher, key_file, load_house_keys
from dealer.eventlog.log import Log
from dealer.eventlog.read_only_log import ReadOnlyLog
from dealer.eventlog.rows import Append, Appended, Chain, Conflict, Duplicate, EventRecord, Result

__all__ = [
    "Append",
    "Appended",
    "Chain",
    "Conflict",
    "Duplicate",
    "EventRecord",
    "HouseKeys",
    "Log",
    "ReadOnlyLog",
    "Result",
    "RoundCipher",
    "key_file",
    "load_house_keys",
]
