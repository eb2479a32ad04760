"""Verification of a table's event stream: the leaf tree, the rules, and every opened card.

No input and output: frames go in, `TableEvent`s come out. Each event becomes a leaf of this
client's own Merkle tree, must be legal by the rules of `dealer.proof.verify`, and each card that is
shown must open the commitment that was published before it was dealt. A contradiction raises
HouseCheated with its evidence.

The verifier's ledger is filled event by event, or from a snapshot. While a round is open, its
secret is unknown, so the rules check everything that is public. When the house reveals the secret,
the leaves of the round are replayed in a second ledger that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dealer.client.snapshot import restore
from dealer.client.storage import SavedHead
from dealer.client.verified_log import Gap, VerifiedLog
from dealer.errors import HouseCheated, ProofFault, UnknownEvent
from dealer.game import events
from dealer.game.events import Event
from dealer.game.rules import PRACTICE
from dealer.game.stacks import hand
from dealer.game.state import Round as RoundState
from dealer.game.state import Shuffle as ShuffleState
from dealer.game.state import Table, evolve
from dealer.proof import canonical, codec
from dealer.proof.opened import SALT_BYTES
from dealer.proof.round_keys import RoundKeys, secret_length, slot_commitment
from dealer.proof.tree import leaf_hash
from dealer.proof.verify.form import PUBLIC, Leaf, check_leaf
from dealer.proof.verify.ledger import Ledger, Round, RuleViolation, Shuffle
from dealer.proof.verify.replay import INSECURE_RULE, apply
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
    described it, None if the client saw the RoundOpened, which is then the first of `leaves`. At a
    practice table (`laid_out`) the first shuffle need not follow the tape.
    """

    table: bytes
    seats: set[int]
    commitment: str
    base: Round | None = None
    laid_out: bool = False
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
        ledger.laid_out = self.laid_out
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


Frame = Mapping[str, Any]

_OPENING = {"card", "salt", "slot"}
_OPENED = {"part", "salt"}


class TableEvent(NamedTuple):
    """One event as this viewer saw it; `at` in epoch milliseconds, faces they may not know None."""

    version: int
    at: int
    event: Event


@dataclass(kw_only=True, eq=False)
class Evidence:
    """What contradicts what: signed heads (C2SP notes) and the frames that do not fit them.

    `table` and `key` are in hex; `leaves` are the canonical texts of the open round's leaves that
    this client received.
    """

    table: str
    key: str
    sentence: str
    version: int
    notes: tuple[str, ...]
    frames: tuple[Frame, ...] = ()
    leaves: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The members, of JSON values."""
        return dict(vars(self))


class EventVerifier:
    """Verifies the events of one table; `seat` is the viewer's own.

    `table`, `key` and `saved` are as for `VerifiedLog`. `digests` are those committed in leaves of
    the open round, `entropies` the entropy of each round ("players" or "house"), `faces` the cards
    by (round, slot) that were opened to this viewer; `last` is the newest event.
    """

    def __init__(
        self, table: str, *, key: bytes | None = None, saved: Sequence[SavedHead] = ()
    ) -> None:
        self.log: VerifiedLog = VerifiedLog(table, key=key, saved=saved)
        self.seat: int | None = None
        self.state: Table = Table()
        self.digests: set[bytes] = set()
        self.entropies: dict[int, str] = {}
        self.faces: dict[tuple[int, int], str] = {}
        self.last: TableEvent | None = None
        self._table = table
        self._id = bytes.fromhex(table)
        # Two states of one table. `state` is what programs read, evolved by the server's own rules;
        # the ledger is the auditor's, which shares no code with them and says whether an event is
        # legal. With `state` alone the client would accept whatever `evolve` accepts, and the
        # ledger has no names, no times and nothing that can be taken back.
        self._ledger = empty_ledger(self._id)
        self._record: RoundRecord | None = None
        self._leaves: list[str] = []

    @property
    def version(self) -> int:
        """The version of the newest event that was applied."""
        return self.state.version

    @property
    def insecure(self) -> bool:
        """Whether the table is of a server with insecure test decks, which may choose the cards."""
        return INSECURE_RULE in self.state.rules.given

    @property
    def practice(self) -> Mapping[str, Any] | None:
        """The rule of a practice table, which names its source; None for another table."""
        rule = self.state.rules.given.get(PRACTICE)
        return rule if isinstance(rule, Mapping) else None

    def begin(self, *, version: int, state: Frame, edge: Sequence[str], note: str) -> None:
        """Start at a snapshot: the state, the tree's edge and the signed head at `version`.

        A client that already follows the table only compares: its events up to there will come.
        """
        with self._collect_evidence():
            if self.version:
                self.log.compare(version=version, edge=edge, note=note)
                self._open_cards(state)
                return
            table = self._restore(state, version, note)
            self.log.begin(version=version, edge=edge, note=note)
            self._restart(table, state)

    def reset(
        self,
        *,
        version: int,
        state: Frame,
        edge: Sequence[str],
        note: str,
        proof: Sequence[str] | None,
        after: int,
    ) -> None:
        """Restart at a snapshot that came in place of the events after `after`.

        `proof` is the RFC 6962 consistency proof from `after` to `version`.
        """
        with self._collect_evidence():
            table = self._restore(state, version, note)
            if self.log.reset(version=version, edge=edge, note=note, proof=proof, after=after):
                self._restart(table, state)

    def open_cards(self, state: Frame) -> None:
        """Open the cards of a later snapshot that this viewer may see and has not seen.

        Those are the cards that a left hand held before this viewer took its seat.
        """
        with self._collect_evidence():
            self._open_cards(state)

    @property
    def blind(self) -> bool:
        """Whether the hand of this viewer's seat has a card whose face is not known here."""
        round_ = self.state.round
        if round_ is None or self.seat is None:
            return False
        return any(round_.face(card) is None for card in round_.cards(hand(self.seat)))

    def checkpoint(self, note: str) -> None:
        """Check a signed head."""
        with self._collect_evidence():
            self.log.checkpoint(note)

    def check_head(self, note: str) -> None:
        """Check the signed head over everything that the server has of this table."""
        with self._collect_evidence():
            self.log.check_head(note)

    def event(self, frame: Frame) -> TableEvent | None:
        """Verify and apply one event; None for a duplicate or one that only links to a saved head.

        Raises Gap if versions are missing, UnknownEvent if this program is too old for it, and
        HouseCheated if it contradicts anything.
        """
        with self._collect_evidence(frame):
            return self._event(frame)

    def evidence(self, sentence: str, *notes: str, frames: Sequence[Frame] = ()) -> Evidence:
        """The evidence that would be kept with the accusation `sentence`."""
        kept = dict.fromkeys(note for note in (self.log.newest, *notes, self.log.latest) if note)
        return Evidence(
            table=self._table,
            key=(self.log.key or b"").hex(),
            sentence=sentence,
            version=self.version,
            notes=tuple(kept),
            frames=tuple(frames),
            leaves=tuple(self._leaves),
        )

    @contextmanager
    def _collect_evidence(self, *frames: Frame) -> Iterator[None]:
        """Add the evidence to HouseCheated; whatever cannot be read or is not legal becomes one."""
        try:
            yield
        except HouseCheated as fault:
            notes = fault.evidence if isinstance(fault.evidence, tuple) else ()
            fault.evidence = self.evidence(fault.sentence, *notes, frames=frames)
            raise
        except RuleViolation as violation:
            sentence = f"The server sent an event that cannot have happened: {violation}"
            raise HouseCheated(sentence, self.evidence(sentence, frames=frames)) from violation
        except (AttributeError, TypeError, ValueError, KeyError, IndexError) as error:
            sentence = f"The server sent something malformed: {error!r}"
            raise HouseCheated(sentence, self.evidence(sentence, frames=frames)) from error

    def _event(self, frame: Frame) -> TableEvent | None:
        members = {name: frame[name] for name in frame if name not in ("private", "opened")}
        version = members["version"]
        if type(version) is not int:
            raise HouseCheated("The server sent an event without a version.")
        raw = canonical.encode(members)
        hashed = leaf_hash(raw)
        if version <= self.version:
            self.log.compare_or_link(version, hashed)
            return None
        if version > self.version + 1:
            raise Gap
        leaf = self._open(self._leaf(version, members, hashed), frame)
        apply(self._ledger, leaf)
        event = self._read(leaf, frame.get("private"))
        evolve(self.state, event, leaf.at)
        self._leaves.append(raw.decode())
        self.log.grow(hashed)
        self._track(event, leaf)
        self.last = TableEvent(version, leaf.at, event)
        return self.last

    def _leaf(self, version: int, members: Mapping[str, Any], hashed: bytes) -> Leaf:
        type_, v = members["type"], members["v"]
        if (
            type(type_) is str
            and type(v) is int
            and (type_ not in PUBLIC or v > codec.SCHEMAS[type_])
        ):
            raise UnknownEvent(
                f"The server sent an event {type_!r} of schema {v}, which this program is too old "
                "to read: install a newer one."
            )
        try:
            check_leaf(version, members, self._table, self.state.at)
        except ProofFault as fault:
            raise HouseCheated(
                f"The server sent an event that cannot be a leaf of this log: {fault.sentence}"
            ) from fault
        commit = members.get("commit")
        return Leaf(version, members["at"], type_, members["public"], commit, hashed)

    def _open(self, leaf: Leaf, frame: Frame) -> Leaf:
        """The leaf with its opened part, which every frame of an event with one opens."""
        if leaf.has_part != ("opened" in frame):
            raise HouseCheated("The server sent an event without its opening, or one too many.")
        if leaf.has_part:
            opening = frame["opened"]
            salt = bytes.fromhex(opening["salt"])
            if set(opening) != _OPENED or len(salt) != SALT_BYTES or salt.hex() != opening["salt"]:
                raise HouseCheated("The server opened a name or text in a malformed way.")
            leaf = leaf.open(self._table, opening["part"], opening["salt"])
            if leaf.fault:
                raise HouseCheated(f"The server sent another name or text: {leaf.fault}")
        return leaf

    def _read(self, leaf: Leaf, private: Any) -> Event:
        """The event, with its private face if this viewer got one; the opening is checked."""
        hidden: dict[str, Any] = {}
        if private is not None:
            if set(private) != _OPENING:
                raise HouseCheated("The server opened a card in a malformed way.")
            hidden = {"card": private["card"]}
        event = codec.decode(leaf.type, codec.SCHEMAS[leaf.type], leaf.public, hidden)
        if isinstance(event, events.CardShown):
            self._check_opening(event.slot, event.card, event.salt)
        elif isinstance(event, events.TableOpened):
            self.log.pin(event.key, event.origin)
        elif isinstance(event, events.SeatTaken) and event.key is not None:
            self.log.cosigners.add(event.key)
        if private is not None:
            opens = isinstance(event, events.CardDrawn | events.CardMoved | events.CardPeeked)
            if not opens or private["slot"] != leaf.public["slot"]:
                raise HouseCheated("The server opened another card than the one that was moved.")
            self._check_opening(private["slot"], private["card"], bytes.fromhex(private["salt"]))
        return event

    def _check_opening(self, slot: int, card: str, salt: bytes) -> None:
        round_ = self.state.round
        if round_ is None or card not in round_.opened:
            raise HouseCheated("The server showed a card that is not in this round's deck.")
        sealed = slot_commitment(
            table=self._id, round=round_.number, slot=slot, salt=salt, card=card
        )
        if sealed != round_.commitment_of(slot):
            raise HouseCheated(
                "A card that you were shown is not the one that was sealed before the deal."
            )
        self.faces[round_.number, slot] = card

    def _open_cards(self, state: Frame) -> None:
        """Open a snapshot's cards of this round, as far as they are still on its stacks."""
        view, round_ = state.get("round"), self.state.round
        if view is None or round_ is None or view["round"] != round_.number:
            return
        here = {card for cards in round_.stacks.values() for card in cards}
        for slot, card, salt in view["cards"]:
            if slot in here:
                self._check_opening(slot, card, bytes.fromhex(salt))
                round_.faces[slot] = card

    def _track(self, event: Event, leaf: Leaf) -> None:
        """Record the open round, and replay it with its secret when it closes."""
        match event:
            case events.RoundOpened():
                self.entropies[event.round] = event.entropy
                self._record = RoundRecord.start(
                    self._ledger, commitment=event.commitment, opened=leaf
                )
                self._leaves = self._leaves[-1:]
                self.digests.clear()
            case events.RoundClosed():
                record, self._record = self._record, None
                if record is not None and not self.insecure:
                    record.laid_out = self.practice is not None
                    record.check(event.secret, root_at=self.log.root_at)
            case _:
                if isinstance(event, events.EntropyCommitted):
                    self.digests.add(event.digest)
                if self._record is not None:
                    self._record.leaves.append(leaf)

    def _restore(self, state: Frame, version: int, note: str) -> Table:
        """The table of a snapshot; the first one also says the table's key and origin."""
        table = restore(state, seat=self.seat)
        self.log.cosigners |= {seat.key for seat in table.seats.values() if seat.key is not None}
        self.log.pin(table.key, table.origin)
        if table.version != version:
            raise HouseCheated("The server sent a state of another version than signed.", (note,))
        return table

    def _restart(self, table: Table, state: Frame) -> None:
        self.state = table
        self._ledger = ledger_of(self._id, table)
        self._record = None
        self._leaves = []
        if table.round is not None:
            self.entropies[table.round.number] = table.round.entropy
            self._record = RoundRecord.start(
                self._ledger, commitment=table.round.commitment, opened=None
            )
        for slot, card, salt in state["round"]["cards"] if "round" in state else ():
            self._check_opening(slot, card, bytes.fromhex(salt))
