"""The schema of a table's rules: `Rules` as they are sent, `TableRules` as clients receive them."""

from __future__ import annotations

from typing import Any

from dealer.game.insecure_deck import RULE as INSECURE_DECK
from dealer.game.rules import (
    ACTIONS,
    PRESETS,
    SEATS_DEFAULT,
    WAIT_MS_DEFAULT,
    WAITS,
    WHO,
)
from dealer.gateway.schema.titles import FORMS, reference

Schema = dict[str, Any]

ACTION = {
    "open": "open rounds",
    "close": "close rounds and the table",
    "shuffle": "shuffle the deck and piles",
    "deal": "deal",
    "collect": "move cards of another seat's hand; never more than the host",
    "draw": "draw from the deck",
    "burn": "put cards of the deck aside, on the pile `burn`",
    "cut": "cut the deck",
    "pile": "draw from piles, and move cards between piles and the deck",
    "turn": "turn cards of piles face up",
    "discard": "discard from their own hand",
    "play": "play from their own hand",
    "give": "give a card of their own hand to another seat",
    "show": "show cards of their own hand",
    "return": "put cards of their own hand back into the deck",
    "pass": "pass cards together with all others",
    "take_back": "take back the last move",
    "annotate": "add notes",
    "move_seat": "move to another seat",
}
"""What those may do whom a rule names, by the rule."""


def rules_schemas() -> dict[str, Schema]:
    """The schemas of rules and of their members, by title."""
    sent = "The rules of a new table. Members with other names are free: they mean nothing to the "
    sent += "server; begin their names with `x_`, because names similar to known ones are refused."
    received = "The rules of a table, as they were given when it was opened."
    return {
        "Permission": _choice("Permission", WHO, "Who may do something; `players` are the host and "
                              "every seat."),
        "Preset": _choice("Preset", PRESETS, "Who may do what, where no other member says it."),
        "Admission": _choice("Admission", ("anyone", "invite"), "Who may take a seat."),
        "Audience": _choice("Audience", ("anyone", "nobody"), "Who may watch without a seat."),
        "StackedDeck": {
            "title": "StackedDeck",
            "description": "The cards of a test deck.",
            "type": "object",
            "properties": {
                "order": reference("CardCodes", "the cards on top after each shuffle, the "
                                   "uppermost first"),
                "seed": {"type": "string", "description": "determines the order of the others"},
            },
            "required": [],
        },
        "InsecureTestDeck": {
            "title": "InsecureTestDeck",
            "description": "A test deck, or true for none.",
            "anyOf": [reference("StackedDeck"), {"type": "boolean"}],
        },
        "Rules": _rules("Rules", sent, "Deck"),
        "TableRules": _rules("TableRules", received, "TableDeck"),
    }  # fmt: skip


def _rules(title: str, description: str, deck: str) -> Schema:
    members: dict[str, Schema] = {
        "preset": reference("Preset", "who may do what; a member named like an action overrides it",
                      "free"),
        "name": FORMS["TableName"] | {"description": "the table's name, for all to read"},
        "seats": FORMS["SeatCount"] | {"description": "the number of seats",
                                       "default": SEATS_DEFAULT},
        "deck": reference(deck, "the deck of rounds that are opened without their own", "52"),
        "entropy": reference("EntropySource", "whose random bytes shuffle the deck", "players"),
        "join": reference("Admission", "`anyone`, or `invite`: only with the invitation", "anyone"),
        "watch": reference("Audience", "whether there are spectators", "anyone"),
        "listed": {"type": "boolean", "default": True,
                   "description": "whether the lobby may list the table"},
        "pack": FORMS["PackName"]
        | {"description": "the pack of cards that pages show: `/packs/<name>.json`"},
        "game": {"type": "string",
                 "description": "the game that pages help to play: `/games/<name>.json`"},
    }  # fmt: skip
    members[INSECURE_DECK] = reference(
        "InsecureTestDeck", "for tests, at a server with `--insecure-test-decks` only"
    )
    for wait, doing in zip(WAITS, ("commit to", "reveal"), strict=True):
        members[wait] = FORMS["WaitMs"] | {
            "default": WAIT_MS_DEFAULT,
            "description": f"how long players may {doing} random bytes, in milliseconds",
        }
    for action in ACTIONS:
        members[action] = reference("Permission", f"who may {ACTION[action]}")
    return {
        "title": title,
        "description": description,
        "type": "object",
        "properties": members,
        "required": [],
        "additionalProperties": True,
    }


def _choice(title: str, choices: Any, description: str) -> Schema:
    return {"title": title, "description": description, "type": "string", "enum": list(choices)}
