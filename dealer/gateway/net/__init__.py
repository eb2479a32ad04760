"""Listening, HTTP/1.1 and WebSocket connections, without anything of dealer.

`connection.py` describes the life of a connection. A program subclasses `Connection`, whose methods
`check`, `run` and others it fills, and gives it to a `Listener`; what it imports of dealer are its
limits, close codes and errors.
"""
