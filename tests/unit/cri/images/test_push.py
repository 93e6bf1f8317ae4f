"""Pushing to a registry that answers as told; a real one is used in tests/contract/cri."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from podling.cri.images.build import ImageConfig, build_image, digest_of
from podling.cri.images.push import PushError, push_image


@dataclass
class Registry:
    """The distribution protocol for one repository, in memory; `refuse` names the step it answers 403 to."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, bytes] = field(default_factory=dict)
    uploads: int = 0
    refuse: str = ""

    def application(self) -> web.Application:
        application = web.Application()
        base = "/v2/team/neato"
        application.router.add_head(f"{base}/blobs/{{digest}}", self._head)
        application.router.add_post(f"{base}/blobs/uploads/", self._upload)
        application.router.add_put(f"{base}/blobs/uploads/{{number}}", self._blob)
        application.router.add_put(f"{base}/manifests/{{tag}}", self._manifest)
        return application

    async def _head(self, request: web.Request) -> web.Response:
        return web.Response(status=200 if request.match_info["digest"] in self.blobs else 404)

    async def _upload(self, request: web.Request) -> web.Response:
        self.uploads += 1
        # A registry may answer with a path and state of its own.
        location = f"/v2/team/neato/blobs/uploads/{self.uploads}?state=abc"
        return web.Response(status=403 if self.refuse == "upload" else 202, headers={"Location": location})

    async def _blob(self, request: web.Request) -> web.Response:
        assert request.query["state"] == "abc"
        data = await request.read()
        self.blobs[request.query["digest"]] = data
        return web.Response(status=201 if digest_of(data) == request.query["digest"] else 400)

    async def _manifest(self, request: web.Request) -> web.Response:
        data = await request.read()
        self.manifests[request.match_info["tag"]] = data
        status = 403 if self.refuse == "manifest" else 201
        return web.Response(status=status, headers={"Docker-Content-Digest": digest_of(data)}, text="no")


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
async def address(registry: Registry) -> AsyncIterator[str]:
    async with TestServer(registry.application(), host="127.0.0.1") as server:
        yield f"127.0.0.1:{server.port}"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "image.tar"
    path.write_bytes(build_image("a.test/b:1", {"x": b"y" * 100}, ImageConfig()))
    return path


async def test_blobs_go_first_and_the_manifest_names_them(
    registry: Registry, address: str, archive: Path
) -> None:
    digest = await push_image(archive, f"{address}/team/neato:1")
    assert len(registry.blobs) == 2
    assert digest == digest_of(registry.manifests["1"])
    assert all(blob in registry.manifests["1"].decode() for blob in registry.blobs)


async def test_what_the_registry_has_is_not_sent(registry: Registry, address: str, archive: Path) -> None:
    await push_image(archive, f"{address}/team/neato:1")
    await push_image(archive, f"{address}/team/neato:2")
    assert registry.uploads == 2
    assert registry.manifests["1"] == registry.manifests["2"]


@pytest.mark.parametrize(("step", "message"), [("upload", "an upload"), ("manifest", "the manifest of")])
async def test_a_refusal_says_at_which_step(
    registry: Registry, address: str, archive: Path, step: str, message: str
) -> None:
    registry.refuse = step
    with pytest.raises(PushError, match=f"refused {message}.* 403"):
        await push_image(archive, f"{address}/team/neato:1")
