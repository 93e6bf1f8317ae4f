"""Stopping: TERM first, and KILL when the time given is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import EventKind

if TYPE_CHECKING:
    from contract.cri.conftest import Kit


async def test_a_container_that_ends_on_term_ends_as_it_likes(kit: Kit) -> None:
    async with kit.listening() as ears, kit.started("runs") as container_id:
        await kit.runtime.stop_container(container_id, 20)
        status = await kit.runtime.container_status(container_id)
        assert (status.state, status.exit_code) == (pb.CONTAINER_EXITED, 7)
        assert (await ears.next(EventKind.EXITED, container_id)).exit_code == 7


async def test_a_container_that_ignores_term_is_killed_when_its_time_is_over(kit: Kit) -> None:
    async with kit.started("ignores-term") as container_id:
        await kit.runtime.stop_container(container_id, 1)
        status = await kit.runtime.container_status(container_id)
        assert (status.state, status.exit_code) == (pb.CONTAINER_EXITED, 137)
        assert status.finished_at - status.started_at >= 1_000_000_000


async def test_no_time_means_killed_at_once(kit: Kit) -> None:
    async with kit.started("ignores-term") as container_id:
        await kit.runtime.stop_container(container_id, 0)
        assert (await kit.runtime.container_status(container_id)).exit_code == 137


async def test_stopping_twice_is_no_fault(kit: Kit) -> None:
    async with kit.started("runs") as container_id:
        await kit.runtime.stop_container(container_id, 10)
        await kit.runtime.stop_container(container_id, 10)
        assert (await kit.runtime.container_status(container_id)).exit_code == 7
