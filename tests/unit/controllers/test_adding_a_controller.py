"""The document that says how to add a controller is followed to the letter, and the controller works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.authz.roles import controller_roles
from podling.assemble.policy_types import type_check
from podling.model.types.core import Namespace
from podling.model.types.pod import Pod
from unit.recipe import code_of, extended, written

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

CONTROLLER, PLACE, RIGHTS = code_of("adding-a-controller.md")
MODULE, LIST = "podling.controllers.pod_counts", "podling.controllers.all"


@pytest.fixture
def every(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The lists of controllers, with the new one, which has its rights."""
    written(monkeypatch, MODULE, CONTROLLER)
    for name, rights in eval(f"{{{RIGHTS}}}", vars(controller_roles)).items():
        monkeypatch.setitem(controller_roles.RULES, name, rights)
    head = f"from {MODULE} import PodCounts\n"
    row = f"        {PLACE.strip()},\n"
    return extended(
        monkeypatch,
        LIST,
        {
            "from __future__ import annotations\n": head,
            '        GarbageCollector(accounts("generic-garbage-collector"), informers),\n': row,
        },
    )


async def test_it_does_its_work_among_the_others(every: Any, cluster: Cluster) -> None:
    # As a server does that starts where these rights are new.
    await cluster.server.have_default_roles()
    await cluster.pod("a")
    given = cluster.account, cluster.informers, cluster.events, cluster.clock
    await cluster.run(*every.rest(*given, None, type_check))

    async def counts() -> list[str | None]:
        found = [await cluster.client.get(Namespace, name) for name in ("ns", "default")]
        return [one.metadata.annotations.get("toys.example.com/pods") for one in found]

    assert await counts() == ["1", "0"]
    await cluster.pod("b")
    await cluster.client.delete(Pod, "a", "ns", grace_seconds=0)
    await cluster.pod("c")
    await cluster.settle()
    assert await counts() == ["2", "0"]
