"""R-SYS-8: logs, commands, ports and proxies of what cannot be reached are refused as by Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from peer.named_differences import unnamed
from peer.sequence import MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server

NS = "/api/v1/namespaces/{ns}"
PODS, SERVICES, NODES = f"{NS}/pods", f"{NS}/services", "/api/v1/nodes"
MERGE = {"Content_Type": MERGE_PATCH}
ONE = [{"name": "a", "image": "i"}]
FIRST = [{"name": "i", "image": "i"}]
DEBUGGER = {"spec": {"ephemeralContainers": [{"name": "d", "image": "i"}]}}
DEFAULT = "kubectl.kubernetes.io/default-container"
UPGRADE = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io"}


def pod(name: str, annotations: dict[str, str] | None = None, **spec: Any) -> Ask:
    body = {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"automountServiceAccountToken": False, "containers": ONE, **spec},
    }
    return Ask("POST", PODS, body)


PREPARED = [
    pod("nowhere"),
    pod("several", containers=[*ONE, {"name": "b", "image": "i"}], initContainers=FIRST),
    pod("usual", {DEFAULT: "b"}, containers=[*ONE, {"name": "b", "image": "i"}]),
    pod("odd", {DEFAULT: "z"}, containers=[*ONE, {"name": "b", "image": "i"}]),
    pod("lost", nodeName="lost-{ns}"),
    pod("ended", nodeName="lost-{ns}"),
    Ask("PATCH", f"{PODS}/ended/status", {"status": {"phase": "Succeeded"}}, MERGE),
    pod("debugged", initContainers=FIRST),
    Ask("PATCH", f"{PODS}/debugged/ephemeralcontainers", DEBUGGER, {"Content_Type": MERGE_PATCH}),
    Ask("POST", NODES, {"metadata": {"name": "bare-{ns}"}}),
    pod("bare", nodeName="bare-{ns}"),
    Ask("POST", SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "name": "web"}]}}),
    Ask("POST", SERVICES, {"metadata": {"name": "headless"}, "spec": {"clusterIP": "None"}}),
    pod("all", containers=[*ONE, {"name": "b", "image": "i"}], initContainers=FIRST),
    Ask("PATCH", f"{PODS}/all/ephemeralcontainers", DEBUGGER, MERGE),
    *(
        Ask("POST", SERVICES, {"metadata": {"name": name}, "spec": {"ports": [{"port": 80, "name": "web"}]}})
        for name in ("empty", "unready", "sliced", "inward")
    ),
    Ask("POST", f"{NS}/endpoints", {"metadata": {"name": "empty"}}),
    Ask(
        "POST",
        f"{NS}/endpoints",
        {
            "metadata": {"name": "unready"},
            "subsets": [{"notReadyAddresses": [{"ip": "10.9.9.9"}], "ports": [{"name": "web", "port": 1}]}],
        },
    ),
    Ask(
        "POST",
        f"{NS}/endpoints",
        {
            "metadata": {"name": "inward"},
            "subsets": [{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"name": "web", "port": 1}]}],
        },
    ),
    Ask(
        "POST",
        "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices",
        {
            "metadata": {"name": "sliced-1", "labels": {"kubernetes.io/service-name": "sliced"}},
            "addressType": "IPv4",
            "endpoints": [],
            "ports": [{"name": "web", "port": 1}],
        },
    ),
    Ask(
        "POST",
        SERVICES,
        {"metadata": {"name": "named"}, "spec": {"type": "ExternalName", "externalName": "a.test"}},
    ),
]
NAMES = ("nowhere", "several", "usual", "odd", "lost", "ended", "debugged", "all", "bare", "missing")
CONTAINERS = ("", "container=a", "container=b", "container=i", "container=d", "container=z", "container=")
OPTIONS = (
    *(
        f"{name}={value}"
        for name in ("follow", "previous", "timestamps")
        for value in ("true", "1", "x", "", "t")
    ),
    *(
        f"{name}={value}"
        for name in ("tailLines", "limitBytes", "sinceSeconds")
        for value in ("-1", "0", "1", "x", "")
    ),
    *(f"sinceTime={value}" for value in ("2026-01-02T03:04:05Z", "x", "", "2026-01-02")),
    "sinceTime=2026-01-02T03:04:05Z&sinceSeconds=1",
    "sinceSeconds=0&limitBytes=0&tailLines=-2",
    *(f"stream={value}" for value in ("All", "Stdout", "Stderr", "stdout", "", "x")),
    "stream=Stdout&tailLines=1",
    "stream=Stderr&previous=true",
    *(f"insecureSkipTLSVerifyBackend={value}" for value in ("true", "x")),
    "unknown=1",
    "tailLines=1&tailLines=x",
    "container=a&container=b",
    "pretty=true&fieldSelector=x",
)


def logs() -> Iterator[Ask]:
    for name, container in product(NAMES, CONTAINERS):
        yield Ask("GET", f"{PODS}/{name}/log?{container}")
    for options in OPTIONS:
        yield Ask("GET", f"{PODS}/nowhere/log?{options}")
        yield Ask("GET", f"{PODS}/several/log?container=a&{options}")
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        yield Ask(method, f"{PODS}/nowhere/log", {}, MERGE)
    for accept in (
        "text/plain",
        "application/json",
        "application/yaml",
        "x/y",
    ):
        yield Ask("GET", f"{PODS}/nowhere/log?container=z", headers={"Accept": accept})


def commands() -> Iterator[Ask]:
    asked = (
        "",
        "command=x",
        "command=x&stdout=true",
        "command=x&stdin=true&tty=true",
        "stdout=true&stdout=x",
    )
    for name, verb, options in product(NAMES, ("exec", "attach"), asked):
        yield Ask("POST", f"{PODS}/{name}/{verb}?{options}", headers=UPGRADE)
    for name, verb, container in product(
        ("several", "usual", "odd", "debugged"), ("exec", "attach"), CONTAINERS
    ):
        yield Ask("POST", f"{PODS}/{name}/{verb}?command=x&stdout=1&{container}", headers=UPGRADE)
    for verb, options in product(
        ("exec", "attach"),
        (
            "stdin=x",
            "tty=x",
            "stderr=2",
            "stdout=",
            "container=A_",
            "command=",
            "command=a&command=b",
            "unknown=1",
        ),
    ):
        yield Ask("POST", f"{PODS}/nowhere/{verb}?{options}", headers=UPGRADE)
        yield Ask("GET", f"{PODS}/nowhere/{verb}?{options}")
        yield Ask("POST", f"{PODS}/lost/{verb}?{options}&stdout=true&command=x")
    for method, verb in product(("PUT", "DELETE", "PATCH"), ("exec", "attach", "portforward")):
        yield Ask(method, f"{PODS}/nowhere/{verb}", {}, MERGE)


def forwarded() -> Iterator[Ask]:
    for name, ports in product(
        NAMES, ("", "ports=80", "ports=0", "ports=x", "ports=80,81", "ports=70000", "ports=")
    ):
        yield Ask("POST", f"{PODS}/{name}/portforward?{ports}", headers=UPGRADE)


def proxied() -> Iterator[Ask]:
    for name in NAMES:
        for asked in (
            name,
            f"{name}:80",
            f"{name}:x",
            f"https:{name}:80",
            f"http:{name}:",
            f"x:{name}:1",
            f"{name}:0",
        ):
            yield Ask("GET", f"{PODS}/{asked}/proxy/")
        yield Ask("GET", f"{PODS}/{name}/proxy")
        yield Ask("POST", f"{PODS}/{name}/proxy/a?b=c", {"a": 1})
    for name in ("s", "headless", "named", "empty", "unready", "sliced", "inward", "missing"):
        for asked in (
            name,
            f"{name}:80",
            f"{name}:web",
            f"{name}:81",
            f"{name}:other",
            f"https:{name}:web",
            f"x:{name}:80",
        ):
            yield Ask("GET", f"{SERVICES}/{asked}/proxy/")
        yield Ask("GET", f"{SERVICES}/{name}/proxy")
    for name in ("bare-{ns}", "lost-{ns}", "missing"):
        for asked in (name, f"{name}:1", f"https:{name}:1", f"{name}:x"):
            yield Ask("GET", f"{NODES}/{asked}/proxy/")
        yield Ask("GET", f"{NODES}/{name}/proxy")


SEQUENCES = [
    Compared(name, [*PREPARED, *asks(), Ask("DELETE", f"{NODES}/bare-{{ns}}")], apart=True)
    for name, asks in (("logs", logs), ("commands", commands), ("forwarded", forwarded), ("proxied", proxied))
]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_connections(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    found = unnamed(differences(sequence, f"connections-{sequence.name}", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
