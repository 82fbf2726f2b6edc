"""The events of one run, for all watchers with the same rights.

Parts: the log of the deciding process; the run's objects and pods, which watches keep up to date; the feed.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from ..core.untrusted import plain
from ..core.waiter import CLOCK, Clock
from ..kube.api import KubeError, Object
from ..kube.pod_log import Line, Lines, Position
from ..kube.reads import Get, Unread
from ..trainings.log_events import event_in
from ..trainings.names import CONTAINER, JOB_API, JOBSET_API, NAME_LABEL
from ..trainings.pod_places import decider, newest, pod_state, role_of, started
from .lists import Lists, Watch
from .permissions import Right, of_reading
from .ring import FIRST_PAUSE, Health, Ring
from .sessions import Session
from .shares import FULL, LINE_BYTES, VIEW_DEPTH
from .user_api import Ask, Client, LoginEnded, of_the_server

FIRST_LINES = 2_000
"""Lines to read at the start of following; a browser has already drawn the earlier ones."""
A_SECOND = 200
"""Maximum event lines per second of the log; a training writes a few."""


class ChiefLog:
    """The log of one pod.

    :param path: of the pod.
    :param said: called with the fields of each event, which is a JSON line of this project.
    """

    def __init__(self, path: str, container: str, said: Callable[[dict[str, Any]], None]) -> None:
        self.path = path
        self._container = container
        self._said = said
        self._at = Position()
        self._second, self._in_second = "", 0

    async def follow(self, client: Client, token: str, heard: Callable[[], None]) -> None:
        """Report events until the log or the connection ends; the next call continues after the last one.

        :raises LoginEnded, KubeError: the server refuses or does not answer.
        """
        query = {"follow": "true", "timestamps": "true", "container": self._container}
        query |= {"sinceTime": self._at.stamp} if self._at.stamp else {"tailLines": str(FIRST_LINES)}
        lines = Lines(LINE_BYTES, last=True)
        self._at.begin()
        async with client.stream(token, f"{self.path}/log", query) as chunks:
            heard()
            async for chunk in chunks:
                heard()
                for line in filter(self._at.is_new, lines.feed(chunk)):
                    self._line(line)
        # A line without an end may be the last one of the program; otherwise it arrives again in full.
        for line in lines.rest():
            if event_in(line.text, cut=line.cut) and self._at.is_new(line):
                self._line(line)

    def _line(self, line: Line) -> None:
        event = event_in(line.text, cut=line.cut)
        if event is None:
            return
        if line.stamp[:19] != self._second:
            self._second, self._in_second = line.stamp[:19], 0
        self._in_second += 1
        if self._in_second <= A_SECOND:
            self._said(plain(event))


USUAL = ("chief-0", "worker-0", "server-0")
"""Places that decide a run whose object does not name one."""


class Seen:
    """The objects of one run.

    :param changed: called when one of its objects has changed.
    :param happened: called for each event about it in its namespace.
    """

    def __init__(self, namespace: str, run: str, changed: Callable[[], None], happened: Callable[[], None]) -> None:
        self._run = run
        own = {"labelSelector": f"{NAME_LABEL}={run}"}

        def tell(kind: str, obj: Object) -> None:
            changed()

        def tell_of_event(kind: str, event: Object) -> None:
            about = str((event.get("involvedObject") or {}).get("name", ""))
            if about == run or about.startswith(f"{run}-"):
                happened()

        self._jobsets = Watch(f"/apis/{JOBSET_API}/namespaces/{namespace}/jobsets", own, tell)
        self._jobs = Watch(f"/apis/{JOB_API}/namespaces/{namespace}/jobs", own, tell)
        self._pods = Watch(f"/api/v1/namespaces/{namespace}/pods", own, tell)
        events = Watch(f"/api/v1/namespaces/{namespace}/events", {}, tell_of_event, kept=False)
        self.watches = (self._jobsets, self._jobs, self._pods, events)
        self.heard_out = ""
        """The uid of the pod whose log was read to its end."""

    def release(self) -> None:
        """Drop the objects of the watches, because no reader is left."""
        for watch in self.watches:
            watch.release()

    def answer(self, wanted: Get) -> Object | None:
        """Return the answer that the server would give to a request for a watched list; None for other requests."""
        for watch in (self._jobsets, self._jobs, self._pods):
            if watch.synced and (wanted.path, dict(wanted.query)) == (watch.path, watch.query):
                return watch.as_list()
        return None

    def path_of(self, pod: Object) -> str:
        return f"{self._pods.path}/{pod['metadata']['name']}"

    def deciding(self) -> Object | None:
        """Return the pod whose end ends the run."""
        places, live = newest(self._pods.items), self._live()
        return next((places[each] for each in (decider(live), *USUAL) if each in places), None)

    def unheard(self) -> Object | None:
        """Return the deciding pod if it has started and its log was not read to its end."""
        pod = self.deciding()
        return pod if pod and started(pod) and pod["metadata"]["uid"] != self.heard_out else None

    def _live(self) -> Object | None:
        """Return the JobSet or Job of the run; None for a service."""
        kinds = (("JobSet", self._jobsets), ("Job", self._jobs))
        named = [{"kind": kind, **each} for kind, watch in kinds for each in watch.items]
        return next((each for each in named if each["metadata"]["name"] == self._run), None)


LOG = logging.getLogger("console")
VIEW_PAUSE, VIEW_SECONDS = 8.0, 30.0
"""Seconds between two views of a run: the minimum after a change, because a view takes about 25 requests; and the
maximum."""
PULSE_SECONDS = 5.0
"""Silence of the API server after which the feed probes it; a notice is shown within 10 s."""
AWAY, GONE = "The API server does not answer", "The run no longer exists"

View = Callable[[Ask], Awaitable[Any]]
"""Makes the view of the run."""


class _Again(Exception):
    """Raised if the API server is back, so that possibly dead connections are opened again."""


class Feed:
    """The events of one run. A feed is active while it has watchers, and uses the token of one of them.

    :param granted: rights of all watchers; the view reads nothing else.
    :param forget: called when the last watcher has left.
    :param login_ended: called with a session whose token is no longer accepted.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        run: str,
        granted: frozenset[Right],
        view: View,
        *,
        lists: Lists,
        forget: Callable[[Feed], object],
        login_ended: Callable[[Session], None],
        clock: Clock = CLOCK,
    ) -> None:
        self.granted = granted
        self.ring = Ring(latest=("run", "notice"))
        self.dropped: set[Session] = set()
        """Sessions that may no longer watch."""
        self._client, self._lists, self._view, self._clock, self._run = client, lists, view, clock, run
        self._forget, self._login_ended = forget, login_ended
        self._watchers: list[Session] = []
        self._leader: Session | None = None
        self._task: asyncio.Task[None] | None = None
        self._dirty, self._moved = asyncio.Event(), asyncio.Event()
        self._seen = Seen(namespace, run, self._changed, self._dirty.set)
        self._health = Health(partial(self.ring.add, "notice"), clock)
        self._log: ChiefLog | None = None

    @contextmanager
    def watched_by(self, session: Session) -> Iterator[None]:
        """Add a watcher during the block. The first one starts the feed, the last one stops it."""
        self.dropped.discard(session)
        self._watchers.append(session)
        session.at_end.append(self.ring.wake)
        self._choose()
        try:
            yield
        finally:
            self._watchers.remove(session)
            with suppress(ValueError):
                session.at_end.remove(self.ring.wake)
            self._choose()

    def _choose(self) -> None:
        """Use the token of a current watcher only; start, replace or stop the work accordingly."""
        able = [each for each in self._watchers if not each.ended and each not in self.dropped]
        if self._task and self._leader not in able:
            self._task.cancel()
            self._task = None
        if able and self._task is None:
            self._leader = able[0]
            self._task = asyncio.create_task(self._work(self._leader))
            self._task.add_done_callback(partial(self._worked, self._leader))
        if not self._watchers:
            self._forget(self)
            self._seen.release()

    def _worked(self, leader: Session, task: asyncio.Task[None]) -> None:
        """Handle the end of the work; if the token was the reason, continue with that of another watcher."""
        if task.cancelled():
            return
        if task is self._task:
            self._task = None
        found = task.exception()
        causes = found.exceptions if isinstance(found, BaseExceptionGroup) else (found,)
        if any(isinstance(cause, LoginEnded) for cause in causes):
            self._login_ended(leader)
        elif any(isinstance(cause, KubeError) for cause in causes):
            self.dropped.add(leader)
        elif not any(isinstance(cause, _Again) for cause in causes):
            LOG.error("The feed of the run %s has failed.", self._run, exc_info=found)
            self.dropped.update(self._watchers)
        self.ring.wake()
        self._choose()

    async def _work(self, leader: Session) -> None:
        token = leader.token
        async with asyncio.TaskGroup() as group:
            for watch in self._seen.watches:
                group.create_task(self._keep(watch, token))
            group.create_task(self._follow_chief(token))
            group.create_task(self._keep_view(leader))
            group.create_task(self._keep_asking(token))

    async def _keep(self, watch: Watch, token: str) -> None:
        while True:
            try:
                await watch.follow(self._client, token, partial(self._health.heard, watch.path))
            except KubeError as error:
                if error.status == 403:
                    raise
                if error.status == 404:  # A cluster without the JobSet API.
                    watch.synced = True
                    await asyncio.sleep(VIEW_SECONDS)
                else:
                    text = error.message.rstrip(".") if error.status == FULL else AWAY
                    await asyncio.sleep(self._health.failed(watch.path, text, at_once=not watch.synced))

    async def _follow_chief(self, token: str) -> None:
        """Follow the log of the deciding pod and of its replacements."""
        while True:
            pod = self._seen.unheard()
            if pod is None:
                # The log of a deleted pod cannot be read any further.
                self._health.healed("log")
                await self._moved.wait()
                self._moved.clear()
                continue
            path = self._seen.path_of(pod)
            if self._log is None or self._log.path != path:
                self._log = ChiefLog(path, CONTAINER, partial(self._said, role_of(pod)))
            try:
                await self._log.follow(self._client, token, partial(self._health.heard, "log"))
                now = self._seen.deciding()
                if now is None or now["metadata"]["uid"] != pod["metadata"]["uid"] or pod_state(now)[0] == "ended":
                    self._seen.heard_out = pod["metadata"]["uid"]
                    continue
            except KubeError as error:
                if error.status == 403:
                    raise
                if error.status == 404 or error.no_log:
                    self._health.healed("log")
                else:
                    # Any other status comes from the pod's node.
                    text = f"The log of {pod['metadata']['name']} cannot be read" if error.status else AWAY
                    self._health.failed("log", text)
            await asyncio.sleep(FIRST_PAUSE)

    async def _keep_view(self, leader: Session) -> None:
        unread: list[Unread] = []
        while True:
            unread.clear()
            self._dirty.clear()
            try:
                view = await self._view(self._asker(leader, unread))
                if not any(KubeError("", status=each.status).no_answer for each in of_the_server(unread)):
                    self._show(view)
                    self._health.healed("run")
            except (LoginEnded, asyncio.CancelledError):
                raise
            except KubeError as error:
                if error.status == 404:
                    self._health.failed("run", GONE, at_once=True)
                # Otherwise the API server does not answer, which the watches report.
            except Exception:  # Data of a run must not end the feed of its watchers.
                LOG.exception("The view of the run %s cannot be made.", self._run)
            await asyncio.sleep(VIEW_PAUSE)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._dirty.wait(), VIEW_SECONDS - VIEW_PAUSE)

    def _show(self, view: Any) -> None:
        shown = plain(view, VIEW_DEPTH)
        if json.dumps(shown, allow_nan=False, separators=(",", ":")) != self.ring.last("run"):
            self.ring.add("run", shown)

    def _asker(self, leader: Session, unread: list[Unread]) -> Ask:
        """Return an `Ask` that answers from the watches if possible and refuses what a watcher may not read."""
        asks = self._lists.asker(leader, unread)

        async def ask(wanted: Get) -> Any:
            known = self._seen.answer(wanted) if self._health.whole else None
            if known is not None:
                return known
            enough = of_reading(wanted.path)
            if enough and not enough & self.granted:
                return Unread(wanted.path, 403, "you may not read it")
            return await asks(wanted)

        return ask

    async def _keep_asking(self, token: str) -> None:
        """Detect an API server that has stopped answering, and reconnect when it is back."""
        lost = False
        while True:
            await asyncio.sleep(PULSE_SECONDS / 2)
            if self._clock.monotonic() - self._health.heard_at < PULSE_SECONDS:
                continue
            try:
                async with asyncio.timeout(PULSE_SECONDS / 2):
                    # A long wait for a turn would say nothing about the API server.
                    status, _ = await self._client.call(token, "GET", "/version", waits=False)
            except TimeoutError:
                status = 0
            if status:
                self._health.heard()
                if lost:
                    raise _Again
            else:
                lost = True
                self._health.failed("pulse", AWAY, at_once=True)

    def _changed(self) -> None:
        self._dirty.set()
        self._moved.set()

    def _said(self, role: str, event: dict[str, Any]) -> None:
        self.ring.add("line", {**event, "role": role})
