"""Pods find services by name, as in any Kubernetes; and what stands in their resolv.conf."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ports import free_port

from .conftest import run
from .test_in_cluster import BUSYBOX, job

if TYPE_CHECKING:
    from e2e.conftest import Part, Podling

OPTIONS = [{"name": "ndots", "value": "2"}, {"name": "edns0"}]
BARE = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]}


def make_service(podling: Podling, namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    podling.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    made: dict[str, Any] = podling.get("service", name, "-n", namespace)
    return made


def test_a_pod_resolves_services_by_short_and_long_names(podling: Podling, namespace: str) -> None:
    address = make_service(podling, namespace, "web", **BARE)["spec"]["clusterIP"]
    names = ("web", f"web.{namespace}", f"web.{namespace}.svc", f"web.{namespace}.svc.cluster.local")
    # ping says what it makes of a name by the search list, which nslookup does not use.
    script = "\n".join(f"ping -c 1 -w 1 {name} | head -1" for name in names)
    asked = "kubernetes.default.svc.cluster.local"
    script += f"\nnslookup {asked}; nslookup none.{namespace}.svc.cluster.local; true"
    printed = job(podling, namespace, "asks", {"image": BUSYBOX, "command": ["sh", "-c", script]})
    for name in names:
        assert f"PING {name} ({address})" in printed
    its = podling.get("service", "kubernetes", "-n", "default")["spec"]["clusterIP"]
    assert re.search(rf"Name:\s+{asked}\nAddress.*: {its}\n", printed), printed
    assert "NXDOMAIN" in printed


def test_a_name_of_no_namespace_is_told_not_to_be_there(podling: Podling, namespace: str) -> None:
    """What Jonas asks for from his debug image: a service's name without its namespace."""
    script = "nslookup neato.svc.cluster.local.; true"
    printed = job(podling, namespace, "debug", {"image": BUSYBOX, "command": ["sh", "-c", script]})
    assert "can't find neato.svc.cluster.local.: NXDOMAIN" in printed


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ["search NS.svc.cluster.local svc.cluster.local cluster.local", "options ndots:5"]),
        ({"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}, ["search NS.svc.cluster.local"]),
        (
            {
                "dnsConfig": {
                    "searches": ["more.test"],
                    "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
                }
            },
            ["cluster.local more.test", "options ndots:2 edns0"],
        ),
        (
            {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["192.0.2.53"], "searches": ["only.test"]}},
            ["search only.test\n", "nameserver 192.0.2.53"],
        ),
    ],
    ids=["ClusterFirst", "ClusterFirstWithHostNet", "dnsConfig", "None"],
)
def test_resolv_conf_is_of_the_policy(
    podling: Podling, namespace: str, spec: dict[str, Any], expected: list[str]
) -> None:
    container = {"image": BUSYBOX, "command": ["cat", "/etc/resolv.conf"]}
    printed = job(podling, namespace, "reads", container, **spec)
    for one in expected:
        assert one.replace("NS", namespace) in printed
    assert ("192.0.2.53" in printed) == (spec.get("dnsPolicy") == "None")


def test_pods_ask_the_service_of_cluster_dns(podling: Podling, namespace: str) -> None:
    service = podling.get("service", "kube-dns", "-n", "kube-system")
    container = {"image": BUSYBOX, "command": ["cat", "/etc/resolv.conf"]}
    read = job(podling, namespace, "reads", container)
    assert f"nameserver {service['spec']['clusterIP']}\n" in read
    (one,) = podling.get("endpointslices", "-n", "kube-system", "-l", "kubernetes.io/service-name=kube-dns")[
        "items"
    ]
    assert service["spec"]["clusterIP"].endswith(".10")
    assert {port["name"]: port["port"] for port in one["ports"]} == {"dns": 53, "dns-tcp": 53}


def test_cluster_dns_alone_answers_and_is_asked_from_the_command_line(
    podling: Podling, make_part: Callable[..., Part], tmp_path: Path
) -> None:
    """As another of the same cluster, at a port of its own; without `--server` the cluster's is asked."""
    config = ("--kubeconfig", str(podling.instance.kubeconfig))
    its = podling.get("service", "kubernetes", "-n", "default")["spec"]["clusterIP"]
    port = str(free_port())
    part = make_part(["dns", *config, "--port", port, "--metrics-bind-address="], tmp_path / "dns.log")
    part.start("Names of ")
    for server in (("--server", f"127.0.0.1:{port}"), ()):
        ask = (sys.executable, "-m", "podling", "dns", "query", *config, "-n", "default", *server)
        assert its in run([*ask, "kubernetes"]).stdout
        assert "NXDOMAIN" in run([*ask, "none.default.svc.cluster.local."]).stdout
    part.end()
