"""storage.k8s.io/v1: classes of storage, CSI drivers, and volumes attached to nodes."""

from typing import Annotated, ClassVar

from podling.model.codec.fields import SET, Int32, Int64, Part, Telling, Time, always, by, null
from podling.model.quantity import Quantity
from podling.model.types.meta import KubeObject, LabelSelector
from podling.model.types.persistent_volume import PersistentVolumeSpec


class CSITokenRequest(Part):
    audience: str = always(str)
    expiration_seconds: Int64 | None = None


class CSIDriverSpec(Part):
    attach_required: bool | None = None
    pod_info_on_mount: bool | None = None
    volume_lifecycle_modes: Annotated[list[str], SET] = []
    storage_capacity: bool | None = None
    fs_group_policy: str | None = None
    token_requests: list[CSITokenRequest] = []
    requires_republish: bool | None = None
    se_linux_mount: bool | None = None
    node_allocatable_update_period_seconds: Int64 | None = None
    service_account_token_in_secrets: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubeObject):
    KIND: ClassVar[str] = "CSIDriver"
    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    spec: CSIDriverSpec = always(CSIDriverSpec)


class VolumeNodeResources(Part):
    count: Int32 | None = None


class CSINodeDriver(Part):
    name: str = always(str)
    node_id: str = always(str)
    topology_keys: list[str] = always(list)
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Part):
    drivers: Annotated[list[CSINodeDriver], by("name")] = always(list)


class CSINode(KubeObject):
    KIND: ClassVar[str] = "CSINode"
    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    spec: CSINodeSpec = always(CSINodeSpec)


class CSIStorageCapacity(KubeObject):
    KIND: ClassVar[str] = "CSIStorageCapacity"
    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    node_topology: LabelSelector | None = None
    storage_class_name: str = always(str)
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class TopologySelectorLabelRequirement(Part):
    key: str = always(str)
    values: list[str] = always(list)


class TopologySelectorTerm(Part):
    ATOMIC: ClassVar[bool] = True

    match_label_expressions: list[TopologySelectorLabelRequirement] = []


class StorageClass(KubeObject, Telling):
    TELLS = ("parameters",)
    KIND: ClassVar[str] = "StorageClass"
    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    provisioner: str = always(str)
    parameters: dict[str, str] = {}
    reclaim_policy: str | None = None
    mount_options: list[str] = []
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] = []


class VolumeAttachmentSource(Part):
    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Part):
    attacher: str = always(str)
    source: VolumeAttachmentSource = always(VolumeAttachmentSource)
    node_name: str = always(str)


class VolumeError(Part):
    time: Time | None = null()
    message: str = ""
    error_code: Int32 | None = None


class VolumeAttachmentStatus(Part):
    attached: bool = always(bool)
    attachment_metadata: dict[str, str] = {}
    attach_error: VolumeError | None = None
    detach_error: VolumeError | None = None


class VolumeAttachment(KubeObject):
    KIND: ClassVar[str] = "VolumeAttachment"
    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    spec: VolumeAttachmentSpec = always(VolumeAttachmentSpec)
    status: VolumeAttachmentStatus = always(VolumeAttachmentStatus)


class VolumeAttributesClass(KubeObject):
    KIND: ClassVar[str] = "VolumeAttributesClass"
    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    driver_name: str = always(str)
    parameters: dict[str, str] = {}
