"""Fills a private containerd with images from archives, without a registry: `podling images load|list`.

CRI cannot take an image from a file, so containerd's own tool puts it in, and CRI learns of it a moment later
from an event; `load_images` returns when a pod can use what was loaded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from podling.cri.grpc.client import GrpcRuntime
from podling.cri.image_archive import open_archive

_NAMESPACE = "k8s.io"
_KNOWN_WITHIN = 10.0


class ImageLoadError(Exception):
    """The archive was not taken; says why."""


async def load_images(
    socket: Path, archive: Path, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> list[str]:
    """Load every image of `archive` into the containerd at `socket`; the references are returned.

    Raises ImageLoadError, or ImageArchiveError when the file is no archive.
    """
    with open_archive(archive) as opened:
        names = opened.names()
    await _import(socket, archive)
    runtime = GrpcRuntime(str(socket))
    try:
        async with asyncio.timeout(_KNOWN_WITHIN):
            for name in names:
                while await runtime.image_status(name) is None:
                    await sleep(0.005)
    except TimeoutError:
        raise ImageLoadError(f"containerd took {archive} but CRI does not know {name}") from None
    finally:
        await runtime.close()
    return names


async def _import(socket: Path, archive: Path) -> None:
    argv = ["ctr", "--address", str(socket), "--namespace", _NAMESPACE, "images", "import", str(archive)]
    try:
        ctr = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    except FileNotFoundError:
        raise ImageLoadError("there is no ctr on this machine: install the package containerd") from None
    _, said = await ctr.communicate()
    if ctr.returncode != 0:
        raise ImageLoadError(f"containerd did not take {archive}: {said.decode(errors='replace').strip()}")
