"""What a DaemonSet does next to its pods, of which each suitable node has one. Pure.

A node is suitable when the template's node name, selector and required affinity choose it, and its taints are
tolerated, with those that every daemon tolerates. A pod stays on a node whose new taint is NoSchedule only.

    maxUnavailable  that many nodes may be without an available pod: old pods go, others take their places;
                    one that is not available goes at once
    maxSurge        that many nodes may have a second pod, and the old one goes when the new one is available
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from podling.controllers.endpoints import is_ready
from podling.controllers.workloads.pods import available_in, from_template
from podling.controllers.workloads.revisions import POD_HASH, hash_of
from podling.controllers.workloads.rollout import part
from podling.model.rules.placement import (
    NO_EXECUTE,
    NO_SCHEDULE,
    NOT_READY,
    UNREACHABLE,
    UNSCHEDULABLE,
    selects,
)
from podling.model.rules.status import is_terminal
from podling.model.types.apps import DaemonSet, DaemonSetStatus
from podling.model.types.node import Node
from podling.model.types.pod import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    Toleration,
)
from podling.scheduler.node_match import required_terms, tolerated, untolerated

GENERATION = "deprecated.daemonset.template.generation"
"""The annotation of a DaemonSet that its pods have as the label POD_GENERATION."""
POD_GENERATION = "pod-template-generation"
TOLERATED = (
    (NOT_READY, NO_EXECUTE),
    (UNREACHABLE, NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    (UNSCHEDULABLE, NO_SCHEDULE),
)
NO_NETWORK = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)
"""What those of the host's network tolerate, too."""
NODE_NAME = "metadata.name"

ByNode = Mapping[str, Sequence[Pod]]


class Fit(NamedTuple):
    """Whether a node gets a pod, and whether one that is there stays."""

    runs: bool
    stays: bool


class OnNodes(NamedTuple):
    """The names of nodes that get a pod, and the pods that go."""

    create: list[str]
    delete: list[Pod]


class Managed(NamedTuple):
    """`ended` are the pods that go because they have ended, by their nodes."""

    step: OnNodes
    ended: list[tuple[str, Pod]]


class Daemon:
    """A DaemonSet, with what is asked of it for every node."""

    def __init__(self, owner: DaemonSet, now: datetime, hashed: str = "") -> None:
        self.owner, self.hash, self._now = owner, hashed, now
        template = owner.spec.template
        self._spec = replace(template.spec, tolerations=tolerations(template.spec))
        self._probe = Pod(spec=self._spec)

    def fit(self, node: Node) -> Fit:
        if self._spec.node_name not in ("", node.metadata.name) or not selects(self._probe, node):
            return Fit(runs=False, stays=False)
        taints = node.spec.taints
        if not untolerated(taints, self._spec.tolerations):
            return Fit(runs=True, stays=True)
        ends = any(
            taint.effect == NO_EXECUTE and not tolerated(taint, self._spec.tolerations) for taint in taints
        )
        return Fit(runs=False, stays=not ends)

    def pod(self, node: str) -> Pod:
        """The one for the node: the scheduler, which may not choose, takes it there."""
        template = self.owner.spec.template
        labels = {**template.metadata.labels, POD_HASH: self.hash}
        if (generation := self._generation()) is not None:
            labels[POD_GENERATION] = str(generation)
        wanted = replace(template, metadata=replace(template.metadata, labels=labels))
        spec = replace(self._spec, affinity=pinned_to(self._spec.affinity, node))
        return from_template(self.owner, replace(wanted, spec=spec))

    def is_available(self, pod: Pod) -> bool:
        return available_in(pod, self.owner.spec.min_ready_seconds, self._now) == 0

    def is_updated(self, pod: Pod) -> bool:
        generation = self._generation()
        label = pod.metadata.labels.get(POD_GENERATION)
        return hash_of(pod) == self.hash or (generation is not None and label == str(generation))

    def surge(self, nodes: int) -> int:
        return self._amount("max_surge", nodes)

    def may_lack(self, nodes: int) -> int:
        """How many of so many nodes may be without an available pod during an update."""
        lack = self._amount("max_unavailable", nodes)
        return 1 if nodes and not lack and not self.surge(nodes) else lack

    def _amount(self, name: str, nodes: int) -> int:
        strategy = self.owner.spec.update_strategy
        if strategy.type != "RollingUpdate" or strategy.rolling_update is None:
            return 0
        return part(getattr(strategy.rolling_update, name) or 0, nodes, up=True)

    def _generation(self) -> int | None:
        said = self.owner.metadata.annotations.get(GENERATION, "")
        return int(said) if said.isascii() and said.isdecimal() and len(said) < 19 else None


def tolerations(spec: PodSpec) -> list[Toleration]:
    """Those of the template, and those that every daemon has."""
    pairs = (*TOLERATED, NO_NETWORK) if spec.host_network else TOLERATED
    found = list(spec.tolerations)
    for key, effect in pairs:
        wanted = Toleration(key=key, operator="Exists", effect=effect)
        same = [i for i, one in enumerate(found) if replace(one, toleration_seconds=None) == wanted]
        if same:
            found[same[0]] = wanted
        else:
            found.append(wanted)
    return found


def pinned_to(affinity: Affinity | None, node: str) -> Affinity:
    """Every other required term is answered for already, by `Daemon.fit`."""
    name = NodeSelectorRequirement(key=NODE_NAME, operator="In", values=[node])
    only = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[name])])
    before = affinity or Affinity()
    of_nodes = before.node_affinity or NodeAffinity()
    return replace(
        before, node_affinity=replace(of_nodes, required_during_scheduling_ignored_during_execution=only)
    )


def target(pod: Pod) -> str | None:
    """The node that a pod is on or made for."""
    if pod.spec.node_name:
        return pod.spec.node_name
    required = required_terms(pod.spec)
    for term in required.node_selector_terms if required else ():
        for field in term.match_fields:
            if (field.key, field.operator, len(field.values)) == (NODE_NAME, "In", 1):
                return field.values[0]
    return None


def by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Those on a node oldest first, and those that run there before others. One that has ended and is being
    deleted is left out."""
    found: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        node = target(pod)
        if node is not None and not (is_terminal(pod) and pod.metadata.deletion_timestamp):
            found[node].append(pod)
    for several in found.values():
        several.sort(
            key=lambda pod: (
                not pod.spec.node_name,
                pod.metadata.creation_timestamp,
                pod.metadata.name,
            )
        )
    return dict(found)


def manage(daemon: Daemon, nodes: Sequence[Node], pods: ByNode) -> Managed:
    """What is missing, too many or out of place."""
    create: list[str] = []
    delete: list[Pod] = []
    ended: list[tuple[str, Pod]] = []
    for node in nodes:
        name, fit = node.metadata.name, daemon.fit(node)
        there = pods.get(name, ())
        living = [pod for pod in there if not pod.metadata.deletion_timestamp]
        if not fit.stays:
            delete += living
            continue
        if fit.runs and not there:
            create.append(name)
            continue
        ended += ((name, pod) for pod in living if is_terminal(pod))
        running = [pod for pod in living if not is_terminal(pod)]
        if not daemon.surge(1):
            delete += running[1:]
        elif running:
            delete += surplus(daemon, running)
        elif fit.runs:
            create.append(name)
    known = {node.metadata.name for node in nodes}
    # Those that wait for a node that is gone are found by nobody else.
    lost = (pod for node, several in pods.items() if node not in known for pod in several)
    delete += (pod for pod in lost if not pod.spec.node_name and not pod.metadata.deletion_timestamp)
    return Managed(OnNodes(create, delete), ended)


def surplus(daemon: Daemon, running: Sequence[Pod]) -> list[Pod]:
    """Of those on a node that may have two: an old pod that is ready stays until a new one is available."""
    if len(running) <= 1:
        return []
    new = [pod for pod in running if hash_of(pod) == daemon.hash]
    old = [pod for pod in running if hash_of(pod) != daemon.hash]
    going = [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0]) or daemon.is_available(new[0])):
        going.append(old[0])
    return going


def roll(daemon: Daemon, nodes: Sequence[Node], pods: ByNode) -> OnNodes:
    """The next step of a rolling update."""
    wanted = {node.metadata.name for node in nodes if daemon.fit(node).runs}
    every = {name: pods.get(name, ()) for name in sorted(wanted | pods.keys())}
    if surge := daemon.surge(len(wanted)):
        return roll_with_surge(daemon, every, surge, wanted)
    lack = 0
    at_once: list[Pod] = []
    candidates: list[Pod] = []
    for several in every.values():
        new, old = _new_and_old(daemon, several)
        if len(new) == 1 and not old:
            lack += not daemon.is_available(new[0])
        elif len(old) == 1 and not new:
            (candidates if daemon.is_available(old[0]) else at_once).append(old[0])
        else:
            lack += 1
    room = max(daemon.may_lack(len(wanted)) - lack, 0)
    return OnNodes([], at_once + candidates[:room])


def roll_with_surge(daemon: Daemon, pods: ByNode, surge: int, wanted: set[str]) -> OnNodes:
    surging = 0
    delete: list[Pod] = []
    at_once: list[str] = []
    candidates: list[str] = []
    for name, several in pods.items():
        new, old = _new_and_old(daemon, several)
        if len(new) > 1 or len(old) > 1:
            surging += 1
        elif old and new:
            if daemon.is_available(new[0]):
                delete.append(old[0])
            else:
                surging += 1
        elif old and name in wanted:
            (candidates if daemon.is_available(old[0]) else at_once).append(name)
    return OnNodes(at_once + candidates[: max(surge - surging, 0)], delete)


def _new_and_old(daemon: Daemon, pods: Sequence[Pod]) -> tuple[list[Pod], list[Pod]]:
    living = [pod for pod in pods if not pod.metadata.deletion_timestamp]
    new = [pod for pod in living if daemon.is_updated(pod)]
    return new, [pod for pod in living if not daemon.is_updated(pod)]


def status_of(daemon: Daemon, nodes: Iterable[Node], pods: ByNode, *, is_observed: bool) -> DaemonSetStatus:
    """`is_observed`: what was done, was done for this generation."""
    wanted = placed = ready = available = updated = stray = 0
    for node in nodes:
        several = pods.get(node.metadata.name, ())
        if not daemon.fit(node).runs:
            stray += bool(several)
            continue
        wanted += 1
        if several:
            first = several[0]
            placed += 1
            ready += is_ready(first)
            available += daemon.is_available(first)
            updated += daemon.is_updated(first)
    meta, before = daemon.owner.metadata, daemon.owner.status
    return replace(
        before,
        desired_number_scheduled=wanted,
        current_number_scheduled=placed,
        number_misscheduled=stray,
        number_ready=ready,
        number_available=available,
        number_unavailable=wanted - available,
        updated_number_scheduled=updated,
        observed_generation=meta.generation if is_observed else before.observed_generation,
    )
