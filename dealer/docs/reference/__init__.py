"""Pages made from the program: they cannot disagree with it.

Each function returns pages as (name without an ending, Markdown). Pages that REFERENCE.md has too
keep its sentences, and get their tables from the program.
"""

from __future__ import annotations

from dealer.docs.reference.commands import commands
from dealer.docs.reference.metrics import with_metrics
from dealer.docs.reference.protocol import protocol
from dealer.docs.reference.refusals import refusals
from dealer.docs.reference.settings import with_settings
from dealer.docs.reference.sql import with_columns

__all__ = ["COMPLETED", "generated"]

COMPLETED = {
    "reference/settings": with_settings,
    "reference/metrics": with_metrics,
    "reference/sql": with_columns,
}
"""Functions that complete the text of a page of a document."""


def generated() -> dict[str, str]:
    """The pages without a document, by name."""
    return protocol() | {"reference/errors": refusals(), "reference/commands": commands()}
