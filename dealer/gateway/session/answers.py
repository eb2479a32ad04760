"""Answers: what is sent, counted and logged for each request of a session."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter

from msgspec import Struct

from dealer import errors
from dealer.gateway.session.context import GatewayContext
from dealer.gateway.transport import Transport
from dealer.gateway.wire import protocol as wire
from dealer.service import CommandResult

SUSPICIOUS = (errors.BadKey, errors.BadToken, errors.CommandReused, errors.EntropyMismatch)
"""Refusals that an honest client hardly ever causes; they are logged."""


class Answers:
    """Answers the requests of one session; nothing more once it is `closed`.

    Nothing is sent to a request without an id. Log lines have the session's number.
    """

    def __init__(self, context: GatewayContext, transport: Transport) -> None:
        self.closed = False
        self._context = context
        self._transport = transport
        context.sessions += 1
        self._number = context.sessions

    def send(self, payload: bytes) -> None:
        """Send a message: an answer, or a notification that belongs to one."""
        if not self.closed:
            self._transport.write(wire.text_frame(payload))

    def send_result(self, call: wire.Call, result: Struct) -> None:
        """Count and send a result."""
        if call.id is not None:
            self.send(wire.result(call.id, result))
        self._context.metrics.answered(call.method, "ok", perf_counter() - call.received)

    def send_outcome(
        self, call: wire.Call, answer: Callable[[CommandResult], Struct], outcome: CommandResult
    ) -> None:
        """Count and send the `answer` to a command, after the frames held back for it, in one
        write.
        """
        frames = outcome.held
        try:
            if call.id is not None:
                frames += wire.result_frame(call.id, answer(outcome))
        finally:  # if there is no answer, as without memory, the events are still sent
            if frames and not self.closed:
                self._transport.write(frames)
        self._context.metrics.answered(call.method, "ok", perf_counter() - call.received)

    def send_error(self, call: wire.Call, error: Exception) -> None:
        """Count and send an error; the text of an internal one is logged, and not sent.

        Where not even that can be done, as without memory, the connection is closed.
        """
        try:
            if isinstance(error, errors.DealerError):
                outcome = (
                    error.reason if isinstance(error, errors.Refused) else errors.Unavailable.reason
                )
                self._log(call, error, outcome)
                self.refuse(call.id, error)
            else:
                outcome, throttle = "internal", self._context.log_throttle
                throttle.say_error(error, "internal error", self._example(call), method=call.method)
                message = "Internal error; see the server's log."
                self.reject(call.id, wire.ErrorCode.INTERNAL_ERROR, message)
        except Exception:
            self._transport.abort()
            raise
        self._context.metrics.answered(call.method, outcome, perf_counter() - call.received)

    def refuse(self, id: bytes | None, error: errors.DealerError) -> None:
        """Send the refusal of a request, which is neither counted nor logged."""
        if id is not None:
            self.send(wire.refusal(id, error))

    def reject(self, id: bytes | None, code: wire.ErrorCode, message: str) -> None:
        """Send an error of JSON-RPC, for what is no request."""
        if id is not None:
            self.send(wire.fault(id, code, message))

    def _log(self, call: wire.Call, error: errors.DealerError, reason: str) -> None:
        """Log a failure of the server, or a refusal that an honest client hardly causes."""
        throttle, example = self._context.log_throttle, self._example(call)
        if isinstance(error, SUSPICIOUS):
            # A table of the request is logged only if it exists: it may be any text, even a token.
            table = getattr(call.params, "table", None)
            known = None if table is None else self._context.service.tables.get(table)
            where = {} if known is None else {"table": known.table_id}
            throttle.log(
                logging.WARNING,
                "client suspect",
                example,
                method=call.method,
                reason=reason,
                **where,
            )
        elif isinstance(error, errors.DatabaseDamaged) and error.logged:
            pass  # the table has a line already
        elif not isinstance(error, errors.Refused):
            throttle.log(
                logging.ERROR, "a request failed", example, method=call.method, says=str(error)
            )

    def _example(self, call: wire.Call) -> dict[str, object]:
        """The fields of a log line that say which request it is about.

        The id only if it is a number: a text may be anything, even a token.
        """
        id = call.id or b""
        number = {"id": int(id)} if id.removeprefix(b"-").isdigit() else {}
        return {"connection": self._number, **number}
