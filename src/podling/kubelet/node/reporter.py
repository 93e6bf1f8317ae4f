"""Registers the Node, keeps its status current, and renews its Lease.

The Lease in `kube-node-lease` is the heartbeat, as it costs little to write. The status is patched at once
when something changed, else every few minutes. What changes is told by events, too, as `kubectl describe
node` shows them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.cri.interface import Runtime, RuntimeFault
from podling.kubelet.config import KubeletConfig
from podling.kubelet.host.machine import Machine
from podling.kubelet.node.status import (
    RuntimeReport,
    differs,
    new_node,
    news,
    node_status,
    status_patch,
    with_transitions_of,
)
from podling.kubelet.status.writer import STRATEGIC_MERGE
from podling.model.errors import StatusError
from podling.model.time import Clock, micro_time
from podling.model.types.coordination import Lease, LeaseSpec
from podling.model.types.meta import ObjectMeta, OwnerReference
from podling.model.types.node import Node, NodeStatus
from podling.process.waits import Backoff, woken

RETRY = Backoff(0.1, 7.0)

log = logging.getLogger(__name__)

NAMESPACE = "kube-node-lease"
FIRST_LEASE_RETRY = 0.2
LATE = 3.0
"""Seconds between two tries. The server of a new cluster makes the namespace a moment after it lets nodes in:
that it is missing is only worth a word once the waits have grown to this."""


class NodeReporter:
    """Registers the Node and reports its status. `run()` it; `refresh()` when the runtime came or went.
    `node` is the server's last answer, before that the Node to be registered."""

    def __init__(
        self,
        client: Client,
        runtime: Runtime,
        events: EventRecorder,
        clock: Clock,
        config: KubeletConfig,
        machine: Machine,
    ) -> None:
        self._client = client
        self._events = events
        # As in Kubernetes, whose kubelet tells before it knows the Node's uid.
        self.host = Node(metadata=ObjectMeta(name=config.node_name, uid=config.node_name))
        """Whom events about the node are about."""
        self._runtime = runtime
        self._clock = clock
        self._config = config
        self._machine = machine
        self._refresh = asyncio.Event()
        self._registered = asyncio.Event()
        self.pressures: frozenset[str] = frozenset()
        """The pressure conditions that are True."""
        self.in_use: Sequence[str] = ()
        """The attached volumes that the node has (`volumesInUse`)."""
        self._wrote = asyncio.Event()
        self.node = new_node(config, machine, NodeStatus())

    def refresh(self) -> None:
        self._refresh.set()

    async def tell_in_use(self, names: Sequence[str]) -> None:
        """Returns when the Node's status has these volumes in use, or what was said since."""
        self.in_use = names
        while self.node.status.volumes_in_use != list(self.in_use):
            self._wrote.clear()
            self.refresh()
            await self._wrote.wait()

    async def wait_registered(self) -> None:
        await self._registered.wait()

    async def run(self) -> None:
        """Register, then look every nodeStatusUpdateFrequency, and write what has changed or is due."""
        written, told, is_closed = self._clock.now(), NodeStatus(), False
        self._events.normal(self.host, "Starting", "Starting kubelet.")
        while True:
            if self._registered.is_set():
                await self.look()
                told = self.node.status
            status = await self._status()
            overdue = self._clock.now() - written >= self._config.status_interval
            if not self._registered.is_set() or overdue or differs(self.node.status, status):
                write, retry = self._patch if self._registered.is_set() else self._register, RETRY.begin()
                while True:
                    try:
                        self.node = await write(status)
                        self._wrote.set()
                        break
                    except (StatusError, OSError) as error:
                        # The server may only be starting.
                        log.warning("node %s not written: %s", self._config.node_name, error)
                        await asyncio.sleep(retry.next())
                written = self._clock.now()
                for reason in news(told, status):
                    self._tell(reason)
                self._registered.set()
            if self.node.spec.unschedulable != is_closed:
                is_closed = not is_closed
                self._tell("NodeNotSchedulable" if is_closed else "NodeSchedulable")
            self._refresh.clear()
            await woken(self._refresh, self._config.status_check.total_seconds())

    def _tell(self, reason: str) -> None:
        self._events.normal(self.host, reason, f"Node {self._config.node_name} status is now: {reason}")

    async def _status(self) -> NodeStatus:
        report = RuntimeReport()
        try:
            version, status, images = await asyncio.gather(
                self._runtime.version(), self._runtime.status(), self._runtime.list_images()
            )
            report = RuntimeReport(version.runtime_name, version.runtime_version, status, images)
        except RuntimeFault as fault:
            log.warning("the container runtime does not answer: %s", fault)
        now, old = self._clock.now(), self.node.status
        return node_status(self._config, self._machine, report, old, now, self.pressures, self.in_use)

    async def look(self) -> None:
        """Read the Node again: others write it, too, for example when the kubelet was silent for too long."""
        with suppress(StatusError, OSError):
            self.node = await self._client.get(Node, self._config.node_name)

    async def _register(self, status: NodeStatus) -> Node:
        """Create the Node. One that exists already is this node's from before: its labels and status are
        updated."""
        fresh = new_node(self._config, self._machine, status)
        try:
            if not self._config.register_node:
                self.node = await self._client.get(Node, self._config.node_name)
                return await self._patch(with_transitions_of(self.node.status, status))
            self.node = await self._client.create(fresh)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
            labels = {"metadata": {"labels": fresh.metadata.labels}}
            self.node = await self._client.patch(Node, self._config.node_name, "", labels)
            if self.node.status.node_info.boot_id not in ("", status.node_info.boot_id):
                text = f"Node {fresh.metadata.name} has been rebooted, boot id: {status.node_info.boot_id}"
                self._events.warning(self.host, "Rebooted", text)
            status = with_transitions_of(self.node.status, status)
        return await self._patch(status) if differs(self.node.status, status) else self.node

    async def _patch(self, status: NodeStatus) -> Node:
        body, name = status_patch(status), self._config.node_name
        return await self._client.patch(
            Node, name, "", body, subresource="status", patch_type=STRATEGIC_MERGE
        )


class LeaseKeeper:
    """Renews the node's Lease. `run()` it once the node is registered."""

    def __init__(self, client: Client, clock: Clock, config: KubeletConfig) -> None:
        self._client = client
        self._clock = clock
        self._config = config
        self._lease: Lease | None = None

    async def run(self, node: Node) -> NoReturn:
        """Renew until cancelled; a failure is tried again, at the latest after the usual interval."""
        renewal = self._config.lease_renewal.total_seconds()
        retry = Backoff(FIRST_LEASE_RETRY, renewal).begin()
        while True:
            try:
                self._lease = await self._renew(node)
            except (StatusError, OSError) as error:
                wait = retry.next()
                # A missing Lease is created, so 404 means that the namespace is missing.
                is_early = isinstance(error, StatusError) and error.code == 404 and wait < LATE
                if not is_early:
                    log.warning("lease of node %s not renewed: %s", self._config.node_name, error)
                # Someone else may have written or deleted it: begin from what is there.
                self._lease = None
                await asyncio.sleep(wait)
            else:
                retry.reset()
                await asyncio.sleep(renewal)

    async def _renew(self, node: Node) -> Lease:
        """The Lease as it was written. Raises StatusError or OSError."""
        name, now = self._config.node_name, micro_time(self._clock.now())
        if self._lease is None:
            try:
                self._lease = await self._client.get(Lease, name, NAMESPACE)
            except StatusError as error:
                if error.code != 404:
                    raise
                owner = OwnerReference(
                    api_version="v1", kind="Node", name=node.metadata.name, uid=node.metadata.uid
                )
                seconds = int(self._config.lease_duration.total_seconds())
                return await self._client.create(
                    Lease(
                        metadata=ObjectMeta(name=name, namespace=NAMESPACE, owner_references=[owner]),
                        spec=LeaseSpec(holder_identity=name, lease_duration_seconds=seconds, renew_time=now),
                    )
                )
        self._lease.spec.renew_time = now
        return await self._client.update(self._lease)
