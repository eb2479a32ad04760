"""Which names a player or a table may have: short, and with something to see in them."""

from __future__ import annotations

import re
import unicodedata

from dealer.errors import BadRequest

NAME_MAX = 64
"""Characters (Unicode code points) of a name."""

_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")

_UNSEEN_CATEGORIES = ("Cc", "Cf", "Cs", "Mc", "Me", "Mn", "Zl", "Zp", "Zs")
"""Controls, formats, spaces, and marks, which are drawn on the character before them alone."""

_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u2065\u2800\u3164\uffa0\ufff0-\ufff8"
    "\u180b-\u180f\ufe00-\ufe0f\U000e0000-\U000e0fff]"
)
"""What is drawn as nothing though its category is that of a letter, symbol or unassigned one.

Default_Ignorable_Code_Point of Unicode 15 (DerivedCoreProperties.txt) as far as the categories
above do not have it, and U+2800, the Braille pattern without dots.
"""


def check_name(name: str, *, of: str = "A name") -> None:
    """Raise BadRequest unless `name` is fit to be shown; `of` begins the sentence.

    It has 1 to 64 characters, none of them a control character, and at least one can be seen.
    """
    short = 1 <= len(name) <= NAME_MAX and not _CONTROL.search(name)
    if not short or not any(map(_is_visible, name)):
        raise BadRequest(
            f"{of} has 1 to {NAME_MAX} characters and no control characters; at least one of them "
            "can be seen, like a letter or a digit."
        )


def _is_visible(character: str) -> bool:
    category = unicodedata.category(character)
    return category not in _UNSEEN_CATEGORIES and not _BLANK.match(character)
