"""Doing what hooks say, to a real server on the loopback. Commands and waiting: `stories/test_hooks.py`."""

from __future__ import annotations

import pytest
from aiohttp import web

from podling.cri.hollow.runtime import HollowRuntime
from podling.kubelet.probes.check import Target
from podling.kubelet.probes.hooks import HookError, run_hook
from podling.model.types.container import (
    Container,
    ContainerPort,
    HTTPGetAction,
    HTTPHeader,
    LifecycleHandler,
)
from ports import free_port

HOST = "127.0.0.1"


async def tell(port: int | str, *ports: ContainerPort, scheme: str = "HTTP") -> None:
    secret = [HTTPHeader(name="Authorization", value="secret")] * 2
    action = HTTPGetAction(port=port, path="/stopping", scheme=scheme, http_headers=secret)
    hook = LifecycleHandler(http_get=action)
    target = Target(Container(name="c", ports=list(ports)), "id", HOST)
    await run_hook(HollowRuntime({}), hook, target, "kube-lifecycle/1.36")


@pytest.mark.parametrize(
    ("status", "scheme", "secret"),
    [(200, "HTTP", "secret"), (404, "HTTP", "secret"), (500, "HTTP", "secret"), (200, "HTTPS", None)],
)
async def test_a_container_is_told_over_http_whatever_it_answers(
    status: int, scheme: str, secret: str | None
) -> None:
    """Also one that should speak TLS and does not, without what is to be kept secret."""
    told = []

    async def answer(request: web.BaseRequest) -> web.Response:
        told.append((request.path, request.headers["User-Agent"], request.headers.get("Authorization")))
        return web.Response(status=status)

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, HOST, 0).start()
    try:
        port = ContainerPort(name="web", container_port=runner.addresses[0][1])
        await tell("web", port, scheme=scheme)
    finally:
        await runner.cleanup()
    assert told == [("/stopping", "kube-lifecycle/1.36", secret)]


async def test_one_that_cannot_be_told_fails_the_hook() -> None:
    with pytest.raises(HookError, match="connection refused"):
        await tell(free_port())
    with pytest.raises(HookError, match=r'strconv\.Atoi: parsing "web": invalid syntax'):
        await tell("web")
