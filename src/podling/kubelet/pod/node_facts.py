"""Facts about the node that sandbox and container configurations depend on: addresses, sizes, resolver."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from podling.model.quantity import Quantity


class Resolver(msgspec.Struct, frozen=True):
    """The three kinds of lines of a resolv.conf."""

    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class NodeFacts(msgspec.Struct, frozen=True):
    """`allocatable` stands in for limits a container does not have (resourceFieldRef); `memory_bytes` is the
    node's capacity; `seccomp_dir` is where Localhost profiles are; `resolver` is the node's own. `page_sizes`
    are those of its huge pages, in bytes; `swap_is_limited` says that its cgroup v1 counts swap;
    `cgroup2_settings` are files every container's cgroup v2 has, with their content.
    """

    name: str
    ips: tuple[str, ...] = ()
    allocatable: Mapping[str, Quantity] = msgspec.field(default_factory=dict)
    memory_bytes: int = 0
    seccomp_dir: str = "/var/lib/kubelet/seccomp"
    cluster_dns: tuple[str, ...] = ()
    cluster_domain: str = "cluster.local"
    resolver: Resolver = Resolver()
    page_sizes: tuple[int, ...] = ()
    swap_is_limited: bool = False
    cgroup2_settings: Mapping[str, str] = msgspec.field(default_factory=dict)
