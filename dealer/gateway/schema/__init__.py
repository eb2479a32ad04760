"""Machine-readable description of the protocol: OpenRPC and AsyncAPI documents."""

from dealer.docstrings import restore
from dealer.gateway.schema.asyncapi import asyncapi
from dealer.gateway.schema.openrpc import document, openrpc

restore("dealer.errors", "dealer.game.", "dealer.gateway.")

__all__ = ["asyncapi", "document", "openrpc"]
