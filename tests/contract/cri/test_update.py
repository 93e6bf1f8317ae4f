"""Resources of a running container are changed in place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import RuntimeFault

if TYPE_CHECKING:
    from contract.cri.conftest import Kit

LESS, MORE = 32 << 20, 64 << 20


def resources(memory: int) -> pb.LinuxContainerResources:
    return pb.LinuxContainerResources(
        cpu_shares=512, memory_limit_in_bytes=memory, memory_swap_limit_in_bytes=memory
    )


async def test_an_update_that_comes_too_late_is_no_fault(kit: Kit) -> None:
    async with kit.sandbox() as (sandbox_id, config):
        container_id = await kit.runtime.create_container(sandbox_id, kit.container_config("runs"), config)
        await kit.runtime.start_container(container_id)
        await kit.runtime.update_container_resources(container_id, resources(MORE))
        await kit.runtime.stop_container(container_id, 0)
        await kit.runtime.update_container_resources(container_id, resources(LESS))


async def test_what_is_not_there_is_not_found(kit: Kit) -> None:
    with pytest.raises(RuntimeFault) as fault:
        await kit.runtime.update_container_resources("f" * 64, resources(MORE))
    assert fault.value.code == "NOT_FOUND"


@pytest.mark.containerd
@pytest.mark.parametrize(("before", "after"), [(LESS, MORE), (MORE, LESS)])
async def test_the_kernel_is_told_up_and_down(containerd_kit: Kit, before: int, after: int) -> None:
    runtime = containerd_kit.runtime
    container = containerd_kit.container_config("runs")
    container.linux.resources.CopyFrom(resources(before))
    async with containerd_kit.sandbox() as (sandbox_id, config):
        container_id = await runtime.create_container(sandbox_id, container, config)
        await runtime.start_container(container_id)
        await runtime.update_container_resources(container_id, resources(after))
        assert memory_limit(containerd_kit.cgroup_parent, container_id) == after


def memory_limit(parent: str, container_id: str) -> int:
    below = Path(parent.lstrip("/")) / container_id
    v1 = Path("/sys/fs/cgroup/memory") / below / "memory.limit_in_bytes"
    v2 = Path("/sys/fs/cgroup") / below / "memory.max"
    return int((v1 if v1.exists() else v2).read_text())
