"""Cluster DNS whole: the zone follows the cluster's objects, and is answered from at the sockets given."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer, Informers
from podling.dns.forward import Forwarder, ForwardOptions, searches
from podling.dns.metrics import metrics
from podling.dns.responder import Responder
from podling.dns.server import Server, Sockets
from podling.dns.service import Place, ServiceKeeper
from podling.dns.zone import DNS_NAMESPACE, DNS_SERVICE, Zone
from podling.model.errors import StatusError
from podling.model.time import Clock
from podling.model.types.core import ConfigMap, Namespace
from podling.model.types.discovery import EndpointSlice
from podling.model.types.pod import Pod
from podling.model.types.service import Service
from podling.process.metrics import Source

if TYPE_CHECKING:
    from podling.dns.autopath import SearchPaths

DOMAIN = "cluster.local"
COMPONENT = "podling-dns"
"""Whose events those about its ConfigMap are."""

log = logging.getLogger(__name__)


class ClusterDNS:
    """Make it before the informers start, then `run()` it. With a `place`, the service `kube-dns` leads
    there; `measure` takes its metrics."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        sockets: Sockets,
        clock: Clock,
        options: ForwardOptions,
        *,
        domain: str = DOMAIN,
        place: Place | None = None,
        measure: Callable[[Source], None] | None = None,
    ) -> None:
        self._client, self._informers = client, informers
        self._sockets = sockets
        self._place = place
        self._measure = measure
        self._options = options
        self._events = EventRecorder(client, clock, COMPONENT)
        self.zone = zone = Zone(domain, lambda: clock.now().timestamp())
        self._services, self._slices = informers.of(Service), informers.of(EndpointSlice)
        self._services.subscribe(zone.service_changed)
        self._slices.subscribe(zone.slice_changed)
        self._namespaces = informers.of(Namespace)
        self._namespaces.subscribe(zone.namespace_changed)
        self._paths: SearchPaths | None = None
        if options.autopath:
            from podling.dns.autopath import SearchPaths

            self._paths = SearchPaths(zone.name, searches(options.resolv_conf))
            informers.of(Pod).subscribe(self._paths.pod_changed)

    async def run(self) -> None:
        zone = self.zone
        async with asyncio.TaskGroup() as tasks:
            responder = Responder(zone, self._paths.names if self._paths else None)
            forwarder = Forwarder(tasks)
            elsewhere = forwarder.ask
            if self._paths:
                from podling.dns.autopath import SearchingForwarder

                elsewhere = SearchingForwarder(zone, elsewhere).ask
            server = Server(responder, elsewhere)
            if self._measure is not None:
                self._measure(partial(metrics, server, responder, forwarder))
            tasks.create_task(server.run(self._sockets))
            tasks.create_task(self._events.run())
            tasks.create_task(self._follow_config(forwarder, tasks))
            await self._informers.start(tasks)
            zone.is_synced = True
            if self._place is not None:
                keeper = ServiceKeeper(
                    self._client, self._namespaces, self._services, self._slices, self._place
                )
                tasks.create_task(keeper.run())

    async def _follow_config(self, forwarder: Forwarder, tasks: asyncio.TaskGroup) -> None:
        """Have the servers be those of the options and of the ConfigMap, if it may be read."""
        of_config = f"metadata.name={DNS_SERVICE}"
        try:
            await self._client.list(ConfigMap, DNS_NAMESPACE, field_selector=of_config)
        except StatusError as error:
            if error.code == 403:
                log.warning(
                    "the ConfigMap %s/%s is not looked at: %s", DNS_NAMESPACE, DNS_SERVICE, error.message
                )
                forwarder.use(self._options)
                return
        except OSError:
            pass  # The informer asks again and again.
        config = Informer(self._client, ConfigMap, DNS_NAMESPACE, field_selector=of_config)
        config.subscribe(partial(self._configure, forwarder))
        tasks.create_task(config.run())
        await config.wait_synced()
        if not forwarder.is_used:
            forwarder.use(self._options)

    def _configure(self, forwarder: Forwarder, old: ConfigMap | None, new: ConfigMap | None) -> None:
        """What cannot be read changes nothing, and is told of."""
        if new is None:
            forwarder.use(self._options)
            return
        from podling.dns.config import configured

        try:
            forwarder.use(configured(self._options, new))
        except ValueError as error:
            log.error("%s", error)
            self._events.warning(new, "InvalidConfiguration", str(error))
            if not forwarder.is_used:
                forwarder.use(self._options)
