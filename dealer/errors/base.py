"""The common base of all exceptions, and the one for wrong settings."""

from __future__ import annotations


class DealerError(Exception):
    """Any error that this package raises deliberately."""


class ConfigurationError(DealerError):
    """A setting, an address or a file that the program cannot use."""
