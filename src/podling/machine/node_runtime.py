"""The runtime of one podling's node: its private containerd, the pods' network and the pause image.

Three commands need it without the rest of podling: `up` starts it, `images` loads images into it, and `down`
ends what a podling that was killed left behind.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from podling.cri.containerd.config import ContainerdSettings
from podling.cri.containerd.containerd import Containerd, ContainerdError, remove_leftovers, running
from podling.cri.grpc.client import GrpcRuntime
from podling.cri.images.archive import ImageArchiveError, ImageLoadError, load_images
from podling.cri.images.build import pause_image
from podling.cri.interface import Runtime, RuntimeFault
from podling.kubelet.config import CGROUP_MOUNT, NO_PROGRESS_FOR
from podling.kubelet.host.cgroups import Cgroups
from podling.machine.doctor import CNI_BIN_DIRS, CNI_PLUGINS
from podling.machine.instance import Instance
from podling.machine.network import (
    NetworkError,
    cni_configuration,
    lead_on,
    reach_older_pods,
    set_up_masquerade,
    tear_down_masquerade,
    tear_down_nodes,
    tear_down_services,
)
from podling.machine.start import StartError, writing
from podling.process.mounts import unmount_under

PAUSE_IMAGE = "podling.local/pause:1"

log = logging.getLogger(__name__)


def settings(
    instance: Instance, mirrors: Mapping[str, str] | None = None, pull_deadline: timedelta = NO_PROGRESS_FOR
) -> ContainerdSettings:
    """The settings of this podling's containerd. `mirrors` maps a registry to the URL that is asked in its
    place."""
    plugins = next((d for d in CNI_BIN_DIRS if all((d / plugin).exists() for plugin in CNI_PLUGINS)), None)
    return ContainerdSettings(
        root=instance.containerd_dir,
        state=instance.run_dir / "containerd",
        log=instance.data_dir / "containerd.log",
        sandbox_image=PAUSE_IMAGE,
        cni_conf_dir=instance.cni_dir,
        cni_bin_dir=plugins or CNI_BIN_DIRS[0],
        registries={registry: [url] for registry, url in (mirrors or {}).items()},
        pull_deadline=pull_deadline,
    )


async def start(
    instance: Instance, subnets: str, mirrors: Mapping[str, str], pull_deadline: timedelta = NO_PROGRESS_FOR
) -> Containerd:
    """Start containerd, the network and the pause image; returns when they can be used. Raises StartError."""
    containerd = Containerd(settings(instance, mirrors, pull_deadline))
    try:
        with writing(instance.data_dir):
            instance.cni_dir.mkdir(parents=True, exist_ok=True)
            conflist = cni_configuration(subnets, instance.run_dir / "addresses")
            (instance.cni_dir / "podling.conflist").write_text(conflist)
            reach_older_pods(instance.bridge)
            if ":" in subnets:
                # Before a CNI plugin does it, which asks nothing about this machine's own routes.
                lead_on(subnets)
            await asyncio.gather(set_up_masquerade(instance.bridge, subnets), containerd.start())
            await _have_pause_image(containerd.settings.socket)
    except (ContainerdError, ImageLoadError) as error:
        raise StartError(str(error)) from error
    except NetworkError as error:
        raise StartError(f"the pods' network cannot be set up: {error}") from error
    return containerd


async def end(instance: Instance) -> bool:
    """End everything that runs for this instance, whoever started it. Returns whether anything did."""
    found = await _end_runtime(instance)
    found |= unmount_under(instance.kubelet_dir)
    Cgroups(CGROUP_MOUNT, instance.cgroup).remove_root()
    await tear_down_masquerade(instance.bridge, instance.bridge)
    await tear_down_nodes(instance.tunnel, instance.run_dir)
    await tear_down_services((instance.services_table, instance.policies_table), instance.run_dir)
    instance.release_subnet()
    shutil.rmtree(instance.run_dir, ignore_errors=True)
    return found


async def _end_runtime(instance: Instance) -> bool:
    chosen = settings(instance)
    if not chosen.state.exists():
        return False
    containerd = Containerd(chosen)
    try:
        # One that was killed is started once more: only a sandbox that is stopped gives its network back.
        await containerd.start()
    except ContainerdError as error:
        log.warning("%s", error)
    else:
        runtime = GrpcRuntime(str(chosen.socket))
        try:
            await _stop_sandboxes(runtime)
        finally:
            await runtime.close()
    await containerd.stop()
    await remove_leftovers(chosen)
    return True


async def _stop_sandboxes(runtime: Runtime) -> None:
    """Stop all at once; one that cannot be stopped is left to `remove_leftovers`. None is removed: the next
    start learns from containerd how their containers ended."""

    async def stop(sandbox_id: str) -> None:
        try:
            await runtime.stop_pod_sandbox(sandbox_id)
        except RuntimeFault:
            return

    try:
        sandboxes = await runtime.list_pod_sandbox()
    except RuntimeFault:
        return
    async with asyncio.TaskGroup() as tasks:
        for sandbox in sandboxes:
            tasks.create_task(stop(sandbox.id))


async def _have_pause_image(socket: Path) -> None:
    runtime = GrpcRuntime(str(socket))
    try:
        if await runtime.image_status(PAUSE_IMAGE) is not None:
            return
    finally:
        await runtime.close()
    catatonit = shutil.which("catatonit")
    if catatonit is None:
        raise StartError("there is no catatonit on this machine: install the package catatonit")
    with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
        archive.write(pause_image(PAUSE_IMAGE, Path(catatonit)))
        archive.flush()
        await load_images(socket, Path(archive.name))


class ImageStore:
    """The images of a running podling's runtime."""

    def __init__(self, runtime: Runtime, socket: Path) -> None:
        self._runtime = runtime
        self._socket = socket

    async def pull(self, image: str) -> str:
        """Returns the reference of what was pulled. Raises StartError with the runtime's message."""
        try:
            return await self._runtime.pull_image(image)
        except RuntimeFault as fault:
            raise StartError(f"{image} was not pulled: {fault.message}") from fault

    async def load(self, archive: Path) -> list[str]:
        try:
            return await load_images(self._socket, archive)
        except (ImageLoadError, ImageArchiveError) as error:
            raise StartError(str(error)) from error

    async def list(self) -> list[tuple[str, int]]:
        """(name, bytes), by name; an image without a name is shown by its digest."""
        images = await self._runtime.list_images()
        return sorted(
            (name, image.size) for image in images for name in (image.repo_tags or image.repo_digests)
        )


@asynccontextmanager
async def open_images(instance: Instance) -> AsyncIterator[ImageStore]:
    """Raises StartError when the instance's runtime does not run."""
    chosen = settings(instance)
    if running(chosen) is None:
        raise StartError(f"podling is not running for {instance.data_dir}: start it with `podling up`")
    runtime = GrpcRuntime(str(chosen.socket))
    try:
        yield ImageStore(runtime, chosen.socket)
    finally:
        await runtime.close()
