"""What a program has to know to talk to this house, told in the two ways that tools read."""

from __future__ import annotations

from functools import cache

from dealer.gateway.described.asyncapi import asyncapi
from dealer.gateway.described.openrpc import document, openrpc
from dealer.gateway.static import KINDS, File

__all__ = ["asyncapi", "document", "file", "openrpc"]


@cache
def file(path: str) -> File:
    """The document at `/openrpc.json` or `/asyncapi.json`, packed once for all who ask."""
    text = {"/openrpc.json": openrpc, "/asyncapi.json": asyncapi}[path]()
    return File(text, KINDS[".json"])
