"""Ways to the pods of other nodes: they follow the Nodes, and so does what may leave without masquerade.

    Nodes ─▶ ways (`network/routes.py`) ─▶ `ip -batch`, `bridge -batch` ─▶ masquerade

While one change is under way others gather, and the next takes them all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from podling.client.client import Client
from podling.client.informer import Informers
from podling.machine.instance import Instance
from podling.machine.network import (
    ROUTE_PROTOCOL,
    NetworkError,
    change_routes,
    has_link,
    lead_on,
    note_nodes,
    noted_nodes,
    set_up_masquerade,
)
from podling.model.errors import StatusError
from podling.model.types.node import Node
from podling.network.routes import DATA, Way, backend_annotations, scripts, tunnel, ways
from podling.process.waits import Backoff

RETRY = Backoff(0.5, 30.0)
ROUTES, ROUTES6 = Path("/proc/net/route"), Path("/proc/net/ipv6_route")

log = logging.getLogger(__name__)


class NodeRoutes:
    """Make it before its informers start, then `run()` it."""

    def __init__(
        self, client: Client, informers: Informers, instance: Instance, name: str, address: str, subnets: str
    ) -> None:
        """Of the node `name`, with its address and the subnets of its pods."""
        self._client, self._instance = client, instance
        self._name, self._address, self._subnets = name, address, subnets
        self._nodes = informers.of(Node)
        self._nodes.subscribe(self._changed)
        self._held: Sequence[Way] = [Way(one, "") for one in noted_nodes(instance.run_dir)]
        """What the kernel has; of what an earlier process has made only the subnets are known."""
        self._masqueraded: Sequence[str] | None = None
        self._wake = asyncio.Event()

    async def run(self) -> None:
        await self._nodes.wait_synced()
        retry = RETRY.begin()
        while True:
            self._wake.clear()
            try:
                await self._follow()
            except (NetworkError, StatusError, OSError) as error:
                log.warning("the pods of other nodes cannot all be reached: %s", error)
                await asyncio.sleep(retry.next())
                continue
            retry.reset()
            await self._wake.wait()

    async def _follow(self) -> None:
        table6 = ROUTES6.read_text() if ":" in self._subnets else ""
        wanted = ways(self._nodes.items(), self._name, ROUTES.read_text(), table6)
        device = self._instance.tunnel
        if wanted.tunnel_by:
            if not await has_link(device):
                subnet = self._subnets.partition(",")[0]
                await change_routes(tunnel(device, self._name, self._address, subnet, wanted.tunnel_by))
                # A link that is new knows nothing of what was sent through the one before.
                self._held = [one for one in self._held if not one.mac]
            await self._tell()
        if wanted.ways != self._held:
            subnets = [way.subnet for way in wanted.ways]
            # Noted before it is made, so that what a killed process has made is removed.
            note_nodes(self._instance.run_dir, [*{*subnets, *(way.subnet for way in self._held)}])
            await change_routes(*scripts(self._held, wanted.ways, device, ROUTE_PROTOCOL))
            note_nodes(self._instance.run_dir, subnets)
            self._held = wanted.ways
            if subnets:
                lead_on(self._subnets)
        subnets = sorted(way.subnet for way in wanted.ways)
        if subnets != self._masqueraded:
            await set_up_masquerade(self._instance.bridge, self._subnets, subnets)
            self._masqueraded = subnets

    async def _tell(self) -> None:
        """Others how this node takes packets of VXLAN."""
        own, said = self._nodes.get("", self._name), backend_annotations(self._name, self._address)
        if own is not None and said.items() - own.metadata.annotations.items():
            await self._client.patch(Node, self._name, "", {"metadata": {"annotations": said}})

    def _changed(self, old: Node | None, new: Node | None) -> None:
        if old is None or new is None or _seen(old) != _seen(new):
            self._wake.set()


def _seen(node: Node) -> tuple[object, ...]:
    """What ways follow from. A status that is only renewed changes none."""
    said = node.metadata.annotations
    return node.spec.pod_cidrs, node.status.addresses, {key: said[key] for key in said if key == DATA}
