"""The order of a resize: no container is ever allowed more than its pod, and nothing is killed for it
(R-SYS-5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from msgspec.structs import replace

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.config import KubeletConfig
from podling.kubelet.host.cgroups import CgroupLimits
from podling.kubelet.pod.sandbox import NodeFacts
from podling.kubelet.worker.context import NodeContext
from podling.kubelet.worker.observe import PodRecord
from podling.kubelet.worker.resources import PodResize
from podling.model.quantity import Quantity
from podling.model.types.container import ResourceRequirements
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene


class World:
    """Cgroups and runtime that write down what they are told, in one list. `usage` is the memory in use, by
    container id, "" being the pod."""

    def __init__(self, now: Any) -> None:
        self.told: list[str] = []
        self.usage: dict[str, int] = {}
        self._now = now

    def weigh(self, pod: Pod) -> None:
        pass

    def write(self, pod: Pod, limits: CgroupLimits) -> None:
        self.told.append(f"pod {limits.cpu_shares} {limits.cpu_quota} {limits.memory}")

    def memory_usage(self, pod: Pod, container_id: str = "") -> int:
        return self.usage.get(container_id, 0)

    async def update_container_resources(self, id_: str, resources: pb.LinuxContainerResources) -> None:
        self.told.append(f"{id_} {resources.cpu_quota} {resources.memory_limit_in_bytes}")

    def now(self) -> Any:
        return self._now


@dataclass
class Node:
    """As much of a node as a resize needs."""

    cgroups: World
    runtime: World
    clock: World
    facts: NodeFacts
    config: KubeletConfig


def limits(cpu: str, memory: str) -> ResourceRequirements:
    amounts = {"cpu": Quantity(cpu), "memory": Quantity(memory)}
    return ResourceRequirements(requests=amounts, limits=amounts)


Case = Callable[..., tuple[World, PodRecord, PodResize, Pod]]


@pytest.fixture
def case(scene: type[Scene], tmp_path: Path) -> Case:
    """A pod that runs with `has` and was given `given`, both by container."""

    def make(
        has: dict[str, ResourceRequirements], given: dict[str, ResourceRequirements]
    ) -> tuple[World, PodRecord, PodResize, Pod]:
        world, record = World(scene.NOW), PodRecord()
        node = Node(world, world, world, NodeFacts("n1"), KubeletConfig("n1", tmp_path, tmp_path))
        resize = PodResize(cast(NodeContext, node), record)
        pod = scene.pod(" ".join(has))
        observed = scene.observed(pod, " ".join(f"{name}=run" for name in has))
        for container in pod.spec.containers:
            container.resources = has[container.name]
        resize.make(pod)
        for sandbox in observed.sandboxes:
            record.put_sandbox(sandbox)
        for seen in observed.containers:
            record.put_container(replace(seen, resources=has[seen.name]))
        for container in pod.spec.containers:
            container.resources = given[container.name]
        record.limits_settled = False
        world.told.clear()
        return world, record, resize, pod

    return make


async def test_the_pod_rises_first(case: Case) -> None:
    world, record, resize, pod = case({"a": limits("1", "100")}, {"a": limits("2", "200")})
    await resize.apply(pod)
    assert world.told == ["pod 2048 200000 200", "a-0 200000 200"]
    assert record.limits_settled


async def test_the_pod_falls_last(case: Case) -> None:
    world, record, resize, pod = case({"a": limits("2", "200")}, {"a": limits("1", "100")})
    await resize.apply(pod)
    assert world.told == ["a-0 100000 100"]
    assert not record.limits_settled
    await resize.apply(pod)
    assert world.told[1:] == ["pod 1024 100000 100"]
    assert record.limits_settled


async def test_a_pod_has_what_it_asks_for_as_a_whole_when_its_cgroup_has(case: Case) -> None:
    world, record, resize, pod = case({"a": limits("1", "100")}, {"a": limits("1", "100")})
    pod.spec.resources = limits("4", "400")
    world.usage = {"": 50}
    await resize.apply(pod)
    assert world.told == ["pod 4096 400000 400"]
    assert (record.limits_settled, record.actuated) == (True, limits("4", "400"))
    pod.spec.resources = limits("4", "40")
    record.limits_settled = False
    await resize.apply(pod)
    assert record.resize_failure is not None
    assert record.actuated == limits("4", "400")


async def test_one_rises_while_another_falls(case: Case) -> None:
    world, _, resize, pod = case(
        {"a": limits("1", "100"), "b": limits("2", "300")}, {"a": limits("2", "300"), "b": limits("1", "200")}
    )
    await resize.apply(pod)
    await resize.apply(pod)
    assert world.told == ["pod 3072 300000 500", "a-0 200000 300", "b-0 100000 200"]


async def test_memory_in_use_is_not_taken_away(case: Case) -> None:
    world, record, resize, pod = case({"a": limits("1", "200")}, {"a": limits("1", "100")})
    world.usage = {"a-0": 150}
    await resize.apply(pod)
    assert world.told == []
    assert record.resize_failure is not None
    assert record.resize_failure.message == (
        'attempting to set container "a" memory limit (100) below current usage (150)'
    )
    world.usage = {"": 150}
    await resize.apply(pod)
    await resize.apply(pod)
    assert world.told == ["a-0 100000 100"]
    assert (
        record.resize_failure.message == "attempting to set pod memory limit (100) below current usage (150)"
    )
    world.usage = {}
    await resize.apply(pod)
    assert world.told[1:] == ["pod 1024 100000 100"]
    assert record.resize_failure is None
