"""A pod on a node, in a namespace that has to be made: its service account comes a moment later, or never."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, cast

import pytest

from podling.client.https import HttpsTransport
from podling.debug.container import Wish
from podling.debug.copies import Copy
from podling.model.codec import json
from podling.model.errors import StatusError, not_found
from podling.model.types.pod import Pod
from podling.remote.adding import Request
from podling.remote.debugging import ACCOUNT, Aside, debug_node
from podling.remote.pods import Cluster
from podling.remote.terminal import Narrator

NO_ACCOUNT = StatusError(
    403, "Forbidden", 'pods "x" is forbidden: error looking up service account debug/default: not found'
)
REFUSED = StatusError(403, "Forbidden", 'pods "x" is forbidden: violates PodSecurity')


class Empty(Cluster):
    """Without the namespace; what refuses pods in it once it is there, so many seconds long."""

    def __init__(self, refusal: StatusError, seconds: float) -> None:
        super().__init__(cast(HttpsTransport, None))
        self.refusal, self.seconds = refusal, seconds
        self.made: float | None = None
        self.pods: list[str] = []

    async def create_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        self.made = asyncio.get_running_loop().time()

    async def create(self, pod: Mapping[str, Any], *, dry_run: bool = False) -> Pod:
        if self.made is None:
            raise not_found("namespaces", "debug")
        if asyncio.get_running_loop().time() < self.made + self.seconds:
            raise self.refusal
        if not dry_run:
            self.pods.append(pod["metadata"]["name"])
        return json.from_data(dict(pod), Pod)


async def debugged(cluster: Cluster) -> float:
    """How long it took."""
    request = Request("debug", "", Wish(), attach=False)
    began = asyncio.get_running_loop().time()
    await debug_node(cluster, request, "n1", Aside(Copy("x")), Narrator(quiet=True))
    return asyncio.get_running_loop().time() - began


def test_the_account_is_waited_for(in_no_time: Callable[[Coroutine[Any, Any, None]], None]) -> None:
    async def story() -> None:
        cluster = Empty(NO_ACCOUNT, 3.0)
        assert 3.0 <= await debugged(cluster) < ACCOUNT
        assert cluster.pods == ["x"]

    in_no_time(story())


@pytest.mark.parametrize(("refusal", "least"), [(NO_ACCOUNT, ACCOUNT), (REFUSED, 0.0)])
def test_what_does_not_come_is_told(
    in_no_time: Callable[[Coroutine[Any, Any, None]], None], refusal: StatusError, least: float
) -> None:
    """In bounded time, and at once if it is another refusal."""

    async def story() -> None:
        now = asyncio.get_running_loop().time
        began = now()
        with pytest.raises(StatusError) as refused:
            await debugged(Empty(refusal, 1000.0))
        assert refused.value is refusal
        assert least <= now() - began <= 2 * least

    in_no_time(story())
