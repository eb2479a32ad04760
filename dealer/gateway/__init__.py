"""Who is told what, and by which wire: JSON-RPC over WebSocket, and a port for the operator."""

from dealer.gateway.limits import Limits
from dealer.gateway.server import Gateway, serve

__all__ = ["Gateway", "Limits", "serve"]
