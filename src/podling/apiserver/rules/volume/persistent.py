"""Validation of PersistentVolumes (`ValidatePersistentVolumeSpec` of Kubernetes): what a volume is, where it
can be used, and that it has exactly one source. A VolumeAttachment may have a volume within, of fewer fields.

The sources are those of pods, but for what must be said of secrets and namespaces: a volume has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import normpath

from msgspec.structs import replace

from podling.apiserver.rules.field import (
    IMMUTABLE,
    all_invalid,
    choice,
    difference,
    forbidden,
    internal,
    invalid,
    not_supported,
    required,
    validate_no_backsteps,
)
from podling.apiserver.rules.scheduling import RENAMED_LABELS, validate_node_selector
from podling.apiserver.rules.volume import drivers
from podling.apiserver.rules.volume.claims import (
    STORAGE,
    VOLUME_MODES,
    validate_access_modes,
    validate_amount,
    validate_class,
)
from podling.apiserver.rules.volume.sources import given, sources
from podling.model import names
from podling.model.codec.fields import wire_name
from podling.model.errors import Cause
from podling.model.types.persistent_volume import (
    AzureFilePersistentVolumeSource,
    CSIPersistentVolumeSource,
    GlusterfsPersistentVolumeSource,
    LocalVolumeSource,
    PersistentVolume,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)

RETAIN, RECYCLE, FILESYSTEM = "Retain", "Recycle", "Filesystem"
RECLAIM_POLICIES = frozenset(("Delete", RECYCLE, RETAIN))
MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
WITHOUT_MOUNT_OPTIONS = frozenset(
    (
        "host_path",
        "flocker",
        "fc",
        "flex_volume",
        "portworx_volume",
        "scale_io",
        "local",
        "storageos",
        "csi",
    )
)
CSI_SECRETS = (
    "controller_publish_secret_ref",
    "controller_expand_secret_ref",
    "node_publish_secret_ref",
    "node_expand_secret_ref",
)
"""Those that are checked; Kubernetes passes over `nodeStageSecretRef`."""


def validate_volume_spec(spec: PersistentVolumeSpec, path: str, name: str) -> Iterator[Cause]:
    """`name`: that of the volume."""
    if not spec.access_modes:
        yield required(f"{path}.accessModes")
    yield from validate_access_modes(spec.access_modes, f"{path}.accessModes")
    where = f"{path}.capacity"
    if not spec.capacity:
        yield required(where)
    if [*spec.capacity] != [STORAGE]:
        yield not_supported(where, spec.capacity or None, (STORAGE,))
    for resource, amount in spec.capacity.items():
        yield from validate_amount(amount, f"{where}[{resource}]")
        if amount.nanos <= 0:
            yield invalid(f"{where}[{resource}]", amount, "must be greater than zero")
    policy = spec.persistent_volume_reclaim_policy
    yield from choice(f"{path}.persistentVolumeReclaimPolicy", policy or None, RECLAIM_POLICIES)
    if spec.node_affinity is not None:
        if spec.node_affinity.required is None:
            yield required(f"{path}.nodeAffinity.required", "must specify required node constraints")
        else:
            yield from validate_node_selector(spec.node_affinity.required, f"{path}.nodeAffinity.required")
    yield from _validate_sources(spec, path, name, has_affinity=spec.node_affinity is not None)
    yield from validate_class(spec.storage_class_name, f"{path}.storageClassName")
    yield from choice(f"{path}.volumeMode", spec.volume_mode, VOLUME_MODES)
    if (attributes := spec.volume_attributes_class_name) is not None:
        if not attributes:
            yield required(f"{path}.volumeAttributesClassName", "an empty string is disallowed")
        yield from validate_class(attributes, f"{path}.volumeAttributesClassName")
        if spec.csi is None:
            yield required(f"{path}.csi", "has to be specified when using volumeAttributesClassName")


def validate_inline(spec: PersistentVolumeSpec, path: str) -> Iterator[Cause]:
    """Of a volume without a name: one that a VolumeAttachment holds."""
    context = "in the context of inline volumes"
    unwanted = f"may not be specified {context}"
    if spec.claim_ref is not None:
        yield forbidden(f"{path}.claimRef", unwanted)
    if spec.capacity:
        yield forbidden(f"{path}.capacity", unwanted)
    if spec.csi is None:
        yield required(f"{path}.csi", f"has to be specified {context}")
    if not spec.access_modes:
        yield required(f"{path}.accessModes")
    yield from validate_access_modes(spec.access_modes, f"{path}.accessModes")
    if spec.persistent_volume_reclaim_policy not in ("", RETAIN):
        why = f"may only be {RETAIN} {context}"
        yield forbidden(f"{path}.persistentVolumeReclaimPolicy", why)
    if spec.node_affinity is not None:
        yield forbidden(f"{path}.nodeAffinity", unwanted)
    yield from _validate_sources(spec, path, "", has_affinity=False)
    if spec.storage_class_name:
        yield forbidden(f"{path}.storageClassName", unwanted)
    if spec.volume_mode not in (None, FILESYSTEM):
        why = f"may not specify volumeMode other than {FILESYSTEM} {context}"
        yield forbidden(f"{path}.volumeMode", why)


def _validate_sources(
    spec: PersistentVolumeSpec, path: str, name: str, *, has_affinity: bool
) -> Iterator[Cause]:
    found = given(SOURCES, spec)
    if not found:
        yield required(path, "must specify a volume type")
    for source in found[:1]:
        where = f"{path}.{source.wire}"
        if spec.iscsi is not None and source.attribute == "iscsi":
            yield from drivers.validate_iscsi(spec.iscsi, where, name)
        else:
            yield from source.faults(getattr(spec, source.attribute), where)
        if source.attribute == "local" and not has_affinity:
            yield required(f"{path}.nodeAffinity", "Local volume requires node affinity")
    for source in found[1:]:
        if source.attribute == "flex_volume":
            # As in Kubernetes it may be beside another, and is judged there.
            yield from source.faults(spec.flex_volume, f"{path}.{source.wire}")
        else:
            yield forbidden(f"{path}.{source.second}", "may not specify more than 1 volume type")
    host = spec.host_path.path if spec.host_path is not None else ""
    is_root = host.startswith("/") and not normpath(host).strip("/")
    if is_root and spec.persistent_volume_reclaim_policy == RECYCLE:
        why = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden(f"{path}.persistentVolumeReclaimPolicy", why)


def _validate_glusterfs(source: GlusterfsPersistentVolumeSource, path: str) -> Iterator[Cause]:
    yield from drivers.requires("endpoints", "path")(source, path)
    namespace, where = source.endpoints_namespace, f"{path}.endpointsNamespace"
    if namespace == "":
        why = "if the endpointnamespace is set, it must be a valid namespace name"
        yield invalid(where, namespace, why)
    elif namespace is not None:
        yield from all_invalid(where, namespace, names.dns1123_label(namespace))


def _validate_azure_file(source: AzureFilePersistentVolumeSource, path: str) -> Iterator[Cause]:
    yield from drivers.requires("secret_name", "share_name")(source, path)
    if source.secret_namespace == "":
        yield required(f"{path}.secretNamespace")


def _validate_local(source: LocalVolumeSource, path: str) -> Iterator[Cause]:
    if not source.path:
        yield required(f"{path}.path")
    yield from validate_no_backsteps(source.path, f"{path}.path")


def _validate_csi(source: CSIPersistentVolumeSource, path: str) -> Iterator[Cause]:
    yield from drivers.validate_csi_driver(source.driver, f"{path}.driver")
    yield from drivers.requires("volume_handle")(source, path)
    for attribute in CSI_SECRETS:
        secret, where = getattr(source, attribute), f"{path}.{wire_name(attribute)}"
        if secret is None:
            continue
        for wire, value, rule in (
            ("name", secret.name, names.dns1123_subdomain),
            ("namespace", secret.namespace, names.dns1123_label),
        ):
            if not value:
                yield required(f"{where}.{wire}")
            else:
                yield from all_invalid(f"{where}.{wire}", value, rule(value))


SOURCES = sources(
    {
        "host_path": drivers.validate_host_path,
        "gce_persistent_disk": drivers.validate_disk,
        "aws_elastic_block_store": drivers.validate_disk,
        "glusterfs": _validate_glusterfs,
        "flocker": drivers.validate_flocker,
        "nfs": drivers.validate_nfs,
        "rbd": drivers.requires("monitors", "image"),
        "quobyte": drivers.validate_quobyte,
        "cephfs": drivers.requires("monitors"),
        "iscsi": drivers.validate_iscsi,
        "cinder": drivers.validate_cinder,
        "fc": drivers.validate_fc,
        "flex_volume": drivers.validate_flex,
        "azure_file": _validate_azure_file,
        "vsphere_volume": drivers.requires("volume_path"),
        "photon_persistent_disk": drivers.requires("pd_id"),
        "portworx_volume": drivers.requires("volume_id"),
        "azure_disk": drivers.validate_azure_disk,
        "scale_io": drivers.requires("gateway", "system", "volume_name"),
        "local": _validate_local,
        "storageos": drivers.validate_storageos,
        "csi": _validate_csi,
    }
)


MOUNTED_WITH_OPTIONS = tuple(source for source in SOURCES if source.attribute not in WITHOUT_MOUNT_OPTIONS)


def validate_mount_options(volume: PersistentVolume) -> Iterator[Cause]:
    """Those that an annotation gives. The field may stand beside any source."""
    if MOUNT_OPTIONS in volume.metadata.annotations and not given(MOUNTED_WITH_OPTIONS, volume.spec):
        path = f"metadata.annotations.{MOUNT_OPTIONS}"
        yield forbidden(path, "may not specify mount options for this volume type")


def validate_volume_update(new: PersistentVolume, old: PersistentVolume) -> Iterator[Cause]:
    """Where the data is stays as it is. Only the secret for growing may come later."""
    # The sources alone.
    mine, theirs = PersistentVolumeSpec(), PersistentVolumeSpec()
    for alone, spec in ((mine, new.spec), (theirs, old.spec)):
        for source in SOURCES:
            setattr(alone, source.attribute, getattr(spec, source.attribute))
    if mine.csi is not None and theirs.csi is not None and theirs.csi.controller_expand_secret_ref is None:
        mine.csi = replace(mine.csi, controller_expand_secret_ref=None)
    if mine != theirs:
        path = "spec.persistentvolumesource"
        yield forbidden(path, f"{path} is immutable after creation\n{difference(theirs, mine, 'spec')}")
    if new.spec.volume_mode != old.spec.volume_mode:
        yield invalid("volumeMode", new.spec.volume_mode, IMMUTABLE)
    affinity, stood = new.spec.node_affinity, old.spec.node_affinity
    if stood is not None and not _is_same_place(affinity, stood):
        why = f"{IMMUTABLE}, except for updating from beta label to GA"
        yield invalid("nodeAffinity", internal(affinity), why)
    if old.spec.volume_attributes_class_name is not None and new.spec.volume_attributes_class_name is None:
        yield forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden")


def _is_same_place(new: VolumeNodeAffinity | None, old: VolumeNodeAffinity) -> bool:
    """Labels may be called by their new names."""
    if new is None or new.required is None or old.required is None:
        return new == old
    terms, stood = new.required.node_selector_terms, old.required.node_selector_terms
    return [term.match_fields for term in terms] == [term.match_fields for term in stood] and all(
        len(mine.match_expressions) == len(theirs.match_expressions)
        and all(
            one in (was, replace(was, key=RENAMED_LABELS.get(was.key, ("", was.key))[1]))
            for one, was in zip(mine.match_expressions, theirs.match_expressions, strict=True)
        )
        for mine, theirs in zip(terms, stood, strict=True)
    )
