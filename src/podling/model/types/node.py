"""core/v1: Node."""

from typing import Annotated, ClassVar

import msgspec

from podling.model.codec.fields import MERGED_SET, Int32, Int64, Part, Time, always, by, null
from podling.model.types.container import ResourceList
from podling.model.types.meta import KubeObject


class Taint(Part):
    key: str = always(str)
    value: str = ""
    effect: str = always(str)
    time_added: Time = ""


class ConfigMapNodeConfigSource(Part):
    namespace: str = always(str)
    name: str = always(str)
    uid: str = ""
    resource_version: str = ""
    kubelet_config_key: str = always(str)


class NodeConfigSource(Part):
    config_map: ConfigMapNodeConfigSource | None = None


class NodeSpec(Part):
    pod_cidr: str = ""
    pod_cidrs: Annotated[list[str], MERGED_SET] = []
    provider_id: str = ""
    unschedulable: bool = False
    taints: list[Taint] = []
    config_source: NodeConfigSource | None = None
    external_id: str = ""


class NodeCondition(Part):
    type: str = always(str)
    status: str = always(str)
    last_heartbeat_time: Time | None = null()
    last_transition_time: Time | None = null()
    reason: str = ""
    message: str = ""


class NodeAddress(Part):
    type: str = always(str)
    address: str = always(str)


class DaemonEndpoint(Part):
    port: Int32 = msgspec.field(default_factory=int, name="Port")


class NodeDaemonEndpoints(Part):
    kubelet_endpoint: DaemonEndpoint = always(DaemonEndpoint)


class NodeSwapStatus(Part):
    capacity: Int64 | None = None


class NodeSystemInfo(Part):
    machine_id: str = always(str)
    system_uuid: str = always(str)
    boot_id: str = always(str)
    kernel_version: str = always(str)
    os_image: str = always(str)
    container_runtime_version: str = always(str)
    kubelet_version: str = always(str)
    kube_proxy_version: str = always(str)
    operating_system: str = always(str)
    architecture: str = always(str)
    swap: NodeSwapStatus | None = None


class ContainerImage(Part):
    names: list[str] = always(list)
    size_bytes: Int64 = 0


class AttachedVolume(Part):
    name: str = always(str)
    device_path: str = always(str)


class NodeConfigStatus(Part):
    assigned: NodeConfigSource | None = None
    active: NodeConfigSource | None = None
    last_known_good: NodeConfigSource | None = None
    error: str = ""


class NodeRuntimeHandlerFeatures(Part):
    recursive_read_only_mounts: bool | None = None
    user_namespaces: bool | None = None


class NodeRuntimeHandler(Part):
    name: str = always(str)
    features: NodeRuntimeHandlerFeatures | None = None


class NodeFeatures(Part):
    supplemental_groups_policy: bool | None = None


class NodeStatus(Part):
    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    phase: str = ""
    conditions: Annotated[list[NodeCondition], by("type")] = []
    addresses: Annotated[list[NodeAddress], by("type")] = []
    daemon_endpoints: NodeDaemonEndpoints = always(NodeDaemonEndpoints)
    node_info: NodeSystemInfo = always(NodeSystemInfo)
    images: list[ContainerImage] = []
    volumes_in_use: list[str] = []
    volumes_attached: list[AttachedVolume] = []
    config: NodeConfigStatus | None = None
    runtime_handlers: list[NodeRuntimeHandler] = []
    features: NodeFeatures | None = None
    declared_features: list[str] = []


class Node(KubeObject):
    KIND: ClassVar[str] = "Node"
    API_VERSION: ClassVar[str] = "v1"

    spec: NodeSpec = always(NodeSpec)
    status: NodeStatus = always(NodeStatus)
