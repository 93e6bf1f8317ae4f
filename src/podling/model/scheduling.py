"""core/v1: what a pod asks of the scheduler: affinity, tolerations, topology spread."""

from __future__ import annotations

from typing import ClassVar

from podling.model.base import Part, always
from podling.model.fields import Int32, Int64
from podling.model.meta import LabelSelector


class NodeSelectorRequirement(Part):
    key: str = always(str)
    operator: str = always(str)
    values: list[str] = []


class NodeSelectorTerm(Part):
    ATOMIC: ClassVar[bool] = True

    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelector(Part):
    ATOMIC: ClassVar[bool] = True

    node_selector_terms: list[NodeSelectorTerm] = always(list)


class PreferredSchedulingTerm(Part):
    weight: Int32 = always(int)
    preference: NodeSelectorTerm = always(NodeSelectorTerm)


class NodeAffinity(Part):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] = []


class PodAffinityTerm(Part):
    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    topology_key: str = always(str)
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(Part):
    weight: Int32 = always(int)
    pod_affinity_term: PodAffinityTerm = always(PodAffinityTerm)


class PodAffinity(Part):
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = []
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = []


class PodAntiAffinity(Part):
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = []
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = []


class Affinity(Part):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class Toleration(Part):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class TopologySpreadConstraint(Part):
    max_skew: Int32 = always(int)
    topology_key: str = always(str)
    when_unsatisfiable: str = always(str)
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] = []


class PodSchedulingGate(Part):
    name: str = always(str)


class PodSchedulingGroup(Part):
    """The group of pods this one is scheduled with."""

    pod_group_name: str | None = None
