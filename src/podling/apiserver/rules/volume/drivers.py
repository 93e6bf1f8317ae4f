"""Validation of volume sources that hold no files of the API: an empty or the node's directory, an image, and
those that a storage system serves, with their required fields and a few formats, as in Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from podling.apiserver.rules.field import (
    all_invalid,
    between,
    choice,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
    validate_descending,
    validate_no_backsteps,
)
from podling.model import names
from podling.model.codec.fields import wire_name
from podling.model.enums import ENUMS
from podling.model.errors import Cause
from podling.model.types.persistent_volume import (
    CinderPersistentVolumeSource,
    FlexPersistentVolumeSource,
    ISCSIPersistentVolumeSource,
    SecretReference,
    StorageOSPersistentVolumeSource,
)
from podling.model.types.references import LocalObjectReference, ObjectReference
from podling.model.types.volume import EmptyDirVolumeSource, HostPathVolumeSource, ImageVolumeSource
from podling.model.types.volume_drivers import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    CinderVolumeSource,
    CSIVolumeSource,
    FCVolumeSource,
    FlexVolumeSource,
    FlockerVolumeSource,
    GCEPersistentDiskVolumeSource,
    GitRepoVolumeSource,
    ISCSIVolumeSource,
    NFSVolumeSource,
    QuobyteVolumeSource,
    StorageOSVolumeSource,
)

HOST_PATH_TYPES = frozenset(ENUMS["HostPathVolumeSource", "type"])
PULL_POLICIES = frozenset(ENUMS["Container", "imagePullPolicy"])

MAX_INITIATED_NAME = 64

_FORMS = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([a-z0-9-.]+)(:([^,;*&$|\s]+))?"),
    "eui": re.compile(r"eui.[a-zA-Z0-9]{16}"),
    "naa": re.compile(r"naa.[a-zA-Z0-9]{32}"),
}

MAX_LUN = MAX_PARTITION = 255
MAX_CSI_DRIVER = 63
MAX_TENANT = 64

CACHING_MODES = frozenset(("None", "ReadOnly", "ReadWrite"))
AZURE_KINDS = frozenset(("Dedicated", "Managed", "Shared"))
AZURE_URIS = {
    True: (
        "/subscriptions/",
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
    ),
    False: ("https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"),
}
"""Of a managed disk and of a blob: how its address begins, and what it looks like."""

_HOST_PORT = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*")


def validate_iscsi(
    source: ISCSIVolumeSource | ISCSIPersistentVolumeSource, path: str, volume: str | None = None
) -> Iterator[Cause]:
    """`volume`: the name of the PersistentVolume that has this source."""
    hint = " starting with iqn, eui, or naa" if volume is None else ""
    if not source.target_portal:
        yield required(f"{path}.targetPortal")
    if volume is not None:
        yield from validate_initiated(source, volume, source.target_portal, f"{path}.targetportal")
    if not source.iqn:
        yield required(f"{path}.iqn")
    else:
        yield from _validate_name(source.iqn, f"{path}.iqn", hint)
    yield from between(f"{path}.lun", source.lun, 0, MAX_LUN)
    if (source.chap_auth_discovery or source.chap_auth_session) and source.secret_ref is None:
        yield required(f"{path}.secretRef")
    if volume is not None and source.secret_ref is not None and not source.secret_ref.name:
        yield required(f"{path}.secretRef.name")
    if source.initiator_name is not None:
        yield from _validate_name(source.initiator_name, f"{path}.initiatorname", hint)


def validate_initiated(
    source: ISCSIVolumeSource | ISCSIPersistentVolumeSource, volume: str, shown: str, path: str
) -> Iterator[Cause]:
    """An initiator of one's own makes an interface named after volume and portal; names are short."""
    if source.initiator_name is None:
        return
    if len(f"{volume}:{source.target_portal}") > MAX_INITIATED_NAME:
        why = (
            f"Total length of <volume name>:<iscsi.targetPortal> must be under {MAX_INITIATED_NAME} "
            "characters if iscsi.initiatorName is specified."
        )
        yield invalid(path, shown, why)


def _validate_name(name: str, path: str, hint: str) -> Iterator[Cause]:
    """`hint`: said of a name of no known form."""
    form = _FORMS.get(name[:3])
    if form is None or not form.fullmatch(name):
        yield invalid(path, name, f"must be valid format{'' if form else hint}")


def requires(*attributes: str) -> Callable[[Any, str], Iterator[Cause]]:
    """A source of which nothing is checked but that these are given."""
    wires = [(attribute, wire_name(attribute)) for attribute in attributes]

    def validate(source: Any, path: str) -> Iterator[Cause]:
        for attribute, wire in wires:
            if not getattr(source, attribute):
                yield required(f"{path}.{wire}")

    return validate


def validate_empty_dir(source: EmptyDirVolumeSource, path: str) -> Iterator[Cause]:
    if source.size_limit is not None and source.size_limit.nanos < 0:
        yield forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def validate_host_path(source: HostPathVolumeSource, path: str) -> Iterator[Cause]:
    if not source.path:
        yield required(f"{path}.path")
        return
    yield from validate_no_backsteps(source.path, f"{path}.path")
    yield from choice(f"{path}.type", source.type, HOST_PATH_TYPES)


def validate_image(source: ImageVolumeSource, path: str) -> Iterator[Cause]:
    yield from choice(f"{path}.pullPolicy", source.pull_policy or None, PULL_POLICIES)


def validate_git_repo(source: GitRepoVolumeSource, path: str) -> Iterator[Cause]:
    yield from requires("repository")(source, path)
    yield from validate_descending(source.directory, f"{path}.directory")


def validate_disk(
    source: GCEPersistentDiskVolumeSource | AWSElasticBlockStoreVolumeSource, path: str
) -> Iterator[Cause]:
    identity = "pd_name" if isinstance(source, GCEPersistentDiskVolumeSource) else "volume_id"
    yield from requires(identity)(source, path)
    if not 0 <= source.partition <= MAX_PARTITION:
        yield invalid(f"{path}.partition", source.partition, "must be between 1 and 255, inclusive")


def validate_nfs(source: NFSVolumeSource, path: str) -> Iterator[Cause]:
    yield from requires("server", "path")(source, path)
    if not source.path.startswith("/"):
        yield invalid(f"{path}.path", source.path, "must be an absolute path")


def validate_flocker(source: FlockerVolumeSource, path: str) -> Iterator[Cause]:
    if not source.dataset_name and not source.dataset_uuid:
        yield required(path, "one of datasetName and datasetUUID is required")
    if source.dataset_name and source.dataset_uuid:
        yield invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in source.dataset_name:
        yield invalid(f"{path}.datasetName", source.dataset_name, "must not contain '/'")


def validate_cinder(source: CinderVolumeSource | CinderPersistentVolumeSource, path: str) -> Iterator[Cause]:
    yield from requires("volume_id")(source, path)
    yield from _validate_secret(source.secret_ref, f"{path}.secretRef")


def validate_quobyte(source: QuobyteVolumeSource, path: str) -> Iterator[Cause]:
    pairs = "must be a host:port pair or multiple pairs separated by commas"
    if not source.registry:
        yield required(f"{path}.registry", pairs)
    elif len(source.tenant) > MAX_TENANT:
        yield required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters")
    else:
        for pair in source.registry.split(","):
            if not _HOST_PORT.fullmatch(pair):
                yield invalid(f"{path}.registry", source.registry, pairs)
    yield from requires("volume")(source, path)


def validate_fc(source: FCVolumeSource, path: str) -> Iterator[Cause]:
    where = f"{path}.targetWWNs"
    if not source.target_wwns and not source.wwids:
        yield required(where, "must specify either targetWWNs or wwids, but not both")
    if source.target_wwns and source.wwids:
        why = "targetWWNs and wwids can not be specified simultaneously"
        yield invalid(where, source.target_wwns, why)
    if source.target_wwns:
        if source.lun is None:
            yield required(f"{path}.lun", "lun is required if targetWWNs is specified")
        else:
            yield from between(f"{path}.lun", source.lun, 0, MAX_LUN)


def validate_flex(source: FlexVolumeSource | FlexPersistentVolumeSource, path: str) -> Iterator[Cause]:
    yield from requires("driver")(source, path)
    for key in source.options:
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            why = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid(f"{path}.options[{key}]", key, why)


def validate_azure_disk(source: AzureDiskVolumeSource, path: str) -> Iterator[Cause]:
    yield from requires("disk_name", "disk_uri")(source, path)
    yield from choice(f"{path}.cachingMode", source.caching_mode, CACHING_MODES)
    yield from choice(f"{path}.kind", source.kind, AZURE_KINDS)
    if source.kind is not None:
        beginning, example = AZURE_URIS[source.kind == "Managed"]
        if not source.disk_uri.startswith(beginning):
            yield not_supported(f"{path}.diskURI", source.disk_uri, (example,))


def validate_storageos(
    source: StorageOSVolumeSource | StorageOSPersistentVolumeSource, path: str
) -> Iterator[Cause]:
    if not source.volume_name:
        yield required(f"{path}.volumeName")
    else:
        yield from all_invalid(
            f"{path}.volumeName", source.volume_name, names.dns1123_label(source.volume_name)
        )
    if source.volume_namespace:
        faults = names.dns1123_label(source.volume_namespace)
        yield from all_invalid(f"{path}.volumeNamespace", source.volume_namespace, faults)
    yield from _validate_secret(source.secret_ref, f"{path}.secretRef")


def validate_csi(source: CSIVolumeSource, path: str) -> Iterator[Cause]:
    yield from validate_csi_driver(source.driver, f"{path}.driver")
    secret = source.node_publish_secret_ref
    if secret is not None and secret.name:
        yield from all_invalid(f"{path}.name", secret.name, names.dns1123_subdomain(secret.name))
    else:
        yield from _validate_secret(secret, f"{path}.nodePublishSecretRef")


def validate_csi_driver(driver: str, path: str) -> Iterator[Cause]:
    if not driver:
        yield required(path)
        return
    if len(driver) > MAX_CSI_DRIVER:
        yield too_long(path, MAX_CSI_DRIVER)
    yield from all_invalid(path, driver, names.dns1123_subdomain(driver.lower()))


def _validate_secret(
    secret: LocalObjectReference | SecretReference | ObjectReference | None, path: str
) -> Iterator[Cause]:
    """Whoever is of no namespace says that of the secret, too."""
    if secret is not None and not secret.name:
        yield required(f"{path}.name")
    if isinstance(secret, SecretReference | ObjectReference) and not secret.namespace:
        yield required(f"{path}.namespace")
