"""What the node has and what of it is for pods (R-SYS-5)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from podling.apiserver.patch.strategic import lookup_of, strategic_merge_patch
from podling.kubelet.config import KubeletConfig
from podling.kubelet.host.machine import this_machine
from podling.kubelet.node.status import (
    RuntimeReport,
    allocatable,
    capacity,
    declared_features,
    differs,
    news,
    node_status,
    reserved,
    status_patch,
)
from podling.model.codec.fields import shape_of
from podling.model.codec.json import to_data
from podling.model.gates import Gates
from podling.model.quantity import Quantity
from podling.model.types.node import (
    ContainerImage,
    NodeAddress,
    NodeCondition,
    NodeFeatures,
    NodeRuntimeHandler,
    NodeStatus,
    NodeSwapStatus,
    NodeSystemInfo,
)

GIB = 1 << 30
MACHINE = replace(this_machine(Path("/")), cpus=4, memory=8 * GIB, disk=100 * GIB, huge_pages={2 << 20: GIB})


def config(system: dict[str, str] | None = None, kube: dict[str, str] | None = None) -> KubeletConfig:
    def amounts(texts: dict[str, str] | None) -> dict[str, Quantity]:
        return {name: Quantity(text) for name, text in (texts or {}).items()}

    return KubeletConfig(
        "n1", Path("/"), Path("/"), system_reserved=amounts(system), kube_reserved=amounts(kube)
    )


def test_the_capacity_is_the_machines() -> None:
    assert {name: str(amount) for name, amount in capacity(config(), MACHINE).items()} == {
        "cpu": "4",
        "ephemeral-storage": "100Gi",
        "hugepages-2Mi": "1Gi",
        "hugepages-1Gi": "0",
        "memory": "8Gi",
        "pods": "110",
    }


def test_pods_do_not_get_what_eviction_keeps_free_nor_huge_pages_as_memory() -> None:
    found = allocatable(config(), MACHINE)
    assert found["memory"] == Quantity.of_bytes(7 * GIB - 100 * 1024**2)
    assert found["ephemeral-storage"] == Quantity.of_bytes(90 * GIB)
    assert (str(found["cpu"]), str(found["hugepages-2Mi"]), str(found["pods"])) == ("4", "1Gi", "110")


def test_pods_do_not_get_what_is_reserved() -> None:
    made = config({"cpu": "500m", "memory": "1Gi"}, {"cpu": "500m", "ephemeral-storage": "1Ti"})
    assert {name: str(amount) for name, amount in reserved(made).items()} == {
        "cpu": "1",
        "memory": "1Gi",
        "ephemeral-storage": "1Ti",
    }
    found = allocatable(made, MACHINE)
    assert (str(found["cpu"]), str(found["ephemeral-storage"])) == ("3", "0")
    assert found["memory"] == Quantity.of_bytes(6 * GIB - 100 * 1024**2)


def _patched(status: NodeStatus) -> Any:
    return status_patch(status)["status"]


def test_a_patch_takes_back_what_is_no_longer_so() -> None:
    swap = NodeSwapStatus(capacity=GIB)
    full = NodeStatus(
        node_info=NodeSystemInfo(swap=swap),
        runtime_handlers=[NodeRuntimeHandler(name="")],
        features=NodeFeatures(supplemental_groups_policy=True),
    )
    bare = NodeStatus(images=[ContainerImage(names=["a:1"])])
    told, taken_back = (_patched(status) for status in (full, bare))
    assert (told["features"], told["images"]) == ({"supplementalGroupsPolicy": True}, None)
    assert told["nodeInfo"]["swap"] == {"capacity": GIB}
    assert (taken_back["features"], taken_back["runtimeHandlers"]) == (None, None)
    assert taken_back["nodeInfo"]["swap"] is None
    assert taken_back["images"] == [{"names": ["a:1"]}]


def test_news_are_conditions_that_have_changed() -> None:
    def status(**conditions: str) -> NodeStatus:
        return NodeStatus(
            conditions=[NodeCondition(type=type_, status=state) for type_, state in conditions.items()]
        )

    good = status(MemoryPressure="False", DiskPressure="False", PIDPressure="False", Ready="True")
    assert [*news(NodeStatus(), good)] == [
        "NodeHasSufficientMemory",
        "NodeHasNoDiskPressure",
        "NodeHasSufficientPID",
        "NodeReady",
    ]
    assert not [*news(good, good)]
    assert [*news(good, status(MemoryPressure="True", Ready="False"))] == [
        "NodeHasInsufficientMemory",
        "NodeNotReady",
    ]
    assert not [*news(NodeStatus(), status(Ready="False"))]
    assert [*news(status(Ready="Unknown"), status(Ready="True"))] == ["NodeReady"]


def test_addresses_of_both_families_come_in_their_order() -> None:
    """Whatever the node had before."""
    had = to_data(NodeStatus(addresses=[NodeAddress("Hostname", "n1"), NodeAddress("InternalIP", "fd00::1")]))
    two = replace(config(), node_ip="192.0.2.1", node_ip6="fd00::1")
    status = node_status(two, MACHINE, RuntimeReport(), NodeStatus(), datetime.now(UTC))
    merged = strategic_merge_patch(had, _patched(status), lookup_of(shape_of(NodeStatus)))
    assert [one["address"] for one in merged["addresses"]][:2] == ["192.0.2.1", "fd00::1"]
    assert len(merged["addresses"]) == 3


@pytest.mark.parametrize(
    "other",
    [
        {"runtime_handlers": [NodeRuntimeHandler(name="kata")]},
        {"features": NodeFeatures(supplemental_groups_policy=False)},
        {"declared_features": ["SomethingNew"]},
    ],
)
def test_news_of_what_the_node_can_are_written(other: dict[str, Any]) -> None:
    assert differs(NodeStatus(), NodeStatus(**other))


def test_swap_is_told_when_there_is_some() -> None:
    def told(swap: int) -> NodeSwapStatus | None:
        machine, now = replace(MACHINE, swap=swap), datetime(2026, 1, 1, tzinfo=UTC)
        return node_status(config(), machine, RuntimeReport(), NodeStatus(), now).node_info.swap

    assert told(0) is None
    assert told(GIB) == NodeSwapStatus(capacity=GIB)


def test_a_kubelet_that_does_not_resize_does_not_say_it_could() -> None:
    declared = declared_features(Gates({"InPlacePodVerticalScaling": False}))
    assert declared == ["ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits"]
