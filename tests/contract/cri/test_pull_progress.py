"""What a containerd tells of a pull that stands still, and that it lets go of one nobody waits for."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

if TYPE_CHECKING:
    from contract.cri.conftest import Kit

pytestmark = pytest.mark.containerd

HALF = bytes(2 << 20)
SEEN = 512 << 10
"""containerd notes what it has received in pieces of so many bytes, or more."""
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def described(media_type: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": size}


class Halting:
    """A registry that sends half of a layer, and no more."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.layer = "5" * 64
        files = {"type": "layers", "diff_ids": [f"sha256:{self.layer}"]}
        config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": files}).encode()
        name = hashlib.sha256(config).hexdigest()
        layer = described("application/vnd.oci.image.layer.v1.tar", self.layer, 2 * len(HALF))
        told = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": described("application/vnd.oci.image.config.v1+json", name, len(config)),
            "layers": [layer],
        }
        self.manifest = json.dumps(told).encode()
        self.blobs = {f"sha256:{name}": config}

    async def serve_manifest(self, request: web.Request) -> web.Response:
        digest = f"sha256:{hashlib.sha256(self.manifest).hexdigest()}"
        headers = {"Docker-Content-Digest": digest, "Content-Type": MANIFEST}
        return web.Response(body=self.manifest, headers=headers)

    async def serve_blob(self, request: web.Request) -> web.StreamResponse:
        if blob := self.blobs.get(request.match_info["digest"]):
            return web.Response(body=blob)
        answer = web.StreamResponse(headers={"Content-Length": str(2 * len(HALF))})
        await answer.prepare(request)
        await answer.write(HALF)
        with suppress(OSError, asyncio.CancelledError):
            while request.transport is not None and not request.transport.is_closing():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        self.left.set()
        return answer


@pytest.fixture
async def halting() -> AsyncIterator[tuple[Halting, str]]:
    """With the reference of its image."""
    registry, app = Halting(), web.Application()
    app.router.add_get("/v2/team/app/manifests/{tag}", registry.serve_manifest)
    app.router.add_get("/v2/team/app/blobs/{digest}", registry.serve_blob)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    yield registry, f"127.0.0.1:{port}/team/app:1"
    await runner.cleanup()


async def test_a_pull_that_stands_still_shows_how_far_it_has_come_and_ends_when_it_is_cancelled(
    containerd_kit: Kit, halting: tuple[Halting, str]
) -> None:
    registry, image = halting
    runtime = containerd_kit.runtime
    assert await runtime.pull_progress() == frozenset()
    layer = f"layer-sha256:{registry.layer}"
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        pull = tasks.create_task(runtime.pull_image(image))
        while dict(await runtime.pull_progress() or ()).get(layer, 0) < SEEN:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        seen = None
        while (now := await runtime.pull_progress()) != seen:
            await asyncio.sleep(0.3)
            seen = now
        assert now
        assert {name: SEEN <= size <= len(HALF) for name, size in now} == {layer: True}
        pull.cancel()
        await registry.left.wait()
