"""The services that containers get variables for: one informer for the node, however many pods it has."""

from __future__ import annotations

import asyncio

from podling.client.client import Client
from podling.client.informer import Informer
from podling.kubelet.cri_config.environment import Place, service_variables
from podling.kubelet.plan.admission import is_static
from podling.kubelet.pod.faults import ConfigError
from podling.model.types.pod import Pod
from podling.model.types.service import Service

SYNC_SECONDS = 5.0
"""How long a container waits for the first list of services. It comes in moments, unless RBAC denies it."""


class NodeServices:
    """`run()` it. `api_server` is as in `service_variables`."""

    def __init__(self, client: Client, api_server: tuple[str, int] | None) -> None:
        self._informer = Informer(client, Service)
        self._api_server = Place(*api_server) if api_server else None

    async def run(self) -> None:
        await self._informer.run()

    async def variables(self, pod: Pod) -> dict[str, str]:
        """The service variables of a pod. Raises ConfigError if services could not be listed; a static pod
        does not wait for them, as it must run without a server."""
        if not is_static(pod):
            await self._wait_synced()
        return service_variables(pod, self._informer.items(), self._api_server)

    async def _wait_synced(self) -> None:
        try:
            async with asyncio.timeout(SYNC_SECONDS):
                await self._informer.wait_synced()
        except TimeoutError:
            why = "services have not yet been read at least once, cannot construct envvars"
            raise ConfigError(why) from None
