"""Validation of texts that clients choose: names of players and tables, reasons, notes."""

from __future__ import annotations

import re
import unicodedata

from dealer.errors import BadRequest

NAME_MAX = 64
"""Characters (Unicode code points) of a name."""

_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")

_UNSEEN_CATEGORIES = ("Cc", "Cf", "Cs", "Mc", "Me", "Mn", "Zl", "Zp", "Zs")
"""Control and format characters, spaces, and marks, which only modify the character before."""

_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u2065\u2800\u3164\uffa0\ufff0-\ufff8"
    "\u180b-\u180f\ufe00-\ufe0f\U000e0000-\U000e0fff]"
)
"""Invisible characters outside the categories above.

Those with Default_Ignorable_Code_Point in Unicode 15 (DerivedCoreProperties.txt), and U+2800, the
Braille pattern without dots.
"""


def check_name(name: str, *, of: str = "A name") -> None:
    """Raise BadRequest unless `name` is valid; `of` is the subject of the error's sentence.

    A valid name has 1 to 64 characters, no control character and at least one visible character.
    """
    short = 1 <= len(name) <= NAME_MAX and not _CONTROL.search(name)
    if not short or not any(map(_is_visible, name)):
        raise BadRequest(
            f"{of} has 1 to {NAME_MAX} characters, no control characters and at least one visible "
            "character, such as a letter or a digit."
        )


def comparable(name: str) -> str:
    """The form in which two names are compared: case and extra white space do not matter."""
    folded = unicodedata.normalize("NFD", name).casefold()  # decomposed: as Unicode prescribes it
    return " ".join(unicodedata.normalize("NFC", folded).split())


def check_text(text: str, most: int, *, of: str) -> None:
    """Raise BadRequest unless `text` has at most `most` bytes of UTF-8 and no control character.

    The log can hold no other text. `of` is the subject of the error's sentence.
    """
    if _CONTROL.search(text) or len(text.encode()) > most:
        raise BadRequest(f"{of} has at most {most} bytes and no control characters.")


def _is_visible(character: str) -> bool:
    category = unicodedata.category(character)
    return category not in _UNSEEN_CATEGORIES and not _BLANK.match(character)
