"""Gateway context: what all sessions of one server share."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dealer.gateway.limits import Limits
from dealer.gateway.observe.log_throttle import LogThrottle
from dealer.gateway.observe.metrics import Metrics
from dealer.gateway.presence.absence import Absences
from dealer.gateway.presence.presence import Presence
from dealer.gateway.push.backlog import Backlog
from dealer.gateway.push.broadcaster import Broadcaster
from dealer.gateway.push.feeds import Feeds
from dealer.gateway.rate_limit.budgets import Budgets
from dealer.gateway.rate_limit.cpu_time import LongAnswers
from dealer.gateway.wire.results import OpenRpcDocument
from dealer.packs.catalogue import Catalogue
from dealer.service import Service
from dealer.service.commands.background_tasks import BackgroundTasks

if TYPE_CHECKING:
    from dealer.gateway.identity import Issuer

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class GatewayContext:
    """`clock` gives seconds, for rates and deadlines. `document` makes the OpenRPC document.
    `catalogue` has the games and packs that a new table may name.

    `issuer` makes the JWTs by which its users take seats; None if there is none.
    `players_open`, `players_list` and `players_list_closed` say whether clients without a service
    key may open tables, list the open ones, and list the closed ones. `sessions` counts those so
    far, `in_flight` the requests that are not answered yet. `log_throttle` logs what clients cause,
    `budgets` are the rate limits of client addresses, `tasks` the requests and pushes that take
    more than one step.
    """

    service: Service
    limits: Limits
    metrics: Metrics
    clock: Callable[[], float]
    document: Callable[[], OpenRpcDocument]
    catalogue: Catalogue
    issuer: Issuer | None = None
    players_open: bool = True
    players_list: bool = True
    players_list_closed: bool = True
    sessions: int = 0
    in_flight: int = 0
    draining: bool = False
    tasks: BackgroundTasks = field(default_factory=BackgroundTasks)
    log_throttle: LogThrottle = field(init=False)
    budgets: Budgets = field(init=False)
    long_answers: LongAnswers = field(init=False)
    absences: Absences = field(init=False)
    presence: Presence = field(init=False)
    backlog: Backlog = field(init=False)
    broadcaster: Broadcaster = field(init=False)
    feeds: Feeds = field(init=False)

    def __post_init__(self) -> None:
        service, clock = self.service, self.clock
        self.log_throttle = LogThrottle(log, clock=clock)
        self.budgets = Budgets(self.limits)
        self.long_answers = LongAnswers(clock)
        self.absences = Absences(service, clock=clock)
        self.presence = Presence(service.presence, self.absences, now=service.now)
        self.backlog = Backlog(
            service,
            self.presence,
            self.long_answers,
            self.tasks,
            limits=self.limits,
            metrics=self.metrics,
            clock=clock,
        )
        self.broadcaster = Broadcaster(
            service, self.backlog, self.presence, self.absences, metrics=self.metrics
        )
        self.feeds = Feeds(service, self.long_answers, self.tasks, clock=clock)
