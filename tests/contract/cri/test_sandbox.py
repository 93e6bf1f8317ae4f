"""The life of a sandbox: run, seen, stopped, removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import EventKind, RuntimeFault

if TYPE_CHECKING:
    from contract.cri.conftest import Kit


async def test_a_sandbox_that_runs_is_ready_and_has_an_address(kit: Kit) -> None:
    async with kit.sandbox(labels={"app": "web"}, annotations={"note": "kept"}) as (sandbox_id, config):
        status = await kit.runtime.pod_sandbox_status(sandbox_id)
        assert status.id == sandbox_id
        assert status.state == pb.SANDBOX_READY
        assert status.metadata == config.metadata
        assert status.created_at > 0
        assert status.network.ip
        assert dict(status.labels) == {"app": "web"}
        assert dict(status.annotations) == {"note": "kept"}


async def test_sandboxes_are_listed_by_labels(kit: Kit) -> None:
    async with (
        kit.sandbox(labels={"pod": "a"}) as (first, _),
        kit.sandbox(labels={"pod": "b"}) as (second, _),
    ):
        listed = await kit.runtime.list_pod_sandbox()
        assert {first, second} <= {sandbox.id for sandbox in listed}
        assert [sandbox.id for sandbox in await kit.runtime.list_pod_sandbox({"pod": "b"})] == [second]


async def test_two_sandboxes_have_two_addresses(kit: Kit) -> None:
    async with kit.sandbox() as (first, _), kit.sandbox() as (second, _):
        one, two = [await kit.runtime.pod_sandbox_status(sandbox_id) for sandbox_id in (first, second)]
        assert one.network.ip != two.network.ip


async def test_a_stopped_sandbox_is_not_ready_and_its_containers_have_ended(kit: Kit) -> None:
    async with kit.sandbox() as (sandbox_id, config):
        container_id = await kit.runtime.create_container(sandbox_id, kit.container_config("runs"), config)
        await kit.runtime.start_container(container_id)
        await kit.runtime.stop_pod_sandbox(sandbox_id)
        assert (await kit.runtime.pod_sandbox_status(sandbox_id)).state == pb.SANDBOX_NOTREADY
        assert (await kit.runtime.container_status(container_id)).state == pb.CONTAINER_EXITED


async def test_the_end_of_a_sandbox_is_told(kit: Kit) -> None:
    async with kit.listening() as ears, kit.sandbox() as (sandbox_id, _):
        await kit.runtime.stop_pod_sandbox(sandbox_id)
        assert (await ears.next(EventKind.EXITED, sandbox_id)).finished_at > 0


async def test_a_removed_sandbox_is_not_found_and_its_containers_are_gone(kit: Kit) -> None:
    async with kit.sandbox() as (sandbox_id, config):
        container_id = await kit.runtime.create_container(sandbox_id, kit.container_config("runs"), config)
        await kit.runtime.stop_pod_sandbox(sandbox_id)
        await kit.runtime.remove_pod_sandbox(sandbox_id)
        with pytest.raises(RuntimeFault) as sandbox_fault:
            await kit.runtime.pod_sandbox_status(sandbox_id)
        with pytest.raises(RuntimeFault) as container_fault:
            await kit.runtime.container_status(container_id)
        assert (sandbox_fault.value.code, container_fault.value.code) == ("NOT_FOUND", "NOT_FOUND")
        await kit.runtime.remove_pod_sandbox(sandbox_id)
