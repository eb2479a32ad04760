"""Machine-readable description of the protocol: OpenRPC and AsyncAPI documents."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Mapping
from typing import Any

from dealer.gateway.schema.documents import asyncapi, document, openrpc

__all__ = ["asyncapi", "document", "openrpc"]


def restore_docstrings(*prefixes: str) -> None:
    """Read the docstrings of imported modules with these names from their source.

    They are published here, and `python -OO` has left them out.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith(prefixes):
            source = "".join(linecache.getlines(module.__file__ or ""))
            _restore(vars(module), ast.parse(source))


def _restore(named: Mapping[str, Any], within: ast.Module | ast.ClassDef) -> None:
    for node in within.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if (text := ast.get_docstring(node, clean=False)) is not None:
                named[node.name].__doc__ = text
            if isinstance(node, ast.ClassDef):
                _restore(vars(named[node.name]), node)


if sys.flags.optimize >= 2:
    restore_docstrings("dealer.errors", "dealer.game.", "dealer.gateway.")
