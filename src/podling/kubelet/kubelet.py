"""Builds the kubelet's parts and runs them: the node's registration and lease, and a worker for each pod.

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
from podling.kubelet.cri_config.sandbox import parse_resolv_conf
from podling.kubelet.csi.registration import CsiDrivers
from podling.kubelet.eviction.manager import EvictionManager, NodePods
from podling.kubelet.eviction.thresholds import NodeReadings
from podling.kubelet.host.cgroups import Cgroups, limits_of_node
from podling.kubelet.host.machine import Machine, this_machine
from podling.kubelet.host.usage import CgroupReader
from podling.kubelet.images.garbage import ImageCollector, Marks
from podling.kubelet.images.images import Images, PulledImages
from podling.kubelet.images.pulls import Pulls
from podling.kubelet.logs.rotation import LogRotator
from podling.kubelet.metrics.counters import ContainerCounts, OperationCounts, PodCounts, counted
from podling.kubelet.node.reporter import LeaseKeeper, NodeReporter
from podling.kubelet.node.shared import Allocations, KnownFeatures, NodePressure, NodeServices
from podling.kubelet.node.status import allocatable, capacity, reserved
from podling.kubelet.pod.host import ClaimedUse, Pages
from podling.kubelet.pod.sandbox import NodeFacts, Resolver
from podling.kubelet.server.pages import NodePages
from podling.kubelet.static_pods.files import ManifestDirectory
from podling.kubelet.static_pods.static_pods import StaticPods
from podling.kubelet.stats.collector import StatsCollector
from podling.kubelet.volumes.csi_mounts import CsiMounts
from podling.kubelet.volumes.objects import WatchedObjects
from podling.kubelet.volumes.pod_volumes import release_leftovers
from podling.kubelet.worker.context import Admit, NodeContext, ObjectSource, admit_all
from podling.kubelet.worker.observe import observe_until_answered
from podling.kubelet.worker.orphans import remove_leftovers
from podling.kubelet.worker.worker import PodWorker
from podling.kubelet.worker.workers import PodWorkers, stop_everything, unmount_volumes
from podling.model.rules.status import is_mirror
from podling.model.time import Clock
from podling.model.types.pod import Pod

SETTLING = (1.0, 5.0)
"""Seconds after the runtime is found or back until it is asked again. A container that ended while the
runtime was away is listed as running until the runtime has checked it, and its event may be lost, as
containerd's shims drop events they cannot deliver."""

log = logging.getLogger(__name__)


class Kubelet:
    """The kubelet of one node. `run()` it; it ends only by being cancelled, and leaves containers running.
    `events` is run by its owner."""

    def __init__(
        self,
        client: Client,
        runtime: Runtime,
        events: EventRecorder,
        clock: Clock,
        config: KubeletConfig,
        admit: Admit = admit_all,
    ) -> None:
        config.root_dir.mkdir(mode=0o750, parents=True, exist_ok=True)
        self._client = client
        operations = OperationCounts()
        self._runtime = runtime = counted(runtime, operations)
        self._events = events
        self._clock = clock
        self._config = config
        self._admit = admit
        self._machine = this_machine(config.root_dir)
        self._cgroups = Cgroups(config.cgroup_mount, config.cgroup_root)
        self._informer = Informer(client, Pod, field_selector=f"spec.nodeName={config.node_name}")
        self._services = NodeServices(client, config.api_server)
        self._reporter = NodeReporter(client, runtime, events, clock, config, self._machine)
        self._features = KnownFeatures(runtime)
        self._drivers = CsiDrivers(client, config.plugin_registry, config.node_name)
        self._csi = CsiMounts(client, self._drivers, events, config, self._reporter)
        self._ready = asyncio.Event()
        self.counts = ContainerCounts()
        self._pod_counts = PodCounts()
        self._stats = StatsCollector(self, config, self._cgroups, clock)
        pages = NodePages(self, config, self._machine, self._stats, self.counts, self._pod_counts, operations)
        self.pages: Pages = pages.by_path
        self.workers: PodWorkers | None = None
        path = config.pod_manifest_path
        manifests = ManifestDirectory(path, config.node_name, clock) if path else None
        self._static = StaticPods(client, self._reporter, manifests)

    async def run(self) -> None:
        """Register the node, give every pod its worker, and go on until cancelled."""
        config = self._config
        try:
            whole = capacity(config, self._machine)
            self._cgroups.set_up(limits_of_node(whole, reserved(config)))
        except OSError as error:
            log.warning("the cgroups of all pods are not limited: %s", error)
            text = f'Failed to update Node Allocatable Limits ["{config.cgroup_root.strip("/")}"]: {error}'
            self._events.warning(self._reporter.host, "FailedNodeAllocatableEnforcement", text)
        else:
            text = "Updated Node Allocatable limit across pods"
            self._events.normal(self._reporter.host, "NodeAllocatableEnforced", text)

        async def keep_lease() -> NoReturn:
            await self._reporter.wait_registered()
            await LeaseKeeper(self._client, self._clock, config).run(self._reporter.node)

        async def register_drivers() -> NoReturn:
            await self._reporter.wait_registered()
            await self._drivers.run()

        self._reporter.in_use = await asyncio.to_thread(self._csi.load)
        async with asyncio.TaskGroup() as tasks:
            node = self._node_context(tasks)
            workers = self.workers = PodWorkers(node, tasks)
            tasks.create_task(self._static.run())
            tasks.create_task(self._services.run())
            self._informer.subscribe(self._pod_changed)
            tasks.create_task(self._informer.run())
            tasks.create_task(self._reporter.run())
            pods = NodePods(workers, self._reporter, node.allocations)
            images = ImageCollector(
                node.runtime,
                node.clock,
                node.events,
                node.pod_counts,
                lambda: self._reporter.node,
                node.images.forget,
                pods.running,
                (config.sandbox_image,),
                Marks(config.image_gc_high, config.image_gc_low),
            )
            tasks.create_task(images.run())
            tasks.create_task(self._evict(node, pods, images))
            logs = LogRotator(config, self._runtime, self._clock, workers.written_logs)
            tasks.create_task(logs.run())
            tasks.create_task(keep_lease())
            tasks.create_task(register_drivers())
            tasks.create_task(self._follow_runtime(workers, tasks))

    async def wait_ready(self) -> None:
        """The node is registered, and every pod has a worker."""
        await self._reporter.wait_registered()
        await self._ready.wait()

    async def stop_all(self) -> None:
        """Once `run()` has ended: stop everything the node runs and give back its mounts and cgroups. API
        objects stay. Raises RuntimeFault when the runtime does not answer."""
        await stop_everything(self._runtime, self.workers)
        await asyncio.to_thread(unmount_volumes, self._config)
        self._cgroups.remove_root()

    # PodHost, for the kubelet's server (`pod/host.py`)

    @property
    def runtime(self) -> Runtime:
        return self._runtime

    def pods(self) -> Sequence[Pod]:
        return [self._newest(pod) for pod in (*self._static.pods(), *self._objects())]

    def pod(self, namespace: str, name: str) -> Pod | None:
        found = self._static.pod(namespace, name) or self._informer.get(namespace, name)
        return None if found is None else self._newest(found)

    def running_container(self, pod: Pod, name: str) -> str | None:
        worker = self._worker(pod)
        container = worker.observed.newest.get(name) if worker else None
        return container.id if container is not None and container.running else None

    def newest_container(self, pod: Pod, name: str) -> str | None:
        worker = self._worker(pod)
        container = worker.observed.newest.get(name) if worker else None
        return container.id if container is not None else None

    def ready_sandbox(self, pod: Pod) -> str | None:
        worker = self._worker(pod)
        sandbox = worker.observed.sandbox if worker else None
        return sandbox.id if sandbox is not None and sandbox.usable else None

    async def volume_uses(self, pod: Pod) -> Sequence[ClaimedUse]:
        worker = self._worker(pod)
        return await worker.volume_uses() if worker else ()

    async def container_ended(self, container_id: str) -> None:
        worker = self.workers.owner(container_id) if self.workers else None
        if worker is not None:
            await worker.container_ended(container_id)

    def exit_code(self, container_id: str) -> int | None:
        worker = self.workers.owner(container_id) if self.workers else None
        container = worker.record.container(container_id) if worker else None
        return container.exit_code if container is not None and container.exited else None

    async def container_stopping(self, container_id: str) -> None:
        worker = self.workers.owner(container_id) if self.workers else None
        if worker is not None:
            await worker.container_stopping(container_id)

    async def sandbox_ended(self, sandbox_id: str) -> None:
        worker = self.workers.owner(sandbox_id) if self.workers else None
        if worker is not None:
            await worker.sandbox_ended(sandbox_id)

    def _objects(self) -> list[Pod]:
        """The API's pods of this node, without mirror pods."""
        return [pod for pod in self._informer.items() if not is_mirror(pod)]

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if any(pod is not None and is_mirror(pod) for pod in (old, new)):
            self._static.mirror_changed(old, new)
        elif self.workers is not None:
            self.workers.pod_changed(old, new)

    def _worker(self, pod: Pod) -> PodWorker | None:
        return self.workers.get(pod.metadata.uid) if self.workers else None

    def _newest(self, pod: Pod) -> Pod:
        worker = self._worker(pod)
        return worker.pod_with_status if worker else pod

    async def _follow_runtime(self, workers: PodWorkers, tasks: asyncio.TaskGroup) -> None:
        """Events wait in their stream while the runtime is being asked, so none is overtaken by the
        answer."""

        async def settle() -> None:
            for seconds in SETTLING:
                await asyncio.sleep(seconds)
                await workers.look_again()

        settling: asyncio.Task[None] | None = None
        async for event in self._runtime.events():
            if event.kind is not EventKind.RELIST:
                workers.runtime_event(event)
                continue
            if settling is not None:
                settling.cancel()
            if self._ready.is_set():
                # The runtime is back, and may be another.
                self._features.forget()
                await workers.look_again()
                self._reporter.refresh()
            else:
                await self._begin(workers, tasks)
            settling = tasks.create_task(settle())

    async def _begin(self, workers: PodWorkers, tasks: asyncio.TaskGroup) -> None:
        """Give a worker to every pod that was found at the runtime, in the files, or at the API server."""
        found = await observe_until_answered(self._runtime)
        # Static pods start without waiting for the API server.
        static = await self._static.first()
        for pod in static:
            workers.employ(pod, found.get(pod.metadata.uid))
        self._static.begin(workers, static)
        await self._informer.wait_synced()
        known = {pod.metadata.uid for pod in (*self._objects(), *static)} | found.keys()
        left = await asyncio.to_thread(remove_leftovers, self._config, self._cgroups, known)
        for uid in left:
            tasks.create_task(self._csi.clear(uid))
        others = {uid: pod for uid, pod in found.items() if uid not in {p.metadata.uid for p in static}}
        workers.begin(self._objects(), others)
        self._static.mirrors_known()
        self._ready.set()
        try:
            if not (await self._features.get()).mounts_images:
                await release_leftovers(self._runtime, known)
        except RuntimeFault as fault:
            log.warning("images that volumes have left are still held: %s", fault)

    async def _evict(self, node: NodeContext, pods: NodePods, images: ImageCollector) -> NoReturn:
        """Run the eviction manager, once all pods have workers."""
        await self._ready.wait()
        reader = CgroupReader(self._cgroups.hierarchies)
        readings = NodeReadings(node.config.root_dir, self._cgroups.root, reader)
        await EvictionManager(node, readings, self._stats, images, pods).run()

    def _node_context(self, tasks: asyncio.TaskGroup) -> NodeContext:
        config = self._config
        verified = config.gates.enabled("KubeletEnsureSecretPulledImages")
        pulled = PulledImages(config.root_dir / "image_manager" / "pulled.json") if verified else None
        pulls = Pulls(self._runtime, self._clock, tasks, config.parallel_pulls, config.pull_deadline)
        return NodeContext(
            config=config,
            facts=node_facts(config, self._machine, self._cgroups),
            client=self._client,
            runtime=self._runtime,
            features=self._features,
            images=Images(self._runtime, self._events, self._clock, pulls, pulled),
            objects=ObjectSource(self._client),
            services=self._services,
            watched=WatchedObjects(self._client, tasks),
            events=self._events,
            cgroups=self._cgroups,
            allocations=Allocations(allocatable(config, self._machine)),
            own_object=self._reporter,
            counts=self.counts,
            pod_counts=self._pod_counts,
            pressure=NodePressure(),
            clock=self._clock,
            csi=self._csi,
            admit=self._admit,
        )


def node_facts(config: KubeletConfig, machine: Machine, cgroups: Cgroups) -> NodeFacts:
    """What pods' configurations need to know of their node."""
    try:
        resolver = parse_resolv_conf(config.resolv_conf.read_text())
    except OSError as error:
        log.warning("pods have no resolver of the node's: %s", error)
        resolver = Resolver()
    return NodeFacts(
        name=config.node_name,
        ips=config.node_ips,
        allocatable=allocatable(config, machine),
        memory_bytes=machine.memory,
        seccomp_dir=str(config.root_dir / "seccomp"),
        cluster_dns=config.cluster_dns,
        cluster_domain=config.cluster_domain,
        resolver=resolver,
        page_sizes=tuple(size for size, total in machine.huge_pages.items() if total),
        swap_is_limited=cgroups.limits_swap,
        cgroup2_settings=cgroups.container_settings(one_by_one=config.single_process_oom_kill),
        app_armor=machine.app_armor,
    )
