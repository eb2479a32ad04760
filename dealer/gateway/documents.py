"""The documents of the interface: imported and made on their first request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from dealer.gateway.wire import results as r


def openrpc_document(path: str) -> r.OpenRpcDocument:
    """The OpenRPC document of a server under `path`, as the result of `rpc.discover`."""
    from dealer.gateway.schema import document

    return document(path)


def documents(path: str) -> Mapping[str, Callable[[], bytes]]:
    """Functions that make the JSON documents, by path; `path` is that of the server."""
    return {"/openrpc.json": partial(_openrpc, path), "/asyncapi.json": partial(_asyncapi, path)}


def _openrpc(path: str) -> bytes:
    from dealer.gateway.schema import openrpc

    return openrpc(path)


def _asyncapi(path: str) -> bytes:
    from dealer.gateway.schema import asyncapi

    return asyncapi(path)
