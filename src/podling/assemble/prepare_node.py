"""What a node's start settles before its kubelet is built: its name, address and port, and the certificate
its server shows.
"""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec

from podling.assemble.node_options import NodeOptions
from podling.instance import Instance
from podling.kubelet.config import KubeletConfig
from podling.node_runtime import PAUSE_IMAGE
from podling.pki import KeyPair


class NodeSettings(msgspec.Struct, frozen=True):
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
