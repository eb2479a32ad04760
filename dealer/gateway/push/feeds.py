"""Feeds on WebSockets: pushes the feed to the sessions that follow it.

A follower has no queue. When the feed grows, those that are up to date get a task, which reads from
the follower's place and ends when it is up to date again; a slow client's task waits until its
write buffer is empty, and reads from memory or the log what came meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from dealer.backoff import around
from dealer.errors import DatabaseLocked, DatabaseUnavailable, Overloaded
from dealer.feed.pages import FeedFilter
from dealer.feed.positions import Place
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.observe.log_throttle import LogThrottle
from dealer.gateway.push.backlog import RETRY_SECONDS
from dealer.gateway.rate_limit.cpu_time import LongAnswers, metered
from dealer.gateway.transport import Transport
from dealer.gateway.wire import protocol as wire
from dealer.service import Service
from dealer.service.commands.background_tasks import BackgroundTasks
from dealer.service.identity.service_keys import ServiceKey

PAGE = 256
"""Events that are read and encoded at once, about."""

_FRAME = b'{"jsonrpc":"2.0","method":"feed","params":%b}'

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class FeedFollower:
    """One session's place in the feed."""

    transport: Transport
    key: ServiceKey
    filter: FeedFilter
    place: Place
    task: asyncio.Task[None] | None = None


class Feeds:
    """Pushes the feed of `service` to its followers."""

    def __init__(
        self,
        service: Service,
        long_answers: LongAnswers,
        tasks: BackgroundTasks,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._service = service
        self._long_answers = long_answers
        self._tasks = tasks
        self._followers: set[FeedFollower] = set()
        self._log_throttle = LogThrottle(log, clock=clock)
        service.feed.head.listeners.append(self._on_head)
        service.service_keys.on_revoked(self._on_revoked)

    def start(self, follower: FeedFollower) -> None:
        """Push everything after the follower's place, until `end`."""
        self._followers.add(follower)
        self._service.feed.head.followers += 1
        self._catch_up(follower)

    def end(self, follower: FeedFollower) -> None:
        """Push nothing more."""
        if follower in self._followers:
            self._followers.discard(follower)
            self._service.feed.head.followers -= 1
        if follower.task is not None:
            follower.task.cancel()

    def _on_head(self) -> None:
        for follower in self._followers:
            if follower.task is None:
                self._catch_up(follower)

    def _on_revoked(self, key: ServiceKey) -> None:
        for follower in tuple(self._followers):
            if follower.key == key:
                self.end(follower)

    def _catch_up(self, follower: FeedFollower) -> None:
        work = metered(lambda: self._push(follower), follower.transport.budget)
        follower.task = self._tasks.start(work)

    async def _push(self, follower: FeedFollower) -> None:
        try:
            while follower in self._followers and await self._send_page(follower):
                pass
        except Exception as error:
            self._log_throttle.say_error(error, "the feed could not be read from the log")
            follower.transport.close_with(
                CloseCode.TRY_AGAIN_LATER, "the log cannot be read at the moment"
            )
        finally:
            follower.task = None

    async def _send_page(self, follower: FeedFollower) -> bool:
        """Send the next events; False if there are no more at present."""
        if not await follower.transport.drained():
            return False
        feed = self._service.feed
        try:
            async with self._long_answers.permit(follower.transport.budget):
                page = await feed.reader.read(follower.place, follower.filter, limit=PAGE)
        except (DatabaseUnavailable, DatabaseLocked, Overloaded):
            # Without the permit, for which others of the address may wait.
            await asyncio.sleep(around(RETRY_SECONDS))
            return True
        if follower not in self._followers:
            return False
        follower.place = page.place
        if page.entries:
            frames = [wire.text_frame(_FRAME % each.text.encode()) for each in page.entries]
            follower.transport.write(b"".join(frames))
        # No await since the place was compared: the next notice starts another task.
        return page.more or feed.head.seq >= follower.place.seq
