"""The stream of events: everything from RELIST on, to everyone who listens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podling.cri.interface import EventKind

if TYPE_CHECKING:
    from contract.cri.conftest import Kit


async def test_a_start_is_told(kit: Kit) -> None:
    async with kit.listening() as ears, kit.started("runs") as container_id:
        await ears.next(EventKind.STARTED, container_id)


async def test_everyone_who_listens_hears_of_an_exit(kit: Kit) -> None:
    async with kit.listening() as one, kit.listening() as two, kit.started("exits-3") as container_id:
        assert await one.next(EventKind.EXITED, container_id) == await two.next(
            EventKind.EXITED, container_id
        )


async def test_a_container_that_starts_again_and_again_is_heard_each_time(kit: Kit) -> None:
    """R-INIT-2: no exit of a failing init container is missed."""
    async with kit.listening() as ears, kit.sandbox() as (sandbox_id, config):
        for attempt in range(3):
            container = kit.container_config("exits-3")
            container.metadata.attempt = attempt
            container_id = await kit.runtime.create_container(sandbox_id, container, config)
            await kit.runtime.start_container(container_id)
            assert (await ears.next(EventKind.EXITED, container_id)).exit_code == 3
