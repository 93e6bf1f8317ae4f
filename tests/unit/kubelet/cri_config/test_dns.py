from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from podling.kubelet.cri_config.sandbox import (
    dns_warnings,
    hostname_and_domain,
    parse_resolv_conf,
    pod_resolver,
    sandbox_hostname,
)
from podling.kubelet.pod.containers import ConfigError
from podling.kubelet.pod.sandbox import NodeFacts, Resolver
from podling.model.types.pod import PodDNSConfig, PodDNSConfigOption

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

OWN = Resolver(("1.1.1.1",), ("home",), ("rotate",))
NODE = NodeFacts("n1", cluster_dns=("10.96.0.10",), resolver=OWN)
CLUSTER = Resolver(
    ("10.96.0.10",), ("ns.svc.cluster.local", "svc.cluster.local", "cluster.local", "home"), ("ndots:5",)
)

POLICIES = [
    ({"dns_policy": "Default"}, OWN),
    ({"dns_policy": "ClusterFirst"}, CLUSTER),
    ({"dns_policy": "ClusterFirst", "host_network": True}, OWN),
    ({"dns_policy": "ClusterFirstWithHostNet", "host_network": True}, CLUSTER),
    ({"dns_policy": "None"}, Resolver()),
]


@pytest.mark.parametrize(("spec", "resolver"), POLICIES)
def test_policies(scene: type[Scene], spec: dict[str, Any], resolver: Resolver) -> None:
    assert pod_resolver(scene.pod("a", **spec), NODE) == resolver


def test_without_a_cluster_dns_the_node_answers(scene: type[Scene]) -> None:
    assert pod_resolver(scene.pod("a", dns_policy="ClusterFirst"), NodeFacts("n1", resolver=OWN)) == OWN


def test_a_pods_own_configuration_is_added(scene: type[Scene]) -> None:
    config = PodDNSConfig(
        nameservers=["1.1.1.1", "9.9.9.9"],
        searches=["home", "lab"],
        options=[PodDNSConfigOption(name="ndots", value="2"), PodDNSConfigOption(name="edns0")],
    )
    made = pod_resolver(scene.pod("a", dns_policy="Default", dns_config=config), NODE)
    assert made == Resolver(("1.1.1.1", "9.9.9.9"), ("home", "lab"), ("rotate", "ndots:2", "edns0"))


def test_resolv_conf() -> None:
    lines = ["; made by hand", "search old", "nameserver 1.1.1.1 # first", "nameserver fe80::1"]
    text = "\n".join([*lines, "search a.b. .", "options ndots:2 rotate", "bad", ""])
    assert parse_resolv_conf(text) == Resolver(("1.1.1.1", "fe80::1"), ("a.b", "."), ("ndots:2", "rotate"))


NAMES = [
    ({}, "p", ("p", "")),
    ({"hostname": "h"}, "h", ("h", "")),
    ({"hostname": "h", "subdomain": "s"}, "h", ("h", "s.ns.svc.cluster.local")),
    ({"hostname": "h", "subdomain": "s", "set_hostname_as_fqdn": True}, "h.s.ns.svc.cluster.local",
     ("h", "s.ns.svc.cluster.local")),
    ({"host_network": True}, "", ("p", "")),
    ({"hostname_override": "x.example.com"}, "x.example.com", ("x.example.com", "")),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "seen", "parts"), NAMES)
def test_host_names(scene: type[Scene], spec: dict[str, Any], seen: str, parts: tuple[str, str]) -> None:
    pod = scene.pod("a", **spec)
    assert (sandbox_hostname(pod, "cluster.local"), hostname_and_domain(pod, "cluster.local")) == (
        seen,
        parts,
    )


def test_a_long_name_is_cut_where_a_host_name_may_end(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    pod.metadata.name = "x" * 62 + "-more"
    assert hostname_and_domain(pod, "cluster.local")[0] == "x" * 62


def test_a_name_no_kernel_takes_is_refused(scene: type[Scene]) -> None:
    """64 characters, `setHostnameAsFQDN` included."""
    fits = {"hostname": "h", "set_hostname_as_fqdn": True, "subdomain": "s" * 41}
    assert len(sandbox_hostname(scene.pod("a", **fits), "cluster.local")) == 64
    too_long = scene.pod("a", **{**fits, "subdomain": "s" * 42})
    with pytest.raises(ConfigError) as refused:
        sandbox_hostname(too_long, "cluster.local")
    assert str(refused.value) == (
        "failed to construct FQDN from pod hostname and cluster domain, "
        f"FQDN h.{'s' * 42}.ns.svc.cluster.local is too long "
        "(64 characters is the max, 65 characters requested)"
    )
    too_long.spec.set_hostname_as_fqdn = False
    assert sandbox_hostname(too_long, "cluster.local") == "h"


LIMITS = [
    # servers  searches                                        applied: servers, searches
    (3,        [f"d{i}" for i in range(32)],                   3, 32),
    (4,        ["a"],                                          3, 1),
    (1,        [f"d{i}" for i in range(33)],                   1, 32),
    (1,        ["a", "b" * 254, "c"],                          1, 2),
    (1,        [f"{i:0200}" for i in range(12)],               1, 10),
]  # fmt: skip


@pytest.mark.parametrize(("servers", "searches", "servers_applied", "searches_applied"), LIMITS)
def test_what_is_too_much_is_left_out_and_told(
    scene: type[Scene], servers: int, searches: list[str], servers_applied: int, searches_applied: int
) -> None:
    config = PodDNSConfig(nameservers=[f"10.0.0.{i}" for i in range(servers)], searches=searches)
    pod = scene.pod("a", dns_policy="None", dns_config=config)
    applied = pod_resolver(pod, NODE)
    assert (len(applied.servers), len(applied.searches)) == (servers_applied, searches_applied)
    told = []
    if servers_applied < servers:
        told.append(
            "Nameserver limits were exceeded, some nameservers have been omitted, "
            f"the applied nameserver line is: {' '.join(applied.servers)}"
        )
    if searches_applied < len(searches):
        told.append(
            "Search Line limits were exceeded, some search paths have been omitted, "
            f"the applied search line is: {' '.join(applied.searches)}"
        )
    assert list(dns_warnings(pod, NODE)) == [("DNSConfigForming", message) for message in told]


@pytest.mark.parametrize("policy", ["ClusterFirst", "ClusterFirstWithHostNet"])
def test_a_cluster_without_dns_is_told(scene: type[Scene], policy: str) -> None:
    alone = replace(NODE, cluster_dns=())
    pod = scene.pod("a", dns_policy=policy)
    ((reason, message),) = dns_warnings(pod, alone)
    meta = pod.metadata
    assert reason == "MissingClusterDNS"
    assert message == (
        f'pod: "{meta.name}_{meta.namespace}({meta.uid})". kubelet does not have ClusterDNS IP configured '
        'and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.'
    )
    assert not [*dns_warnings(scene.pod("a", dns_policy="Default"), alone)]
