"""`/metrics`: the numbers of this process in Prometheus' text format, under the names Kubernetes gives them.

Numbers are kept where they come about; here they are read, once for each scrape.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import accumulate
from typing import Protocol

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from podling.apiserver.audit import AuditLog
from podling.apiserver.context import RequestContext
from podling.apiserver.metrics import BUCKETS, Labels, RequestMetrics
from podling.apiserver.response import Response
from podling.model.scheme import Resource
from podling.stall_metrics import stall_metrics

TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
PATH = "/metrics"
COMPONENT = "apiserver"
BOUNDS = (*(str(float(bound)) for bound in BUCKETS), "+Inf")

Source = Callable[[], Iterable[Metric]]
"""Asked for its metrics at each scrape."""


class Cached(Protocol):
    """What the watch cache of a resource tells."""

    @property
    def size(self) -> int: ...

    @property
    def watchers(self) -> int: ...

    @property
    def events_sent(self) -> int: ...


class Metrics:
    """Serves `/metrics`."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        # pid 1 of a container counts as any other; the collector reads /proc/PID.
        ProcessCollector(pid=os.getpid, registry=self._registry)
        self.add(stall_metrics)
        for source in sources:
            self.add(source)

    def add(self, source: Source) -> None:
        self._registry.register(_FromSource(source))

    @property
    def paths(self) -> Collection[str]:
        return (PATH,)

    async def serve(self, context: RequestContext) -> Response | None:
        if context.info.path != PATH:
            return None
        return Response(200, generate_latest(self._registry), TEXT_FORMAT)


class _FromSource(Collector):
    def __init__(self, source: Source) -> None:
        self._source = source

    def collect(self) -> Iterable[Metric]:
        return self._source()


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
        cumulative = list(accumulate(series.buckets))
        if cumulative[-1]:
            seconds.add_metric(values, list(zip(BOUNDS, cumulative, strict=True)), series.seconds)
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
    lost.add_metric(["log"], audit.sink.lost)
    yield lost


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
