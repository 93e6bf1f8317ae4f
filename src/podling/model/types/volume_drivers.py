"""core/v1: volume sources that a storage system serves rather than the kubelet itself.

podling mounts none of them; they are here so that objects that name them survive a round trip unchanged.
"""

from podling.model.codec.fields import Int32, Part, always, null
from podling.model.types.references import LocalObjectReference


class GCEPersistentDiskVolumeSource(Part):
    pd_name: str = always(str)
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(Part):
    volume_id: str = always(str)
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class GitRepoVolumeSource(Part):
    repository: str = always(str)
    revision: str = ""
    directory: str = ""


class NFSVolumeSource(Part):
    server: str = always(str)
    path: str = always(str)
    read_only: bool = False


class ISCSIVolumeSource(Part):
    target_portal: str = always(str)
    iqn: str = always(str)
    lun: Int32 = always(int)
    iscsi_interface: str = ""
    fs_type: str = ""
    read_only: bool = False
    portals: list[str] = []
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    secret_ref: LocalObjectReference | None = None
    initiator_name: str | None = None


class GlusterfsVolumeSource(Part):
    endpoints: str = always(str)
    path: str = always(str)
    read_only: bool = False


class RBDVolumeSource(Part):
    monitors: list[str] = always(list)
    image: str = always(str)
    fs_type: str = ""
    pool: str = ""
    user: str = ""
    keyring: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False


class FlexVolumeSource(Part):
    driver: str = always(str)
    fs_type: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False
    options: dict[str, str] = {}


class CinderVolumeSource(Part):
    volume_id: str = always(str)
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class CephFSVolumeSource(Part):
    monitors: list[str] = always(list)
    path: str = ""
    user: str = ""
    secret_file: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False


class FlockerVolumeSource(Part):
    dataset_name: str = ""
    dataset_uuid: str = ""


class FCVolumeSource(Part):
    target_wwns: list[str] = []
    lun: Int32 | None = None
    fs_type: str = ""
    read_only: bool = False
    wwids: list[str] = []


class AzureFileVolumeSource(Part):
    secret_name: str = always(str)
    share_name: str = always(str)
    read_only: bool = False


class VsphereVirtualDiskVolumeSource(Part):
    volume_path: str = always(str)
    fs_type: str = ""
    storage_policy_name: str = ""
    storage_policy_id: str = ""


class QuobyteVolumeSource(Part):
    registry: str = always(str)
    volume: str = always(str)
    read_only: bool = False
    user: str = ""
    group: str = ""
    tenant: str = ""


class AzureDiskVolumeSource(Part):
    disk_name: str = always(str)
    disk_uri: str = always(str)
    caching_mode: str | None = None
    fs_type: str | None = None
    read_only: bool | None = None
    kind: str | None = None


class PhotonPersistentDiskVolumeSource(Part):
    pd_id: str = always(str)
    fs_type: str = ""


class PortworxVolumeSource(Part):
    volume_id: str = always(str)
    fs_type: str = ""
    read_only: bool = False


class ScaleIOVolumeSource(Part):
    gateway: str = always(str)
    system: str = always(str)
    secret_ref: LocalObjectReference | None = null()
    ssl_enabled: bool = False
    protection_domain: str = ""
    storage_pool: str = ""
    storage_mode: str = ""
    volume_name: str = ""
    fs_type: str = ""
    read_only: bool = False


class StorageOSVolumeSource(Part):
    volume_name: str = ""
    volume_namespace: str = ""
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class CSIVolumeSource(Part):
    driver: str = always(str)
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: dict[str, str] = {}
    node_publish_secret_ref: LocalObjectReference | None = None
