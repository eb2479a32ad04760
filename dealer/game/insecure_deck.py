"""Insecure test decks: shuffles whose result a test has chosen, at servers started for that.

A table of such a server has the rule `insecure_test_deck`, so that every reader of its log knows.
Its value is true, if the deck is shuffled as anywhere, or an object with at least one of

    order   codes: of each stack that is shuffled these cards get to the top, the first on top; the
            others stay in their order below them
    seed    a text: the cards are shuffled in an order that depends on it and on the number of the
            shuffle, the same at every table; those of `order` still get to the top

The events are as in any shuffle: swaps, and a seal. But the swaps do not follow from the random
bytes of the house and the players, so verifiers refuse such a log as proof.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from dealer.errors import BadRequest
from dealer.game.shuffle import Below, shuffled
from dealer.game.tape import Tape

RULE = "insecure_test_deck"
MEMBERS = ("order", "seed")


@dataclass(frozen=True, slots=True)
class InsecureDeck:
    """The order of a test deck; see above."""

    order: tuple[str, ...] = ()
    seed: str | None = None

    @classmethod
    def of(cls, rules: Mapping[str, Any]) -> InsecureDeck | None:
        """The test deck of a table's rules; None if it is shuffled as anywhere."""
        value = rules.get(RULE)
        if not isinstance(value, Mapping):
            return None
        return cls(tuple(value.get("order", ())), value.get("seed"))

    def below(self, cards: Sequence[str], *, algorithm: str, k: int) -> Below:
        """Numbers for the steps of shuffle `k` of a round, after which `cards` have the order.

        `cards` are distinct codes, bottom first; `algorithm` is as for `shuffle.steps_of`.
        """
        target = self._target(cards, k)
        current = list(cards)
        step = 0

        def below(bound: int) -> int:
            nonlocal step
            place = len(current) - 1 - step if algorithm == "backward" else step
            found = current.index(target[place])
            current[place], current[found] = current[found], current[place]
            step += 1
            return found if algorithm == "backward" else found - place

        return below

    def _target(self, cards: Sequence[str], k: int) -> list[str]:
        rest = [card for card in cards if card not in self.order]
        if self.seed is not None:
            secret = sha256(self.seed.encode()).digest()
            tape = Tape(secret=secret, nonces=(), root=bytes(32), k=k, n=len(cards))
            rest = shuffled(sorted(rest), tape.below)
        present = set(cards)
        return rest + [card for card in reversed(self.order) if card in present]


def check_insecure_deck(rules: Mapping[str, Any]) -> None:
    """Raise BadRequest if these rules have a malformed test deck."""
    value = rules.get(RULE, True)
    if value is True:
        return
    if not isinstance(value, Mapping) or not value or not set(value) <= set(MEMBERS):
        raise BadRequest(f"The rule {RULE!r} is true, or an object with `order`, `seed` or both.")
    order, seed = value.get("order", []), value.get("seed", "")
    if not isinstance(order, list | tuple) or not all(isinstance(code, str) for code in order):
        raise BadRequest(f"The `order` of {RULE} is a list of codes of cards, the top one first.")
    if len(set(order)) != len(order):
        raise BadRequest(f"The `order` of {RULE} has a card twice.")
    if not isinstance(seed, str):
        raise BadRequest(f"The `seed` of {RULE} is a text.")
