"""What a node's start settles before its kubelet is built: its name, address and port, the pods' subnet, and
the certificate its server shows.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

from podling.assemble.node_options import NodeOptions
from podling.instance import LAYOUT_VERSION, Choices, Instance, LayoutError, routed
from podling.kubelet.config import KubeletConfig
from podling.node_runtime import PAUSE_IMAGE
from podling.pki import KeyPair
from podling.starting import StartError

KUBELET_PORT = 10250


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """`serving` is what the kubelet's server, on `listener`, shows; it answers clients with a certificate of
    `client_ca`. `api_server` is as in `KubeletConfig`."""

    instance: Instance
    options: NodeOptions
    ip: str
    listener: socket.socket
    subnet: str
    serving: KeyPair
    client_ca: Path
    api_server: tuple[str, int] | None = None

    @property
    def name(self) -> str:
        return self.options.name

    def kubelet_config(self) -> KubeletConfig:
        instance, options = self.instance, self.options
        return KubeletConfig(
            node_name=self.name,
            root_dir=instance.kubelet_dir,
            log_dir=instance.pod_logs_dir,
            node_ip=self.ip,
            kubelet_port=port_of(self.listener),
            api_server=self.api_server,
            cgroup_root=instance.cgroup,
            cluster_dns=options.cluster_dns,
            cluster_domain=options.cluster_domain,
            pod_cidr=self.subnet,
            node_labels=options.node_labels,
            register_node=options.register_node,
            gates=options.gates,
            debug_images=options.debug_images,
            manifests=options.manifests,
            allowed_unsafe_sysctls=options.unsafe_sysctls,
            sandbox_image=PAUSE_IMAGE,
            **options.settings,
        )


def port_of(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def choose(instance: Instance, port: int, subnet: str = "") -> Choices:
    """The pods' subnet, the one of the last start if it can be had, kept with `port` for the next. `subnet`
    is one that must be had. Raises StartError."""
    try:
        before = instance.choices()
        routes = Path("/proc/net/route").read_text()
        chosen = instance.claim_subnet(
            subnet or (before.subnet if before else None),
            lambda candidate: routed(candidate, routes, instance.bridge),
        )
    except (LayoutError, OSError) as error:
        raise StartError(str(error)) from error
    if subnet and chosen != subnet:
        raise StartError(f"pods cannot have the subnet {subnet}: it is in use on this machine")
    choices = Choices(LAYOUT_VERSION, port, chosen)
    if choices != before:
        instance.keep(choices)
    return choices


def port_before(instance: Instance) -> int | None:
    """The port of the last start. Raises StartError."""
    try:
        before = instance.choices()
    except LayoutError as error:
        raise StartError(str(error)) from error
    return before.port if before else None
