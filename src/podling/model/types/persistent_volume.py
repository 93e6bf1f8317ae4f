"""core/v1: PersistentVolume and PersistentVolumeClaim."""

from typing import Annotated, ClassVar

from podling.model.codec.fields import GRANULAR_MAP, Int32, Part, Time, always, by, null
from podling.model.types.container import ResourceList
from podling.model.types.meta import KubeObject
from podling.model.types.pod import NodeSelector
from podling.model.types.references import ObjectReference
from podling.model.types.volume import HostPathVolumeSource, PersistentVolumeClaimSpec
from podling.model.types.volume_drivers import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    FCVolumeSource,
    FlockerVolumeSource,
    GCEPersistentDiskVolumeSource,
    NFSVolumeSource,
    PhotonPersistentDiskVolumeSource,
    PortworxVolumeSource,
    QuobyteVolumeSource,
    VsphereVirtualDiskVolumeSource,
)

STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
"""The annotation that named the class of a volume or a claim before there was a field."""


class GlusterfsPersistentVolumeSource(Part):
    endpoints: str = always(str)
    path: str = always(str)
    read_only: bool = False
    endpoints_namespace: str | None = None


class SecretReference(Part):
    ATOMIC: ClassVar[bool] = True

    name: str = ""
    namespace: str = ""


class RBDPersistentVolumeSource(Part):
    monitors: list[str] = always(list)
    image: str = always(str)
    fs_type: str = ""
    pool: str = ""
    user: str = ""
    keyring: str = ""
    secret_ref: SecretReference | None = None
    read_only: bool = False


class ISCSIPersistentVolumeSource(Part):
    target_portal: str = always(str)
    iqn: str = always(str)
    lun: Int32 = always(int)
    iscsi_interface: str = ""
    fs_type: str = ""
    read_only: bool = False
    portals: list[str] = []
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    secret_ref: SecretReference | None = None
    initiator_name: str | None = None


class CinderPersistentVolumeSource(Part):
    volume_id: str = always(str)
    fs_type: str = ""
    read_only: bool = False
    secret_ref: SecretReference | None = None


class CephFSPersistentVolumeSource(Part):
    monitors: list[str] = always(list)
    path: str = ""
    user: str = ""
    secret_file: str = ""
    secret_ref: SecretReference | None = None
    read_only: bool = False


class FlexPersistentVolumeSource(Part):
    driver: str = always(str)
    fs_type: str = ""
    secret_ref: SecretReference | None = None
    read_only: bool = False
    options: dict[str, str] = {}


class AzureFilePersistentVolumeSource(Part):
    secret_name: str = always(str)
    share_name: str = always(str)
    read_only: bool = False
    secret_namespace: str | None = null()


class ScaleIOPersistentVolumeSource(Part):
    gateway: str = always(str)
    system: str = always(str)
    secret_ref: SecretReference | None = null()
    ssl_enabled: bool = False
    protection_domain: str = ""
    storage_pool: str = ""
    storage_mode: str = ""
    volume_name: str = ""
    fs_type: str = ""
    read_only: bool = False


class LocalVolumeSource(Part):
    path: str = always(str)
    fs_type: str | None = None


class StorageOSPersistentVolumeSource(Part):
    volume_name: str = ""
    volume_namespace: str = ""
    fs_type: str = ""
    read_only: bool = False
    secret_ref: ObjectReference | None = None


class CSIPersistentVolumeSource(Part):
    driver: str = always(str)
    volume_handle: str = always(str)
    read_only: bool = False
    fs_type: str = ""
    volume_attributes: dict[str, str] = {}
    controller_publish_secret_ref: SecretReference | None = None
    node_stage_secret_ref: SecretReference | None = None
    node_publish_secret_ref: SecretReference | None = None
    controller_expand_secret_ref: SecretReference | None = None
    node_expand_secret_ref: SecretReference | None = None


class VolumeNodeAffinity(Part):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Part):
    capacity: ResourceList = {}
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    glusterfs: GlusterfsPersistentVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    rbd: RBDPersistentVolumeSource | None = None
    iscsi: ISCSIPersistentVolumeSource | None = None
    cinder: CinderPersistentVolumeSource | None = None
    cephfs: CephFSPersistentVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    flex_volume: FlexPersistentVolumeSource | None = None
    azure_file: AzureFilePersistentVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    scale_io: ScaleIOPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    storageos: StorageOSPersistentVolumeSource | None = None
    csi: CSIPersistentVolumeSource | None = None
    access_modes: list[str] = []
    claim_ref: Annotated[ObjectReference | None, GRANULAR_MAP] = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    mount_options: list[str] = []
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeStatus(Part):
    phase: str = ""
    message: str = ""
    reason: str = ""
    last_phase_transition_time: Time = ""


class PersistentVolume(KubeObject):
    KIND: ClassVar[str] = "PersistentVolume"
    API_VERSION: ClassVar[str] = "v1"

    spec: PersistentVolumeSpec = always(PersistentVolumeSpec)
    status: PersistentVolumeStatus = always(PersistentVolumeStatus)


class PersistentVolumeClaimCondition(Part):
    type: str = always(str)
    status: str = always(str)
    last_probe_time: Time | None = null()
    last_transition_time: Time | None = null()
    reason: str = ""
    message: str = ""


class ModifyVolumeStatus(Part):
    target_volume_attributes_class_name: str = ""
    status: str = always(str)


class PersistentVolumeClaimStatus(Part):
    phase: str = ""
    access_modes: list[str] = []
    capacity: ResourceList = {}
    conditions: Annotated[list[PersistentVolumeClaimCondition], by("type")] = []
    allocated_resources: ResourceList = {}
    allocated_resource_statuses: Annotated[dict[str, str], GRANULAR_MAP] = {}
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: ModifyVolumeStatus | None = None


class PersistentVolumeClaim(KubeObject):
    KIND: ClassVar[str] = "PersistentVolumeClaim"
    API_VERSION: ClassVar[str] = "v1"

    spec: PersistentVolumeClaimSpec = always(PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = always(PersistentVolumeClaimStatus)
