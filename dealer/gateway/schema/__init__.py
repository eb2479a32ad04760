"""Machine-readable description of the protocol: OpenRPC and AsyncAPI documents."""

from dealer.docstrings import restore
from dealer.gateway.schema.documents import asyncapi, document, openrpc

restore("dealer.errors", "dealer.game.", "dealer.gateway.")

__all__ = ["asyncapi", "document", "openrpc"]
