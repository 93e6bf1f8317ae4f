"""The kubelet: the node's registration and heartbeats, and a worker for each pod bound to it.

informer (pods of this node) ──▶ worker of the pod ◀── runtime events, by container id
                                     │
                                     └──▶ runtime, status, events
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import NoReturn

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.cri.interface import EventKind, Runtime, RuntimeFault
from podling.kubelet.config import KubeletConfig
from podling.kubelet.gates import DEFAULT_GATES, Gates
from podling.kubelet.node.cgroups import Cgroups
from podling.kubelet.node.lease import LeaseKeeper
from podling.kubelet.node.machine import Machine, this_machine
from podling.kubelet.node.node import NodeReporter
from podling.kubelet.node.node_context import NodeContext
from podling.kubelet.node.node_facts import NodeFacts, Resolver
from podling.kubelet.node.node_status import allocatable
from podling.kubelet.pod.object_source import ObjectSource
from podling.kubelet.pod.orphans import remove_leftovers
from podling.kubelet.pod.pod_workers import PodWorkers, observe_until_answered
from podling.kubelet.pod.shutdown import stop_everything, unmount_volumes
from podling.kubelet.pod_worker import PodWorker
from podling.kubelet.pulling.images import Images
from podling.kubelet.runtime_config.dns import parse_resolv_conf
from podling.model.pod import Pod
from podling.model.time import Clock

log = logging.getLogger(__name__)


class Kubelet:
    """`run()` it; it ends only by being cancelled, and leaves what runs running. `events` is run by whoever
    made it."""

    def __init__(
        self,
        client: Client,
        runtime: Runtime,
        events: EventRecorder,
        clock: Clock,
        config: KubeletConfig,
        gates: Gates = DEFAULT_GATES,
    ) -> None:
        config.root_dir.mkdir(mode=0o750, parents=True, exist_ok=True)
        self._client = client
        self._runtime = runtime
        self._events = events
        self._clock = clock
        self._config = config
        self._gates = gates
        self._machine = this_machine(config.root_dir)
        self._cgroups = Cgroups(config.cgroup_mount, config.cgroup_root)
        self._informer = Informer(client, Pod, field_selector=f"spec.nodeName={config.node_name}")
        self._reporter = NodeReporter(client, runtime, clock, config, self._machine)
        self._ready = asyncio.Event()
        self.workers: PodWorkers | None = None

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            node = self._node_context(tasks)
            workers = self.workers = PodWorkers(node, tasks)
            self._informer.subscribe(workers.pod_changed)
            tasks.create_task(self._informer.run())
            tasks.create_task(self._reporter.run())
            tasks.create_task(self._keep_lease())
            tasks.create_task(self._follow_runtime(workers))

    async def wait_ready(self) -> None:
        """The node is registered, and every pod has a worker."""
        await self._reporter.wait_registered()
        await self._ready.wait()

    async def stop_all(self) -> None:
        """Once `run()` has ended: stop everything the node runs and give back its mounts and cgroups. API
        objects stay. Raises RuntimeFault when the runtime does not answer."""
        await stop_everything(self._runtime)
        await asyncio.to_thread(unmount_volumes, self._config)
        self._cgroups.remove_root()

    # What the kubelet's server asks (`pod_host.py`)

    @property
    def runtime(self) -> Runtime:
        return self._runtime

    def pods(self) -> Sequence[Pod]:
        return [self._newest(pod) for pod in self._informer.items()]

    def pod(self, namespace: str, name: str) -> Pod | None:
        found = self._informer.get(namespace, name)
        return None if found is None else self._newest(found)

    def running_container(self, pod: Pod, name: str) -> str | None:
        worker = self._worker(pod)
        container = worker.observed.newest(name) if worker else None
        return container.id if container is not None and container.running else None

    def ready_sandbox(self, pod: Pod) -> str | None:
        worker = self._worker(pod)
        sandbox = worker.observed.sandbox if worker else None
        return sandbox.id if sandbox is not None and sandbox.usable else None

    async def container_ended(self, container_id: str) -> None:
        worker = self.workers.owner(container_id) if self.workers else None
        if worker is not None:
            await worker.container_ended(container_id)

    def _worker(self, pod: Pod) -> PodWorker | None:
        return self.workers.get(pod.metadata.uid) if self.workers else None

    def _newest(self, pod: Pod) -> Pod:
        worker = self._worker(pod)
        return worker.pod_with_status if worker else pod

    async def _keep_lease(self) -> NoReturn:
        await self._reporter.wait_registered()
        await LeaseKeeper(self._client, self._clock, self._config).run(self._reporter.node)

    async def _follow_runtime(self, workers: PodWorkers) -> None:
        """Events wait in their stream while the runtime is being asked, so none is overtaken by the
        answer."""
        async for event in self._runtime.events():
            if event.kind is not EventKind.RELIST:
                workers.runtime_event(event)
            elif self._ready.is_set():
                await self._runtime_is_back(workers)
            else:
                await self._begin(workers)

    async def _begin(self, workers: PodWorkers) -> None:
        found = await observe_until_answered(self._runtime)
        await self._informer.wait_synced()
        pods = list(self._informer.items())
        known = {pod.metadata.uid for pod in pods} | found.keys()
        await asyncio.to_thread(remove_leftovers, self._config, self._cgroups, known)
        workers.begin(self._informer.items(), found)
        self._ready.set()

    async def _runtime_is_back(self, workers: PodWorkers) -> None:
        try:
            await workers.look_again()
        except RuntimeFault as fault:
            # It went away again; its stream says RELIST once more when it returns.
            log.warning("the runtime cannot say what it runs: %s", fault)
        self._reporter.refresh()

    def _node_context(self, tasks: asyncio.TaskGroup) -> NodeContext:
        return NodeContext(
            config=self._config,
            facts=node_facts(self._config, self._machine),
            client=self._client,
            runtime=self._runtime,
            images=Images(self._runtime, self._events, self._clock, tasks),
            objects=ObjectSource(self._client),
            events=self._events,
            cgroups=self._cgroups,
            gates=self._gates,
            clock=self._clock,
        )


def node_facts(config: KubeletConfig, machine: Machine) -> NodeFacts:
    try:
        resolver = parse_resolv_conf(config.resolv_conf.read_text())
    except OSError as error:
        log.warning("pods have no resolver of the node's: %s", error)
        resolver = Resolver()
    return NodeFacts(
        name=config.node_name,
        ips=(config.node_ip,),
        allocatable=allocatable(config, machine),
        memory_bytes=machine.memory,
        seccomp_dir=str(config.root_dir / "seccomp"),
        cluster_dns=config.cluster_dns,
        cluster_domain=config.cluster_domain,
        resolver=resolver,
    )
