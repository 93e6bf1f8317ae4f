"""core/v1: what is observed of a pod and its containers."""

from typing import Annotated

from podling.model.codec.fields import SET, Int32, Int64, Part, Time, always, by, keyed, null, patched_by
from podling.model.types.container import ResourceList, ResourceRequirements


class ContainerStateWaiting(Part):
    reason: str = ""
    message: str = ""


class ContainerStateRunning(Part):
    started_at: Time | None = null()


class ContainerStateTerminated(Part):
    exit_code: Int32 = always(int)
    signal: Int32 = 0
    reason: str = ""
    message: str = ""
    started_at: Time | None = null()
    finished_at: Time | None = null()
    container_id: str = ""


class ContainerState(Part):
    """One of three, or none (read as waiting)."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ImageVolumeStatus(Part):
    image_ref: str = ""


class VolumeStatus(Part):
    image: ImageVolumeStatus | None = None


class VolumeMountStatus(Part):
    name: str = always(str)
    mount_path: str = always(str)
    read_only: bool = False
    recursive_read_only: str | None = None
    volume_status: VolumeStatus | None = None


class LinuxContainerUser(Part):
    uid: Int64 = always(int)
    gid: Int64 = always(int)
    supplemental_groups: list[Int64] = []


class ContainerUser(Part):
    linux: LinuxContainerUser | None = None


class ResourceHealth(Part):
    resource_id: str = always(str)
    health: str = ""
    message: str | None = None


class ResourceStatus(Part):
    name: str = always(str)
    resources: Annotated[list[ResourceHealth], keyed("resourceID")] = []


class ContainerStatus(Part):
    name: str = always(str)
    state: ContainerState = always(ContainerState)
    last_state: ContainerState = always(ContainerState)
    ready: bool = always(bool)
    restart_count: Int32 = always(int)
    image: str = always(str)
    image_id: str = always(str)
    container_id: str = ""
    started: bool | None = None
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None
    volume_mounts: Annotated[list[VolumeMountStatus], by("mountPath")] = []
    user: ContainerUser | None = None
    allocated_resources_status: Annotated[list[ResourceStatus], by("name")] = []
    stop_signal: str | None = None


class PodCondition(Part):
    type: str = always(str)
    observed_generation: Int64 = 0
    status: str = always(str)
    last_probe_time: Time | None = null()
    last_transition_time: Time | None = null()
    reason: str = ""
    message: str = ""


class PodIP(Part):
    ip: str = always(str)


class HostIP(Part):
    ip: str = always(str)


class PodResourceClaimStatus(Part):
    name: str = always(str)
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Part):
    container_name: str = always(str)
    resource_name: str = always(str)
    request_name: str = always(str)


class PodExtendedResourceClaimStatus(Part):
    request_mappings: list[ContainerExtendedResourceRequest] = always(list)
    resource_claim_name: str = always(str)


class NodeAllocatableResourceClaimStatus(Part):
    resource_claim_name: str = always(str)
    containers: Annotated[list[str], SET] = []
    resources: ResourceList | None = null()


class PodStatus(Part):
    observed_generation: Int64 = 0
    phase: str = ""
    conditions: Annotated[list[PodCondition], by("type")] = []
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    host_ip: str = ""
    host_ips: Annotated[list[HostIP], patched_by("ip")] = []
    pod_ip: str = ""
    pod_ips: Annotated[list[PodIP], by("ip")] = []
    start_time: Time = ""
    init_container_statuses: list[ContainerStatus] = []
    container_statuses: list[ContainerStatus] = []
    qos_class: str = ""
    ephemeral_container_statuses: list[ContainerStatus] = []
    debug_container_statuses: list[ContainerStatus] = []
    """Not of Kubernetes: the same, under the name they have in the first design (R-DBG-1)."""
    resize: str = ""
    resource_claim_statuses: Annotated[list[PodResourceClaimStatus], by("name", retain_keys=True)] = []
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None
    node_allocatable_resource_claim_statuses: list[NodeAllocatableResourceClaimStatus] = []
