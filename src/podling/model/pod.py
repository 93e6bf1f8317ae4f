"""core/v1: Pod, PodTemplate, and the objects posted to a pod's subresources."""

from __future__ import annotations

from typing import Annotated, ClassVar

from podling.model.base import Part, always
from podling.model.container import (
    AppArmorProfile,
    Container,
    EphemeralContainer,
    ResourceList,
    ResourceRequirements,
    SeccompProfile,
    SELinuxOptions,
    WindowsSecurityContextOptions,
)
from podling.model.fields import ATOMIC_MAP, Int32, Int64, by
from podling.model.meta import KubeObject, ObjectMeta
from podling.model.options import DeleteOptions
from podling.model.pod_status import PodStatus
from podling.model.references import LocalObjectReference, ObjectReference
from podling.model.scheduling import (
    Affinity,
    PodSchedulingGate,
    PodSchedulingGroup,
    Toleration,
    TopologySpreadConstraint,
)
from podling.model.volume import Volume


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


class PodSpec(Part):
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
