"""Codes of a pack's cards on the wire, from the codes that its author wrote.

The mapping, which README.md describes, depends only on the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from dealer.errors import BadRequest, ConfigurationError
from dealer.game.cards import UNKNOWN, check_deck

_PLAIN = re.compile(r"[!#-\[\]-~]{1,16}")
FILL = "_"


def base_codes(written: Sequence[str]) -> list[str]:
    """The code of each card without the number of its copy; all have one length."""
    if all(_PLAIN.fullmatch(code) and code != UNKNOWN for code in written):
        width = max(map(len, written))
        filled = [code.ljust(width, FILL) for code in written]
        for index, code in enumerate(filled):
            if code in filled[:index]:
                other = written[filled.index(code)]
                raise ConfigurationError(
                    f"cards: {json.dumps(written[index])} and {json.dumps(other)} would both get "
                    f"the code {code}; rename one of them."
                )
        return filled
    width = len(str(len(written)))
    return [f"{number:0{width}}" for number in range(1, len(written) + 1)]


def deck_of(bases: Sequence[str], counts: Sequence[int]) -> list[str]:
    """The codes of the whole deck, in the order of the file; `counts` are the copies of each."""
    most = max(counts)
    width = len(str(most))
    deck = [
        base if most == 1 else f"{base}.{copy:0{width}}"
        for base, count in zip(bases, counts, strict=True)
        for copy in range(1, count + 1)
    ]
    try:
        check_deck(deck)
    except BadRequest as error:
        raise ConfigurationError(f"cards: {error}") from None
    return deck
