"""The options of a node, whether its kubelet runs alone or in `podling up`, and the start of its runtime."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

import msgspec

from podling.assemble.process import Report
from podling.cri.containerd.containerd import Containerd
from podling.kubelet.config import NO_PROGRESS_FOR
from podling.machine import node_runtime
from podling.machine.instance import Instance
from podling.model.gates import DEFAULT_GATES, Gates


class NodeOptions(msgspec.Struct, frozen=True):
    node_name: str = ""
    """The host's when empty."""
    cri_endpoint: str = ""
    """Another runtime's socket; a private containerd when empty."""
    registry_mirrors: Mapping[str, str] = msgspec.field(default_factory=dict)
    gates: Gates = DEFAULT_GATES
    settings: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """The attributes of `KubeletConfig` that the command line sets."""

    @property
    def name(self) -> str:
        return self.node_name or socket.gethostname().lower()


async def start_runtime(
    instance: Instance, subnets: str, options: NodeOptions, report: Report
) -> Containerd | None:
    """Start a private containerd; None when the options name another runtime. Raises StartError."""
    if options.cri_endpoint:
        return None
    report("Starting containerd")
    deadline = options.settings.get("pull_deadline", NO_PROGRESS_FOR)
    return await node_runtime.start(instance, subnets, options.registry_mirrors, deadline)
