"""All probes of one pod: a task for each probe, from the start of its instance to its end.

The pod's worker calls `learn` and `follow` at each sync, and reads `results` into the ObservedPod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from podling.kubelet.cri_config.environment import field_path
from podling.kubelet.metrics.counters import PodCounts, ProbeLabels
from podling.kubelet.plan.containers import recorded
from podling.kubelet.pod.containers import ContainerType, all_containers
from podling.kubelet.pod.observed import ObservedContainer, ObservedPod, ProbeResult
from podling.kubelet.probes.check import Target, check
from podling.kubelet.probes.hooks import HookNode
from podling.kubelet.probes.prober import FIRST, Health, ProbeKind, Prober, probe_result, probes_of
from podling.kubelet.status.container_status import container_id
from podling.model.time import Clock
from podling.model.types.container import EphemeralContainerCommon
from podling.model.types.pod import Pod


class ProbeNode(HookNode, Protocol):
    """What the probes of a pod use of its node."""

    @property
    def clock(self) -> Clock: ...
    @property
    def pod_counts(self) -> PodCounts: ...


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
            instance = observed.newest.get(container.name) if kind is not ContainerType.EPHEMERAL else None
            if instance is None or not instance.running or instance.id in self._instances:
                continue
            if not (probes := probes_of(container)):
                continue
            healths = {probe: FIRST[probe] for probe in probes}
            status = recorded(pod.status, container.name)
            if status and status.container_id == container_id(instance) and status.state.running:
                found = {ProbeKind.STARTUP: status.started, ProbeKind.READINESS: status.ready}
                healths |= {probe: Health.PASSED for probe in probes if found.get(probe)}
            self._instances[instance.id] = _Instance(container, healths, self._changed)

    def follow(self, pod: Pod, observed: ObservedPod, tasks: asyncio.TaskGroup, *, ending: bool) -> None:
        """Start probes of new instances and end those of stopped ones. While the pod is `ending`, only
        readiness probes go on."""
        running = {c.id: c for c in observed.containers if c.running}
        for id_ in self._instances.keys() - running.keys():
            self._instances.pop(id_).end()
        for id_, instance in self._instances.items():
            if ending:
                instance.end(ProbeKind.STARTUP, ProbeKind.LIVENESS)
            elif not instance.begun and running[id_].name not in observed.starts:
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
        node, sandbox = self._node, observed.sandbox
        has_own = sandbox and sandbox.ips and not pod.spec.host_network
        pod_ip = sandbox.ips[0] if sandbox and has_own else node.facts.ips[0]
        target = Target(instance.container, container.id, pod_ip)
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
                told=instance.learn,
                first=instance.healths[kind],
            )
            run = prober.run(node.clock, instance.started, container.started_at)
            instance.tasks[kind] = tasks.create_task(run, name=f"{kind.value} probe of {container.name}")

    def _count(self, pod: Pod, container: str, kind: ProbeKind, success: bool) -> None:
        meta, result = pod.metadata, "successful" if success else "failed"
        labels = ProbeLabels(kind.value, result, container, meta.name, meta.namespace, meta.uid)
        self._node.pod_counts.probes[labels] += 1


class _Instance:
    """The results of one instance's probes, and their tasks. `changed` is called at each change."""

    def __init__(
        self,
        container: EphemeralContainerCommon,
        healths: Mapping[ProbeKind, Health],
        changed: Callable[[], None],
    ) -> None:
        self.container = container
        self._changed = changed
        self.healths = dict(healths)
        self.begun = False
        self.started = asyncio.Event()
        self.tasks: dict[ProbeKind, asyncio.Task[None]] = {}
        self.result = self._settle()

    def learn(self, kind: ProbeKind, health: Health) -> None:
        self.healths[kind] = health
        self.result = self._settle()
        self._changed()

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
