"""Cluster DNS whole: the zone follows the cluster's objects, and is answered from at the sockets given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from podling.client.client import Client
from podling.client.informer import Informers
from podling.dns.forward import Forwarder, ForwardOptions
from podling.dns.metrics import metrics
from podling.dns.responder import Responder
from podling.dns.server import Server, Sockets
from podling.dns.service import Place, ServiceKeeper
from podling.dns.zone import Zone
from podling.model.time import Clock
from podling.model.types.core import Namespace
from podling.model.types.discovery import EndpointSlice
from podling.model.types.service import Service
from podling.process.metrics import Source

DOMAIN = "cluster.local"


class ClusterDNS:
    """Make it before the informers start, then `run()` it. With a `place`, the service `kube-dns` leads
    there; `measure` takes its metrics."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        sockets: Sockets,
        clock: Clock,
        forward: ForwardOptions,
        *,
        domain: str = DOMAIN,
        place: Place | None = None,
        measure: Callable[[Source], None] | None = None,
    ) -> None:
        self._client, self._informers = client, informers
        self._sockets = sockets
        self._place = place
        self._measure = measure
        self._forward = forward
        self.zone = zone = Zone(domain, lambda: clock.now().timestamp())
        self._services, self._slices = informers.of(Service), informers.of(EndpointSlice)
        self._services.subscribe(zone.service_changed)
        self._slices.subscribe(zone.slice_changed)
        self._namespaces = informers.of(Namespace)
        self._namespaces.subscribe(zone.namespace_changed)

    async def run(self) -> None:
        zone = self.zone
        async with asyncio.TaskGroup() as tasks:
            responder, forwarder = Responder(zone), Forwarder(self._forward, tasks)
            server = Server(responder, forwarder.ask)
            if self._measure is not None:
                self._measure(partial(metrics, server, responder, forwarder))
            tasks.create_task(server.run(self._sockets))
            await self._informers.start(tasks)
            zone.is_synced = True
            if self._place is not None:
                keeper = ServiceKeeper(
                    self._client, self._namespaces, self._services, self._slices, self._place
                )
                tasks.create_task(keeper.run())
