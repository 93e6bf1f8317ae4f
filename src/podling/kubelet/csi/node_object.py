"""Writes to the API server which drivers this node has.

    CSINode.spec.drivers                              name, node id, topology keys, most volumes
    Node labels                                       the topology: where the node is in the driver's terms
    Node annotation csi.volume.kubernetes.io/nodeid   {"driver": "node id"}

The scheduler counts volumes by the first, the sidecars of a driver read all of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

from msgspec.structs import replace

from podling.client.client import Client
from podling.kubelet.csi import csi_pb2 as pb
from podling.model.errors import StatusError
from podling.model.types.meta import ObjectMeta, OwnerReference
from podling.model.types.node import Node
from podling.model.types.storage import CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources

NODE_IDS = "csi.volume.kubernetes.io/nodeid"
_MOST = 2**31 - 1


class TopologyError(Exception):
    """A driver says of the node what something else has said otherwise."""


def csi_node_driver(name: str, info: pb.NodeGetInfoResponse) -> CSINodeDriver:
    most = info.max_volumes_per_node
    return CSINodeDriver(
        name=name,
        node_id=info.node_id,
        topology_keys=sorted(info.accessible_topology.segments),
        allocatable=VolumeNodeResources(count=min(most, _MOST)) if most > 0 else None,
    )


class NodeDrivers:
    """Writes what the drivers of the node `name` say. Methods raise StatusError and OSError."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name = client, name
        self._writing = asyncio.Lock()

    async def add(self, driver: str, info: pb.NodeGetInfoResponse) -> None:
        """Raises TopologyError too."""
        async with self._writing:
            node = await self._client.get(Node, self._name)
            for key, value in info.accessible_topology.segments.items():
                known = node.metadata.labels.get(key, value)
                if known != value:
                    raise TopologyError(
                        f'detected topology value collision: driver reported "{key}":"{value}" but existing '
                        f'label is "{key}":"{known}"'
                    )
            ids = {**_node_ids(node), driver: info.node_id}
            await self._patch(node, ids, dict(info.accessible_topology.segments))
            wanted = csi_node_driver(driver, info)
            # An entry is immutable; another one takes its place.
            await self._write(
                node, lambda listed: [one for one in listed if one.name != driver or one == wanted]
            )
            await self._write(node, lambda listed: listed if wanted in listed else [*listed, wanted])

    async def remove(self, driver: str) -> None:
        async with self._writing:
            node = await self._client.get(Node, self._name)
            await self._write(node, lambda listed: [one for one in listed if one.name != driver])
            ids = _node_ids(node)
            if ids.pop(driver, None) is not None:
                await self._patch(node, ids, {})

    async def _patch(self, node: Node, ids: dict[str, str], labels: dict[str, str]) -> None:
        told = json.dumps(ids, sort_keys=True, separators=(",", ":")) if ids else None
        is_known = node.metadata.annotations.get(NODE_IDS) == told
        if not is_known or labels.items() - node.metadata.labels.items():
            body = {"metadata": {"annotations": {NODE_IDS: told}, "labels": labels}}
            await self._client.patch(Node, self._name, "", body)

    async def _write(self, node: Node, change: Callable[[list[CSINodeDriver]], list[CSINodeDriver]]) -> None:
        while True:
            try:
                found = await self._client.get(CSINode, self._name)
            except StatusError as error:
                if error.code != 404:
                    raise
                found = None
            listed = found.spec.drivers if found else []
            changed = change(listed)
            if changed == listed:
                return
            try:
                if found is not None:
                    await self._client.update(replace(found, spec=CSINodeSpec(drivers=changed)))
                    return
                owner = OwnerReference(api_version="v1", kind="Node", name=self._name, uid=node.metadata.uid)
                meta = ObjectMeta(name=self._name, owner_references=[owner])
                await self._client.create(CSINode(metadata=meta, spec=CSINodeSpec(drivers=changed)))
                return
            except StatusError as error:
                # Somebody else wrote it meanwhile.
                if error.code != 409:
                    raise


def _node_ids(node: Node) -> dict[str, str]:
    try:
        known = json.loads(node.metadata.annotations.get(NODE_IDS, "{}"))
    except ValueError:
        return {}
    return known if isinstance(known, dict) else {}
