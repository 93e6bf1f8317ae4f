"""What the node has and what of it is for pods (R-SYS-5)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from podling.kubelet.config import KubeletConfig
from podling.kubelet.node.machine import this_machine
from podling.kubelet.node.node_status import allocatable, capacity, reserved
from podling.model.quantity import Quantity

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
