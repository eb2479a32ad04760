"""The text of a file that a person saved: UTF-8, or UTF-16 with its byte order mark.

Text in another character set would have other letters, and bytes do not say which set it was. So it
is refused, with the place of the first byte that cannot be read.
"""

from __future__ import annotations

import codecs
import re

from dealer.errors import ConfigurationError

SAVE = "Save it as UTF-8; spreadsheet programs call that “CSV UTF-8” or “Unicode (UTF-8)”."

_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # of spreadsheet programs: .xlsx and .ods, .xls
_LINE_END = re.compile("\r\n?|\n")


def decode(data: bytes) -> str:
    """The text of a file, in which a byte order mark stays; ConfigurationError for other bytes."""
    if data.startswith(_WORKBOOKS):
        raise ConfigurationError(f"it is a workbook, not a text. {SAVE}")
    if data.startswith(_UTF_32):
        raise ConfigurationError(f"it is UTF-32. {SAVE}")
    encoding = _UTF_16.get(data[:2], "utf-8")
    zero = -1 if encoding in _UTF_16.values() else data.find(0)
    if zero >= 0:
        at = _place(data, zero, encoding)
        raise ConfigurationError(
            f"{at} is 0x00, as in UTF-16 without a byte order mark at its beginning. {SAVE}"
        )
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        at = _place(data, error.start, encoding)
        found = f"0x{data[error.start]:02X}, which is not {encoding[:6].upper()}"
        raise ConfigurationError(f"{at} is {found}. {SAVE}") from None


def _place(data: bytes, start: int, encoding: str) -> str:
    """The line of a byte and its place in the line, both from 1 on."""
    lines = _LINE_END.split(data[:start].decode(encoding, "replace"))
    return f"line {len(lines)}, byte {len(lines[-1].encode(encoding)) + 1}"
