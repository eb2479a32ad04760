"""A player's own witness: it reads every frame of a table and notices when it was lied to.

No input and output here: frames go in, what happened comes out. Each event becomes a leaf of this
client's own tree; it must be a thing that can happen next; and each card that is shown must open
the commitment that was published before it was dealt. What does not fit raises HouseCheated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from dealer.client.legality import check
from dealer.client.round_check import RoundRecord
from dealer.client.snapshot import restore
from dealer.client.store import SavedHead
from dealer.client.story import Gap, Story, is_hash
from dealer.errors import HouseCheated
from dealer.game.events import (
    CardDrawn,
    CardMoved,
    CardPeeked,
    CardShown,
    CardsSwapped,
    EntropyCommitted,
    EntropyRevealed,
    Event,
    RoundClosed,
    RoundOpened,
    ShuffleStarted,
    TableOpened,
)
from dealer.game.stacks import seat_of
from dealer.game.state import Table, evolve
from dealer.proof import canonical, codec
from dealer.proof.keys import player_digest, slot_commitment
from dealer.proof.tree import leaf_hash

Frame = Mapping[str, Any]

_MEMBERS = {"at", "public", "table", "type", "v", "version"}


class Happened(NamedTuple):
    """One event as this viewer saw it; `at` in milliseconds, hidden faces None."""

    version: int
    at: int
    event: Event


@dataclass(frozen=True, slots=True)
class Evidence:
    """What contradicts what: signed heads (C2SP notes) and the frames that do not fit them.

    `leaves` are those of the open round, or what was seen of it, as they came.
    """

    table: str
    key: str
    sentence: str
    version: int
    notes: tuple[str, ...]
    frames: tuple[Frame, ...] = ()
    leaves: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Witness:
    """Checks what the house says about one table; `seat` is the viewer's own.

    `table`, `key` and `saved` are as `Story` has them. `digests` holds what came as leaves of
    the open round, `entropies` whose bytes each round takes, `faces` the cards, by round and slot,
    that were opened to this viewer; `last` is the newest event.
    """

    def __init__(
        self, table: str, *, key: bytes | None = None, saved: Sequence[SavedHead] = ()
    ) -> None:
        self.story = Story(table, key=key, saved=saved)
        self.seat: int | None = None
        self.state = Table()
        self.digests: set[bytes] = set()
        self.entropies: dict[int, str] = {}
        self.faces: dict[tuple[int, int], str] = {}
        self.last: Happened | None = None
        self._table = table
        self._id = bytes.fromhex(table)
        self._round: RoundRecord | None = None
        self._leaves: list[str] = []
        self._swaps = 0

    @property
    def version(self) -> int:
        return self.state.version

    def begin(self, *, version: int, state: Frame, edge: Sequence[str], note: str) -> None:
        """Start in the middle: a snapshot, the tree's edge and the signed head at `version`.

        Who follows the table already only compares: the events up to there are still to come.
        """
        with self._judging():
            if self.version:
                self.story.compare(version=version, edge=edge, note=note)
                return
            table = self._described(state, version, note)
            self.story.begin(version=version, edge=edge, note=note)
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
        """Start again at a snapshot that came in place of the events after `after`.

        `proof` is the RFC 6962 consistency proof from `after` to `version`.
        """
        with self._judging():
            table = self._described(state, version, note)
            if self.story.reset(version=version, edge=edge, note=note, proof=proof, after=after):
                self._restart(table, state)

    def checkpoint(self, note: str) -> None:
        """Take a signed head."""
        with self._judging():
            self.story.checkpoint(note)

    def whole(self, note: str) -> None:
        """Take the signed head over all that the house has of this table just now."""
        with self._judging():
            self.story.whole(note)

    def event(self, frame: Frame) -> Happened | None:
        """Take one event; None if it had come before, or only proves what was saved.

        Raises Gap if versions are missing, UnknownEvent if this program is too old for it, and
        HouseCheated where it contradicts anything.
        """
        with self._judging(frame):
            return self._event(frame)

    def evidence(self, sentence: str, *notes: str, frames: Sequence[Frame] = ()) -> Evidence:
        """What would be kept, were `sentence` the accusation."""
        kept = dict.fromkeys(
            note for note in (self.story.newest, *notes, self.story.latest) if note
        )
        return Evidence(
            table=self._table,
            key=(self.story.key or b"").hex(),
            sentence=sentence,
            version=self.version,
            notes=tuple(kept),
            frames=tuple(frames),
            leaves=tuple(self._leaves),
        )

    @contextmanager
    def _judging(self, *frames: Frame) -> Iterator[None]:
        """Put the evidence to an accusation; what cannot even be read is one."""
        try:
            yield
        except HouseCheated as fault:
            notes = fault.evidence if isinstance(fault.evidence, tuple) else ()
            fault.evidence = self.evidence(fault.sentence, *notes, frames=frames)
            raise
        except (AttributeError, TypeError, ValueError, KeyError, IndexError) as error:
            sentence = f"The house wrote something that makes no sense here: {error!r}"
            raise HouseCheated(sentence, self.evidence(sentence, frames=frames)) from error

    def _event(self, frame: Frame) -> Happened | None:
        leaf = self._leaf(frame)
        version, at = frame["version"], frame["at"]
        hashed = leaf_hash(leaf.encode())
        if version <= self.version:
            self.story.again(version, hashed)
            return None
        if version > self.version + 1:
            raise Gap
        if at < self.state.at:
            raise HouseCheated("The house's clock went backwards in its log.")
        event, salt = self._read(frame)
        check(self.state, event, swaps=self._swaps)
        self._check_bytes(event, salt)
        evolve(self.state, event, at)
        self._leaves.append(leaf)
        self.story.grow(hashed)
        self._note_down(event, frame.get("commit"))
        self.last = Happened(version, at, event)
        return self.last

    def _leaf(self, frame: Frame) -> str:
        numbers = (frame["version"], frame["v"], frame["at"])
        members = set(frame) - {"commit", "private"}
        if members != _MEMBERS or any(type(number) is not int for number in numbers):
            raise HouseCheated("The house wrote an event that is no leaf of a log.")
        if frame["table"] != self._table:
            raise HouseCheated("An event of another table came in this one's log.")
        leaf = {name: value for name, value in frame.items() if name != "private"}
        return canonical.encode(leaf).decode()

    def _read(self, frame: Frame) -> tuple[Event, bytes | None]:
        """The event, with the face that stands beside it, and the salt that opens that."""
        private = frame.get("private")
        hidden: dict[str, Any] = {}
        salt = None
        if private is not None:
            if set(private) != {"card", "salt", "slot"}:
                raise HouseCheated("The house opened a card in a form that proves nothing.")
            hidden = {"card": private["card"]}
            salt = bytes.fromhex(private["salt"])
        event = codec.decode(frame["type"], frame["v"], frame["public"], hidden)
        if codec.encode_public(event) != canonical.dump(frame["public"]):
            raise HouseCheated("The house wrote an event in a form that no log has.")
        if private is not None and getattr(event, "slot", None) != private["slot"]:
            raise HouseCheated("The house opened another card than the one that was moved.")
        hides = isinstance(event, CardsSwapped | CardDrawn) or (
            isinstance(event, CardMoved) and seat_of(event.to) is not None
        )
        if hides != ("commit" in frame) or (hides and not is_hash(frame["commit"])):
            raise HouseCheated("An event lacks the commitment to its hidden part, or has none.")
        return event, salt

    def _check_bytes(self, event: Event, salt: bytes | None) -> None:
        """What needs a hash: openings against their seal, nonces against their digest, the key."""
        round_ = self.state.round
        match event:
            case CardShown(_, slot, card, shown_salt):
                self._check_opening(slot, card, shown_salt)
            case CardDrawn() | CardMoved() | CardPeeked() if salt is not None:
                self._check_opening(event.slot, event.card or "", salt)
            case EntropyRevealed(number, k, seat, nonce) if round_ and round_.shuffle:
                digest = player_digest(table=self._id, round=number, k=k, seat=seat, nonce=nonce)
                if digest != round_.shuffle.digests[seat]:
                    raise HouseCheated("A player's bytes are not those that were promised.")
            case TableOpened(origin, key):
                self.story.pin(key, origin)
            case _:
                pass

    def _check_opening(self, slot: int, card: str, salt: bytes) -> None:
        round_ = self.state.round
        if round_ is None or card not in round_.opened:
            raise HouseCheated("The house showed a card that is not in this round's deck.")
        sealed = slot_commitment(
            table=self._id, round=round_.number, slot=slot, salt=salt, card=card
        )
        if sealed != round_.commitment_of(slot):
            raise HouseCheated(
                "A card that you were shown is not the one that was sealed before the deal."
            )
        self.faces[round_.number, slot] = card
        if self._round is not None:
            self._round.openings[slot] = salt

    def _note_down(self, event: Event, commit: str | None) -> None:
        """Keep what the reckoning at the end of the round needs, and make it there."""
        match event:
            case RoundOpened(number, _, entropy):
                self.entropies[number] = entropy
                self._round = RoundRecord.start(self._id, self.state)
                self._leaves = self._leaves[-1:]
                self.digests.clear()
                return
            case RoundClosed(_, secret):
                if self._round is not None:
                    self._round.check(secret, root_at=self.story.root_at)
                self._round = None
                return
            case ShuffleStarted():
                self._swaps = 0
            case CardsSwapped():
                self._swaps += 1
            case EntropyCommitted(_, _, _, digest):
                self.digests.add(digest)
            case _:
                pass
        if self._round is not None:
            self._round.add(event, commit)

    def _described(self, state: Frame, version: int, note: str) -> Table:
        """The table of a snapshot; from the first one its key is learnt, too."""
        table = restore(state, seat=self.seat)
        self.story.pin(table.key, table.origin)
        if table.version != version:
            raise HouseCheated("The house described another table than it signed.", (note,))
        return table

    def _restart(self, table: Table, state: Frame) -> None:
        self.state = table
        self._round = None
        if table.round is not None:
            self.entropies[table.round.number] = table.round.entropy
            self._round = RoundRecord.start(self._id, table)
        self._leaves = []
        self._swaps = 0
        for slot, card, salt in state["round"]["cards"] if "round" in state else ():
            self._check_opening(slot, card, bytes.fromhex(salt))
