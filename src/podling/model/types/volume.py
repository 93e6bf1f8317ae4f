"""core/v1: the volumes of a pod, each with one source."""

from podling.model.codec.fields import Int32, Int64, Part, Telling, always
from podling.model.quantity import Quantity
from podling.model.types.container import Container, ResourceList
from podling.model.types.meta import TEMPLATE_METADATA, LabelSelector, ObjectMeta
from podling.model.types.references import (
    ObjectFieldSelector,
    ResourceFieldSelector,
    TypedLocalObjectReference,
    TypedObjectReference,
)
from podling.model.types.volume_drivers import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CephFSVolumeSource,
    CinderVolumeSource,
    CSIVolumeSource,
    FCVolumeSource,
    FlexVolumeSource,
    FlockerVolumeSource,
    GCEPersistentDiskVolumeSource,
    GitRepoVolumeSource,
    GlusterfsVolumeSource,
    ISCSIVolumeSource,
    NFSVolumeSource,
    PhotonPersistentDiskVolumeSource,
    PortworxVolumeSource,
    QuobyteVolumeSource,
    RBDVolumeSource,
    ScaleIOVolumeSource,
    StorageOSVolumeSource,
    VsphereVirtualDiskVolumeSource,
)


class KeyToPath(Part):
    key: str = always(str)
    path: str = always(str)
    mode: Int32 | None = None


class EmptyDirVolumeSource(Part):
    medium: str = ""
    size_limit: Quantity | None = None


class HostPathVolumeSource(Part):
    path: str = always(str)
    type: str | None = None


class ConfigMapVolumeSource(Part):
    name: str = ""
    items: list[KeyToPath] = []
    default_mode: Int32 | None = None
    optional: bool | None = None


class SecretVolumeSource(Part):
    secret_name: str = ""
    items: list[KeyToPath] = []
    default_mode: Int32 | None = None
    optional: bool | None = None


class DownwardAPIVolumeFile(Part):
    path: str = always(str)
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: Int32 | None = None


class DownwardAPIVolumeSource(Part):
    items: list[DownwardAPIVolumeFile] = []
    default_mode: Int32 | None = None


class SecretProjection(Part):
    name: str = ""
    items: list[KeyToPath] = []
    optional: bool | None = None


class ConfigMapProjection(Part):
    name: str = ""
    items: list[KeyToPath] = []
    optional: bool | None = None


class DownwardAPIProjection(Part):
    items: list[DownwardAPIVolumeFile] = []


class ServiceAccountTokenProjection(Part):
    audience: str = ""
    expiration_seconds: Int64 | None = None
    path: str = always(str)


class ClusterTrustBundleProjection(Part):
    name: str | None = None
    signer_name: str | None = None
    label_selector: LabelSelector | None = None
    optional: bool | None = None
    path: str = always(str)


class PodCertificateProjection(Part):
    signer_name: str = ""
    key_type: str = ""
    max_expiration_seconds: Int32 | None = None
    credential_bundle_path: str = ""
    key_path: str = ""
    certificate_chain_path: str = ""
    user_annotations: dict[str, str] = {}


class VolumeProjection(Part):
    secret: SecretProjection | None = None
    downward_api: DownwardAPIProjection | None = None
    config_map: ConfigMapProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    pod_certificate: PodCertificateProjection | None = None


class ProjectedVolumeSource(Part):
    sources: list[VolumeProjection] = always(list)
    default_mode: Int32 | None = None


class PersistentVolumeClaimVolumeSource(Part):
    claim_name: str = always(str)
    read_only: bool = False


class VolumeResourceRequirements(Part):
    limits: ResourceList = {}
    requests: ResourceList = {}


class PersistentVolumeClaimSpec(Telling):
    TELLS = ("resources.requests",)

    access_modes: list[str] = []
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = always(VolumeResourceRequirements)
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimTemplate(Telling):
    TELLS = TEMPLATE_METADATA

    metadata: ObjectMeta = always(ObjectMeta)
    spec: PersistentVolumeClaimSpec = always(PersistentVolumeClaimSpec)


class EphemeralVolumeSource(Part):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class ImageVolumeSource(Part):
    reference: str = ""
    pull_policy: str = ""


class Volume(Part):
    """A named volume with exactly one source."""

    name: str = always(str)
    host_path: HostPathVolumeSource | None = None
    empty_dir: EmptyDirVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    git_repo: GitRepoVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    glusterfs: GlusterfsVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    flex_volume: FlexVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    cephfs: CephFSVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = None
    fc: FCVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    scale_io: ScaleIOVolumeSource | None = None
    storageos: StorageOSVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    image: ImageVolumeSource | None = None
    container: Container | None = None
