"""Imports what `dealer serve` imports until it is ready; for the fork server."""

# ruff: noqa: F401
import alembic.command
import alembic.config
import uvloop

import dealer.cli.main
import dealer.gateway.observe.tracing
import dealer.service.build
