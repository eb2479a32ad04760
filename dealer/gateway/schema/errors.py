"""Error codes of the protocol: the reasons of refusals, and those of JSON-RPC."""

from __future__ import annotations

from dealer import errors
from dealer.errors import Refused
from dealer.gateway.wire.protocol import ErrorCode

REFUSALS = {
    "refused": "Refused.",
    "bad_request": "A parameter has an invalid value.",
    "not_your_seat": "This connection has no seat at this table.",
    "not_entitled": "The rules of this table do not permit this to the caller.",
    "bad_token": "The token is not valid for this table, or is no longer valid.",
    "bad_key": "The service key is not valid, or was revoked.",
    "ticket_used": "The ticket was used before, by another request; each is for one use.",
    "ticket_expired": "The ticket has expired; ask for a new one.",
    "no_round": "No round is open.",
    "round_open": "A round is open already.",
    "shuffle_running": "A shuffle is running; no card moves before it is sealed.",
    "no_shuffle": "No shuffle is running.",
    "not_sealed": "Cards that were not shuffled cannot be drawn.",
    "deck_empty": "There are fewer cards than requested.",
    "card_not_in_hand": "A card is not in this hand.",
    "card_not_there": "A card is not in the named stack.",
    "bad_place": "The stack has no such place.",
    "nothing_to_take_back": "The last move is another seat's, showed a card, or there is none.",
    "unknown_table": "There is no such table.",
    "table_full": "Every seat is taken.",
    "seat_occupied": "This seat is taken.",
    "table_closed": "The table is closed.",
    "too_many_tables": "This connection is at the maximum number of tables.",
    "name_taken": "A seated player has this name, or one that looks the same.",
    "entropy_out_of_turn": "No such commitment or reveal is expected now.",
    "entropy_mismatch": "The revealed bytes do not match the commitment.",
    "conflict": "The table is past version `expect`, or changed on each attempt.",
    "command_reused": "The id `cmd` was used for another command.",
    "rate_limited": "Too many requests; wait for `retry_after_ms`.",
    "overloaded": "The server is overloaded; send the request again later.",
    "unavailable": "Not possible at the moment; send the request again with the same `cmd`.",
    "disabled": "New tables, seats or rounds are disabled at the moment; open ones continue.",
    "position_lost": "The log does not have this position of the feed; it was restored.",
    "table_archived": "The table is closed and archived; only its bundle remains.",
}


def refusals() -> dict[str, type[Refused]]:
    """Every reason of a refusal with its exception, ordered by code."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    refused = [kind for kind in kinds if issubclass(kind, Refused)]
    return {kind.reason: kind for kind in sorted(refused, key=lambda kind: kind.code)}


def codes() -> dict[int, str]:
    """Every error code with its meaning."""
    faults = {int(code): code.meaning for code in ErrorCode}
    return faults | {kind.code: REFUSALS[reason] for reason, kind in refusals().items()}
