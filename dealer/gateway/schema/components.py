"""Descriptions of the components that are made of parts of other schemas, by title."""

from __future__ import annotations

from dealer.gateway.schema.events import EVENTS

DESCRIBED = {
    "Algorithm": "A shuffle: `backward` (from the top) or `forward` (from the bottom).",
    "CardCode": "The code of a card, such as `As`.",
    "CardCodes": "Codes of cards, each once.",
    "CardOrSlot": "A card: its code, or its slot where its face is not known.",
    "Deck": "`52`, `54` (with jokers), codes bottom first, or a shoe of several decks.",
    "DeckName": "`52`: the standard cards; `54`: the same and two jokers.",
    "EntropySource": "Whose random bytes shuffle: the house's, and the players' or not.",
    "ErrorCode": "A number for each reason of a refusal; negative for faults of JSON-RPC.",
    "Face": "Whether cards lie face up or face down.",
    "Hash": "32 bytes in hex.",
    "NumberedHash": "The number of a seat or slot, and 32 bytes in hex.",
    "OpenedSlot": "The number of a slot, the code of its card, and the salt in hex.",
    "PlaceOfCards": "`top`, `bottom`, or a place, 0 the bottom.",
    "PrivateFace": "The face of a card, for the seat that may see it.",
    "RefusalReason": "Why a request was refused.",
    "Remover": "Who removed a player.",
    "ShortText": "At most 256 characters.",
    "StackEnd": "An end of a stack.",
    "StackEndOrRandom": "An end of a stack, or cards at random places.",
    "TableCondition": "Whether a table is open, closed, or closed and archived.",
    "WholeNumber": "From 0 to 2^32 - 1.",
} | {f"{name}Public": f"What all may know of {name}." for name in EVENTS}
