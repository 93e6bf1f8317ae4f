"""A node's runtime, as its options want it."""

from __future__ import annotations

from podling import node_runtime
from podling.assemble.node_options import NodeOptions
from podling.assemble.process import Report
from podling.cri.containerd import Containerd
from podling.instance import Instance
from podling.kubelet.config import NO_PROGRESS_FOR


async def start_runtime(
    instance: Instance, subnet: str, options: NodeOptions, report: Report
) -> Containerd | None:
    """A private containerd that serves; None when another runtime is to be used. Raises StartError."""
    if options.cri_endpoint:
        return None
    report("Starting containerd")
    deadline = options.settings.get("pull_deadline", NO_PROGRESS_FOR)
    return await node_runtime.start(instance, subnet, options.registry_mirrors, deadline)
