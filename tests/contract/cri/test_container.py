"""The life of a container: created, started, ended by itself, removed; and what happens when it cannot
start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import EventKind, RuntimeFault

if TYPE_CHECKING:
    from contract.cri.conftest import Kit


async def test_a_container_is_created_then_runs_then_is_gone(kit: Kit) -> None:
    async with kit.sandbox() as (sandbox_id, config):
        container = kit.container_config("runs", labels={"name": "app"})
        container_id = await kit.runtime.create_container(sandbox_id, container, config)
        created = await kit.runtime.container_status(container_id)
        assert (created.state, created.started_at) == (pb.CONTAINER_CREATED, 0)
        assert created.metadata == container.metadata

        await kit.runtime.start_container(container_id)
        started = await kit.runtime.container_status(container_id)
        assert started.state == pb.CONTAINER_RUNNING
        assert started.started_at >= started.created_at == created.created_at
        assert started.image_ref

        await kit.runtime.stop_container(container_id, 10)
        await kit.runtime.remove_container(container_id)
        with pytest.raises(RuntimeFault) as fault:
            await kit.runtime.container_status(container_id)
        assert fault.value.code == "NOT_FOUND"


@pytest.mark.parametrize(("does", "code", "reason"), [("exits-0", 0, "Completed"), ("exits-3", 3, "Error")])
async def test_an_exit_is_told_with_its_code(kit: Kit, does: str, code: int, reason: str) -> None:
    """R-INIT-1: the next init container starts when this one exited 0, which has to be known at once."""
    async with kit.listening() as ears, kit.started(does) as container_id:
        event = await ears.next(EventKind.EXITED, container_id)
        assert event.exit_code == code
        status = await kit.ended(container_id)
        assert (status.exit_code, status.reason) == (code, reason)
        # Not compared with started_at: containerd takes that when its call is over, after a short container's
        # end.
        assert status.created_at < event.finished_at == status.finished_at


async def test_a_container_may_be_removed_the_moment_its_exit_is_told(kit: Kit) -> None:
    async with kit.listening() as ears, kit.started("exits-0") as container_id:
        await ears.next(EventKind.EXITED, container_id)
        await kit.until_done(lambda: kit.runtime.remove_container(container_id))
        assert container_id not in {container.id for container in await kit.runtime.list_containers()}


async def test_containers_are_listed_by_labels_with_their_sandbox(kit: Kit) -> None:
    async with kit.sandbox() as (sandbox_id, config):
        ids = {}
        for name in ("one", "two"):
            container = kit.container_config("runs", labels={"pod": sandbox_id, "name": name})
            ids[name] = await kit.runtime.create_container(sandbox_id, container, config)
        listed = await kit.runtime.list_containers({"pod": sandbox_id})
        assert {container.id for container in listed} == set(ids.values())
        assert {container.pod_sandbox_id for container in listed} == {sandbox_id}
        assert [c.id for c in await kit.runtime.list_containers({"pod": sandbox_id, "name": "two"})] == [
            ids["two"]
        ]


async def test_a_container_cannot_be_started_twice(kit: Kit) -> None:
    """R-EPH-3 stands on this: whoever crashes between start and record cannot start it again."""
    async with kit.started("runs") as container_id:
        with pytest.raises(RuntimeFault):
            await kit.runtime.start_container(container_id)


async def test_what_is_not_there_is_not_found(kit: Kit) -> None:
    config = kit.sandbox_config()
    for call in (
        kit.runtime.pod_sandbox_status("none"),
        kit.runtime.container_status("none"),
        kit.runtime.start_container("none"),
        kit.runtime.exec_sync("none", ["true"], 1),
        kit.runtime.create_container("none", kit.container_config("runs"), config),
    ):
        with pytest.raises(RuntimeFault) as fault:
            await call
        assert fault.value.code == "NOT_FOUND"


async def test_removing_what_is_not_there_is_no_fault(kit: Kit) -> None:
    await kit.runtime.remove_container("none")
    await kit.runtime.remove_pod_sandbox("none")


async def test_a_container_of_an_absent_image_is_refused(kit: Kit) -> None:
    async with kit.sandbox() as (sandbox_id, config):
        container = kit.container_config("runs", image=pb.ImageSpec(image="podling.test/absent:1"))
        with pytest.raises(RuntimeFault) as fault:
            await kit.runtime.create_container(sandbox_id, container, config)
        assert fault.value.code == "NOT_FOUND"


@pytest.mark.containerd
async def test_the_same_attempt_can_be_created_again_only_when_it_was_removed(containerd_kit: Kit) -> None:
    async with containerd_kit.sandbox() as (sandbox_id, config):
        runtime, container = containerd_kit.runtime, containerd_kit.container_config("runs")
        container_id = await runtime.create_container(sandbox_id, container, config)
        with pytest.raises(RuntimeFault, match="reserved"):
            await runtime.create_container(sandbox_id, container, config)
        await runtime.remove_container(container_id)
        assert await runtime.create_container(sandbox_id, container, config) != container_id
