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
    """What configurations of sandboxes and containers take from the node."""

    name: str
    ips: tuple[str, ...] = ()
    allocatable: Mapping[str, Quantity] = msgspec.field(default_factory=dict)
    """Stands in for a limit that a container does not set (resourceFieldRef)."""
    memory_bytes: int = 0
    """The node's capacity."""
    seccomp_dir: str = "/var/lib/kubelet/seccomp"
    """Where Localhost profiles are."""
    cluster_dns: tuple[str, ...] = ()
    cluster_domain: str = "cluster.local"
    resolver: Resolver = Resolver()
    """The node's own, from its resolv.conf."""
    page_sizes: tuple[int, ...] = ()
    """Of the node's huge pages, in bytes."""
    swap_is_limited: bool = False
    """cgroup v1 counts swap together with memory, so the runtime is given a limit of both."""
    cgroup2_settings: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Files of every container's cgroup v2, with their content."""
