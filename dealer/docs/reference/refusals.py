"""The page of error codes, reasons of refusals, exceptions and close codes."""

from __future__ import annotations

from dealer.docs.markdown import table
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.schema.errors import REFUSALS
from dealer.gateway.schema.errors import refusals as classes
from dealer.gateway.wire.protocol import ErrorCode

_BEFORE = """\
# Errors and reasons

A refusal is an error of JSON-RPC with a positive `code`, and in `data` the `reason` for programs
and `temporary`: whether the same request may succeed later. In Python it is an exception of
`dealer.errors`, in JavaScript `Refused` with the same `reason`.
"""


def refusals() -> str:
    found = [_BEFORE]
    for reason, refused in classes().items():
        again = "Temporary: send it again later." if refused.temporary else "Not temporary."
        found.append(
            f"## {reason}\n\n{REFUSALS[reason]}\n\n"
            f"Code {refused.code}, `dealer.errors.{refused.__name__}`. {again}\n"
        )
    faults = table(("code", "meaning"), ((f"`{int(code)}`", code.meaning) for code in ErrorCode))
    closes = table(("code", "meaning"), ((f"`{int(code)}`", code.meaning) for code in CloseCode))
    return "\n".join([*found, f"## Codes of JSON-RPC\n\n{faults}", f"## Close codes\n\n{closes}"])
