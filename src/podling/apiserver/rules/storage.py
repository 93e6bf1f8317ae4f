"""Validation of the kinds of storage.k8s.io (`pkg/apis/storage/validation` of Kubernetes)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from podling.apiserver.rules.container.resources import validate_quantity
from podling.apiserver.rules.field import (
    IMMUTABLE,
    all_invalid,
    at_least,
    between,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from podling.apiserver.rules.metadata import validate_label_key, validate_label_selector
from podling.apiserver.rules.volume.drivers import validate_csi_driver
from podling.apiserver.rules.volume.persistent import validate_inline
from podling.model import names
from podling.model.errors import Cause
from podling.model.types.storage import (
    CSIDriverSpec,
    CSINodeDriver,
    CSINodeSpec,
    CSIStorageCapacity,
    CSITokenRequest,
    StorageClass,
    TopologySelectorTerm,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentStatus,
    VolumeAttributesClass,
)

RECLAIM_POLICIES = frozenset(("Delete", "Retain"))
BINDING_MODES = frozenset(("Immediate", "WaitForFirstConsumer"))
FS_GROUP_POLICIES = frozenset(("ReadWriteOnceWithFSType", "File", "None"))
LIFECYCLE_MODES = ("Persistent", "Ephemeral")
MOST_TOLD = 1_000
"""Terms that are called duplicates."""
MAX_PARAMETERS, MAX_PARAMETERS_SIZE = 512, 256 * 1024
MAX_NODE_ID = 256
SHORTEST_TOKEN, LONGEST_TOKEN = 10 * 60, 1 << 32
SHORTEST_PERIOD = 10
LONGEST_ATTACHED = 256 * 1024
LONGEST_ERROR = 1024
"""Bytes. Kubernetes names the other limit where this one is passed."""
MOST_CODES = (1 << 31) - 1


def validate_storage_class(obj: StorageClass) -> Iterator[Cause]:
    yield from _validate_provisioner(obj.provisioner, "provisioner")
    yield from validate_parameters(obj.parameters)
    if obj.reclaim_policy and obj.reclaim_policy not in RECLAIM_POLICIES:
        yield not_supported("reclaimPolicy", obj.reclaim_policy, RECLAIM_POLICIES)
    if obj.volume_binding_mode not in BINDING_MODES:
        yield not_supported("volumeBindingMode", obj.volume_binding_mode, BINDING_MODES)
    # As in Kubernetes, there are as many empty terms before the first as there are terms.
    terms = Counter({frozenset[tuple[str, frozenset[str]]](): len(obj.allowed_topologies)})
    told = 0
    for i, term in enumerate(obj.allowed_topologies):
        path = f"allowedTopologies[{i}]"
        yield from _validate_term(term, path)
        by_key = {one.key: frozenset(one.values) for one in term.match_label_expressions}
        wanted = frozenset(by_key.items())
        # One for each term like it, which would be as many as the square of the terms.
        again = min(terms[wanted], MOST_TOLD - told)
        told += again
        yield from [duplicate(f"{path}.matchLabelExpressions", "")] * again
        terms[wanted] += 1


def _validate_provisioner(provisioner: str, path: str) -> Iterator[Cause]:
    if not provisioner:
        yield required(path)
    else:
        name = provisioner.lower()
        yield from all_invalid(path, name, names.qualified_name(name))


def validate_parameters(parameters: dict[str, str]) -> Iterator[Cause]:
    path = "parameters"
    if len(parameters) > MAX_PARAMETERS:
        yield too_long(path, MAX_PARAMETERS)
        return
    if "" in parameters:
        yield invalid(path, "", "field can not be empty.")
    if sum(len(text.encode()) for pair in parameters.items() for text in pair) > MAX_PARAMETERS_SIZE:
        yield too_long(path, MAX_PARAMETERS_SIZE)


def _validate_term(term: TopologySelectorTerm, path: str) -> Iterator[Cause]:
    keys: set[str] = set()
    for i, requirement in enumerate(term.match_label_expressions):
        where = f"{path}.matchLabelExpressions[{i}]"
        if not requirement.values:
            yield required(f"{where}.values")
        values: set[str] = set()
        for j, value in enumerate(requirement.values):
            if value in values:
                yield duplicate(f"{where}.values[{j}]", value)
            values.add(value)
        yield from validate_label_key(requirement.key, f"{where}.key")
        if requirement.key in keys:
            yield duplicate(f"{where}.key", requirement.key)
        keys.add(requirement.key)


def validate_driver(spec: CSIDriverSpec) -> Iterator[Cause]:
    if spec.fs_group_policy not in FS_GROUP_POLICIES:
        yield not_supported("spec.fsGroupPolicy", spec.fs_group_policy, FS_GROUP_POLICIES)
    yield from _validate_tokens(spec.token_requests, "spec.tokenRequests")
    if spec.service_account_token_in_secrets is not None and not spec.token_requests:
        why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        yield invalid("spec.serviceAccountTokenInSecrets", spec.service_account_token_in_secrets, why)
    for mode in spec.volume_lifecycle_modes:
        if mode not in LIFECYCLE_MODES:
            yield not_supported("spec.volumeLifecycleModes", mode, LIFECYCLE_MODES)
    period = spec.node_allocatable_update_period_seconds
    if period is not None and period < SHORTEST_PERIOD:
        why = f"must be greater than or equal to {SHORTEST_PERIOD} seconds"
        yield invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, why)


def _validate_tokens(requests: list[CSITokenRequest], path: str) -> Iterator[Cause]:
    audiences: set[str] = set()
    for i, request in enumerate(requests):
        if request.audience in audiences:
            yield duplicate(f"{path}[{i}].audience", request.audience)
            continue
        audiences.add(request.audience)
        seconds, where = request.expiration_seconds, f"{path}[{i}].expirationSeconds"
        if seconds is None:
            continue
        if seconds < SHORTEST_TOKEN:
            yield invalid(where, seconds, "may not specify a duration less than 10 minutes")
        if seconds > LONGEST_TOKEN:
            yield invalid(where, seconds, "may not specify a duration larger than 2^32 seconds")


def validate_drivers(spec: CSINodeSpec) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, driver in enumerate(spec.drivers):
        path = f"spec.drivers[{i}]"
        yield from _validate_node_driver(driver, path)
        if driver.name in seen:
            yield duplicate(f"{path}.name", driver.name)
        seen.add(driver.name)


def _validate_node_driver(driver: CSINodeDriver, path: str) -> Iterator[Cause]:
    yield from validate_csi_driver(driver.name, f"{path}.name")
    if not driver.node_id:
        yield required(f"{path}.nodeID", driver.node_id)
    elif len(driver.node_id) > MAX_NODE_ID:
        yield invalid(f"{path}.nodeID", driver.node_id, f"must be {MAX_NODE_ID} characters or less")
    if driver.allocatable is not None and driver.allocatable.count is not None:
        yield from at_least(f"{path}.allocatable.count", driver.allocatable.count, 0)
    keys: set[str] = set()
    for key in driver.topology_keys:
        if not key:
            yield required(path)
        if key in keys:
            yield duplicate(path, key)
        keys.add(key)
        yield from validate_label_key(key, path)


class _Lasting(
    msgspec.Struct,
    rename={
        "name": "Name",
        "node_id": "NodeID",
        "topology_keys": "TopologyKeys",
        "allocatable": "Allocatable",
    },
):
    """What may not change of a driver, as Kubernetes shows it."""

    name: str
    node_id: str
    topology_keys: list[str] | None
    allocatable: None = None


def validate_drivers_update(new: CSINodeSpec, old: CSINodeSpec) -> Iterator[Cause]:
    """What is known of a driver stays, but for how many volumes it takes."""
    asked: dict[str, list[_Lasting]] = {}
    for driver in new.drivers:
        asked.setdefault(driver.name, []).append(_lasting(driver))
    for driver in old.drivers:
        for lasting in asked.get(driver.name, ()):
            if lasting != _lasting(driver):
                yield invalid("spec.drivers", lasting, IMMUTABLE)


def _lasting(driver: CSINodeDriver) -> _Lasting:
    return _Lasting(driver.name, driver.node_id, driver.topology_keys or None)


def validate_capacity(obj: CSIStorageCapacity) -> Iterator[Cause]:
    yield from validate_label_selector(obj.node_topology, "nodeTopology")
    faults = names.dns1123_subdomain(obj.storage_class_name)
    yield from all_invalid("storageClassName", obj.storage_class_name, faults)
    if obj.capacity is not None:
        yield from validate_quantity("storage", obj.capacity, "capacity")


def validate_attributes_class(obj: VolumeAttributesClass) -> Iterator[Cause]:
    yield from _validate_provisioner(obj.driver_name, "driverName")
    if not obj.parameters:
        yield required("parameters", "must contain at least one key/value pair")
    yield from validate_parameters(obj.parameters)


def validate_attachment(obj: VolumeAttachment) -> Iterator[Cause]:
    spec = obj.spec
    yield from validate_csi_driver(spec.attacher, "spec.attacher")
    yield from _validate_attached(spec.source, "spec.source")
    yield from all_invalid("spec.nodeName", spec.node_name, names.dns1123_subdomain(spec.node_name))
    yield from validate_attachment_status(obj.status)
    if (name := spec.source.persistent_volume_name) is not None:
        yield from all_invalid("spec.source.persistentVolumeName", name, names.dns1123_subdomain(name))


def _validate_attached(source: VolumeAttachmentSource, path: str) -> Iterator[Cause]:
    name, inline = source.persistent_volume_name, source.inline_volume_spec
    one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if name is None and inline is None:
        yield required(path, one)
    elif name is not None and inline is not None:
        yield forbidden(path, one)
    elif inline is not None:
        yield from validate_inline(inline, f"{path}.inlineVolumeSpec")
    elif not name:
        yield required(f"{path}.persistentVolumeName", "must specify non empty persistentVolumeName")


def validate_attachment_status(status: VolumeAttachmentStatus) -> Iterator[Cause]:
    size = sum(len(text.encode()) for pair in status.attachment_metadata.items() for text in pair)
    if size > LONGEST_ATTACHED:
        yield too_long("status.attachmentMetadata", LONGEST_ATTACHED)
    for wire, error in (("attachError", status.attach_error), ("detachError", status.detach_error)):
        if error is None:
            continue
        if len(error.message.encode()) > LONGEST_ERROR:
            yield too_long(f"status.{wire}.message", LONGEST_ATTACHED)
        if error.error_code is not None:
            yield from between(f"status.{wire}.errorCode", error.error_code, 0, MOST_CODES)
