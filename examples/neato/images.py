"""Builds the demo's two images and pushes them: `python images.py NEATO-BINARY REGISTRY`.

`neato` is the given static binary and nothing else; `busybox` is Debian's, with its commands in /bin.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from podling.cri.images.build import File, ImageConfig, Symlink, build_image
from podling.cri.images.push import push_image


def main(neato: Path, registry: str) -> None:
    neato_image, busybox_image = f"{registry}/neato:1", f"{registry}/busybox:1"
    _push(neato_image, build_image(neato_image, {"neato": neato}, ImageConfig(entrypoint=["/neato"])))
    shell = ImageConfig(cmd=["sh"], env=["PATH=/bin"])
    _push(busybox_image, build_image(busybox_image, _busybox_files(), shell))


def _busybox_files() -> dict[str, File]:
    busybox = Path(shutil.which("busybox") or "/bin/busybox")
    listed = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split()
    commands = {f"bin/{name}": Symlink("busybox") for name in listed if name != "busybox"}
    accounts = {"etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n", "etc/group": b"root:x:0:\n"}
    return {**commands, **accounts, "bin/busybox": busybox, "root/": b"", "tmp/": b""}


def _push(reference: str, image: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
        archive.write(image)
        archive.flush()
        digest = asyncio.run(push_image(Path(archive.name), reference))
    sys.stdout.write(f"{reference:<24}  {digest}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
