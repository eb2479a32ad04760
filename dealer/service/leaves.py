"""What a row of the log says: the leaf that was signed, and the event."""

from __future__ import annotations

import json
from typing import Any

from dealer.errors import DatabaseDamaged
from dealer.eventlog import Row
from dealer.eventlog.rows import leaf_of as leaf_of
from dealer.game.decide import NoSecret
from dealer.game.events import Event
from dealer.proof import codec
from dealer.service.round_secret import RoundSecret


def event_of(row: Row, secret: RoundSecret | NoSecret) -> Event:
    """The event of a row; with NoSecret as somebody reads it who may not know what it hides."""
    hidden: dict[str, Any] = {}
    if isinstance(secret, RoundSecret) and row.hidden is not None and row.type != "RoundOpened":
        hidden = json.loads(secret.unseal(row.version, row.hidden))
    return codec.decode(row.type, row.schema, row.members(), hidden)


def altered(table_id: str) -> DatabaseDamaged:
    """What is raised where the rows of a table, by its id in hex, are not what was signed."""
    return DatabaseDamaged(
        f"The events of table {table_id} are not those that the house signed: the "
        "database was altered or is incomplete. Restore it from a backup."
    )
