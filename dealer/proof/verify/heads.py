"""Checks `heads` and `saved`: the house signed this log, at every required point.

`heads`, in this order; the reported line is the checkpoint's unless stated otherwise:

1. the key that the user pinned is the header's (line 0); key and origin of TableOpened are the
   header's (line 1);
2. for each checkpoint: it is a well-formed note of this origin, larger than the one before it and
   no larger than the log; the house's key signed it; its root is that of the leaves; and each key
   of a SeatTaken of this log, whose opening has no fault, has at most one line, whose cosignature
   is valid (lines by other keys are ignored, as C2SP requires);
3. there is a checkpoint at each EntropyClosed, DeckSealed, RoundClosed and TableClosed, and at the
   last leaf (the line of the leaf without one).

`saved`: first, each of the user's checkpoints is a note valid in the same way, over at least one
leaf (else line 0); then each, in the given order, has a size within this log and the same root as
this log at that size (else the line is its size).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dealer.errors import NoteFault, ProofFault
from dealer.proof import checkpoint as checkpoints
from dealer.proof.tree import Tree
from dealer.proof.verify.form import Leaf, Parts
from dealer.proof.verify.report import Report

_player = re.compile("player/([0-9a-f]{64})").fullmatch
DUE = ("EntropyClosed", "DeckSealed", "RoundClosed", "TableClosed")


def check_heads(parts: Parts, pinned: str | None, report: Report) -> dict[int, bytes]:
    """The verified roots by size; raises the first ProofFault `heads`."""
    if pinned is not None and pinned != parts.key:
        raise ProofFault("heads", 0, "The table's key is not the one that you gave.")
    opened = parts.leaves[0].public
    if opened["key"] != parts.key or opened["origin"] != parts.origin:
        raise ProofFault("heads", 1, "TableOpened names another key or origin than the header.")
    names = _names(parts)
    keys = list(map(bytes.fromhex, names))
    roots: dict[int, bytes] = {}
    signed: dict[str, int] = {}
    upto: dict[str, int] = {}
    tree = Tree()
    for line, note in parts.notes:
        try:
            checkpoint = _open(note, parts)
            if roots and checkpoint.size <= tree.size:
                raise NoteFault("Checkpoints are ordered by size, one for each.")
            if checkpoint.size > len(parts.leaves):
                raise NoteFault("This checkpoint is over more leaves than there are.")
            tree.extend(leaf.hash for leaf in parts.leaves[tree.size : checkpoint.size])
            if tree.root() != checkpoint.root:
                raise NoteFault("The house signed another log than this one.")
            if any(leaf.type == "SeatTaken" for leaf in parts.withheld):
                _count_unknown(checkpoint, names, report.withheld_cosigners)
            for key in checkpoints.cosigners(checkpoint, keys=keys):
                signed[key.hex()] = signed.get(key.hex(), 0) + 1
                upto[key.hex()] = checkpoint.size
        except NoteFault as fault:
            raise ProofFault("heads", line, str(fault)) from fault
        roots[checkpoint.size] = checkpoint.root
    _check_due(parts.leaves, roots)
    report.cosigners, report.cosigned_upto = signed, upto
    report.names = {key: names[key] for key in signed}
    report.remarks.cosigned = sum(signed.values())
    return roots


def check_saved(parts: Parts, saved: Sequence[object]) -> None:
    """Raise the first ProofFault `saved`."""
    keys = list(map(bytes.fromhex, _names(parts)))
    opened = []
    for note in saved:
        try:
            if not isinstance(note, str):
                raise NoteFault("A saved checkpoint must be a note, which is text.")
            checkpoint = _open(note, parts)
            checkpoints.require_leaves(checkpoint)
            checkpoints.cosigners(checkpoint, keys=keys)
            opened.append(checkpoint)
        except NoteFault as fault:
            sentence = f"A saved checkpoint is not one of this table: {fault}"
            raise ProofFault("saved", 0, sentence) from fault
    roots = _roots(parts.leaves, {checkpoint.size for checkpoint in opened})
    for checkpoint in opened:
        if checkpoint.size not in roots:
            sentence = "A saved checkpoint is of a longer log: this log was truncated."
            raise ProofFault("saved", checkpoint.size, sentence)
        if roots[checkpoint.size] != checkpoint.root:
            sentence = "A saved checkpoint is of a different log: this log was changed."
            raise ProofFault("saved", checkpoint.size, sentence)


def _names(parts: Parts) -> dict[str, str]:
    """Every key that a SeatTaken opens, in hex, with the last name that it was used with."""
    return {
        leaf.public["key"]: leaf.public["name"]
        for leaf in parts.leaves
        if leaf.type == "SeatTaken" and "key" in leaf.public
    }


def _count_unknown(
    checkpoint: checkpoints.Checkpoint, known: Mapping[str, str], counts: dict[str, int]
) -> None:
    """Count the keys of players that signed and may be those of players who are withheld."""
    named = (_player(signature.name) for signature in checkpoint.signatures)
    for key in sorted({found[1] for found in named if found} - known.keys()):
        counts[key] = counts.get(key, 0) + 1


def _open(note: str, parts: Parts) -> checkpoints.Checkpoint:
    checkpoint = checkpoints.read_checkpoint(note)
    if checkpoint.origin != parts.origin:
        raise NoteFault("The note has another origin.")
    checkpoints.check_house(checkpoint, key=bytes.fromhex(parts.key))
    return checkpoint


def _roots(leaves: Sequence[Leaf], sizes: set[int]) -> dict[int, bytes]:
    """The roots at these sizes; sizes beyond the log are omitted."""
    tree = Tree()
    roots = {}
    for size in sorted(sizes):
        if size <= len(leaves):
            tree.extend(leaf.hash for leaf in leaves[tree.size : size])
            roots[size] = tree.root()
    return roots


def _check_due(leaves: Sequence[Leaf], roots: dict[int, bytes]) -> None:
    for leaf in leaves:
        if leaf.type in DUE and leaf.version not in roots:
            sentence = f"The checkpoint required at {leaf.type} is missing."
            raise ProofFault("heads", leaf.version, sentence)
    if len(leaves) not in roots:
        sentence = "The last checkpoint does not cover the whole log."
        raise ProofFault("heads", len(leaves), sentence)
