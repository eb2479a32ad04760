"""Rules of the events of a shuffle, from its start to its seal.

- ShuffleStarted (tape): no other shuffle is running; k is one more than that of the last shuffle,
  sealed or voided; the stack is the deck or a pile, n its number of cards; at most max(n−1, 0)
  steps, and exactly these for `forward`.
- EntropyCommitted (secrets): only in rounds with players' entropy, from a taken seat, for the
  running shuffle before its EntropyClosed or, while none is running, for the next one; one for each
  seat and k, until the seat is left; none from a seat that withheld a reveal in this round.
- EntropyClosed (secrets): once for each shuffle. Its time is not checked, only the house knows it.
- EntropyRevealed (secrets): after EntropyClosed, once, from a seat with a digest, which it opens. A
  player who left after EntropyClosed may still reveal. A nonce that was revealed before in this log
  is counted but is no fault: it harms only the player who sent it.
- ShuffleVoided (secrets): after EntropyClosed, while a reveal is missing.
- CardsSwapped (tape): all reveals are present; it is the next step, with its i and the j of the
  tape; in the first shuffle of a practice table the j that it commits to (`practice`).
- DeckSealed (seals): all reveals and steps are done; `first` is the number of slots of the round so
  far, and there are n commitments, to the cards in their present order.
"""

from __future__ import annotations

from dealer.game.shuffle import full, steps_of
from dealer.game.stacks import seat_of
from dealer.game.tape import Tape
from dealer.proof.round_keys import player_digest
from dealer.proof.verify.form import Leaf
from dealer.proof.verify.ledger import Ledger, Round, RuleViolation, Shuffle, check_hidden
from dealer.proof.verify.report import Swap


def started(ledger: Ledger, leaf: Leaf) -> None:
    """ShuffleStarted: the next shuffle, of all cards of a deck or pile."""
    public = leaf.public
    round_ = ledger.idle_round(leaf)
    k, stack, n, steps = public["k"], public["stack"], public["n"], public["steps"]
    if k != round_.k:
        raise RuleViolation(f"The next shuffle of this round is {round_.k}.")
    if seat_of(stack) is not None:
        raise RuleViolation("A hand cannot be shuffled.")
    if n != len(round_.cards(stack)):
        raise RuleViolation(f"The stack has {len(round_.cards(stack))} cards.")
    if steps > full(n) or (public["algorithm"] == "forward" and steps != full(n)):
        raise RuleViolation(
            f"A shuffle of {n} cards has at most {full(n)} steps, forward exactly these."
        )
    round_.shuffle = Shuffle(k, stack, n, public["algorithm"], steps, round_.ahead)
    round_.ahead = {}
    ledger.remarks.shuffles += 1


def committed(ledger: Ledger, leaf: Leaf) -> None:
    """EntropyCommitted: the first digest of a seated player for this shuffle."""
    public = leaf.public
    round_ = ledger.open_round(leaf)
    shuffle, seat = round_.shuffle, public["seat"]
    if round_.entropy != "players":
        raise RuleViolation("This round uses no players' entropy.")
    if public["k"] != round_.k:
        raise RuleViolation(f"Digests are accepted for shuffle {round_.k}.")
    if shuffle is not None and shuffle.closed:
        raise RuleViolation("The digests of this shuffle are closed.")
    if seat not in ledger.seats:
        raise RuleViolation("This seat is not taken.")
    if seat in round_.withheld:
        raise RuleViolation("This seat withheld a reveal and may send no digest in this round.")
    digests = round_.ahead if shuffle is None else shuffle.digests
    if seat in digests:
        raise RuleViolation("This seat has already sent its digest for this shuffle.")
    digests[seat] = public["digest"]


def closed(ledger: Ledger, leaf: Leaf) -> None:
    """EntropyClosed: once for each shuffle."""
    round_, shuffle = ledger.shuffling(leaf)
    if shuffle.closed:
        raise RuleViolation("The digests of this shuffle are already closed.")
    shuffle.closed = leaf.version
    if round_.entropy == "players":
        ledger.remarks.left_out += len(ledger.seats - set(shuffle.digests) - round_.withheld)


def revealed(ledger: Ledger, leaf: Leaf) -> None:
    """EntropyRevealed: the nonce opens the seat's digest."""
    public = leaf.public
    round_, shuffle = ledger.shuffling(leaf)
    seat, nonce = public["seat"], bytes.fromhex(public["nonce"])
    if not shuffle.closed:
        raise RuleViolation("A reveal must follow EntropyClosed.")
    if seat not in shuffle.digests or seat in shuffle.nonces:
        raise RuleViolation("No reveal is expected from this seat.")
    digest = player_digest(
        table=ledger.table, round=round_.number, k=shuffle.k, seat=seat, nonce=nonce
    )
    if digest.hex() != shuffle.digests[seat]:
        raise RuleViolation("This nonce does not open the seat's digest.")
    shuffle.nonces[seat] = nonce
    if nonce in ledger.revealed:
        ledger.remarks.reused += 1
    ledger.revealed.add(nonce)


def voided(ledger: Ledger, leaf: Leaf) -> None:
    """ShuffleVoided: only while a reveal is missing after EntropyClosed."""
    round_, shuffle = ledger.shuffling(leaf)
    missing = shuffle.missing()
    if not shuffle.closed or not missing:
        raise RuleViolation(
            "A shuffle may be voided only if a reveal is missing after EntropyClosed."
        )
    round_.withheld.update(missing)
    round_.k += 1
    round_.shuffle = None
    ledger.remarks.voided += 1
    ledger.remarks.withheld += len(missing)


def swapped(ledger: Ledger, leaf: Leaf) -> None:
    """CardsSwapped: the next step, with the places that the tape gives."""
    public = leaf.public
    round_, shuffle = ledger.shuffling(leaf)
    _check_entropy(shuffle)
    step = shuffle.done
    if step >= shuffle.steps:
        raise RuleViolation("All steps of this shuffle are done.")
    if public["step"] != step:
        raise RuleViolation(f"The next step is {step}.")
    i = shuffle.n - 1 - step if shuffle.algorithm == "backward" else step
    if public["i"] != i:
        raise RuleViolation(f"Step {step} exchanges place {i}.")
    if round_.secret is not None:
        _swap(ledger, round_, shuffle, leaf, round_.secret)
    shuffle.done += 1


def _swap(ledger: Ledger, round_: Round, shuffle: Shuffle, leaf: Leaf, secret: bytes) -> None:
    if ledger.laid_out and round_.number == 1 and shuffle.k == 0:
        _exchange(ledger, round_, shuffle, leaf, _written(round_, shuffle, leaf), ())
        return
    if shuffle.plan is None or shuffle.tape is None:
        shuffle.tape = Tape(
            secret=secret,
            nonces=[shuffle.nonces[seat] for seat in sorted(shuffle.nonces)],
            root=ledger.roots[shuffle.closed],
            k=shuffle.k,
            n=shuffle.n,
        )
        shuffle.plan = steps_of(
            shuffle.algorithm, n=shuffle.n, steps=shuffle.steps, below=shuffle.tape.below
        )
    before = len(shuffle.tape.read)
    _, _, j = next(shuffle.plan)
    check_hidden(round_, leaf, f'{{"j":{j}}}')
    _exchange(ledger, round_, shuffle, leaf, j, tuple(shuffle.tape.read[before:]))


def _written(round_: Round, shuffle: Shuffle, leaf: Leaf) -> int:
    """The j that a swap commits to, among all that its step allows."""
    i, keys = leaf.public["i"], round_.keys
    for j in range(i + 1) if shuffle.algorithm == "backward" else range(i, shuffle.n):
        part = f'{{"j":{j}}}'
        if keys and keys.event_commitment(leaf.version, part).hex() == leaf.commit:
            return j
    raise RuleViolation("The commitment is to no place that this step may exchange.")


def _exchange(
    ledger: Ledger, round_: Round, shuffle: Shuffle, leaf: Leaf, j: int, words: tuple[int, ...]
) -> None:
    i, step, cards = leaf.public["i"], leaf.public["step"], round_.cards(shuffle.stack)
    faces = round_.face(cards[i]) or "", round_.face(cards[j]) or ""
    cards[i], cards[j] = cards[j], cards[i]
    ledger.swaps.append(Swap(leaf.version, round_.number, shuffle.k, step, i, j, words, faces))


def sealed(ledger: Ledger, leaf: Leaf) -> None:
    """DeckSealed: after all steps, with the commitments of the cards in their order."""
    public = leaf.public
    round_, shuffle = ledger.shuffling(leaf)
    _check_entropy(shuffle)
    if shuffle.done != shuffle.steps:
        raise RuleViolation(f"{shuffle.steps - shuffle.done} steps of the shuffle are missing.")
    first, slots, cards = public["first"], public["slots"], round_.cards(shuffle.stack)
    if first != len(round_.commitments):
        raise RuleViolation(f"This round has {len(round_.commitments)} slots so far.")
    if len(slots) != shuffle.n:
        raise RuleViolation(f"There are {len(slots)} slots for {shuffle.n} cards.")
    faces = [round_.face(card) for card in cards]
    if round_.keys is not None:
        wanted = round_.keys.slot_commitments(first, [face or "" for face in faces])
        for place, commitment in enumerate(wanted):
            if commitment.hex() != slots[place]:
                raise RuleViolation(
                    f"The commitment at place {place} is not that of the card there."
                )
        ledger.seals += 1
    _give_slots(round_, shuffle, slots, faces)
    if not shuffle.nonces:
        ledger.remarks.house_only += 1


def _give_slots(round_: Round, shuffle: Shuffle, slots: list[str], faces: list[str | None]) -> None:
    cards, first = round_.cards(shuffle.stack), len(round_.commitments)
    all_reached = all(card >= 0 and round_.drawable[card] for card in cards)
    reached = shuffle.n if all_reached or shuffle.steps == full(shuffle.n) else shuffle.steps
    round_.drawable += [place >= shuffle.n - reached for place in range(shuffle.n)]
    round_.commitments += slots
    round_.faces += faces
    cards[:] = range(first, first + shuffle.n)
    round_.k += 1
    round_.shuffle = None


def _check_entropy(shuffle: Shuffle) -> None:
    if not shuffle.closed:
        raise RuleViolation("The shuffle may not continue before EntropyClosed.")
    if shuffle.missing():
        raise RuleViolation("The shuffle may not continue while a reveal is missing.")
