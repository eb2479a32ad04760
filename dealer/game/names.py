"""Texts that clients choose: which are valid, which names look alike, and how texts are shown.

A text may *hide* something: with characters that have no form, one name looks like another. It may
*move* or cover other text, by signs of direction, ends of lines, or marks without end. It may *look
like* another with letters of other alphabets. What hides or moves is replaced when texts are
shown, and names that look alike are not taken at one table; the log keeps what was sent.
`web/dom.js` and `web/verify.js` show texts by the same rule (a test).
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files
from unicodedata import category, normalize

from dealer.errors import BadRequest

NAME_MAX = 64
"""Characters (Unicode code points) of a name."""

MARKS_MAX = 4
"""Marks above and below a letter (UTS 39, section 5.4); more of them cover the lines around."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

_UNSEEN_CATEGORIES = ("Cc", "Cf", "Cs", "Mc", "Me", "Mn", "Zl", "Zp", "Zs")
"""Control and format characters, spaces, and marks, which only modify the character before."""

# Default_Ignorable_Code_Point in Unicode 15.0.0 (DerivedCoreProperties.txt), the signs of
# annotations, the place of an object, and blanks and controls of some scripts: they have no form.
_WITHOUT_FORM = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\U00013430-\U00013442\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_INVISIBLE = re.compile(f"[{_WITHOUT_FORM}]")
_BLANK = "\u2800"
"""The Braille pattern without dots, which looks like a space."""

_NEW_MARKS = re.compile(
    "[\u0300-\u036f\u0897\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
    "\U00010efc-\U00010eff\U0001e08f]"
)
"""Where marks are, also those newer than Python's tables."""

_BACKWARDS = re.compile("[\u202b\u202e\u2067]")
"""Signs after which letters are shown from right to left."""

# What has no form and belongs to the characters before it: joiners after letters of the alphabets
# from Hebrew on or after pictures, selectors of a variant, and the tags of a flag.
_JOINS = "[\u0590-\u1fff\u2190-\ud7ff\uf900-\U000dffff]"
_KEPT = (
    f"(?<={_JOINS})[\u200c\u200d]"
    "|(?<=[#*0-9\u00a9\u00ae\u1000-\ud7ff\uf900-\ufdfa\U00010000-\U000dffff])"
    "[\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]"
    "|(?<=\U0001f3f4)[\U000e0020-\U000e007e]{1,16}\U000e007f"
)
_UNSAFE = f"({_KEPT})|[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff{_WITHOUT_FORM}]"
"""As text: it takes 4 ms to compile, at first use."""


def check_name(name: str, *, of: str = "A name") -> None:
    """Raise BadRequest unless `name` is valid; `of` is the subject of the error's sentence.

    A valid name has 1 to 64 characters, no control character, at least one visible character, and
    at most four marks on a letter.
    """
    short = 1 <= len(name) <= NAME_MAX and not _CONTROL.search(name)
    if not short or not any(map(_is_visible, name)):
        raise BadRequest(
            f"{of} has 1 to {NAME_MAX} characters, no control characters and at least one visible "
            "character, such as a letter or a digit."
        )
    if _without_piled_marks(name) != name:
        raise BadRequest(f"{of} has at most {MARKS_MAX} marks on a letter; leave some of them out.")


def look_alike(name: str, other: str) -> bool:
    """Whether two names look the same, apart from case and white space."""
    return not _looks(name).isdisjoint(_looks(other))


def check_text(text: str, most: int, *, of: str) -> None:
    """Raise BadRequest unless `text` has at most `most` bytes of UTF-8 and no control character.

    The log can hold no other text. `of` is the subject of the error's sentence.
    """
    if _CONTROL.search(text) or len(text.encode()) > most:
        raise BadRequest(f"{of} has at most {most} bytes and no control characters.")


def safe_text(text: str) -> str:
    """`text` as it is shown to a reader, who may be at a terminal.

    Whatever could hide, move or cover other text is replaced by U+FFFD; marks after the fourth on a
    letter are left out. Letters, spaces and what joins letters stay as they are.
    """
    if text.isascii() and text.isprintable():
        return text
    safe = re.sub(_UNSAFE, _replacement, text)
    return safe if safe.isascii() else _without_piled_marks(safe)


def _replacement(unsafe: re.Match[str]) -> str:
    return unsafe[1] or "\N{REPLACEMENT CHARACTER}"


def _without_piled_marks(text: str) -> str:
    kept, marks = [], 0
    for character in text:
        if not _INVISIBLE.match(character):
            marks = marks + 1 if _is_mark(character) else 0
        if marks <= MARKS_MAX:
            kept.append(character)
    return "".join(kept)


def _is_mark(character: str) -> bool:
    kind = category(character)
    return kind in ("Mn", "Me") or (kind == "Cn" and _NEW_MARKS.match(character) is not None)


def _is_visible(character: str) -> bool:
    if character == _BLANK or _INVISIBLE.match(character):
        return False
    return category(character) not in _UNSEEN_CATEGORIES


@lru_cache(maxsize=4096)
def _looks(name: str) -> frozenset[str]:
    """The forms of a name of which two that look alike have one in common.

    The skeleton of UTS 39 of the compatibility form, in which case does not matter. A capital I
    looks like a small L and is the same letter as a small I: so the case is folded before the
    skeleton is made and, for the other form, after it. A name with a sign of direction may be shown
    backwards.
    """
    text = _INVISIBLE.sub("", normalize("NFKC", name).replace(_BLANK, " "))
    looks = set()
    for visible in (text, text[::-1]) if _BACKWARDS.search(name) else (text,):
        looks.add(_skeleton(normalize("NFKC", visible.casefold())))
        looks.add(_skeleton(_skeleton(visible).casefold()))
    # Names that differ in what is replaced when they are shown look the same there.
    looks.add(_skeleton(normalize("NFKC", safe_text(name).casefold())))
    return frozenset(looks)


def _skeleton(text: str) -> str:
    """Each character replaced by the one that stands for all that look like it."""
    prototypes = _prototypes()
    replaced = (prototypes.get(character, character) for character in normalize("NFD", text))
    return " ".join(normalize("NFD", "".join(replaced)).split())


@cache
def _prototypes() -> dict[str, str]:
    """The character, or characters, that stand for each of `confusables.txt`."""
    lines = files("dealer.game").joinpath("confusables.txt").read_text("utf-8").split("\n")
    pairs = (line.split("\t") for line in lines if "\t" in line)
    return {character: prototype for prototype, alike in pairs for character in alike}
