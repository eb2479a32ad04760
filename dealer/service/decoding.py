"""Decoding: the leaf and the event of a row of the log."""

from __future__ import annotations

import json
from typing import Any

from dealer.errors import DatabaseDamaged
from dealer.eventlog import Row
from dealer.eventlog.rows import leaf_of as leaf_of
from dealer.game.decide import NoRoundSecrets
from dealer.game.events import Event
from dealer.proof import codec
from dealer.service.round_secret import RoundSecret


def event_of(row: Row, secret: RoundSecret | NoRoundSecrets) -> Event:
    """The event of a row; with NoRoundSecrets without its hidden part."""
    hidden: dict[str, Any] = {}
    if isinstance(secret, RoundSecret) and row.hidden is not None and row.type != "RoundOpened":
        hidden = json.loads(secret.decrypt(row.version, row.hidden))
    return codec.decode(row.type, row.schema, row.members(), hidden)


def unsigned(table_id: str, row: Row) -> DatabaseDamaged:
    """The error for a table, by its id in hex, that lacks the checkpoint which is due at `row`."""
    return DatabaseDamaged(
        f"The signed checkpoint of table {table_id} at version {row.version} ({row.type}) is "
        "missing: the database was altered or is incomplete. Restore it from a backup."
    )


def tampered(table_id: str) -> DatabaseDamaged:
    """The error for a table, by its id in hex, whose rows are not what the house signed."""
    return DatabaseDamaged(
        f"The events of table {table_id} are not those that the house signed: the "
        "database was altered or is incomplete. Restore it from a backup."
    )
