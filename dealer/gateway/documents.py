"""The documents of the interface: imported and made on their first request."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dealer.gateway.wire import results as r


def openrpc_document() -> r.OpenRpcDocument:
    """The OpenRPC document, as the result of `rpc.discover`."""
    from dealer.gateway.schema import document

    return document()


def _openrpc() -> bytes:
    from dealer.gateway.schema import openrpc

    return openrpc()


def _asyncapi() -> bytes:
    from dealer.gateway.schema import asyncapi

    return asyncapi()


DOCUMENTS: Mapping[str, Callable[[], bytes]] = {
    "/openrpc.json": _openrpc,
    "/asyncapi.json": _asyncapi,
}
"""JSON documents by path."""
