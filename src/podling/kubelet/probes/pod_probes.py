"""All probes of one pod: a task for each probe, from the start of its instance to its end.

The pod's worker calls `learn` and `follow` at each sync, and reads `results` into the ObservedPod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from podling.client.events import EventRecorder
from podling.cri.interface import Runtime
from podling.kubelet.config import KubeletConfig
from podling.kubelet.cri_config.environment import field_path
from podling.kubelet.metrics.counters import PodCounts, ProbeLabels
from podling.kubelet.plan.containers import recorded
from podling.kubelet.pod.containers import ContainerType, all_containers
from podling.kubelet.pod.node_facts import NodeFacts
from podling.kubelet.pod.observed import ObservedContainer, ObservedPod, ProbeResult
from podling.kubelet.probes.check import Target, check
from podling.kubelet.probes.prober import FIRST, Health, ProbeKind, Prober, probe_result, probes_of
from podling.kubelet.status.container_status import container_id
from podling.model.time import Clock
from podling.model.types.container import EphemeralContainerCommon
from podling.model.types.pod import Pod


class ProbeNode(Protocol):
    """What the probes of a pod use of its node."""

    @property
    def clock(self) -> Clock: ...
    @property
    def config(self) -> KubeletConfig: ...
    @property
    def events(self) -> EventRecorder: ...
    @property
    def facts(self) -> NodeFacts: ...
    @property
    def pod_counts(self) -> PodCounts: ...
    @property
    def runtime(self) -> Runtime: ...


class PodProbes:
    """The probes of one pod. `changed` is called when a result has changed."""

    def __init__(self, node: ProbeNode, changed: Callable[[], None]) -> None:
        self._node = node
        self._changed = changed
        self._instances: dict[str, _Instance] = {}

    def results(self) -> Mapping[str, ProbeResult]:
        return {id_: instance.result for id_, instance in self._instances.items()}

    def learn(self, pod: Pod, observed: ObservedPod) -> None:
        """Take up running instances that have probes, before the planner decides about them. Results of an
        earlier kubelet, from the pod's status, hold until the first outcome."""
        for kind, container in all_containers(pod):
            instance = observed.newest(container.name) if kind is not ContainerType.EPHEMERAL else None
            if instance and instance.running and instance.id not in self._instances and probes_of(container):
                self._instances[instance.id] = _Instance(container, _found_before(pod, container, instance))

    def follow(self, pod: Pod, observed: ObservedPod, tasks: asyncio.TaskGroup, *, ending: bool) -> None:
        """Start probes of new instances and end those of stopped ones. While the pod is `ending`, only
        readiness probes go on."""
        running = {c.id: c for c in observed.containers if c.running}
        for id_ in self._instances.keys() - running.keys():
            self._instances.pop(id_).end()
        for id_, instance in self._instances.items():
            if ending:
                instance.end(ProbeKind.STARTUP, ProbeKind.LIVENESS)
            elif not instance.begun and not observed.starting(running[id_].name):
                self._begin(pod, observed, running[id_], instance, tasks)

    def _begin(
        self,
        pod: Pod,
        observed: ObservedPod,
        container: ObservedContainer,
        instance: _Instance,
        tasks: asyncio.TaskGroup,
    ) -> None:
        instance.begun = True
        node = self._node
        target = Target(instance.container, container.id, _address(pod, observed, node))
        agent = f"kube-probe/{node.config.minor_version}"
        path = field_path(container.type, container.name)
        for kind, probe in probes_of(instance.container).items():
            if kind is ProbeKind.STARTUP and instance.started.is_set():
                continue
            prober = Prober(
                kind,
                probe,
                ask=partial(check, node.runtime, target=target, user_agent=agent),
                say=partial(node.events.warning, pod, field_path=path),
                count=partial(self._count, pod, container.name, kind),
                told=partial(self._told, instance),
                first=instance.healths[kind],
            )
            run = prober.run(node.clock, instance.started, container.started_at)
            instance.tasks[kind] = tasks.create_task(run, name=f"{kind.value} probe of {container.name}")

    def _count(self, pod: Pod, container: str, kind: ProbeKind, success: bool) -> None:
        meta, result = pod.metadata, "successful" if success else "failed"
        labels = ProbeLabels(kind.value, result, container, meta.name, meta.namespace, meta.uid)
        self._node.pod_counts.probes[labels] += 1

    def _told(self, instance: _Instance, kind: ProbeKind, health: Health) -> None:
        instance.learn(kind, health)
        self._changed()


class _Instance:
    """The results of one instance's probes, and their tasks."""

    def __init__(self, container: EphemeralContainerCommon, healths: Mapping[ProbeKind, Health]) -> None:
        self.container = container
        self.healths = dict(healths)
        self.begun = False
        self.started = asyncio.Event()
        self.tasks: dict[ProbeKind, asyncio.Task[None]] = {}
        self.result = self._settle()

    def learn(self, kind: ProbeKind, health: Health) -> None:
        self.healths[kind] = health
        self.result = self._settle()

    def _settle(self) -> ProbeResult:
        result = probe_result(self.container, self.healths)
        if result.started:
            self.started.set()
        return result

    def end(self, *kinds: ProbeKind) -> None:
        """Cancel these probes; all without `kinds`."""
        for kind in kinds or tuple(self.tasks):
            if task := self.tasks.get(kind):
                task.cancel()


def _found_before(
    pod: Pod, container: EphemeralContainerCommon, instance: ObservedContainer
) -> dict[ProbeKind, Health]:
    healths = {kind: FIRST[kind] for kind in probes_of(container)}
    status = recorded(pod.status, container.name)
    if status is None or status.container_id != container_id(instance) or not status.state.running:
        return healths
    if status.started and ProbeKind.STARTUP in healths:
        healths[ProbeKind.STARTUP] = Health.PASSED
    if status.ready and ProbeKind.READINESS in healths:
        healths[ProbeKind.READINESS] = Health.PASSED
    return healths


def _address(pod: Pod, observed: ObservedPod, node: ProbeNode) -> str:
    if pod.spec.host_network or observed.sandbox is None or not observed.sandbox.ips:
        return node.facts.ips[0]
    return observed.sandbox.ips[0]
