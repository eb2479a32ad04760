"""From a shuffle's start to its seal: did chance alone, and all of it, put each card where it lay?

- ShuffleStarted (tape): no other runs; k counts on from the last, sealed or voided; deck or a pile;
  n its cards; at most max(n−1, 0) steps, and exactly these for `forward`.
- EntropyCommitted (secrets): only in rounds with players' entropy, from a seated player, for the
  shuffle that runs until its EntropyClosed or, while none runs, for the next; one a seat and k,
  until it leaves; none from a seat that withheld in this round.
- EntropyClosed (secrets): once a shuffle. When it came is the house's word: no time is checked.
- EntropyRevealed (secrets): after it, once, from a seat whose digest counts, and opens it. A
  player who left after EntropyClosed may still open theirs. A nonce that this log revealed before
  is counted and is no fault: it harms only the player who brought it.
- ShuffleVoided (secrets): after EntropyClosed, while a reveal is missing.
- CardsSwapped (tape): all reveals are in; the next step, its i, and the j of the tape.
- DeckSealed (seals): all reveals and all steps are done; `first` counts the slots made before, and
  there are n commitments, those of the cards as they now lie.
"""

from __future__ import annotations

from dealer.game.shuffle import full, steps_of
from dealer.game.stacks import seat_of
from dealer.game.tape import Tape
from dealer.proof.keys import player_digest
from dealer.proof.verify.books import Books, Round, Shuffle, Wrong, check_hidden
from dealer.proof.verify.form import Leaf
from dealer.proof.verify.report import Swap


def started(books: Books, leaf: Leaf) -> None:
    public = leaf.public
    round_ = books.still(leaf)
    k, stack, n, steps = public["k"], public["stack"], public["n"], public["steps"]
    if k != round_.k:
        raise Wrong(f"The next shuffle of this round is {round_.k}.")
    if seat_of(stack) is not None:
        raise Wrong("A hand is not shuffled.")
    if n != len(round_.cards(stack)):
        raise Wrong(f"The stack has {len(round_.cards(stack))} cards.")
    if steps > full(n) or (public["algorithm"] == "forward" and steps != full(n)):
        raise Wrong(f"A shuffle of {n} cards has at most {full(n)} steps, forward exactly these.")
    round_.shuffle = Shuffle(k, stack, n, public["algorithm"], steps, round_.ahead)
    round_.ahead = {}
    books.remarks.shuffles += 1


def committed(books: Books, leaf: Leaf) -> None:
    public = leaf.public
    round_ = books.of(leaf)
    shuffle, seat = round_.shuffle, public["seat"]
    if round_.entropy != "players":
        raise Wrong("This round's shuffles take no players' bytes.")
    if public["k"] != round_.k:
        raise Wrong(f"Digests are now taken for shuffle {round_.k}.")
    if shuffle is not None and shuffle.closed:
        raise Wrong("The digests of this shuffle are closed.")
    if seat not in books.seats:
        raise Wrong("Nobody sits there.")
    if seat in round_.withheld:
        raise Wrong("This seat withheld, and brings no entropy for the rest of the round.")
    digests = round_.ahead if shuffle is None else shuffle.digests
    if seat in digests:
        raise Wrong("This seat has sent its digest for this shuffle.")
    digests[seat] = public["digest"]


def closed(books: Books, leaf: Leaf) -> None:
    round_, shuffle = books.shuffling(leaf)
    if shuffle.closed:
        raise Wrong("The digests of this shuffle were closed before.")
    shuffle.closed = leaf.version
    if round_.entropy == "players":
        books.remarks.left_out += len(books.seats - set(shuffle.digests) - round_.withheld)


def revealed(books: Books, leaf: Leaf) -> None:
    public = leaf.public
    round_, shuffle = books.shuffling(leaf)
    seat, nonce = public["seat"], bytes.fromhex(public["nonce"])
    if not shuffle.closed:
        raise Wrong("No reveal comes before EntropyClosed.")
    if seat not in shuffle.digests or seat in shuffle.nonces:
        raise Wrong("No reveal is awaited from this seat.")
    digest = player_digest(
        table=books.table, round=round_.number, k=shuffle.k, seat=seat, nonce=nonce
    )
    if digest.hex() != shuffle.digests[seat]:
        raise Wrong("These bytes do not open the seat's digest.")
    shuffle.nonces[seat] = nonce
    if nonce in books.revealed:
        books.remarks.reused += 1
    books.revealed.add(nonce)


def voided(books: Books, leaf: Leaf) -> None:
    round_, shuffle = books.shuffling(leaf)
    missing = shuffle.missing()
    if not shuffle.closed or not missing:
        raise Wrong("A shuffle is voided only when a reveal is missing after EntropyClosed.")
    round_.withheld.update(missing)
    round_.k += 1
    round_.shuffle = None
    books.remarks.voided += 1
    books.remarks.withheld += len(missing)


def swapped(books: Books, leaf: Leaf) -> None:
    public = leaf.public
    round_, shuffle = books.shuffling(leaf)
    _check_entropy(shuffle)
    step = shuffle.done
    if step >= shuffle.steps:
        raise Wrong("All steps of this shuffle are done.")
    if public["step"] != step:
        raise Wrong(f"The next step is {step}.")
    i = shuffle.n - 1 - step if shuffle.algorithm == "backward" else step
    if public["i"] != i:
        raise Wrong(f"Step {step} exchanges place {i}.")
    if round_.secret is not None:
        _swap(books, round_, shuffle, leaf, round_.secret)
    shuffle.done += 1


def _swap(books: Books, round_: Round, shuffle: Shuffle, leaf: Leaf, secret: bytes) -> None:
    if shuffle.plan is None or shuffle.tape is None:
        shuffle.tape = Tape(
            secret=secret,
            nonces=[shuffle.nonces[seat] for seat in sorted(shuffle.nonces)],
            root=books.roots[shuffle.closed],
            k=shuffle.k,
            n=shuffle.n,
        )
        shuffle.plan = steps_of(
            shuffle.algorithm, n=shuffle.n, steps=shuffle.steps, below=shuffle.tape.below
        )
    before = len(shuffle.tape.read)
    step, i, j = next(shuffle.plan)
    check_hidden(round_, leaf, f'{{"j":{j}}}')
    cards = round_.cards(shuffle.stack)
    faces = round_.face(cards[i]) or "", round_.face(cards[j]) or ""
    cards[i], cards[j] = cards[j], cards[i]
    words = tuple(shuffle.tape.read[before:])
    books.swaps.append(Swap(leaf.version, round_.number, shuffle.k, step, i, j, words, faces))


def sealed(books: Books, leaf: Leaf) -> None:
    public = leaf.public
    round_, shuffle = books.shuffling(leaf)
    _check_entropy(shuffle)
    if shuffle.done != shuffle.steps:
        raise Wrong(f"{shuffle.steps - shuffle.done} steps of the shuffle are missing.")
    first, slots, cards = public["first"], public["slots"], round_.cards(shuffle.stack)
    if first != len(round_.commitments):
        raise Wrong(f"{len(round_.commitments)} slots were made before in this round.")
    if len(slots) != shuffle.n:
        raise Wrong(f"There are {len(slots)} slots for {shuffle.n} cards.")
    faces = [round_.face(card) for card in cards]
    if round_.keys is not None:
        wanted = round_.keys.slot_commitments(first, [face or "" for face in faces])
        for place, commitment in enumerate(wanted):
            if commitment.hex() != slots[place]:
                raise Wrong(f"The slot at place {place} holds another card than lies there.")
    _give_slots(round_, shuffle, slots, faces)
    if not shuffle.nonces:
        books.remarks.house_only += 1


def _give_slots(round_: Round, shuffle: Shuffle, slots: list[str], faces: list[str | None]) -> None:
    cards, first = round_.cards(shuffle.stack), len(round_.commitments)
    mixed = all(card >= 0 and round_.drawable[card] for card in cards)
    reached = shuffle.n if mixed or shuffle.steps == full(shuffle.n) else shuffle.steps
    round_.drawable += [place >= shuffle.n - reached for place in range(shuffle.n)]
    round_.commitments += slots
    round_.faces += faces
    cards[:] = range(first, first + shuffle.n)
    round_.k += 1
    round_.shuffle = None


def _check_entropy(shuffle: Shuffle) -> None:
    if not shuffle.closed:
        raise Wrong("The house may not shuffle before EntropyClosed.")
    if shuffle.missing():
        raise Wrong("The house may not shuffle while a reveal is missing.")
