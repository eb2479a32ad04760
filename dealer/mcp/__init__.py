"""A server of the Model Context Protocol (MCP), through which an agent plays at tables.

`seats` has what the tools do, with the Python client and without MCP; `server` makes tools of it,
with the official `mcp` package (the extra `mcp`).
"""
