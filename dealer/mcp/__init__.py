"""A server of the Model Context Protocol (MCP), through which an agent plays at tables.

It needs the official package `mcp` (the extra `mcp`), with pydantic: `seats` has what the tools do,
`server` offers them.
"""
