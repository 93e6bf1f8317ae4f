"""Metrics of cluster DNS, under CoreDNS' names. What is counted is plain numbers until somebody asks."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from podling.dns.forward import Forwarder
from podling.dns.responder import Responder
from podling.dns.server import Server
from podling.dns.wire import RCODES, TYPES

SERVER, ZONE = "dns://:53", "."
"""Of CoreDNS' labels: one server block for all zones."""


def metrics(server: Server, responder: Responder, forwarder: Forwarder) -> Iterable[Metric]:
    requests = CounterMetricFamily(
        "coredns_dns_requests", "Queries by protocol and type.", labels=["server", "zone", "proto", "type"]
    )
    for proto, types in (("udp", responder.types[0]), ("tcp", responder.types[1])):
        by_name: dict[str, int] = {}
        for type_, count in enumerate(types):
            name = TYPES.get(type_, "other")
            by_name[name] = by_name.get(name, 0) + count
        for name, count in by_name.items():
            if count:
                requests.add_metric([SERVER, ZONE, proto, name], count)
    responses = CounterMetricFamily(
        "coredns_dns_responses", "Replies by code.", labels=["server", "zone", "rcode"]
    )
    for rcode, count in enumerate(server.rcodes):
        if count:
            responses.add_metric([SERVER, ZONE, RCODES.get(rcode, str(rcode))], count)
    durations = HistogramMetricFamily(
        "coredns_dns_request_duration_seconds",
        "Seconds for a datagram's reply, those of one turn of the loop alike.",
        labels=["server", "zone"],
    )
    durations.add_metric([SERVER, ZONE], server.seconds.buckets(), server.seconds.total)
    entries = GaugeMetricFamily("coredns_cache_entries", "Answers of other servers that are kept.")
    entries.add_metric([], len(forwarder.cache))
    hits = CounterMetricFamily("coredns_cache_hits", "Answers that were repeated.")
    hits.add_metric([], forwarder.cache.hits)
    misses = CounterMetricFamily("coredns_cache_misses", "Answers that were not kept.")
    misses.add_metric([], forwarder.cache.misses)
    forwards = CounterMetricFamily("coredns_forward_requests", "Queries to other servers.", labels=["to"])
    for upstream in forwarder.servers():
        forwards.add_metric([str(upstream)], upstream.asked)
    rejects = CounterMetricFamily(
        "coredns_forward_max_concurrent_rejects", "Queries refused because too many waited."
    )
    rejects.add_metric([], forwarder.rejects)
    return requests, responses, durations, entries, hits, misses, forwards, rejects
