"""What a client sends when it joins a table: the command's id, a name, a key that cosigns."""

from __future__ import annotations

import json
import secrets
import uuid
from hashlib import sha256

from dealer.client.requests import Members
from dealer.client.store import TableStore
from dealer.errors import ConfigurationError
from dealer.proof.checkpoint import Cosigner

SEED_BYTES = 32


def join_command(kept: TableStore, params: Members) -> str:
    """The id of a join with these parameters, stored before it is sent.

    A program that was killed before the answer repeats the command with it, and gets the seat.
    """
    digest = sha256(json.dumps(params, sort_keys=True).encode()).hexdigest()
    joining = kept.facts.get("joining") or {}
    if joining.get("params") != digest:
        joining = {"cmd": str(uuid.uuid4()), "params": digest}
        kept.learn(joining=joining)
    return str(joining["cmd"])


def default_name() -> str:
    """A name for a player who gives none; names are unique at a table."""
    return f"Guest {secrets.randbelow(9_000) + 1_000}"


def cosigner_at(
    kept: TableStore, cosigner: Cosigner | bool | None, *, create: bool = False
) -> Cosigner | None:
    """The key that cosigns at a table: `cosigner`, or with True the one in the table's store.

    With `create` the store gets a new one if it has none. Raises ConfigurationError if the stored
    key is damaged.
    """
    if isinstance(cosigner, Cosigner) or not cosigner:
        return cosigner or None
    if create and not kept.facts.get("player_seed"):
        kept.learn(player_seed=secrets.token_bytes(SEED_BYTES).hex())
    try:
        seed = bytes.fromhex(kept.facts.get("player_seed", ""))
        return Cosigner(seed) if seed else None
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            "The client's cosigning key in its store is damaged: restore the store, or connect "
            "with cosigner=False."
        ) from error
