"""What `/metrics` says of cluster DNS, under CoreDNS' names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import dns.asyncquery
import dns.message
from prometheus_client.metrics_core import Metric

from podling.dns.forward import Forwarder, ForwardOptions
from podling.dns.metrics import metrics
from podling.dns.server import Server, sockets_at
from unit.dns.cluster import usual

HOST = "127.0.0.1"


def values(found: Iterable[Metric]) -> dict[str, float]:
    """By name and the labels that say something."""
    return {
        " ".join(
            [sample.name, *(v for k, v in sample.labels.items() if k not in ("server", "zone"))]
        ): sample.value
        for metric in found
        for sample in metric.samples
    }


async def test_queries_and_replies_are_counted() -> None:
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        cluster, sockets = usual(), sockets_at(HOST, 0)
        forwarder = Forwarder(tasks)
        forwarder.use(ForwardOptions(Path("/nowhere")))
        server = Server(cluster.responder, forwarder.ask)
        running = tasks.create_task(server.run(sockets))
        for name in ("web.default.svc.cluster.local.",) * 3 + ("none.cluster.local.", "example.com."):
            await dns.asyncquery.udp(dns.message.make_query(name, "A"), HOST, port=sockets.port)
        query = dns.message.make_query("web.default.svc.cluster.local.", "SRV")
        await dns.asyncquery.tcp(query, HOST, port=sockets.port)
        said = values(metrics(server, cluster.responder, forwarder))
        running.cancel()
    assert said["coredns_dns_requests_total udp A"] == 5
    assert said["coredns_dns_requests_total tcp SRV"] == 1
    assert said["coredns_dns_responses_total NOERROR"] == 4
    assert said["coredns_dns_responses_total NXDOMAIN"] == 1
    assert said["coredns_dns_responses_total REFUSED"] == 1
    assert said["coredns_dns_request_duration_seconds_count"] == 4
    assert said["coredns_cache_misses_total"] == 1
