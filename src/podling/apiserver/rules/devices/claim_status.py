"""Validation of what was allocated for a claim, who uses it, and what drivers say of the devices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import msgspec

from podling.apiserver.rules.addresses import validate_interface_address
from podling.apiserver.rules.conditions import validate_conditions
from podling.apiserver.rules.devices.claims import (
    Requests,
    requests_of,
    validate_reference,
    validate_references,
)
from podling.apiserver.rules.devices.parts import (
    MAX_CONFIGS,
    MAX_PARAMETERS,
    validate_binding,
    validate_configuration,
    validate_driver,
    validate_label,
    validate_list,
    validate_pool,
    validate_raw,
)
from podling.apiserver.rules.field import (
    IMMUTABLE,
    forbidden,
    internal,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from podling.apiserver.rules.scheduling import validate_node_selector
from podling.model.errors import Cause
from podling.model.types.resource import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaimConsumerReference,
    ResourceClaimObject,
    ResourceClaimStatus,
)

MAX_RESULTS = 32
MAX_USERS = 256
MAX_CONDITIONS = 8
MAX_INTERFACE, MAX_HARDWARE_ADDRESS, MAX_ADDRESSES = 256, 128, 16
SOURCES = ("FromClaim", "FromClass")
HEX = "[0-9a-fA-F]"
UID = re.compile(rf"{HEX}{{8}}(?:-{HEX}{{4}}){{3}}-{HEX}{{12}}")
BARE_UID = re.compile(rf"{HEX}{{32}}")
URN = "urn:uuid:"
NOT_NORMAL = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase "
    "hexadecimal characters"
)


class DeviceID(msgspec.Struct, frozen=True, rename="pascal"):
    """One device, or one share of it, as Kubernetes shows it."""

    driver: str
    pool: str
    device: str
    share_id: str = msgspec.field(name="ShareID")


def device_id(device: DeviceRequestAllocationResult | AllocatedDeviceStatus) -> DeviceID:
    return DeviceID(device.driver, device.pool, device.device, device.share_id or "")


def drop_deallocated(new: ResourceClaimStatus, old: ResourceClaimStatus) -> None:
    """Forget what was said of devices that are no longer allocated."""
    gone = {device_id(one) for one in _results(old)} - {device_id(one) for one in _results(new)}
    new.devices = [one for one in new.devices if device_id(one) not in gone]


def _results(status: ResourceClaimStatus) -> list[DeviceRequestAllocationResult]:
    return status.allocation.devices.results if status.allocation is not None else []


def validate_claim_status(new: ResourceClaimObject, old: ResourceClaimObject) -> Iterator[Cause]:
    status, standing = new.status, old.status
    yield from validate_list(
        status.reserved_for, MAX_USERS, _validate_user, "status.reservedFor", lambda user: user.uid
    )
    allocated = frozenset(device_id(result) for result in _results(status))
    yield from validate_list(
        status.devices, len(status.devices), partial(_validate_device, allocated), "status.devices", device_id
    )
    if status.reserved_for and status.allocation is None:
        yield forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    elif new.metadata.deletion_timestamp:
        known = {msgspec.structs.astuple(user) for user in standing.reserved_for}
        if any(msgspec.structs.astuple(user) not in known for user in status.reserved_for):
            why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            yield forbidden("status.reservedFor", why)
    if status.allocation is None:
        return
    if standing.allocation is None:
        yield from _validate_allocation(status.allocation, requests_of(new.spec.devices), "status.allocation")
    elif status.allocation != standing.allocation:
        yield invalid("status.allocation", internal(status.allocation), IMMUTABLE)


def _validate_user(user: ResourceClaimConsumerReference, path: str) -> Iterator[Cause]:
    for wire in ("resource", "name", "uid"):
        if not getattr(user, wire):
            yield required(f"{path}.{wire}")


def _validate_device(
    allocated: frozenset[DeviceID], device: AllocatedDeviceStatus, path: str
) -> Iterator[Cause]:
    yield from validate_driver(device.driver, f"{path}.driver")
    yield from validate_pool(device.pool, f"{path}.pool")
    yield from validate_label(device.device, f"{path}.device")
    if device.share_id is not None:
        yield from _validate_uid(device.share_id, f"{path}.shareID")
    if device_id(device) not in allocated:
        yield invalid(path, device_id(device), "must be an allocated device in the claim")
    if len(device.conditions) > MAX_CONDITIONS:
        yield too_many(f"{path}.conditions", len(device.conditions), MAX_CONDITIONS)
    yield from validate_conditions(device.conditions, f"{path}.conditions")
    if device.data is not None:
        yield from validate_raw(device.data, f"{path}.data", MAX_PARAMETERS)
    if device.network_data is not None:
        yield from _validate_network(device.network_data, f"{path}.networkData")


def _validate_uid(uid: str, path: str) -> Iterator[Cause]:
    if fault := _uid_fault(uid):
        yield invalid(path, uid, f"error validating uid: {fault}")
    elif UID.fullmatch(uid) is None or uid != uid.lower():
        yield invalid(path, uid, NOT_NORMAL)


def _uid_fault(uid: str) -> str:
    """Why it is none of the spellings of a UUID; empty if it is. They are told apart by their length."""
    size, pattern = len(uid.encode()), UID
    if size == 45:
        if uid[:9].lower() != URN:
            return f'invalid urn prefix: "{uid[:9]}"'
        uid = uid[9:]
    elif size == 38:
        if not (uid.startswith("{") and uid.endswith("}")):
            return "invalid bracketed UUID format"
        uid = uid[1:-1]
    elif size == 32:
        pattern = BARE_UID
    elif size != 36:
        return f"invalid UUID length: {size}"
    return "" if pattern.fullmatch(uid) else "invalid UUID format"


def _validate_network(data: NetworkDeviceData, path: str) -> Iterator[Cause]:
    if len(data.interface_name.encode()) > MAX_INTERFACE:
        yield too_long(f"{path}.interfaceName", MAX_INTERFACE)
    if len(data.hardware_address.encode()) > MAX_HARDWARE_ADDRESS:
        yield too_long(f"{path}.hardwareAddress", MAX_HARDWARE_ADDRESS)
    yield from validate_list(
        data.ips, MAX_ADDRESSES, validate_interface_address, f"{path}.ips", lambda address: address
    )


def _validate_allocation(allocation: AllocationResult, requests: Requests, path: str) -> Iterator[Cause]:
    devices = allocation.devices
    results, configs = partial(_validate_result, requests), partial(_validate_configuration, requests)
    yield from validate_list(devices.results, MAX_RESULTS, results, f"{path}.devices.results")
    # Those of the class and those of the claim.
    yield from validate_list(devices.config, 2 * MAX_CONFIGS, configs, f"{path}.devices.config")
    if allocation.node_selector is not None:
        yield from validate_node_selector(allocation.node_selector, f"{path}.nodeSelector")


def _validate_result(requests: Requests, result: DeviceRequestAllocationResult, path: str) -> Iterator[Cause]:
    yield from validate_reference(requests, result.request, f"{path}.request")
    yield from validate_driver(result.driver, f"{path}.driver")
    yield from validate_pool(result.pool, f"{path}.pool")
    yield from validate_label(result.device, f"{path}.device")
    yield from validate_binding(result, path)
    if result.share_id is not None:
        yield from _validate_uid(result.share_id, f"{path}.shareID")


def _validate_configuration(
    requests: Requests, config: DeviceAllocationConfiguration, path: str
) -> Iterator[Cause]:
    if not config.source:
        yield required(f"{path}.source")
    elif config.source not in SOURCES:
        yield not_supported(f"{path}.source", config.source, SOURCES)
    yield from validate_references(config.requests, requests, f"{path}.requests")
    yield from validate_configuration(config, path)
