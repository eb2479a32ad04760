"""The version of both distributions, of the npm package and of the image."""

from __future__ import annotations

__version__ = "0.1.0"
