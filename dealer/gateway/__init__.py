"""Network server: JSON-RPC over WebSocket and HTTP for clients, and an HTTP port for operators."""

from dealer.gateway.limits import Limits
from dealer.gateway.server import Gateway, serve

__all__ = ["Gateway", "Limits", "serve"]
