"""The options of a kubelet, a row for each.

A row makes the flag of `podling up` and `podling kubelet`, the field that `--config` takes, the attribute of
`KubeletConfig`, the field that `/configz` shows, and the line of `docs/commands.md` (`scripts/options.py`).
Names are those of Kubernetes' kubelet and of kubelet.config.k8s.io/v1beta1. The command line imports this
module to show its help, so it imports little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from podling.kubelet.config import KubeletConfig
from podling.kubelet.options.values import (
    absolute_path,
    amounts,
    duration,
    grace_periods,
    names,
    process_limit,
    reclaimed,
    repeated,
    size,
    some_time,
    truth,
    whole_number,
    written,
    written_limit,
    written_size,
)

API_VERSION, KIND = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"

DEFAULTS = {
    field.name: field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    for field in msgspec.structs.fields(KubeletConfig)
}
"""By attribute; `msgspec.NODEFAULT` for what a kubelet must be given."""


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """What a user may read of a kubelet's configuration, at /configz."""

    attribute: str
    """Of `KubeletConfig`, which has the default."""
    field: str = ""
    """Of a KubeletConfiguration; "" where Kubernetes has none or podling does not show it."""
    write: Callable[[Any], Any] = written
    """From the attribute's value to the field's."""


class Option(Fact, frozen=True, kw_only=True):
    """What a user may set, too."""

    flag: str = ""
    """"" where Kubernetes has none, and only the file sets it."""
    metavar: str = ""
    help: str
    """Without the default, which `default` adds."""
    read: Callable[[object], Any]
    """From the flag's text or the field's value to the attribute's; raises ValueError."""
    is_repeated: bool = False
    """Whether the flag may be given several times; `read` is given all of them."""

    @property
    def both(self) -> str:
        """Its names, as a refusal gives them."""
        return f"{self.field} ({self.flag})" if self.field and self.flag else self.field or self.flag

    @property
    def default(self) -> str:
        """As the flag takes it; "" when nothing is set by default."""
        value = self.write(DEFAULTS[self.attribute])
        if isinstance(value, dict):
            sign = "<" if "<" in self.metavar else "="
            return ",".join(f"{name}{sign}{one}" for name, one in value.items())
        if isinstance(value, list):
            return ",".join(value)
        return "" if value is None or value is False else str(value)


FLAGS = (
    Option(
        attribute="debug_image_allowlist",
        flag="--debug-image-allowlist",
        metavar="PATTERN",
        read=repeated,
        is_repeated=True,
        help="Start ephemeral containers only from images like PATTERN, such as registry:5000/tools/*. "
        "May be repeated.",
    ),
    Option(
        attribute="pod_manifest_path",
        flag="--pod-manifest-path",
        metavar="PATH",
        read=absolute_path,
        help="Directory of manifests the kubelet runs as static pods, or one such file.",
    ),
    Option(
        attribute="allowed_unsafe_sysctls",
        flag="--allowed-unsafe-sysctls",
        field="allowedUnsafeSysctls",
        metavar="NAME,...",
        read=names,
        help="Sysctls pods may set beside the safe ones; NAME may end in *.",
    ),
)
"""Set on the command line alone."""

LIMITS = (
    Option(
        attribute="max_pods",
        flag="--max-pods",
        field="maxPods",
        metavar="NUMBER",
        read=whole_number(1),
        help="How many pods the node takes.",
    ),
    Option(
        attribute="pod_pids_limit",
        flag="--pod-max-pids",
        field="podPidsLimit",
        metavar="NUMBER",
        read=process_limit,
        write=written_limit,
        help="Processes and threads a pod may have; -1 is no limit.",
    ),
    Option(
        attribute="single_process_oom_kill",
        field="singleProcessOOMKill",
        read=truth,
        help="Kill one process of a container that runs out of memory, not all of them.",
    ),
    Option(
        attribute="parallel_pulls",
        flag="--max-parallel-image-pulls",
        field="maxParallelImagePulls",
        metavar="NUMBER",
        read=whole_number(1),
        write=lambda number: number or None,
        help="Images pulled at a time; without it as many as are asked for.",
    ),
    Option(
        attribute="pull_deadline",
        flag="--image-pull-progress-deadline",
        metavar="DURATION",
        read=some_time,
        help="Give up a pull that gets on no longer, with ErrImagePull.",
    ),
    Option(
        attribute="image_gc_high",
        flag="--image-gc-high-threshold",
        field="imageGCHighThresholdPercent",
        metavar="PERCENT",
        read=whole_number(0, 100),
        help="Disk use above which images are removed.",
    ),
    Option(
        attribute="image_gc_low",
        flag="--image-gc-low-threshold",
        field="imageGCLowThresholdPercent",
        metavar="PERCENT",
        read=whole_number(0, 100),
        help="Disk use down to which they are.",
    ),
    Option(
        attribute="log_max_bytes",
        flag="--container-log-max-size",
        field="containerLogMaxSize",
        metavar="SIZE",
        read=size,
        write=written_size,
        help="Rotate a container's log when it is so long.",
    ),
    Option(
        attribute="log_max_files",
        flag="--container-log-max-files",
        field="containerLogMaxFiles",
        metavar="NUMBER",
        read=whole_number(2),
        help="Files a container's log may be in.",
    ),
    Option(
        attribute="eviction_hard",
        flag="--eviction-hard",
        field="evictionHard",
        metavar="SIGNAL<AMOUNT,...",
        read=amounts,
        help='Evict pods at once when the node has less left; "" for nothing.',
    ),
    Option(
        attribute="eviction_soft",
        flag="--eviction-soft",
        field="evictionSoft",
        metavar="SIGNAL<AMOUNT,...",
        read=amounts,
        help="Evict pods when the node has had less left for a while.",
    ),
    Option(
        attribute="eviction_soft_grace",
        flag="--eviction-soft-grace-period",
        field="evictionSoftGracePeriod",
        metavar="SIGNAL=DURATION,...",
        read=grace_periods,
        help="For how long, for each soft threshold.",
    ),
    Option(
        attribute="eviction_max_pod_grace",
        flag="--eviction-max-pod-grace-period",
        field="evictionMaxPodGracePeriod",
        metavar="SECONDS",
        read=whole_number(0),
        help="Grace of pods evicted for a soft threshold, at most.",
    ),
    Option(
        attribute="eviction_minimum_reclaim",
        flag="--eviction-minimum-reclaim",
        field="evictionMinimumReclaim",
        metavar="SIGNAL=AMOUNT,...",
        read=reclaimed,
        help="What must be free beyond a threshold once crossed.",
    ),
    Option(
        attribute="eviction_pressure_transition",
        flag="--eviction-pressure-transition-period",
        field="evictionPressureTransitionPeriod",
        metavar="DURATION",
        read=duration,
        help="How long a node is called under pressure after it was last.",
    ),
)
"""Set on the command line or in a file."""

OPTIONS = (*FLAGS, *LIMITS)
"""Of `podling up` and `podling kubelet`."""

ALONE = (
    Option(
        attribute="cluster_dns",
        flag="--cluster-dns",
        field="clusterDNS",
        metavar="ADDRESS",
        read=repeated,
        is_repeated=True,
        help="Resolver of pods. May be repeated.",
    ),
    Option(
        attribute="cluster_domain",
        flag="--cluster-domain",
        field="clusterDomain",
        metavar="DOMAIN",
        read=str,
        help="Domain of the cluster's services.",
    ),
)
"""Of `podling kubelet` alone, on the command line: `podling up` has its own cluster DNS."""

FACTS = (
    Fact(attribute="node_ip", field="address"),
    Fact(attribute="kubelet_port", field="port"),
    Fact(attribute="cgroup_root", field="cgroupRoot"),
    Fact(attribute="resolv_conf", field="resolvConf"),
    Fact(attribute="pod_cidr", field="podCIDR"),
    Fact(attribute="status_check", field="nodeStatusUpdateFrequency"),
    Fact(attribute="status_interval", field="nodeStatusReportFrequency"),
    Fact(
        attribute="lease_duration",
        field="nodeLeaseDurationSeconds",
        write=lambda duration: int(duration.total_seconds()),
    ),
    Fact(attribute="system_reserved", field="systemReserved"),
    Fact(attribute="kube_reserved", field="kubeReserved"),
)
"""Shown at /configz and set by no option of the table."""


def configuration(config: KubeletConfig) -> dict[str, Any]:
    """A KubeletConfiguration with all that podling has of it."""
    shown = [row for row in (*FACTS, *ALONE, *OPTIONS) if row.field]
    values = {row.field: row.write(getattr(config, row.attribute)) for row in shown}
    return {"kind": KIND, "apiVersion": API_VERSION, "cgroupDriver": "cgroupfs", **values}
