"""What was asked, answered and is open: counted in plain numbers as it happens, named as Kubernetes' metrics
are only when somebody reads `/metrics`.

A request costs one look-up of its series and three additions: the same few things are asked again and again,
so where they count is remembered. The label sets are bounded: a resource that is not served has no label.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Iterator
from contextlib import AbstractContextManager, aclosing, contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from podling.apiserver.authn.authenticator import ANONYMOUS
from podling.apiserver.context import RequestContext
from podling.apiserver.request import RequestInfo
from podling.apiserver.response import Body, Upgrade
from podling.model.remembered import LONGEST

if TYPE_CHECKING:
    from aiohttp import web

BUCKETS = (
    (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60)
)  # fmt: skip
"""Upper bounds in seconds, those of Kubernetes."""

READ_ONLY = frozenset({"get", "list", "watch"})
CONNECTED = frozenset({"log", "exec", "attach", "portforward", "proxy"})
LONG_RUNNING = frozenset({"WATCH", "CONNECT"})
NAMED_VERBS = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
}
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"})
REMEMBERED = 4096
APPLY_PATCH = "application/apply-patch"

Served = Collection[tuple[str, str, str, str]]
"""Group, version, resource and subresource of every endpoint."""


class Labels(NamedTuple):
    """Whose requests one series counts."""

    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    scope: str
    dry_run: str


class Series:
    """The requests of one label set."""

    __slots__ = ("buckets", "codes", "is_timed", "labels", "seconds")

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.codes: Counter[int] = Counter()
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0
        # Of what stays open only the beginning is seen, and that says nothing about how long it takes.
        self.is_timed = labels.verb not in LONG_RUNNING


class RequestMetrics:
    """An observer of the pipeline."""

    def __init__(self, served: Served, timer: Callable[[], float] = perf_counter) -> None:
        self._served = frozenset(served)
        self._timer = timer
        self._series: dict[Labels, Series] = {}
        self._remembered: dict[tuple[RequestInfo, str, str, bool], Series] = {}
        self.open: Counter[Labels] = Counter()
        """Connections handed on, and logs being followed."""
        self.reading = 0
        self.changing = 0

    @property
    def series(self) -> Collection[Series]:
        return self._series.values()

    def began(self, context: RequestContext) -> None:
        context.began = self._timer()
        if context.request.method in ("GET", "HEAD"):
            self.reading += 1
        else:
            self.changing += 1

    def completed(self, context: RequestContext, code: int) -> None:
        if context.request.method in ("GET", "HEAD"):
            self.reading -= 1
        else:
            self.changing -= 1
        series = self._series_of(context)
        series.codes[code] += 1
        if series.is_timed:
            seconds = self._timer() - context.began
            series.seconds += seconds
            series.buckets[bisect_left(BUCKETS, seconds)] += 1

    def following(self, context: RequestContext, body: Body) -> Body:
        """The same body, counted as open while it is. Watches are counted by those who serve them."""
        if isinstance(body, bytes) or context.info.verb == "watch":
            return body
        labels = self._labels(context)
        if isinstance(body, AsyncGenerator):
            return self._sent(body, labels)
        return _Joined(body, lambda: self._opened(labels))

    @contextmanager
    def _opened(self, labels: Labels) -> Iterator[None]:
        self.open[labels] += 1
        try:
            yield
        finally:
            self.open[labels] -= 1

    async def _sent(self, body: AsyncGenerator[bytes, None], labels: Labels) -> AsyncGenerator[bytes, None]:
        with self._opened(labels):
            async with aclosing(body):
                async for piece in body:
                    yield piece

    def _series_of(self, context: RequestContext) -> Series:
        request = context.request
        content_type = request.headers.get("Content-Type", "") if request.method == "PATCH" else ""
        key = (context.info, request.method, content_type, "dryRun" in context.query)
        series = self._remembered.get(key)
        if series is None:
            labels = self._labels(context)
            series = self._series.setdefault(labels, Series(labels))
            if context.user is not ANONYMOUS and len(context.info.path) + len(content_type) <= LONGEST:
                if len(self._remembered) >= REMEMBERED:
                    self._remembered.clear()
                self._remembered[key] = series
        return series

    def _labels(self, context: RequestContext) -> Labels:
        info, method = context.info, context.request.method
        endpoint = (info.api_group, info.api_version, info.resource, info.subresource)
        if endpoint not in self._served:
            return Labels(method if method in METHODS else "other", "", "", "", "", "", "")
        dry_run = "All" if "dryRun" in context.query else ""
        return Labels(verb_of(context), *endpoint, scope_of(context), dry_run)


class _Joined(NamedTuple):
    """A connection that is handed on, and who counts it."""

    upgrade: Upgrade
    counted: Callable[[], AbstractContextManager[None]]

    async def run(self, request: web.BaseRequest) -> web.StreamResponse:
        with self.counted():
            return await self.upgrade.run(request)


def verb_of(context: RequestContext) -> str:
    """The verb as metrics have it: that of HTTP, with APPLY and CONNECT told apart."""
    info = context.info
    if info.subresource in CONNECTED:
        return "CONNECT"
    if info.verb == "patch" and context.request.headers.get("Content-Type", "").startswith(APPLY_PATCH):
        return "APPLY"
    return NAMED_VERBS.get(info.verb, "other")


def scope_of(context: RequestContext) -> str:
    """How much of a resource a request is about."""
    info = context.info
    if info.name or info.verb == "create":
        return "resource"
    return "namespace" if info.namespace else "cluster"
