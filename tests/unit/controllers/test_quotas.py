"""R-SYS-3: what a namespace uses is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers import quotas
from podling.controllers.quotas import QUIET, ResourceQuotas
from podling.model.errors import StatusError
from podling.model.quantity import Quantity
from podling.model.types.core import ConfigMap, ResourceQuota
from podling.model.types.meta import KubeObject, ObjectMeta
from podling.model.types.pod import Pod
from podling.model.types.service import Service

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster


@pytest.fixture
async def started(cluster: Cluster) -> Cluster:
    await cluster.run(ResourceQuotas(cluster.account("resourcequota-controller"), cluster.informers))
    return cluster


async def quota(cluster: Cluster, **hard: str) -> None:
    named = {name.replace("_", "/"): value for name, value in hard.items()}
    await cluster.make(ResourceQuota, "q", spec={"hard": named})
    await cluster.settle()


async def used(cluster: Cluster) -> dict[str, str]:
    status = (await cluster.client.get(ResourceQuota, "q", "ns")).status
    assert status.hard.keys() == status.used.keys()
    return {name: str(amount) for name, amount in status.used.items()}


async def test_what_is_there_is_counted(started: Cluster) -> None:
    await started.make(ConfigMap, "a")
    await started.make(ConfigMap, "a", "default")
    await started.pod("p")
    await started.make(Service, "s", spec={"type": "NodePort", "ports": [{"port": 80}]})
    await quota(started, configmaps="5", pods="5", **{"services.nodeports": "5", "count_pods": "5"})
    assert await used(started) == {
        "configmaps": "1",
        "pods": "1",
        "services.nodeports": "1",
        "count/pods": "1",
    }


async def test_what_goes_is_free_again(started: Cluster) -> None:
    await quota(started, pods="1")
    await started.pod("p")
    with pytest.raises(StatusError, match="exceeded quota: q"):
        await started.pod("q")
    await started.client.delete(Pod, "p", "ns")
    await started.settle()
    assert await used(started) == {"pods": "0"}
    await started.pod("q")


async def test_a_pod_that_is_over_uses_only_its_place(started: Cluster) -> None:
    await quota(started, pods="1", count_pods="1")
    await started.pod("p")
    await started.client.patch(Pod, "p", "ns", {"status": {"phase": "Succeeded"}}, subresource="status")
    await started.settle()
    assert await used(started) == {"pods": "0", "count/pods": "1"}


async def test_another_limit_is_taken_over(started: Cluster) -> None:
    await quota(started, pods="1")
    await started.client.patch(ResourceQuota, "q", "ns", {"spec": {"hard": {"pods": "2"}}})
    await started.settle()
    assert str((await started.client.get(ResourceQuota, "q", "ns")).status.hard["pods"]) == "2"


async def test_what_somebody_else_wrote_does_not_stand(
    started: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "QUIET", 0.0)
    await started.make(ConfigMap, "a")
    await quota(started, configmaps="5")
    wrong = {"hard": {"configmaps": "9"}, "used": {"configmaps": "4", "pods": "7"}}
    await started.client.patch(ResourceQuota, "q", "ns", {"status": wrong}, subresource="status")
    await started.settle()
    assert await used(started) == {"configmaps": "1"}
    assert str((await started.client.get(ResourceQuota, "q", "ns")).status.hard["configmaps"]) == "5"


def test_a_status_that_is_being_written_is_left_alone(
    in_no_time: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    async def story() -> None:
        told = Told()
        controller = ResourceQuotas(told, told)  # type: ignore[arg-type]
        told.write(0)
        controller.queue.done(await controller.queue.get())
        for count in range(1, 50):
            told.write(count)
            await asyncio.sleep(QUIET * 0.9)
            assert not len(controller.queue), "admission may be letting something pass"
        await asyncio.sleep(QUIET)
        assert len(controller.queue) == 1
        controller.queue.close()

    in_no_time(story())


class Told:
    """Informers that are told by hand, of one quota."""

    def __init__(self) -> None:
        self._handlers: list[Any] = []
        self._quota: ResourceQuota | None = None

    def of(self, type_: type[KubeObject]) -> Any:
        return self if type_ is ResourceQuota else Told()

    def subscribe(self, handler: Any) -> None:
        self._handlers.append(handler)

    def items(self) -> list[ResourceQuota]:
        return [self._quota] if self._quota else []

    def write(self, used: int) -> None:
        new = ResourceQuota(metadata=ObjectMeta(name="q", namespace="ns"))
        new.status.used = {"pods": Quantity(str(used))}
        old, self._quota = self._quota, new
        for handler in self._handlers:
            handler(old, new)
