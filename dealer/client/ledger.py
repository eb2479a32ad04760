"""The verifier's ledger (`dealer.proof.verify`) of one client, and the replay of a closed round.

The ledger is filled event by event, or from a snapshot. While a round is open, its secret is
unknown, so the rules check everything that is public. When the house reveals the secret, the leaves
of the round are replayed in a second ledger that has it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field

from dealer.errors import HouseCheated
from dealer.game.state import Round as RoundState
from dealer.game.state import Shuffle as ShuffleState
from dealer.game.state import Table
from dealer.proof.keys import RoundKeys, secret_length
from dealer.proof.verify.form import Leaf
from dealer.proof.verify.ledger import Ledger, Round, RuleViolation, Shuffle
from dealer.proof.verify.replay import apply
from dealer.proof.verify.report import Remarks

RootAt = Callable[[int], bytes | None]
"""The root of the client's tree at a size; None for a size that the client does not know."""


class _EverySeat(set[int]):
    """The seats ever taken at a table whose earlier events this client has not seen: any."""

    def __contains__(self, seat: object) -> bool:
        return True


def empty_ledger(table: bytes) -> Ledger:
    """The ledger of a table before its first event; `table` is its id, 16 bytes."""
    return Ledger(table=table, roots={}, secrets={}, remarks=Remarks(), swaps=[])


def ledger_of(table: bytes, state: Table) -> Ledger:
    """The ledger of a table that a snapshot described; faces of its slots are unknown."""
    ledger = empty_ledger(table)
    ledger.seats = set(state.seats)
    ledger.sat = _EverySeat()
    ledger.rounds = len(state.round_versions)
    ledger.round = None if state.round is None else _round(state.round)
    ledger.closed = state.closed
    return ledger


def _round(state: RoundState) -> Round:
    slots = range(len(state.faces))
    return Round(
        number=state.number,
        deck=list(state.opened),
        entropy=state.entropy,
        secret=None,
        keys=None,
        stacks={name: list(cards) for name, cards in state.stacks.items()},
        k=state.k,
        shuffle=None if state.shuffle is None else _shuffle(state.shuffle),
        ahead={seat: digest.hex() for seat, digest in state.early_digests.items()},
        withheld=set(state.withheld),
        commitments=[state.commitment_of(slot).hex() for slot in slots],
        faces=[None for _ in slots],
        drawable=[bool(reached) for reached in state.drawable],
    )


def _shuffle(state: ShuffleState) -> Shuffle:
    return Shuffle(
        k=state.k,
        stack=state.stack,
        n=state.n,
        algorithm=state.algorithm,
        steps=state.steps,
        digests={seat: digest.hex() for seat, digest in state.digests.items()},
        nonces=dict(state.nonces),
        closed=state.closed_version,
    )


@dataclass(slots=True)
class RoundRecord:
    """An open round as this client saw it, kept for one replay when its secret is known.

    `table` is the table's id; `seats` were taken before `leaves`. `base` is the round as a snapshot
    described it, None if the client saw the RoundOpened, which is then the first of `leaves`.
    """

    table: bytes
    seats: set[int]
    commitment: str
    base: Round | None = None
    leaves: list[Leaf] = field(default_factory=list)

    @classmethod
    def start(cls, ledger: Ledger, *, commitment: bytes, opened: Leaf | None) -> RoundRecord:
        """A record of the ledger's open round; `opened` is its RoundOpened, if it was seen."""
        seats = set(ledger.seats)
        if opened is not None:
            return cls(ledger.table, seats, commitment.hex(), leaves=[opened])
        return cls(ledger.table, seats, commitment.hex(), base=deepcopy(ledger.round))

    def check(self, secret: bytes, *, root_at: RootAt) -> None:
        """Replay the round with its secret; HouseCheated at the first event that contradicts it."""
        try:
            ledger = self._ledger(secret, root_at)
            for leaf in self.leaves:
                apply(ledger, leaf)
                if leaf.type in ("DeckSealed", "ShuffleVoided"):
                    self._use_secret(ledger, secret)
        except RuleViolation as violation:
            raise HouseCheated(
                f"The house's secret, now revealed, contradicts the round: {violation}"
            ) from violation

    def _ledger(self, secret: bytes, root_at: RootAt) -> Ledger:
        """A ledger at the beginning of the record, with the roots that its tapes need."""
        ledger = empty_ledger(self.table)
        ledger.seats, ledger.sat = set(self.seats), _EverySeat()
        closings = [leaf.version for leaf in self.leaves if leaf.type == "EntropyClosed"]
        base = self.base
        if base is None:
            first = self.leaves[0]
            ledger.secrets[first.version] = secret
            ledger.rounds = first.public["round"] - 1
        else:
            ledger.round, ledger.rounds = base, base.number
            keys = RoundKeys(table=self.table, round=base.number, secret=secret)
            if len(secret) != secret_length(len(base.deck)) or (
                keys.commitment.hex() != self.commitment
            ):
                raise RuleViolation("It is not the secret that the round was opened with.")
            if base.shuffle is not None and base.shuffle.closed:
                closings.append(base.shuffle.closed)
        ledger.roots = {size: root for size in closings if (root := root_at(size)) is not None}
        # The tape of a shuffle needs the root at its EntropyClosed. Where that is not known, the
        # swaps of this shuffle cannot be recomputed: they pass, and its seal is opened afterwards.
        shuffle = None if base is None else base.shuffle
        if shuffle is None or not shuffle.closed or shuffle.closed in ledger.roots:
            self._use_secret(ledger, secret)
        return ledger

    def _use_secret(self, ledger: Ledger, secret: bytes) -> None:
        """Give the secret to a round without one, and open every slot that is on its stacks.

        Raises RuleViolation for a slot that no card of the deck opens.
        """
        round_ = ledger.round
        if round_ is None or round_.keys is not None:
            return
        keys = RoundKeys(table=self.table, round=round_.number, secret=secret)
        round_.secret, round_.keys = secret, keys
        cards = [card for stack in round_.stacks.values() for card in stack]
        left = set(round_.deck) - {round_.deck[~card] for card in cards if card < 0}
        for slot in (card for card in cards if card >= 0):
            commitment = round_.commitments[slot]
            found = (c for c in left if keys.slot_commitment(slot, c).hex() == commitment)
            face = next(found, None)
            if face is None:
                raise RuleViolation(f"Slot {slot} was sealed over no card of this round's deck.")
            round_.faces[slot] = face
            left.remove(face)
