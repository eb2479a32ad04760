"""Gateway context: what all sessions of one server share."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from dealer.gateway.identity import Issuer
from dealer.gateway.limits import Limits
from dealer.gateway.observe.log_throttle import LogThrottle
from dealer.gateway.observe.metrics import Metrics
from dealer.gateway.push.broadcaster import Broadcaster
from dealer.gateway.push.feeds import Feeds
from dealer.gateway.rate_limit.budgets import Budgets
from dealer.gateway.wire.results import OpenRpcDocument
from dealer.service import Service

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class GatewayContext:
    """`clock` gives seconds, for rates and deadlines. `document` makes the OpenRPC document.

    `issuer` is that of the JWTs by which its users take seats; None: there is none.
    `players_open` and `players_list` say whether clients without a service key may open tables, and
    list them. `sessions` counts those so far, `in_flight` the requests that are not answered yet.
    `log_throttle` logs what clients cause, `budgets` are the rate limits of client addresses.
    """

    service: Service
    broadcaster: Broadcaster
    limits: Limits
    metrics: Metrics
    clock: Callable[[], float]
    document: Callable[[], OpenRpcDocument]
    issuer: Issuer | None = None
    players_open: bool = True
    players_list: bool = True
    sessions: int = 0
    in_flight: int = 0
    draining: bool = False
    log_throttle: LogThrottle = field(init=False)
    budgets: Budgets = field(init=False)
    feeds: Feeds = field(init=False)

    def __post_init__(self) -> None:
        self.log_throttle = LogThrottle(log, clock=self.clock)
        self.budgets = Budgets(self.limits)
        self.feeds = Feeds(self.service, self.broadcaster, clock=self.clock)
