"""What a kubelet is told when it is built: names, places and limits. Nothing here changes while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path


@dataclass(frozen=True, slots=True)
class KubeletConfig:
    """`root_dir` holds pod directories, `log_dir` the pods' container logs; `cgroup_root` is the one cgroup
    below which every pod of this kubelet lives, so several kubelets can share a machine."""

    node_name: str
    root_dir: Path
    log_dir: Path
    node_ip: str = "127.0.0.1"
    kubelet_port: int = 10250
    cgroup_root: str = "/kubepods"
    cgroup_mount: Path = Path("/sys/fs/cgroup")
    cluster_dns: tuple[str, ...] = ()
    cluster_domain: str = "cluster.local"
    resolv_conf: Path = Path("/etc/resolv.conf")
    etc_hosts: Path = Path("/etc/hosts")
    max_pods: int = 110
    pod_cidr: str = ""
    node_labels: Mapping[str, str] = field(default_factory=dict)
    version: str = "v1.36.0"
    lease_duration: timedelta = timedelta(seconds=40)
    lease_renewal: timedelta = timedelta(seconds=10)
    status_interval: timedelta = timedelta(minutes=5)
    status_check: timedelta = timedelta(seconds=10)
    parallel_pulls: int = 0

    @property
    def minor_version(self) -> str:
        """As user agents give it: `1.36`."""
        return self.version.removeprefix("v").rpartition(".")[0]

    @property
    def pods_dir(self) -> Path:
        return self.root_dir / "pods"
