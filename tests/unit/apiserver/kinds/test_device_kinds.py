"""Devices, their classes, and claims for them. `tests/peer/test_devices.py` asks Kubernetes about it all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.kinds.devices import (
    DeviceClasses,
    ResourceClaims,
    ResourceClaimTemplates,
    ResourceSlices,
)
from podling.apiserver.kinds.kind import Kind
from podling.apiserver.rules.devices.claim_status import validate_claim_status
from podling.model.codec.json import from_data
from podling.model.types.resource import ResourceClaimObject, ResourceClaimStatus
from unit.apiserver.kinds.test_kinds import NOW, faults, made

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

ASKED = {"name": "r", "exactly": {"deviceClassName": "c"}}
CLAIM = {"devices": {"requests": [ASKED]}}
SLICE = {"driver": "d", "pool": {"name": "p", "resourceSliceCount": 1}, "nodeName": "n"}
GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"
UID = "11111111-2222-3333-4444-555555555555"
RESULT = {"request": "r", "driver": "d", "pool": "p", "device": "e"}


def shared(policy: dict[str, Any]) -> dict[str, Any]:
    """A slice with a device of which claims share ten of something."""
    capacity = {"memory": {"value": "10", "requestPolicy": policy}}
    return {**SLICE, "devices": [{"name": "d", "allowMultipleAllocations": True, "capacity": capacity}]}


def with_status(status: dict[str, Any]) -> ResourceClaimObject:
    claim: ResourceClaimObject = made(ResourceClaims(), {"spec": CLAIM})
    claim.status = from_data(status, ResourceClaimStatus)
    return claim


@pytest.mark.parametrize(
    ("kind", "spec", "where"),
    [
        (DeviceClasses(), {"selectors": [{}]}, ["spec.selectors[0].cel"]),
        (DeviceClasses(), {"selectors": [{"cel": {"expression": "x" * 10_241}}]},
         ["spec.selectors[0].cel.expression"]),
        (DeviceClasses(), {"selectors": [{"cel": {"expression": text}} for text in (
            "device.driver == 'd'", "device.driver", "foo", "", "has(device.attributes)", "device.?x",
        )]}, [f"spec.selectors[{i}].cel.expression" for i in (1, 2, 3, 5)]),
        (DeviceClasses(), {"config": [{}]}, ["spec.config[0].opaque"]),
        (DeviceClasses(), {"config": [{"opaque": {"driver": "", "parameters": []}}]},
         ["spec.config[0].opaque.driver", "spec.config[0].opaque.parameters"]),
        (DeviceClasses(), {"extendedResourceName": "cpu"}, ["spec.extendedResourceName"]),
        (ResourceClaims(), {"devices": {"requests": [ASKED, ASKED]}}, ["spec.devices.requests[1]"]),
        (ResourceClaims(), {"devices": {"requests": [ASKED] * 33}}, ["spec.devices.requests"]),
        (ResourceClaims(), {"devices": {"requests": [{"name": "r"}]}}, ["spec.devices.requests[0]"]),
        (ResourceClaims(), {"devices": {"requests": [{**ASKED, "firstAvailable": [{}]}]}},
         ["spec.devices.requests[0]"]),
        (ResourceClaims(), {"devices": {"requests": [{"name": "r", "firstAvailable": [
            {"name": "s", "allocationMode": "All", "count": 1, "tolerations": [{"key": "-", "value": "-"}]},
        ]}]}}, [
            f"spec.devices.requests[0].firstAvailable[0].{field}"
            for field in ("deviceClassName", "count", "tolerations[0].key", "tolerations[0].value")
        ]),
        (ResourceClaims(), {"devices": {"requests": [ASKED], "constraints": [
            {"requests": ["r/s/t", "x"], "matchAttribute": "a"}, {},
        ], "config": [{"requests": ["r/s"], "opaque": {"driver": "d", "parameters": {}}}]}}, [
            "spec.devices.constraints[0].requests[0]",
            "spec.devices.constraints[0].requests[1]",
            "spec.devices.constraints[0].matchAttribute",
            "spec.devices.constraints[1]",
            "spec.devices.config[0].requests[0]",
        ]),
        (ResourceClaimTemplates(), {"metadata": {"name": "x", "labels": {"-": "a"}}, "spec": CLAIM},
         ["spec.metadata.labels", "spec.metadata.name"]),
        (ResourceSlices(), {**SLICE, "driver": "-", "pool": {"name": "a//b", "generation": -1}},
         ["spec.driver", "spec.pool.name", "spec.pool.resourceSliceCount", "spec.pool.generation"]),
        (ResourceSlices(), {**SLICE, "nodeName": None}, ["spec"]),
        (ResourceSlices(), {**SLICE, "allNodes": True, "nodeSelector": {}},
         ["spec.nodeSelector.nodeSelectorTerms"] * 2 + ["spec"]),
        (ResourceSlices(), {**SLICE, "devices": [{"name": "d", "allNodes": True}]}, ["spec.devices[0]"]),
        (ResourceSlices(), {**SLICE, "nodeName": None, "perDeviceNodeSelection": True, "devices": [
            {"name": "a"},
            {"name": "b", "nodeName": "-", "allNodes": True, "nodeSelector": {}},
            {"name": "c", "nodeName": "", "allNodes": False},
        ]}, [
            "spec.devices[0]",
            "spec.devices[1].nodeName", "spec.devices[1].nodeSelector.nodeSelectorTerms", "spec.devices[1]",
            "spec.devices[2].nodeName", "spec.devices[2].allNodes", "spec.devices[2]",
        ]),
        (ResourceSlices(), {**SLICE, "devices": [{"name": "d", "attributes": {
            "a": {"int": 1, "bool": True}, "b": {"version": "1"}, "c/d": {}, "e": {"string": "x" * 65},
        }}]}, [f"spec.devices[0].attributes[{name}" for name in ("a]", "b].version", "c/d]", "e].string")]),
        (ResourceSlices(), {**SLICE, "devices": [{"name": "d", "attributes": {"x" * 97: {}}}]}, [
            "spec.devices[0].attributes", f"spec.devices[0].attributes[{'x' * 47}...{'x' * 46}]",
        ]),
        (ResourceSlices(), {**SLICE, "devices": [{
            "name": "d",
            "taints": [{"effect": "Odd", "key": "a", "value": "-"}],
            "consumesCounters": [{}],
            "bindingConditions": ["a", "a"],
            "bindingFailureConditions": ["a"],
        }]}, [
            "spec.devices[0].taints[0].value", "spec.devices[0].taints[0].effect",
            "spec.devices[0].consumesCounters[0].counterSet", "spec.devices[0].consumesCounters[0].counters",
            "spec.devices[0].bindingConditions[1]", "spec.devices[0].bindingFailureConditions[0]",
        ]),
        (ResourceSlices(), {**SLICE, "sharedCounters": [{"name": "s", "counters": {"-": {"value": "1"}}}]},
         ["spec.sharedCounters[0].counters"]),
        (ResourceSlices(), shared({"default": "3", "validValues": ["2", "1", "11"]}), [
            f"spec.devices[0].capacity[memory].requestPolicy.validValues{at}" for at in ("[1]", "[2]", "")
        ]),
        (ResourceSlices(), shared({"default": "1", "validRange": {"min": "2", "max": "1", "step": "0"}}), [
            f"spec.devices[0].capacity[memory].requestPolicy.validRange.{at}" for at in ("min", "max", "step")
        ]),
        (ResourceSlices(), shared({"default": "2", "validRange": {"min": "1", "step": "2"}}),
         ["spec.devices[0].capacity[memory].requestPolicy.validRange.step"]),
    ],
)  # fmt: skip
def test_faults(kind: Kind[Any], spec: dict[str, Any], where: list[str]) -> None:
    assert [one.split(": ")[0] for one in faults(kind, made(kind, {"spec": spec}))] == where


def test_a_request_is_for_one_device_unless_it_says_more() -> None:
    asked = made(ResourceClaims(), {"spec": CLAIM}).spec.devices.requests[0].exactly
    assert (asked.allocation_mode, asked.count) == ("ExactCount", 1)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({}, "pending"),
        ({"allocation": {}}, "allocated"),
        ({"allocation": {}, "reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}]},
         "allocated,reserved"),
    ],
)  # fmt: skip
def test_the_state_of_a_claim(status: dict[str, Any], state: str) -> None:
    claim = with_status(status)
    assert ResourceClaims().row(claim, NOW)[1] == state


@pytest.mark.parametrize(
    ("status", "where"),
    [
        ({"reservedFor": [{}]},
         [f"status.reservedFor{at}" for at in ("[0].resource", "[0].name", "[0].uid", "")]),
        ({"allocation": {"devices": {"results": [{**RESULT, "request": "x", "shareID": "y"}]}}},
         [f"status.allocation.devices.results[0].{field}" for field in ("request", "shareID")]),
        ({"allocation": {"nodeSelector": {}, "devices": {"config": [{}, {"source": "Odd"}]}}}, [
            "status.allocation.devices.config[0].source", "status.allocation.devices.config[0].opaque",
            "status.allocation.devices.config[1].source", "status.allocation.devices.config[1].opaque",
            "status.allocation.nodeSelector.nodeSelectorTerms",
        ]),
        ({"allocation": {"devices": {"results": [{**RESULT, "shareID": UID}]}}, "devices": [
            {"driver": "d", "pool": "p", "device": "e", "shareID": UID, "data": 1, "networkData": {
                "interfaceName": "i" * 257, "hardwareAddress": "h" * 129, "ips": ["10.0.0.1", "10.0.0.1/024"],
            }},
            {"driver": "d", "pool": "p", "device": "e"},
        ]}, [
            *(f"status.devices[0].{field}" for field in (
                "data", "networkData.interfaceName", "networkData.hardwareAddress", "networkData.ips[0]",
                "networkData.ips[1]",
            )),
            "status.devices[1]",
        ]),
    ],
)  # fmt: skip
def test_faults_of_a_status(status: dict[str, Any], where: list[str]) -> None:
    faults = validate_claim_status(with_status(status), with_status({}))
    assert [cause.field for cause in faults] == where


@pytest.mark.parametrize(
    ("uid", "why"),
    [
        ("x", "error validating uid: invalid UUID length: 1"),
        ("1" * 36, "error validating uid: invalid UUID format"),
        (f"({UID})", "error validating uid: invalid bracketed UUID format"),
        (f"urn:xxxx:{UID}", 'error validating uid: invalid urn prefix: "urn:xxxx:"'),
        ("1" * 32, "uid must be in RFC 4122 normalized form"),
        (f"{{{UID}}}", "uid must be in RFC 4122 normalized form"),
        (f"urn:uuid:{UID}", "uid must be in RFC 4122 normalized form"),
    ],
)
def test_the_id_of_a_share(uid: str, why: str) -> None:
    new = with_status({"allocation": {"devices": {"results": [{**RESULT, "shareID": uid}]}}})
    assert [why in cause.message for cause in validate_claim_status(new, with_status({}))] == [True]


def test_what_of_a_slice_may_not_change() -> None:
    kind = ResourceSlices()
    old, new = (made(kind, {"spec": SLICE}) for _ in range(2))
    new.spec.driver, new.spec.pool.name, new.spec.node_name = "e", "q", "m"
    where = [cause.field for cause in kind.validate_update(new, old)]
    assert where == ["spec.pool.name", "spec.driver", "spec.nodeName"]


def test_a_driver_in_capitals_is_warned_of() -> None:
    kind = ResourceSlices()
    assert kind.warnings(made(kind, {"spec": {**SLICE, "driver": "D"}}))
    assert not kind.warnings(made(kind, {"spec": SLICE}))


async def test_a_taint_is_there_since_it_was_written(api: Conversation) -> None:
    spec = {**SLICE, "devices": [{"name": "d", "taints": [{"key": "k", "effect": "None"}]}]}
    answer = await api.post(f"{GROUP}/resourceslices", {"metadata": {"name": "s"}, "spec": spec})
    assert answer.body["spec"]["devices"][0]["taints"][0]["timeAdded"]


async def test_admin_access_needs_a_labelled_namespace(api: Conversation) -> None:
    wanted = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": "c", "adminAccess": True}}
    ]}}}  # fmt: skip
    refused = await api.post(CLAIMS, wanted)
    assert refused.status == 422 and "adminAccess: Forbidden: admin access" in refused.message
    label = {"resource.kubernetes.io/admin-access": "true"}
    await api.patch("/api/v1/namespaces/default", {"metadata": {"labels": label}})
    assert (await api.post(CLAIMS, wanted)).status == 201


async def test_a_device_without_a_share_is_managed_by_the_keys_it_has(api: Conversation) -> None:
    await api.post(CLAIMS, {"metadata": {"name": "c"}, "spec": CLAIM})
    device = {"driver": "d", "pool": "p", "device": "e"}
    status = {"allocation": {"devices": {"results": [RESULT]}}, "devices": [device]}
    told = await api.patch(f"{CLAIMS}/c/status", {"status": status})
    managed = told.body["metadata"]["managedFields"][1]["fieldsV1"]["f:status"]["f:devices"]
    assert list(managed) == [".", 'k:{"device":"e","driver":"d","pool":"p"}']


async def test_what_was_said_of_a_device_goes_with_it(api: Conversation) -> None:
    await api.post(CLAIMS, {"metadata": {"name": "c"}, "spec": CLAIM})
    device = {"driver": "d", "pool": "p", "device": "e", "shareID": UID}
    status = {"allocation": {"devices": {"results": [{**device, "request": "r"}]}}, "devices": [device]}
    told = await api.patch(f"{CLAIMS}/c/status", {"status": status})
    assert len(told.body["status"]["devices"]) == 1
    refused = await api.patch(f"{CLAIMS}/c/status", {"status": {"allocation": {"devices": {"results": []}}}})
    assert refused.status == 422 and "status.allocation: Invalid value" in refused.message
    freed = await api.patch(f"{CLAIMS}/c/status", {"status": {"allocation": None}})
    assert freed.body["status"] == {}
