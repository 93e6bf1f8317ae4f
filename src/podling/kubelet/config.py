"""The kubelet's configuration: names, places and limits. It is fixed when the kubelet is built."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import msgspec

from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.quantity import Quantity

CGROUP_MOUNT = Path("/sys/fs/cgroup")
EVICTION_HARD = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}

NO_PROGRESS_FOR = timedelta(minutes=5)
"""How long an image pull may make no progress; containerd has the same default."""


class KubeletConfig(msgspec.Struct, frozen=True):
    """The configuration of one kubelet. Several can share a machine, each with its own directories and
    cgroup."""

    node_name: str
    root_dir: Path
    """Has the pods' directories."""
    log_dir: Path
    """Has the pods' container logs."""
    node_ip: str = "127.0.0.1"
    node_ip6: str = ""
    """Its address of IPv6, where pods have such addresses, too."""
    kubelet_port: int = 10250
    cgroup_root: str = "/kubepods"
    """The cgroup below which all pods of this kubelet are."""
    cgroup_mount: Path = CGROUP_MOUNT
    api_server: tuple[str, int] | None = None
    """Where pods reach the API server, if nothing answers at the cluster IP of its service."""
    cluster_dns: tuple[str, ...] = ()
    cluster_domain: str = "cluster.local"
    resolv_conf: Path = Path("/etc/resolv.conf")
    etc_hosts: Path = Path("/etc/hosts")
    max_pods: int = 110
    pod_pids_limit: int | None = None
    system_reserved: Mapping[str, Quantity] = msgspec.field(default_factory=dict)
    kube_reserved: Mapping[str, Quantity] = msgspec.field(default_factory=dict)
    single_process_oom_kill: bool = False
    allowed_unsafe_sysctls: tuple[str, ...] = ()
    pod_manifest_path: Path | None = None
    pod_cidr: str = ""
    """Of IPv4, of IPv6, or of both with a comma between them."""
    node_labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    register_node: bool = True
    """False: wait until somebody creates the Node."""
    version: str = "v1.36.0"
    lease_duration: timedelta = timedelta(seconds=40)
    lease_renewal: timedelta = timedelta(seconds=10)
    status_interval: timedelta = timedelta(minutes=5)
    status_check: timedelta = timedelta(seconds=10)
    parallel_pulls: int = 0
    pull_deadline: timedelta = NO_PROGRESS_FOR
    sandbox_image: str = ""
    image_gc_high: int = 85
    image_gc_low: int = 80
    eviction_hard: Mapping[str, str] = msgspec.field(default_factory=lambda: EVICTION_HARD)
    eviction_soft: Mapping[str, str] = msgspec.field(default_factory=dict)
    eviction_soft_grace: Mapping[str, timedelta] = msgspec.field(default_factory=dict)
    eviction_minimum_reclaim: Mapping[str, str] = msgspec.field(default_factory=dict)
    eviction_max_pod_grace: int = 0
    eviction_pressure_transition: timedelta = timedelta(minutes=5)
    eviction_period: timedelta = timedelta(seconds=10)
    log_max_bytes: int = 10 << 20
    log_max_files: int = 5
    log_rotation_interval: timedelta = timedelta(seconds=10)
    gates: Gates = DEFAULT_GATES
    debug_image_allowlist: tuple[str, ...] = ()
    """Patterns of the images that ephemeral containers may have; empty for all."""

    @property
    def node_ips(self) -> tuple[str, ...]:
        return (self.node_ip, self.node_ip6) if self.node_ip6 else (self.node_ip,)

    @property
    def minor_version(self) -> str:
        """`1.36`, for the user agents of probes and hooks."""
        return self.version.removeprefix("v").rpartition(".")[0]

    @property
    def pods_dir(self) -> Path:
        return self.root_dir / "pods"

    @property
    def plugin_registry(self) -> Path:
        """Where the plugins of the node listen to be registered."""
        return self.root_dir / "plugins_registry"

    @property
    def csi_dir(self) -> Path:
        """What the kubelet keeps of CSI volumes beside the pods' directories."""
        return self.root_dir / "plugins" / "kubernetes.io" / "csi"
