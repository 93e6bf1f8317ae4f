"""Pushes an image archive to a registry (the OCI distribution protocol), so that an image built here can be
pulled.

It is for registries on loopback, over plain HTTP and without credentials. A blob is sent only when the
registry does not have it.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from urllib.parse import urljoin

import aiohttp

from podling.cri.images.archive import open_archive


class PushError(Exception):
    """The registry refused; the message has the step and the answer."""


async def push_image(archive: Path, reference: str) -> str:
    """Push the first image of `archive` as `reference` (`127.0.0.1:5000/neato:1`); its digest is returned.

    Raises PushError, ImageArchiveError, or aiohttp.ClientError when the registry cannot be reached.
    """
    host, _, rest = reference.partition("/")
    repository, _, tag = rest.rpartition(":")
    base = f"http://{host}/v2/{repository}"
    with open_archive(archive) as image:
        media_type, manifest = image.manifest()
        described = json.loads(manifest)
        async with aiohttp.ClientSession() as session:
            for part in [described["config"], *described["layers"]]:
                await _push_blob(session, base, part["digest"], image.blob(part["digest"]))
            headers = {"Content-Type": media_type}
            async with session.put(f"{base}/manifests/{tag}", data=manifest, headers=headers) as answer:
                await _expect(answer, 201, f"the manifest of {reference}")
                return answer.headers["Docker-Content-Digest"]


async def _push_blob(session: aiohttp.ClientSession, base: str, digest: str, blob: bytes) -> None:
    async with session.head(f"{base}/blobs/{digest}") as answer:
        if answer.status == 200:
            return
    async with session.post(f"{base}/blobs/uploads/") as answer:
        await _expect(answer, 202, f"an upload to {base}")
        location = urljoin(f"{base}/", answer.headers["Location"])
    joint = "&" if "?" in location else "?"
    headers = {"Content-Type": "application/octet-stream"}
    async with session.put(
        f"{location}{joint}digest={digest}", data=io.BytesIO(blob), headers=headers
    ) as answer:
        await _expect(answer, 201, f"blob {digest}")


async def _expect(answer: aiohttp.ClientResponse, status: int, what: str) -> None:
    if answer.status != status:
        raise PushError(f"the registry refused {what}: {answer.status} {(await answer.text())[:200]}")
