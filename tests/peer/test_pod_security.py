"""R-SYS-8: pods are held to the Pod Security Standards as by Kubernetes, in its words."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from peer.mutations import GONE
from peer.named_differences import unnamed
from peer.sequence import MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Server

PREFIX = "pod-security.kubernetes.io/"
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
LEVELS = ("baseline", "restricted")
MINORS = (0, 7, 8, 18, 19, 21, 22, 23, 24, 25, 26, 27, 29, 31, 32, 34, 35, 36, 99)
"""On both sides of each version in which a rule changed."""
MERGE, STRATEGIC = {"Content_Type": MERGE_PATCH}, {"Content_Type": STRATEGIC_PATCH}
SEED = 20261123

CAPABILITIES: list[Any] = [
    GONE,
    {"drop": ["ALL"], "add": ["NET_BIND_SERVICE", "SYS_ADMIN"]},
    {"drop": ["ALL"], "add": ["CHOWN", "AUDIT_WRITE"]},
    {"add": ["CAP_CHOWN", "ALL"]},
    {"drop": ["all", "NET_RAW"]},
]
SE_LINUX: list[Any] = [
    {"type": "container_engine_t"},
    {"type": "spc_t", "level": "s0"},
    {"type": "", "role": "r"},
    {"type": "x", "user": "u", "role": "r"},
    {"level": "s0"},
]
PROFILES: list[Any] = [
    {"type": "Unconfined"},
    {"type": "Localhost", "localhostProfile": "a"},
    {"type": "RuntimeDefault"},
]
SYSCTLS = (
    "kernel.msgmax",
    "kernel.shm_rmid_forced",
    "net.core.somaxconn",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_wmem",
)
PROBES: list[tuple[str, Any]] = [
    ("livenessProbe", {"httpGet": {"port": 1, "host": "127.0.0.1"}}),
    ("readinessProbe", {"tcpSocket": {"port": 1, "host": "z.example"}}),
    ("startupProbe", {"httpGet": {"port": 1}}),
    ("lifecycle", {"postStart": {"httpGet": {"port": 1, "host": "::1"}}}),
    (
        "lifecycle",
        {
            "preStop": {"tcpSocket": {"port": 1, "host": "b"}},
            "postStart": {"httpGet": {"port": 1, "host": "a"}},
        },
    ),
]
VOLUMES: dict[str, Any] = {
    "hostPath": {"path": "/"},
    "emptyDir": {},
    "nfs": {"server": "a", "path": "/a"},
    "gcePersistentDisk": {"pdName": "a"},
    "awsElasticBlockStore": {"volumeID": "a"},
    "azureDisk": {"diskName": "a", "diskURI": "https://blob/a"},
    "photonPersistentDisk": {"pdID": "a"},
    "scaleIO": {"gateway": "a", "system": "a", "secretRef": {"name": "a"}, "volumeName": "a"},
    "storageos": {"volumeName": "a"},
    "fc": {"targetWWNs": ["a"], "lun": 1},
    "csi": {"driver": "a.b"},
    "image": {"reference": "a"},
}
CONTAINER_SIDE: list[tuple[str, Any]] = [
    *(("privileged", value) for value in (True, False)),
    *(("allowPrivilegeEscalation", value) for value in (True, GONE)),
    *(("procMount", value) for value in ("Unmasked", "Default")),
    *(("capabilities", value) for value in CAPABILITIES),
    *(("seLinuxOptions", value) for value in SE_LINUX),
    *((name, value) for name in ("seccompProfile", "appArmorProfile") for value in PROFILES),
    *(("runAsNonRoot", value) for value in (True, False)),
    *(("runAsUser", value) for value in (0, 1)),
    ("windowsOptions", {"hostProcess": False}),
]
POD_SIDE: list[tuple[str, Any]] = [
    *((f"securityContext {name}", value) for name, value in CONTAINER_SIDE[11:]),
    *((f"securityContext {name}", GONE) for name in ("seccompProfile", "runAsNonRoot")),
    *(("securityContext sysctls", [{"name": name, "value": "1"}]) for name in SYSCTLS),
    ("securityContext sysctls", [{"name": name, "value": "1"} for name in reversed(SYSCTLS)]),
    *((name, True) for name in ("hostNetwork", "hostPID", "hostIPC")),
    *(("hostUsers", value) for value in (False, True)),
    *(("volumes", [{"name": "v", source: said}]) for source, said in VOLUMES.items()),
    ("volumes", [{"name": f"v{name.lower()}", name: said} for name, said in reversed(VOLUMES.items())]),
]
PORTS = [{"containerPort": 1, "hostPort": 80}, {"containerPort": 2, "hostPort": 8080}, {"containerPort": 3}]


def compliant(name: str = "p") -> dict[str, Any]:
    """A pod that every level allows."""
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    containers = [{"name": name, "image": "i", "securityContext": copy.deepcopy(context)} for name in "cd"]
    first = {"name": "i", "image": "i", "restartPolicy": "Always", "securityContext": copy.deepcopy(context)}
    pod = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"initContainers": [first], "containers": containers, "securityContext": pod}
    return {"metadata": {"name": name}, "spec": spec}


def naked(name: str = "p") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def windows() -> dict[str, Any]:
    spec = {"os": {"name": "windows"}, "containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"name": "p"}, "spec": spec}


PLACES = (("containers 0",), ("initContainers 0",), ("initContainers 0", "containers 1"))
# A container with privilege cannot say that it gets no more.
MAY_ESCALATE = {"privileged": [("allowPrivilegeEscalation", GONE)]}
CHANGES: list[list[tuple[str, Any]]] = [
    *(
        [
            (f"spec {place} securityContext {one}", said)
            for place in places
            for one, said in ((name, value), *MAY_ESCALATE.get(name, ()))
        ]
        for places in PLACES
        for name, value in CONTAINER_SIDE
    ),
    *(
        [("spec hostUsers", False), (f"spec containers 1 securityContext {name}", value)]
        for name, value in CONTAINER_SIDE
        if name in ("procMount", "runAsNonRoot", "runAsUser")
    ),
    *([(f"spec {place} {name}", value) for place in places] for places in PLACES for name, value in PROBES),
    *([(f"spec {name}", value)] for name, value in POD_SIDE),
    [("spec containers 0 ports", PORTS)],
    [("spec containers 0 ports", PORTS[1:]), ("spec initContainers 0 ports", PORTS[:1])],
    *([(f"metadata annotations {SECCOMP}", value)] for value in ("unconfined", "localhost/a")),
]
WINDOWS: list[list[tuple[str, Any]]] = [
    [],
    [("spec securityContext", {"runAsNonRoot": True})],
    [
        ("spec securityContext", {"windowsOptions": {"hostProcess": True, "runAsUserName": "u"}}),
        ("spec hostNetwork", True),
    ],
]


def pods() -> Iterator[dict[str, Any]]:
    yield from (compliant(), naked())
    for changes in CHANGES:
        yield made(compliant(), changes)
    for changes in WINDOWS:
        yield made(windows(), changes)
    for profile in ("unconfined", "runtime/default", "localhost/a"):
        yield {**naked(), "metadata": {"name": "p", "annotations": {f"{APP_ARMOR}c": profile}}}
    chance = random.Random(SEED)
    for _ in range(250):
        several = itertools.chain.from_iterable(chance.sample(CHANGES, chance.randint(2, 5)))
        yield made(compliant(), list(several))


def made(base: dict[str, Any], changes: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """`base` itself, with other values at paths, whose names have spaces between them."""
    for path, value in changes:
        *way, last = path.split()
        at: Any = base
        for name in way:
            at = at[int(name)] if isinstance(at, list) else at.setdefault(name, {})
        if value is GONE:
            at.pop(last, None)
        else:
            at[last] = copy.deepcopy(value)
    return base


def labels(**said: str) -> dict[str, str]:
    return {PREFIX + mode.replace("_", "-"): value for mode, value in said.items()}


def labelled(name: str, **said: str) -> list[Ask]:
    return [
        Ask("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels(**said)}}),
        Ask("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}}),
    ]


def judged(level: str) -> Compared:
    name = f"ps-{level}"
    return Compared(
        f"pods-{level}",
        [
            *labelled(name, enforce=level),
            *(Ask("POST", f"/api/v1/namespaces/{name}/pods?dryRun=All", pod) for pod in pods()),
        ],
        apart=True,
    )


def versions(minor: int) -> Compared:
    """Of each version, what a level would refuse is asked of warnings."""
    asks = []
    version = f"v1.{minor}"
    for level in LEVELS:
        name = f"ps-{level}-{minor}"
        asks += labelled(name, warn=level, warn_version=version)
        few = [pod for index, pod in enumerate(pods()) if index < 3 or index % 8 == minor % 8]
        asks += [Ask("POST", f"/api/v1/namespaces/{name}/pods?dryRun=All", pod) for pod in few]
    return Compared(f"version-{version}", asks, apart=True)


def bad(name: str = "p", *more: tuple[str, Any]) -> dict[str, Any]:
    return made(naked(name), [("spec containers 0 securityContext", {"privileged": True}), *more])


TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": bad()["spec"]}
SELECTED = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
JOB = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
TEMPLATES: list[tuple[str, dict[str, Any]]] = [
    ("/apis/apps/v1/namespaces/{}/deployments", {"spec": SELECTED}),
    ("/apis/apps/v1/namespaces/{}/replicasets", {"spec": SELECTED}),
    ("/apis/apps/v1/namespaces/{}/daemonsets", {"spec": SELECTED}),
    ("/apis/apps/v1/namespaces/{}/statefulsets", {"spec": {**SELECTED, "serviceName": "s"}}),
    ("/apis/batch/v1/namespaces/{}/jobs", {"spec": JOB}),
    ("/apis/batch/v1/namespaces/{}/cronjobs", {"spec": {"schedule": "@daily", "jobTemplate": {"spec": JOB}}}),
    ("/api/v1/namespaces/{}/podtemplates", {"template": TEMPLATE}),
    ("/api/v1/namespaces/{}/replicationcontrollers", {"spec": {**SELECTED, "selector": {"a": "b"}}}),
    ("/api/v1/namespaces/{}/replicationcontrollers", {"spec": {"replicas": 0}}),
]


def templates() -> Compared:
    asks = []
    policies: list[dict[str, str]] = [
        {"enforce": "restricted", "warn": "privileged"},
        {"enforce": "baseline"},
        {"enforce": "baseline", "enforce_version": "v1.20"},
        {"enforce": "baseline", "warn_version": "v1.20"},
        {"enforce_version": "v1.7", "warn": "restricted", "audit": "restricted"},
    ]
    for index, policy in enumerate(policies):
        name = f"ps-templates-{index}"
        asks += labelled(name, **policy)
        for number, (target, said) in enumerate(TEMPLATES):
            at, named = target.format(name), {"metadata": {"name": f"w{number}"}, **said}
            asks.append(Ask("POST", at, named))
            asks.append(Ask("PATCH", f"{at}/w{number}", {"metadata": {"labels": {"c": "d"}}}, MERGE))
        deployment = f"{TEMPLATES[0][0].format(name)}/w0"
        asks.append(Ask("PATCH", f"{deployment}/scale", {"spec": {"replicas": 4}}, MERGE))
        asks.append(Ask("PATCH", f"{deployment}/status", {"status": {"replicas": 4}}, MERGE))
    return Compared("templates", asks)


def updates() -> Compared:
    name = "ps-updates"
    target = f"/api/v1/namespaces/{name}/pods"
    one, debug = f"{target}/p", f"{target}/p/ephemeralcontainers"

    def ephemeral(name: str, **said: Any) -> dict[str, Any]:
        return {"spec": {"ephemeralContainers": [{"name": name, "image": "j", **said}]}}

    def image(where: str, name: str, image: str) -> Ask:
        return Ask("PATCH", one, {"spec": {where: [{"name": name, "image": image}]}}, STRATEGIC)

    asks = [
        *labelled(name, enforce="baseline", warn="restricted", warn_version="v1.24"),
        Ask("POST", target, bad()),
        Ask("POST", target, {**bad(), "metadata": {"name": "p-1"}}),
        Ask("POST", target, made(naked(), [("spec initContainers", [{"name": "i", "image": "i"}])])),
        Ask("PATCH", one, {"metadata": {"labels": {"a": "b"}}}, MERGE),
        Ask("PATCH", one, {"metadata": {"annotations": {SECCOMP: "localhost/a"}}}, MERGE),
        Ask("PATCH", one, {"spec": {"tolerations": [{"key": "z", "operator": "Exists"}]}}, STRATEGIC),
        Ask("PATCH", one, {"spec": {"activeDeadlineSeconds": 1000}}, MERGE),
        image("containers", "c", "j"),
        image("initContainers", "i", "j"),
        Ask("PATCH", f"{one}/status", {"status": {"message": "m"}}, MERGE),
        Ask("PATCH", debug, ephemeral("e"), STRATEGIC),
        Ask("PATCH", debug, ephemeral("f", securityContext={"privileged": True}), STRATEGIC),
        Ask(
            "PATCH",
            debug,
            ephemeral("f", securityContext={"capabilities": {"add": ["SYS_ADMIN"]}}),
            STRATEGIC,
        ),
        Ask(
            "PATCH",
            "/api/v1/namespaces/" + name,
            {"metadata": {"labels": labels(enforce="restricted")}},
            MERGE,
        ),
        Ask("PATCH", one, {"metadata": {"labels": {"a": "d"}}}, MERGE),
        image("containers", "c", "k"),
        Ask("PATCH", debug, ephemeral("g"), STRATEGIC),
        Ask("DELETE", f"{one}?gracePeriodSeconds=0"),
    ]
    return Compared("updates", asks)


def namespaces() -> Compared:
    """Labels, and the warnings of pods that are there when they change."""
    wrong = [
        {mode: value}
        for mode in ("enforce", "audit", "warn")
        for value in ("", "x", "Baseline", "privileged", "restricted")
    ]
    wrong += [
        {f"{mode}_version": value}
        for mode in ("enforce", "audit", "warn")
        for value in (
            "",
            "x",
            "1.2",
            "v1",
            "v1.",
            "v1.01",
            "v1.0",
            "v1.99",
            "v2.0",
            "latest",
            "Latest",
            "v1.1.1",
        )
    ]
    wrong += [{"warn": "x", "enforce": "y", "audit_version": "z", "enforce_version": "w"}, {"other": "x"}]
    name = "ps-existing"
    target = f"/api/v1/namespaces/{name}"

    def relabelled(**said: str | None) -> Ask:
        change = {PREFIX + mode.replace("_", "-"): value for mode, value in said.items()}
        return Ask("PATCH", target, {"metadata": {"labels": change}}, MERGE)

    # Kubernetes patches what its cache has, warns of that, and again when it finds out: it is to be new.
    seen = Ask("GET", f"/api/v1/namespaces?labelSelector=kubernetes.io%2Fmetadata.name%3D{name}")
    asks = [ask for index, said in enumerate(wrong) for ask in labelled(f"ps-labels-{index}", **said)]
    asks += [
        *labelled(name, enforce="privileged"),
        Ask("POST", f"{target}/pods", bad("one")),
        Ask("POST", f"{target}/pods", naked("two")),
        Ask("POST", f"{target}/pods", compliant("three")),
        Ask("POST", f"{target}/pods", made(naked("four"), [("spec hostNetwork", True)])),
    ]
    changes = [
        relabelled(enforce="x"),
        relabelled(warn="x"),
        relabelled(enforce="baseline"),
        relabelled(enforce="baseline", warn="privileged"),
        Ask("PATCH", f"{target}?dryRun=All", {"metadata": {"labels": labels(enforce="restricted")}}, MERGE),
        relabelled(enforce="restricted"),
        relabelled(enforce_version="v1.20"),
        relabelled(enforce="baseline"),
        relabelled(enforce_version="v1.24"),
        relabelled(enforce=None),
        relabelled(enforce="baseline"),
        Ask("PATCH", f"{target}/status", {"metadata": {"labels": labels(enforce="restricted")}}, MERGE),
    ]
    asks += [ask for change in changes for ask in (seen, change)]
    return Compared("namespaces", [*asks, Ask("DELETE", target)])


COMPARED = [
    *(judged(level) for level in ("privileged", *LEVELS)),
    *map(versions, MINORS),
    templates(),
    updates(),
    namespaces(),
]


@pytest.mark.parametrize("compared", COMPARED, ids=lambda one: one.name)
def test_pods_are_held_to_the_same(compared: Compared, kubernetes: Server, podling: Server) -> None:
    found = unnamed(differences(compared, "ps", kubernetes, podling))
    assert not found, shown(compared, found)
