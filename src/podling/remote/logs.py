"""The logs of many containers, read and followed beside each other: each line of each run once, in order.

Who follows sees the pods by a watch: a container's next run is read when it begins, a connection that was
lost is made again and goes on where it was. What a container said last is asked for once more when it has
ended, so that nothing is lost with a connection that a server let end early.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from typing import NamedTuple

from podling.debug.container import pod_path
from podling.debug.log_lines import Lines, Part
from podling.debug.runs import Run, chosen, newest_run, steps_before
from podling.model.errors import StatusError
from podling.model.types.pod import Pod
from podling.process.waits import Backoff, woken
from podling.remote.beside import first_of
from podling.remote.pods import Cluster

RETRY = Backoff(0.2, 10.0)
NEWS = 1.0
"""Seconds after which a container whose log ended is asked for it again if its status says that it runs."""
NO_SUCH_LOG = (400, 404)
"""What is answered for containers and runs that are gone, or whose log is."""
GONE = 410


class Asked(NamedTuple):
    """What of each log. `since` is in seconds, `tail` in lines."""

    containers: Sequence[str] = ()
    previous: bool = False
    since: float | None = None
    since_time: str = ""
    tail: int | None = None


class Source(NamedTuple):
    """A container. `number` counts the sources of a command."""

    number: int
    namespace: str
    pod: str
    container: str


class Watched(NamedTuple):
    """Which pods are followed: of a namespace, or of all if it is empty."""

    namespace: str
    name: str = ""
    labels: str = ""


Show = Callable[[Source, Sequence[Part]], None]
Tell = Callable[[str], None]


class _NotShown(Exception):
    """Not the way to the server is broken, which may be tried again, but that to who reads."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class _Log:
    """One container's log, and how far it was read."""

    def __init__(self, cluster: Cluster, source: Source, pod: Pod, asked: Asked, show: Show) -> None:
        self.source = source
        self.pod = pod
        self.is_gone = False
        self.news = asyncio.Event()
        self.first_read = asyncio.Event()
        self._cluster = cluster
        self._asked = asked
        self._show = show
        self._lines = Lines()
        self._began = time.monotonic()

    @property
    def run(self) -> Run:
        return newest_run(self.pod, self.source.container)

    async def read(self, *, follow: bool, previous: bool = False) -> None:
        """One answer to its end. Raises StatusError, OSError."""
        options = {**self._range(), "timestamps": "true", **({"previous": "true"} if previous else {})}
        if follow:
            options["follow"] = "true"
        self._lines.begin()
        source = self.source
        pieces = self._cluster.log_stream(source.namespace, source.pod, source.container, **options)
        async with aclosing(pieces) as stream:
            async for piece in stream:
                self._shown(self._lines.feed(piece))
        # What is incomplete while the container runs comes again as a whole.
        if not follow or self.run.is_over:
            self._shown(self._lines.end())

    def _shown(self, parts: Iterable[Part]) -> None:
        if found := list(parts):
            try:
                self._show(self.source, found)
            except OSError as error:
                raise _NotShown(error) from error

    def _range(self) -> dict[str, str]:
        asked, since = self._asked, self._lines.since
        if since:
            return {"sinceTime": since}
        elapsed = time.monotonic() - self._began
        found = {}
        if asked.since is not None:
            found["sinceSeconds"] = str(max(1, math.ceil(asked.since + elapsed)))
        elif asked.since_time:
            found["sinceTime"] = asked.since_time
        if asked.tail is not None:
            found["tailLines"] = str(asked.tail)
        return found


async def read_all(cluster: Cluster, pods: Sequence[Pod], asked: Asked, show: Show, tell: Tell) -> bool:
    """What the containers have printed, one after the other; whether all of it could be shown. A container
    that was not asked for by its name and has not begun is passed over. Raises OSError."""
    is_whole = True
    passed = ""
    shown = number = 0
    for pod in pods:
        for name in chosen(pod, asked.containers):
            log = _Log(cluster, _source(number, pod, name), pod, asked, show)
            number += 1
            if not asked.containers and not log.run.id:
                continue
            try:
                await log.read(follow=False, previous=asked.previous)
                shown += 1
            except StatusError as error:
                if asked.previous and not asked.containers and error.code in NO_SUCH_LOG:
                    passed = error.message
                    continue
                is_whole = False
                tell(error.message)
            except _NotShown as error:
                raise error.error from None
    if passed and not shown:
        tell(passed)
    return is_whole and (shown > 0 or not passed)


def _source(number: int, pod: Pod, container: str) -> Source:
    return Source(number, pod.metadata.namespace, pod.metadata.name, container)


class Follower:
    """Follows the logs of the pods that it is told of, until no container of them runs again. `most` is how
    many logs are followed at a time; those beyond are told of and left out."""

    def __init__(self, cluster: Cluster, asked: Asked, show: Show, tell: Tell, most: int) -> None:
        self._cluster = cluster
        self._asked = asked
        self._show = show
        self._tell = tell
        self._most = most
        self._logs: dict[tuple[str, str], _Log] = {}
        self._left_out: set[tuple[str, str]] = set()
        self._live = 0
        self._over = asyncio.Event()

    async def follow(self, pods: Sequence[Pod], watched: Sequence[Watched]) -> None:
        """Raises StatusError for who may not watch, WishError."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for pod in pods:
                    self._seen(tasks, pod)
                if not self._live:
                    return
                watching = [tasks.create_task(self._watch(tasks, one)) for one in watched]
                await self._over.wait()
                for task in watching:
                    task.cancel()
        except BaseExceptionGroup as errors:
            first = first_of(errors)
            raise (first.error if isinstance(first, _NotShown) else first) from None

    async def _watch(self, tasks: asyncio.TaskGroup, watched: Watched) -> None:
        retry = RETRY.begin()
        version = ""
        fields = f"metadata.name={watched.name}" if watched.name else ""
        path = pod_path(watched.namespace)
        while True:
            try:
                changes = self._cluster.changes(path, Pod, version, fields, label_selector=watched.labels)
                async with aclosing(changes) as stream:
                    async for change in stream:
                        retry.reset()
                        version = change.object.metadata.resource_version
                        if change.type == "DELETED":
                            self._gone(change.object)
                        elif change.type != "BOOKMARK":
                            self._seen(tasks, change.object)
            except StatusError as error:
                if error.code != GONE:
                    raise
                version = ""
            except OSError as error:
                self._tell(f"{error}; trying again")
            await asyncio.sleep(retry.next())

    def _seen(self, tasks: asyncio.TaskGroup, pod: Pod) -> None:
        for name in chosen(pod, self._asked.containers):
            key = pod.metadata.uid, name
            log = self._logs.get(key)
            if log is not None:
                log.pod = pod
                log.news.set()
            elif self._live < self._most:
                source = _source(len(self._logs), pod, name)
                log = self._logs[key] = _Log(self._cluster, source, pod, self._asked, self._show)
                self._live += 1
                tasks.create_task(self._follow(log))
            elif key not in self._left_out:
                self._left_out.add(key)
                self._tell(f"{pod.metadata.name}/{name} is not followed: {self._most} logs are already")

    def _gone(self, pod: Pod) -> None:
        for (uid, _), log in self._logs.items():
            if uid == pod.metadata.uid:
                log.is_gone = True
                log.news.set()

    async def _follow(self, log: _Log) -> None:
        try:
            await self._each_run(log)
        finally:
            log.first_read.set()
            self._live -= 1
            if not self._live:
                self._over.set()

    async def _each_run(self, log: _Log) -> None:
        retry = RETRY.begin()
        # The number of the first run that was not read to its end.
        due = log.run.number
        done = ""
        await self._after_its_steps(log)
        while True:
            log.news.clear()
            run = log.run
            if not run.id or run.id == done:
                if run.is_last or log.is_gone:
                    return
                await log.news.wait()
                continue
            try:
                if run.number > due:
                    await self._read_before(log, run, due)
                due = run.number
                await log.read(follow=True)
            except StatusError as error:
                if error.code not in NO_SUCH_LOG:
                    raise
            except OSError as error:
                if log.is_gone:
                    return
                self._tell(f"{log.source.pod}/{log.source.container}: {error}; trying again")
                await asyncio.sleep(retry.next())
                continue
            retry.reset()
            if run.is_over or log.is_gone:
                done, due = run.id, run.number + 1
                log.first_read.set()
            else:
                await woken(log.news, NEWS)

    async def _read_before(self, log: _Log, run: Run, due: int) -> None:
        """The run before this one, or what of it was not read; earlier ones the API has no more."""
        if missed := run.number - 1 - due:
            self._tell(
                f"{log.source.pod}/{log.source.container}: {missed} runs were over before they could be read"
            )
        try:
            await log.read(follow=False, previous=True)
        except StatusError as error:
            if error.code not in NO_SUCH_LOG:
                raise

    async def _after_its_steps(self, log: _Log) -> None:
        """What init containers printed is shown before what came after them."""
        while not log.run.id and not log.run.is_last and not log.is_gone:
            log.news.clear()
            await log.news.wait()
        for name in steps_before(log.pod, log.source.container):
            step = self._logs.get((log.pod.metadata.uid, name))
            if step is not None and step.run.id:
                await step.first_read.wait()


async def found(cluster: Cluster, watched: Sequence[Watched]) -> list[Pod]:
    """The pods as they are now. Raises StatusError, OSError."""
    pods: list[Pod] = []
    for one in watched:
        if one.name:
            pods.append(await cluster.get(one.namespace, one.name))
        else:
            pods += await cluster.all(one.namespace, label_selector=one.labels)
    return pods
