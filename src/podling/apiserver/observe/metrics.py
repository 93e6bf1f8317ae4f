"""The metrics of the API server: requests are counted in plain numbers, and `/metrics` writes these, and
those of caches, storage and audit, in Prometheus' text format under Kubernetes' names.

Counting a request costs one look-up of its series and three additions; the look-up is cached, since requests
repeat. The label sets are bounded: a resource that is not served has no label of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from podling.apiserver.observe.audit import AuditLog
from podling.apiserver.observe.audit_policy import LEVEL_NAMES
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import MOST_REPEATED, RepeatedRequest
from podling.apiserver.request.response import Response, Upgrade
from podling.model.scheme import Resource
from podling.process.histogram import Histogram
from podling.process.metrics import TEXT_FORMAT, Exposition, Source

if TYPE_CHECKING:
    from aiohttp import web

BUCKETS = (
    (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60)
)  # fmt: skip
"""Upper bounds of the latency histogram, in seconds, as in Kubernetes."""

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
APPLY_PATCH = "application/apply-patch"

Served = Collection[tuple[str, str, str, str]]
"""Group, version, resource and subresource of every endpoint."""
PATH = "/metrics"
COMPONENT = "apiserver"


class Labels(NamedTuple):
    """The label set of one series."""

    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    scope: str
    dry_run: str


class Series:
    """The requests of one label set."""

    __slots__ = ("codes", "is_timed", "labels", "seconds")

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.codes: Counter[int] = Counter()
        self.seconds = Histogram(BUCKETS)
        # Of what stays open only the beginning is seen, and that says nothing about how long it takes.
        self.is_timed = labels.verb not in LONG_RUNNING


class RequestMetrics:
    """An observer of the pipeline."""

    def __init__(self, served: Served, timer: Callable[[], float] = perf_counter) -> None:
        self._served = frozenset(served)
        self._timer = timer
        self._series: dict[Labels, Series] = {}
        self._remembered: dict[RepeatedRequest, Series] = {}
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
            series.seconds.observe(self._timer() - context.began)

    def following(
        self, context: RequestContext, body: AsyncGenerator[bytes, None] | Upgrade
    ) -> AsyncGenerator[bytes, None] | Upgrade:
        """`body`, counted as an open request until it ends. Watches are counted by their subscriptions
        instead."""
        if context.info.verb == "watch":
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
        # The label sets of a patch and of a dry run depend on a header and a query, too.
        repeated = None if context.request.method == "PATCH" or context.query else context.repeated
        series = self._remembered.get(repeated) if repeated is not None else None
        if series is None:
            labels = self._labels(context)
            series = self._series.setdefault(labels, Series(labels))
            if repeated is not None:
                if len(self._remembered) >= MOST_REPEATED:
                    self._remembered.clear()
                self._remembered[repeated] = series
        return series

    def _labels(self, context: RequestContext) -> Labels:
        info, method = context.info, context.request.method
        endpoint = (info.api_group, info.api_version, info.resource, info.subresource)
        if endpoint not in self._served:
            return Labels(method if method in METHODS else "other", "", "", "", "", "", "")
        dry_run = "All" if "dryRun" in context.query else ""
        return Labels(verb_of(context), *endpoint, scope_of(context), dry_run)


class _Joined(NamedTuple):
    """An upgrade that is counted while it is open."""

    upgrade: Upgrade
    counted: Callable[[], AbstractContextManager[None]]

    async def run(self, request: web.BaseRequest) -> web.StreamResponse:
        with self.counted():
            return await self.upgrade.run(request)


def verb_of(context: RequestContext) -> str:
    """The label `verb`: the HTTP method, or APPLY, CONNECT, LIST or WATCH."""
    info = context.info
    if info.subresource in CONNECTED:
        return "CONNECT"
    if info.verb == "patch" and context.request.headers.get("Content-Type", "").startswith(APPLY_PATCH):
        return "APPLY"
    return NAMED_VERBS.get(info.verb, "other")


def scope_of(context: RequestContext) -> str:
    """The label `scope`: resource, namespace or cluster."""
    info = context.info
    if info.name or info.verb == "create":
        return "resource"
    return "namespace" if info.namespace else "cluster"


class Cached(Protocol):
    """The figures of the watch cache of a resource."""

    @property
    def size(self) -> int: ...

    @property
    def watchers(self) -> int: ...

    @property
    def events_sent(self) -> int: ...


class Metrics:
    """Serves `/metrics`."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._page = Exposition(sources, process=True)

    def add(self, source: Source) -> None:
        self._page.add(source)

    @property
    def paths(self) -> Collection[str]:
        return (PATH,)

    async def serve(self, context: RequestContext) -> Response | None:
        if context.info.path != PATH:
            return None
        return Response(200, self._page.text(), TEXT_FORMAT)


def request_metrics(requests: RequestMetrics) -> Iterable[Metric]:
    labels = [*Labels._fields, "component"]
    total = CounterMetricFamily(
        "apiserver_request_total", "Requests answered, by what they asked for and code.",
        labels=[*labels, "code"],
    )  # fmt: skip
    seconds = HistogramMetricFamily(
        "apiserver_request_duration_seconds", "Seconds until a request was answered.", labels=labels
    )
    for series in requests.series:
        values = [*series.labels, COMPONENT]
        for code, count in series.codes.items():
            total.add_metric([*values, str(code)], count)
        if any(series.seconds.counts):
            seconds.add_metric(values, series.seconds.buckets(), series.seconds.total)
    yield total
    yield seconds
    inflight = GaugeMetricFamily(
        "apiserver_current_inflight_requests", "Requests being answered now.", labels=["request_kind"]
    )
    inflight.add_metric(["readOnly"], requests.reading)
    inflight.add_metric(["mutating"], requests.changing)
    yield inflight


def audit_metrics(audit: AuditLog) -> Iterable[Metric]:
    yield CounterMetricFamily("apiserver_audit_event_total", "Events of the audit log.", audit.count)
    lost = CounterMetricFamily(
        "apiserver_audit_error_total", "Events of the audit log that are lost.", labels=["plugin"]
    )
    for sink in audit.sinks:
        lost.add_metric([sink.name], sink.lost)
    levels = CounterMetricFamily(
        "apiserver_audit_level_total", "Requests by the level the policy gives them.", labels=["level"]
    )
    for level, count in zip(LEVEL_NAMES, audit.levels, strict=True):
        levels.add_metric([level], count)
    yield from (lost, levels)


def open_and_stored(requests: RequestMetrics, caches: Iterable[tuple[Resource, Cached]]) -> Iterable[Metric]:
    kept = GaugeMetricFamily(
        "apiserver_resource_objects", "Objects stored, by resource.", labels=["group", "resource"]
    )
    by_name = GaugeMetricFamily(
        "apiserver_storage_objects", "The older form of apiserver_resource_objects.", labels=["resource"]
    )
    open_ = GaugeMetricFamily(
        "apiserver_longrunning_requests", "Watches and connections that are open.",
        labels=["verb", "group", "version", "resource", "subresource", "scope", "component"],
    )  # fmt: skip
    sent = CounterMetricFamily(
        "apiserver_watch_events_total",
        "Events sent to watchers.",
        labels=["group", "version", "resource"],
    )
    stored: dict[tuple[str, str], int] = {}
    for labels, count in requests.open.items():
        if count:
            open_.add_metric([*labels[:-1], COMPONENT], count)
    for resource, cache in caches:
        # Two versions of a kind are two views of the same objects.
        stored[resource.group, resource.plural] = cache.size
        if cache.watchers:
            of = [resource.group, resource.version, resource.plural]
            open_.add_metric(["WATCH", *of, "", "cluster", COMPONENT], cache.watchers)
        if cache.events_sent:
            sent.add_metric([resource.group, resource.version, resource.plural], cache.events_sent)
    for (group, plural), size in stored.items():
        kept.add_metric([group, plural], size)
        by_name.add_metric([f"{plural}.{group}" if group else plural], size)
    yield from (kept, by_name, open_, sent)
