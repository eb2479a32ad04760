"""The logo of the pages: an image file that is read when the server starts."""

from __future__ import annotations

from pathlib import Path

from dealer.errors import ConfigurationError

LOGO_KINDS = (".svg", ".png", ".jpg", ".webp")
LOGO_MAX = 128 * 1024


def read_logo(path: Path, *, of: str) -> bytes:
    """The bytes of a logo; ConfigurationError, naming the setting `of`, if it cannot be one."""
    if path.suffix.lower() not in LOGO_KINDS:
        raise ConfigurationError(
            f"{of} must be an image whose name ends with {', '.join(LOGO_KINDS)}, not {path}."
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{of}: {path} cannot be read: {error.strerror}.") from None
    if not 0 < len(data) <= LOGO_MAX:
        raise ConfigurationError(
            f"{of}: {path} has {len(data)} bytes; a logo has 1 to {LOGO_MAX} bytes, because every "
            "visitor's browser loads it."
        )
    return data
