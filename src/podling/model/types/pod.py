"""core/v1: Pod, PodTemplate, what a pod asks of the scheduler (affinity, tolerations, topology spread), and
the objects posted to a pod's subresources.
"""

from typing import Annotated, ClassVar

from podling.model.codec.fields import ATOMIC_MAP, Int32, Int64, Part, Telling, always, by
from podling.model.types.container import (
    AppArmorProfile,
    Container,
    EphemeralContainer,
    ResourceList,
    ResourceRequirements,
    SeccompProfile,
    SELinuxOptions,
    WindowsSecurityContextOptions,
)
from podling.model.types.meta import DeleteOptions, KubeObject, LabelSelector, ObjectMeta
from podling.model.types.pod_status import PodStatus
from podling.model.types.references import LocalObjectReference, ObjectReference
from podling.model.types.volume import Volume


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


class Sysctl(Part):
    name: str = always(str)
    value: str = always(str)


class PodSecurityContext(Part):
    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    supplemental_groups: list[Int64] = []
    supplemental_groups_policy: str | None = None
    fs_group: Int64 | None = None
    sysctls: list[Sysctl] = []
    fs_group_change_policy: str | None = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None
    se_linux_change_policy: str | None = None


class HostAlias(Part):
    ip: str = always(str)
    hostnames: list[str] = []


class PodDNSConfigOption(Part):
    name: str = ""
    value: str | None = None


class PodDNSConfig(Part):
    nameservers: list[str] = []
    searches: list[str] = []
    options: list[PodDNSConfigOption] = []


class PodReadinessGate(Part):
    condition_type: str = always(str)


class PodOS(Part):
    name: str = always(str)


class PodResourceClaim(Part):
    name: str = always(str)
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Telling):
    TELLS = ("nodeSelector", "overhead", "resources.claims")

    volumes: Annotated[list[Volume], by("name", retain_keys=True)] = []
    init_containers: Annotated[list[Container], by("name")] = []
    containers: Annotated[list[Container], by("name")] = always(list)
    ephemeral_containers: Annotated[list[EphemeralContainer], by("name")] = []
    restart_policy: str = ""
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    dns_policy: str = ""
    node_selector: Annotated[dict[str, str], ATOMIC_MAP] = {}
    service_account_name: str = ""
    service_account: str = ""
    automount_service_account_token: bool | None = None
    node_name: str = ""
    host_network: bool = False
    host_pid: bool = False
    host_ipc: bool = False
    share_process_namespace: bool | None = None
    security_context: PodSecurityContext | None = None
    image_pull_secrets: Annotated[list[LocalObjectReference], by("name")] = []
    hostname: str = ""
    subdomain: str = ""
    affinity: Affinity | None = None
    scheduler_name: str = ""
    tolerations: list[Toleration] = []
    host_aliases: Annotated[list[HostAlias], by("ip")] = []
    priority_class_name: str = ""
    priority: Int32 | None = None
    dns_config: PodDNSConfig | None = None
    readiness_gates: list[PodReadinessGate] = []
    runtime_class_name: str | None = None
    enable_service_links: bool | None = None
    preemption_policy: str | None = None
    overhead: ResourceList = {}
    topology_spread_constraints: Annotated[
        list[TopologySpreadConstraint], by("topologyKey", keys=("topologyKey", "whenUnsatisfiable"))
    ] = []
    set_hostname_as_fqdn: bool | None = None
    os: PodOS | None = None
    host_users: bool | None = None
    scheduling_gates: Annotated[list[PodSchedulingGate], by("name")] = []
    resource_claims: Annotated[list[PodResourceClaim], by("name", retain_keys=True)] = []
    resources: ResourceRequirements | None = None
    hostname_override: str | None = None
    scheduling_group: PodSchedulingGroup | None = None


class Pod(KubeObject):
    KIND: ClassVar[str] = "Pod"
    API_VERSION: ClassVar[str] = "v1"

    spec: PodSpec = always(PodSpec)
    status: PodStatus = always(PodStatus)


class PodTemplateSpec(Part):
    metadata: ObjectMeta = always(ObjectMeta)
    spec: PodSpec = always(PodSpec)


class PodTemplate(KubeObject):
    KIND: ClassVar[str] = "PodTemplate"
    API_VERSION: ClassVar[str] = "v1"

    template: PodTemplateSpec = always(PodTemplateSpec)


class Binding(KubeObject):
    KIND: ClassVar[str] = "Binding"
    API_VERSION: ClassVar[str] = "v1"

    target: ObjectReference = always(ObjectReference)


class Eviction(KubeObject):
    KIND: ClassVar[str] = "Eviction"
    API_VERSION: ClassVar[str] = "policy/v1"

    delete_options: DeleteOptions | None = None


class PodDebugContainer(KubeObject):
    """Not of Kubernetes: the container of `pods/POD/debug/NAME` (R-DBG-1)."""

    KIND: ClassVar[str] = "PodDebugContainer"
    API_VERSION: ClassVar[str] = "v1"

    container: Container = always(Container)
