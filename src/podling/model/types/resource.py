"""resource.k8s.io/v1: devices that pods claim."""

from typing import Annotated, Any, ClassVar

from podling.model.codec.fields import Int64, Part, Telling, Time, always, by, keyed, null
from podling.model.quantity import Quantity
from podling.model.types.container import ResourceList
from podling.model.types.meta import TEMPLATE_METADATA, Condition, KubeObject, ObjectMeta
from podling.model.types.pod import NodeSelector


class CELDeviceSelector(Part):
    expression: str = always(str)


class DeviceSelector(Part):
    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(Part):
    driver: str = always(str)
    parameters: Any = null()


class DeviceClassConfiguration(Part):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Part):
    selectors: list[DeviceSelector] = []
    config: list[DeviceClassConfiguration] = []
    extended_resource_name: str | None = None


class DeviceClass(KubeObject):
    KIND: ClassVar[str] = "DeviceClass"
    API_VERSION: ClassVar[str] = "resource.k8s.io/v1"

    spec: DeviceClassSpec = always(DeviceClassSpec)


class DeviceToleration(Part):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(Part):
    requests: ResourceList = {}


class ExactDeviceRequest(Part):
    device_class_name: str = always(str)
    selectors: list[DeviceSelector] = []
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = []
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(Part):
    name: str = always(str)
    device_class_name: str = always(str)
    selectors: list[DeviceSelector] = []
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: list[DeviceToleration] = []
    capacity: CapacityRequirements | None = None


class DeviceRequest(Part):
    name: str = always(str)
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] = []


class DeviceConstraint(Part):
    requests: list[str] = []
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Part):
    requests: list[str] = []
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Part):
    requests: list[DeviceRequest] = always(list)
    constraints: list[DeviceConstraint] = []
    config: list[DeviceClaimConfiguration] = []


class ResourceClaimSpec(Part):
    devices: DeviceClaim = always(DeviceClaim)


class DeviceRequestAllocationResult(Part):
    request: str = always(str)
    driver: str = always(str)
    pool: str = always(str)
    device: str = always(str)
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = []
    binding_conditions: list[str] = []
    binding_failure_conditions: list[str] = []
    share_id: str | None = None
    consumed_capacity: ResourceList = {}


class DeviceAllocationConfiguration(Part):
    source: str = always(str)
    requests: list[str] = []
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Part):
    results: list[DeviceRequestAllocationResult] = []
    config: list[DeviceAllocationConfiguration] = []


class AllocationResult(Part):
    devices: DeviceAllocationResult = always(DeviceAllocationResult)
    node_selector: NodeSelector | None = None
    allocation_timestamp: Time = ""


class ResourceClaimConsumerReference(Part):
    api_group: str = ""
    resource: str = always(str)
    name: str = always(str)
    uid: str = always(str)


class NetworkDeviceData(Part):
    interface_name: str = ""
    ips: list[str] = []
    hardware_address: str = ""


class AllocatedDeviceStatus(Part):
    driver: str = always(str)
    pool: str = always(str)
    device: str = always(str)
    share_id: str | None = None
    conditions: Annotated[list[Condition], keyed("type")] = always(list)
    data: Any | None = None
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(Part):
    allocation: AllocationResult | None = None
    reserved_for: Annotated[list[ResourceClaimConsumerReference], by("uid")] = []
    devices: Annotated[list[AllocatedDeviceStatus], keyed("driver", "device", "pool", "shareID")] = []


class ResourceClaimObject(KubeObject):
    KIND: ClassVar[str] = "ResourceClaim"
    API_VERSION: ClassVar[str] = "resource.k8s.io/v1"

    spec: ResourceClaimSpec = always(ResourceClaimSpec)
    status: ResourceClaimStatus = always(ResourceClaimStatus)


class ResourceClaimTemplateSpec(Telling):
    TELLS = TEMPLATE_METADATA

    metadata: ObjectMeta = always(ObjectMeta)
    spec: ResourceClaimSpec = always(ResourceClaimSpec)


class ResourceClaimTemplate(KubeObject):
    KIND: ClassVar[str] = "ResourceClaimTemplate"
    API_VERSION: ClassVar[str] = "resource.k8s.io/v1"

    spec: ResourceClaimTemplateSpec = always(ResourceClaimTemplateSpec)


class ResourcePool(Part):
    name: str = always(str)
    generation: Int64 = always(int)
    resource_slice_count: Int64 = always(int)


class DeviceAttribute(Part):
    int_: Int64 | None = None
    bool_: bool | None = None
    string: str | None = None
    version: str | None = None
    ints: list[Int64] = []
    bools: list[bool] = []
    strings: list[str] = []
    versions: list[str] = []


class CapacityRequestPolicyRange(Part):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Part):
    default: Quantity | None = null()
    valid_values: list[Quantity] = []
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Part):
    value: Quantity = always(Quantity)
    request_policy: CapacityRequestPolicy | None = None


class Counter(Part):
    value: Quantity = always(Quantity)


class DeviceCounterConsumption(Part):
    counter_set: str = always(str)
    counters: dict[str, Counter] = {}


class DeviceTaint(Part):
    key: str = always(str)
    value: str = ""
    effect: str = always(str)
    time_added: Time = ""


class NodeAllocatableResourceMapping(Part):
    capacity_key: str | None = None
    allocation_multiplier: Quantity | None = None


class Device(Part):
    name: str = always(str)
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: list[DeviceCounterConsumption] = []
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[DeviceTaint] = []
    binds_to_node: bool | None = None
    binding_conditions: list[str] = []
    binding_failure_conditions: list[str] = []
    allow_multiple_allocations: bool | None = None
    node_allocatable_resource_mappings: dict[str, NodeAllocatableResourceMapping] = {}


class CounterSet(Part):
    name: str = always(str)
    counters: dict[str, Counter] = {}


class ResourceSliceSpec(Telling):
    TELLS = ("sharedCounters",)

    driver: str = always(str)
    pool: ResourcePool = always(ResourcePool)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: list[Device] = []
    per_device_node_selection: bool | None = None
    shared_counters: list[CounterSet] = []


class ResourceSlice(KubeObject):
    KIND: ClassVar[str] = "ResourceSlice"
    API_VERSION: ClassVar[str] = "resource.k8s.io/v1"

    spec: ResourceSliceSpec = always(ResourceSliceSpec)
