"""Descriptions of the members of events; a name has one meaning in all events, except in `OWN`."""

from __future__ import annotations

LEAF = {
    "at": "when the server received the command, in epoch milliseconds",
    "commit": "commitment to the hidden part",
    "private": "the card's face, only for the seat that may see it",
    "public": "what all may know of the event",
    "table": "id of the table",
    "type": "type of the event",
    "v": "number of this type's schema",
    "version": "the event's place in the table's log, from 1, without gaps",
}

PUBLIC = {
    "algorithm": "`backward` (from the top) or `forward` (from the bottom)",
    "at": "the place from which the cards went to the bottom; 0 is the bottom",
    "bot": "only of a program, as its service says",
    "by": "`service` also where the server did it for another player",
    "card": "code of the card",
    "commit_ms": "how long players may commit to random bytes, in milliseconds",
    "commitment": "hash of the house's secret of the round",
    "deck": "codes of the cards, bottom first",
    "digest": "hash of the bytes that the seat committed to",
    "entropy": "whose random bytes shuffle",
    "first": "the first of the new slots",
    "from": "the stack that the card came from",
    "i": "the first of the two places; 0 is the bottom",
    "k": "ordinal of the shuffle in the round, from 0",
    "key": "the Ed25519 public key with which the player cosigns, of those that do",
    "kind": "kind of the note",
    "n": "how many cards the stack has",
    "name": "name of the player",
    "nonce": "the bytes that the seat committed to",
    "origin": "name of the table's log in its checkpoints",
    "place": "place in the stack that received the card; 0 is the bottom",
    "protocol": "name of the format of the log",
    "reason": "why the player was removed",
    "reveal_ms": "how long players may reveal random bytes, in milliseconds",
    "round": "number of the round, from 1",
    "rules": "the rules of the table",
    "salt": "salt of the card's commitment",
    "seat": "number of the seat, from 1",
    "secret": "the house's secret of the round",
    "slot": "number of the sealed card",
    "slots": "commitments of the new slots, from the bottom of the stack upwards",
    "stack": "the stack: `deck`, or a pile",
    "step": "number of the step, from 0",
    "steps": "how many steps the shuffle has",
    "text": "the note itself",
    "to": "the stack that received the card",
}

OWN = {
    "TableOpened.key": "the house's Ed25519 public key for this table",
    "NoteAdded.seat": "number of the seat; 0 for the host or a service",
}
