"""The version of the installed package."""

from __future__ import annotations

from importlib import metadata


def version() -> str:
    try:
        return metadata.version("dealer")
    except metadata.PackageNotFoundError:  # run from a checkout that was never installed
        return "0"
