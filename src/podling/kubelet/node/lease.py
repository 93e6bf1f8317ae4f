"""The node's heartbeat: a Lease in `kube-node-lease`, renewed every ten seconds."""

from __future__ import annotations

import asyncio
import logging
from typing import NoReturn

from podling.client.client import Client
from podling.kubelet.config import KubeletConfig
from podling.model.errors import StatusError
from podling.model.growing_wait import GrowingWait
from podling.model.lease import Lease, LeaseSpec
from podling.model.meta import ObjectMeta, OwnerReference
from podling.model.node import Node
from podling.model.time import Clock, micro_time

NAMESPACE = "kube-node-lease"
FIRST_RETRY = 0.2
LATE = 3.0
"""Seconds between two tries. The server of a new cluster makes the namespace a moment after it lets nodes in:
that it is missing is only worth a word once the waits have grown to this."""

log = logging.getLogger(__name__)


class LeaseKeeper:
    """`run()` it once the node is registered."""

    def __init__(self, client: Client, clock: Clock, config: KubeletConfig) -> None:
        self._client = client
        self._clock = clock
        self._config = config
        self._lease: Lease | None = None

    async def run(self, node: Node) -> NoReturn:
        renewal = self._config.lease_renewal.total_seconds()
        retry = GrowingWait(FIRST_RETRY, renewal)
        while True:
            try:
                self._lease = await self._renew(node)
            except (StatusError, OSError) as error:
                wait = retry.next()
                if wait >= LATE or not _has_no_namespace(error):
                    log.warning("lease of node %s not renewed: %s", self._config.node_name, error)
                # Someone else may have written or deleted it: begin from what is there.
                self._lease = None
                await asyncio.sleep(wait)
            else:
                retry.reset()
                await asyncio.sleep(renewal)

    async def _renew(self, node: Node) -> Lease:
        if self._lease is None:
            self._lease = await self._find()
        if self._lease is None:
            return await self._client.create(self._new(node))
        self._lease.spec.renew_time = micro_time(self._clock.now())
        return await self._client.update(self._lease)

    async def _find(self) -> Lease | None:
        try:
            return await self._client.get(Lease, self._config.node_name, NAMESPACE)
        except StatusError as error:
            if error.code == 404:
                return None
            raise

    def _new(self, node: Node) -> Lease:
        owner = OwnerReference(api_version="v1", kind="Node", name=node.metadata.name, uid=node.metadata.uid)
        return Lease(
            metadata=ObjectMeta(name=self._config.node_name, namespace=NAMESPACE, owner_references=[owner]),
            spec=LeaseSpec(
                holder_identity=self._config.node_name,
                lease_duration_seconds=int(self._config.lease_duration.total_seconds()),
                renew_time=micro_time(self._clock.now()),
            ),
        )


def _has_no_namespace(error: Exception) -> bool:
    """A missing lease is made; where that is answered 404 the namespace is missing."""
    return isinstance(error, StatusError) and error.code == 404
