"""Removes what a stopped containerd left: containers, their shims, mounts, and its state directory.

For `podling down` and for tests: normally every sandbox was stopped first and there is little to do, but a
containerd that was killed leaves all of it. Images and container metadata (its root) stay.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

from podling.cri.containerd_config import ContainerdSettings
from podling.cri.mounts import mounts_under, unmount
from podling.cri.process import Process, command_line, processes

_NAMESPACE = "k8s.io"


async def remove_leftovers(settings: ContainerdSettings) -> None:
    """Call it when containerd has been stopped. Raises OSError when a mount cannot be taken away: nothing
    below it is deleted then."""
    await _delete_containers(settings.runc_root / _NAMESPACE)
    sockets = shim_sockets(settings.state)
    await _kill_shims(settings.socket)
    for path in sockets:
        path.unlink(missing_ok=True)
    # Sandboxes' shared memory, containers' root filesystems, network namespaces. A mount that stayed would
    # have its contents deleted with the directory, and it may be the host's.
    for point in [*mounts_under(settings.state), *mounts_under(settings.root)]:
        unmount(point)
    shutil.rmtree(settings.state, ignore_errors=True)


async def _delete_containers(directory: Path) -> None:
    """runc ends all processes of a container and removes its cgroups."""
    if not directory.is_dir() or shutil.which("runc") is None:
        return
    for name in os.listdir(directory):
        runc = await asyncio.create_subprocess_exec(
            "runc",
            "--root",
            str(directory),
            "delete",
            "--force",
            name,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        await runc.wait()


async def _kill_shims(socket: Path) -> None:
    for pid in processes():
        if is_shim_of(command_line(pid), socket):
            try:
                await Process(pid).kill()
            except ProcessLookupError:
                continue


def is_shim_of(argv: list[str], socket: Path) -> bool:
    """Whether a command line is that of a shim started by the containerd that serves `socket`."""
    if not argv or not Path(argv[0]).name.startswith("containerd-shim"):
        return False
    return "-address" in argv and argv[argv.index("-address") + 1 :][:1] == [str(socket)]


def shim_sockets(state: Path) -> list[Path]:
    """Sockets of shims, which lie in /run/containerd/s whatever the state directory."""
    addresses = state.glob(f"io.containerd.runtime.v2.task/{_NAMESPACE}/*/address")
    return [Path(address.read_text().strip().removeprefix("unix://")) for address in addresses]
