"""Machine-readable description of the protocol: OpenRPC and AsyncAPI documents."""

from dealer.gateway.schema.asyncapi import asyncapi
from dealer.gateway.schema.openrpc import document, openrpc

__all__ = ["asyncapi", "document", "openrpc"]
