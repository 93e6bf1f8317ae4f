"""Validation of slices: what devices a driver has, where, and what they share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial

import msgspec

from podling.apiserver.rules.devices.capacities import validate_policy
from podling.apiserver.rules.devices.parts import (
    EFFECTS,
    validate_binding,
    validate_driver,
    validate_label,
    validate_list,
    validate_pool,
    validate_qualified,
)
from podling.apiserver.rules.field import (
    IMMUTABLE,
    all_invalid,
    forbidden,
    internal,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from podling.apiserver.rules.metadata import validate_label_key
from podling.apiserver.rules.scheduling import validate_node_selector
from podling.model import names
from podling.model.codec.fields import told_empty
from podling.model.errors import Cause
from podling.model.types.resource import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    DeviceTaint,
    ResourceSliceSpec,
)

MAX_DEVICES, MAX_DEVICES_THAT_SHARE = 128, 64
MAX_COUNTER_SETS, MAX_COUNTERS = 8, 32
MAX_CONSUMED = 2
MAX_TAINTS = 16
MAX_ATTRIBUTES = 32
"""Of one device, its capacities counted, too."""
MAX_ATTRIBUTE = 64
LONGEST_KEY = 63 + 1 + 32
"""Bytes of a name with its domain; of a longer one the middle is left out where it is shown."""
VERSION = re.compile(
    r"(?:0|[1-9][0-9]*)(?:\.(?:0|[1-9][0-9]*)){2}"
    r"(?:-(?:PRE)(?:\.(?:PRE))*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?".replace(
        "PRE", "0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*"
    )
)
"""A semantic version, of at most MAX_ATTRIBUTE characters. Possessive, Python 3.11.2 takes `1.2.3-01`."""
PLACES = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
DEVICE_PLACES = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is "
    "set to true in the ResourceSlice spec"
)
NO_DEVICE_PLACES = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in "
    "the ResourceSlice spec"
)
UNSET_OR_TRUE = "must be either unset or set to true"
ONE_VALUE = "exactly one value must be specified"


class _Values(msgspec.Struct, rename="pascal"):
    """The values of an attribute, as Kubernetes shows them."""

    int_value: int | None
    bool_value: bool | None
    string_value: str | None
    version_value: str | None
    int_values: None = None
    bool_values: None = None
    string_values: None = None
    version_values: None = None


def drop_gated(spec: ResourceSliceSpec) -> None:
    """Forget fields behind feature gates that are off."""
    for device in spec.devices:
        device.node_allocatable_resource_mappings = {}
        for attribute in device.attributes.values():
            attribute.ints, attribute.bools, attribute.strings, attribute.versions = [], [], [], []


def validate_slice(new: ResourceSliceSpec, old: ResourceSliceSpec | None = None) -> Iterator[Cause]:
    pool = new.pool
    yield from validate_driver(new.driver, "spec.driver")
    yield from validate_pool(pool.name, "spec.pool.name")
    if pool.resource_slice_count <= 0:
        yield invalid("spec.pool.resourceSliceCount", pool.resource_slice_count, "must be greater than zero")
    if pool.generation < 0:
        yield invalid("spec.pool.generation", pool.generation, "must be greater than or equal to zero")
    if old is not None:
        for wire, value, standing in (
            ("pool.name", pool.name, old.pool.name),
            ("driver", new.driver, old.driver),
            ("nodeName", new.node_name, old.node_name),
        ):
            if value != standing:
                yield invalid(f"spec.{wire}", value, IMMUTABLE)
    yield from _validate_place(new)
    if new.devices and (new.shared_counters or "sharedCounters" in told_empty(new)):
        yield invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    shares = any(device.taints or device.consumes_counters for device in new.devices)
    standing_devices = {device.name: device for device in old.devices} if old is not None else {}
    yield from validate_list(
        new.devices,
        MAX_DEVICES_THAT_SHARE if shares else MAX_DEVICES,
        partial(_validate_device, standing_devices, bool(new.per_device_node_selection)),
        "spec.devices",
        lambda device: device.name,
    )
    yield from validate_list(
        new.shared_counters,
        MAX_COUNTER_SETS,
        _validate_counter_set,
        "spec.sharedCounters",
        lambda counters: counters.name,
    )


def _validate_place(spec: ResourceSliceSpec) -> Iterator[Cause]:
    given = []
    if spec.node_name:
        given.append("`nodeName`")
        yield from _validate_node(spec.node_name, "spec.nodeName")
    elif spec.node_name is not None:
        why = "must be either unset or set to a non-empty string"
        yield invalid("spec.nodeName", spec.node_name, why)
    if spec.node_selector is not None:
        given.append("`nodeSelector`")
        yield from validate_node_selector(spec.node_selector, "spec.nodeSelector")
        terms = spec.node_selector.node_selector_terms
        if len(terms) != 1:
            where = "spec.nodeSelector.nodeSelectorTerms"
            yield invalid(where, internal(terms), "must have exactly one node selector term")
    for wire, value in (
        ("allNodes", spec.all_nodes),
        ("perDeviceNodeSelection", spec.per_device_node_selection),
    ):
        if value:
            given.append(f"`{wire}`")
        elif value is not None:
            yield invalid(f"spec.{wire}", value, UNSET_OR_TRUE)
    if not given:
        yield required("spec", PLACES)
    elif len(given) > 1:
        yield invalid("spec", f"{{{', '.join(given)}}}", f"{PLACES}, but multiple fields are set")


def _validate_node(name: str, path: str) -> list[Cause]:
    return all_invalid(path, name, names.dns1123_subdomain(name))


def _validate_device(
    standing: Mapping[str, Device], has_place: bool, device: Device, path: str
) -> Iterator[Cause]:
    old = standing.get(device.name)
    yield from validate_label(device.name, f"{path}.name")
    count = len(device.attributes) + len(device.capacity)
    if count > MAX_ATTRIBUTES:
        why = f"the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES}"
        yield invalid(path, count, why)
    for name, attribute in device.attributes.items():
        yield from validate_qualified(name, f"{path}.attributes")
        yield from _validate_attribute(attribute, f"{path}.attributes[{_shortened(name)}]")
    if old is None or old.capacity != device.capacity:
        for name, capacity in device.capacity.items():
            yield from validate_qualified(name, f"{path}.capacity")
            if capacity.request_policy is None:
                continue
            where = f"{path}.capacity[{_shortened(name)}].requestPolicy"
            if device.allow_multiple_allocations:
                yield from validate_policy(capacity.request_policy, capacity.value, where)
            else:
                yield forbidden(where, "allowMultipleAllocations must be true")
    if old is None or old.taints != device.taints:
        yield from validate_list(device.taints, MAX_TAINTS, _validate_taint, f"{path}.taints")
    yield from validate_list(
        device.consumes_counters,
        MAX_CONSUMED,
        _validate_consumption,
        f"{path}.consumesCounters",
        lambda consumed: consumed.counter_set,
    )
    if has_place:
        yield from _validate_device_place(device, path)
    elif (device.node_name, device.node_selector, device.all_nodes) != (None, None, None):
        yield invalid(path, None, NO_DEVICE_PLACES)
    yield from validate_binding(device, path)


def _shortened(key: str) -> str:
    data, rest = key.encode(), LONGEST_KEY - len("...")
    if len(data) <= LONGEST_KEY:
        return key
    return (data[: (rest + 1) // 2] + b"..." + data[-(rest // 2) :]).decode(errors="replace")


def _validate_attribute(attribute: DeviceAttribute, path: str) -> Iterator[Cause]:
    values = (attribute.int_, attribute.bool_, attribute.string, attribute.version)
    given = [value for value in values if value is not None]
    for wire, text in (("string", attribute.string), ("version", attribute.version)):
        if text is None:
            continue
        if wire == "version" and VERSION.fullmatch(text) is None:
            yield invalid(f"{path}.version", text, "must be a string compatible with semver.org spec 2.0.0")
        if len(text.encode()) > MAX_ATTRIBUTE:
            yield too_long(f"{path}.{wire}", MAX_ATTRIBUTE)
    if not given:
        yield invalid(path, "", ONE_VALUE)
    elif len(given) > 1:
        yield invalid(path, _Values(*values), ONE_VALUE)


def _validate_taint(taint: DeviceTaint, path: str) -> Iterator[Cause]:
    yield from validate_label_key(taint.key, f"{path}.key")
    if taint.value:
        yield from all_invalid(f"{path}.value", taint.value, names.label_value(taint.value))
    if not taint.effect:
        yield required(f"{path}.effect")
    elif taint.effect not in EFFECTS:
        yield not_supported(f"{path}.effect", taint.effect, EFFECTS)


def _validate_consumption(consumed: DeviceCounterConsumption, path: str) -> Iterator[Cause]:
    yield from _validate_counters(consumed.counter_set, "counterSet", consumed.counters, path)


def _validate_counter_set(counters: CounterSet, path: str) -> Iterator[Cause]:
    yield from _validate_counters(counters.name, "name", counters.counters, path)


def _validate_counters(name: str, wire: str, counters: dict[str, Counter], path: str) -> Iterator[Cause]:
    if not name:
        yield required(f"{path}.{wire}")
    else:
        yield from validate_label(name, f"{path}.{wire}")
    if not counters:
        yield required(f"{path}.counters")
    elif len(counters) > MAX_COUNTERS:
        yield too_many(f"{path}.counters", len(counters), MAX_COUNTERS)
    else:
        for counter in counters:
            yield from validate_label(counter, f"{path}.counters")


def _validate_device_place(device: Device, path: str) -> Iterator[Cause]:
    given = []
    if device.node_name:
        given.append("`nodeName`")
        yield from _validate_node(device.node_name, f"{path}.nodeName")
    elif device.node_name is not None:
        yield invalid(f"{path}.nodeName", device.node_name, "must not be empty")
    if device.node_selector is not None:
        given.append("`nodeSelector`")
        yield from validate_node_selector(device.node_selector, f"{path}.nodeSelector")
    if device.all_nodes:
        given.append("`allNodes`")
    elif device.all_nodes is not None:
        yield invalid(f"{path}.allNodes", device.all_nodes, UNSET_OR_TRUE)
    if not given:
        yield required(path, DEVICE_PLACES)
    elif len(given) > 1:
        yield invalid(path, f"{{{', '.join(given)}}}", DEVICE_PLACES)
