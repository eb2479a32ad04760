"""What all sessions of one house share: the service, the methods, the limits, the counts."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from dealer.gateway.commands import Wish
from dealer.gateway.limits import Limits
from dealer.gateway.metrics import Metrics
from dealer.gateway.params import Params
from dealer.gateway.pump import Pump
from dealer.gateway.rate_limit import Budgets
from dealer.gateway.seldom import Seldom
from dealer.gateway.wire import Call, Reader
from dealer.service import Service

if TYPE_CHECKING:
    from dealer.gateway.session import Session


class Reply(NamedTuple):
    """An answer, and what follows once it is written."""

    answer: Struct
    then: Callable[[], None] = lambda: None


class Question(NamedTuple):
    """One method that is no wish at a table, or that changes who somebody is."""

    params: type[Params]
    result: tuple[type[Struct], ...]
    ask: Callable[[Session, Call], Awaitable[Reply]]
    automatic: bool = False


log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Floor:
    """`clock` gives seconds, for rates and deadlines; `in_flight` counts requests unanswered;
    `seldom` logs what guests cause, `budgets` are the rates and debts of client addresses.
    """

    service: Service
    pump: Pump
    limits: Limits
    metrics: Metrics
    wishes: Mapping[str, Wish]
    questions: Mapping[str, Question]
    reader: Reader
    clock: Callable[[], float]
    in_flight: int = 0
    draining: bool = False
    seldom: Seldom = field(init=False)
    budgets: Budgets = field(init=False)

    def __post_init__(self) -> None:
        self.seldom = Seldom(log, clock=self.clock)
        self.budgets = Budgets(self.limits)
