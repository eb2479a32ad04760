"""JSON on one line, for programs that read line by line.

A line feed ends a line of NDJSON, of server-sent events and of this program's output. Many line
readers, Python's `str.splitlines` among them, also split at U+000B, U+000C, U+001C to U+001E,
U+0085, U+2028 and U+2029. JSON escapes those below U+0020 in any case; `one_line` does it with the
others. The value stays the same, and so does the canonical form of what is parsed from the line.
"""

from __future__ import annotations

_SPLITTING = {number: f"\\u{number:04x}" for number in (0x85, 0x2028, 0x2029)}


def one_line(text: str) -> str:
    """JSON text without line breaks, as one line for every reader; the same value."""
    return text if text.isascii() else text.translate(_SPLITTING)
