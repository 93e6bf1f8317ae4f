"""Stopping a node for good: all that runs is stopped, mounts and cgroups are given back, objects and images
stay.

The next kubelet on this root directory finds the stopped sandboxes and runs the pods anew.
"""

from __future__ import annotations

import asyncio
import logging

from podling.cri.interface import Runtime, RuntimeFault
from podling.kubelet.config import KubeletConfig
from podling.kubelet.pod.observe import RuntimePod, observe
from podling.kubelet.volumes.mounts import unmount_under

GRACE_SECONDS = 10

log = logging.getLogger(__name__)


async def stop_everything(runtime: Runtime) -> None:
    """Containers are asked to end and have GRACE_SECONDS. Raises RuntimeFault when the runtime does not
    answer."""
    pods = await observe(runtime)
    async with asyncio.TaskGroup() as tasks:
        for pod in pods.values():
            tasks.create_task(_stop(runtime, pod))


async def _stop(runtime: Runtime, pod: RuntimePod) -> None:
    try:
        async with asyncio.TaskGroup() as tasks:
            for container in pod.containers:
                if container.running:
                    tasks.create_task(runtime.stop_container(container.id, GRACE_SECONDS))
    except* RuntimeFault as faults:
        log.warning("containers of pod %s/%s: %s", pod.namespace, pod.name, faults.exceptions)
    for sandbox in pod.sandboxes:
        try:
            await runtime.stop_pod_sandbox(sandbox.id)
        except RuntimeFault as fault:
            log.warning("sandbox of pod %s/%s not stopped: %s", pod.namespace, pod.name, fault)


def unmount_volumes(config: KubeletConfig) -> None:
    if config.pods_dir.exists():
        unmount_under(config.pods_dir)
