"""R-SYS-2: Kubernetes' own kubelet joins podling's API server with a bootstrap token, and runs its pods."""

from __future__ import annotations

import signal
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPSConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cryptography import x509

from podling.kubelet.server.server import subresources, verb_of
from podling.machine.pki import Authority
from podling.machine.start import machine_address

from . import told_alike, whole_pod
from .csi_story import DRIVER, DriverOfNode, compare, story
from .kubernetes_node import kubelet, own_places

if TYPE_CHECKING:
    from conftest import RealContainerd
    from e2e.conftest import Part, Podling

pytestmark = pytest.mark.interop("kubelet", "API server", "scheduler", "controllers")

TOKEN_ID, TOKEN_SECRET = "abcdef", "0123456789abcdef"
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": f"bootstrap-token-{TOKEN_ID}", "namespace": "kube-system"},
    "type": "bootstrap.kubernetes.io/token",
    "stringData": {
        "token-id": TOKEN_ID,
        "token-secret": TOKEN_SECRET,
        "usage-bootstrap-authentication": "true",
    },
}
READY = {"apiserver": "API server on ", "scheduler": "Scheduling for ", "controllers": "Controlling for "}
CLIENT, SERVING = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"
PATHS = ["stats/", "stats/summary", "metrics", "metrics/cadvisor", "logs/", "logs/x", "pods", "pods/"]
PATHS += ["runningpods/", "healthz", "healthz/ping", "healthz/syncloop", "statusz", "flagz", "configz"]
PATHS += ["checkpoint/ns/p/c", "containerLogs/ns/p/c", "exec/ns/p/c", "attach/ns/p/c", "run/ns/p/c"]
PATHS += ["portForward/ns/p", "debug/pprof/", "debug/flags/v"]
ASKED = [
    *(("GET", f"/{path}") for path in PATHS),
    *((method, "/exec/ns/p/c") for method in ("POST", "PUT", "PATCH", "DELETE")),
]


HOOK_FAILED, FALLBACK = "FailedPreStopHook", "LifecycleHTTPFallback"
TOLD_WITHIN = 120
"""Seconds until containers have failed twice, on a machine with other work."""
OF_KUBERNETES_ALONE = {"CgroupV1", "InvalidDiskCapacity"}
"""Of events about a node: it wants no cgroups of version 1, and looks at a disk before it knows it."""


SPREAD: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "spread"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "spread"}},
        "template": {
            "metadata": {"labels": {"app": "spread"}},
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {
                        "name": "app",
                        "image": whole_pod.BUSYBOX,
                        "imagePullPolicy": "Never",
                        "command": ["sh", "-c", "echo begun; sleep 1000"],
                    }
                ],
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "nodeTaintsPolicy": "Honor",
                        "labelSelector": {"matchLabels": {"app": "spread"}},
                    }
                ],
            },
        },
    },
}
"""As many on each node that takes any."""


@dataclass
class Cluster:
    """podling's API server, scheduler and controllers, for kubelets that join. `directory` is theirs."""

    podling: Podling
    parts: dict[str, Part]
    containerd: RealContainerd
    program: Path
    directory: Path

    @contextmanager
    def kubelet(self, node: str) -> Iterator[Path]:
        """Kubernetes' kubelet while the block runs; gives the directory of its certificates."""
        home = self.directory / node
        home.mkdir()
        (home / "bootstrap.conf").write_text(yaml.safe_dump(self.bootstrap(machine_address())))
        flags = {"bootstrap-kubeconfig": home / "bootstrap.conf", "kubeconfig": home / "kubelet.conf"}
        rotating = {"rotateCertificates": True, "serverTLSBootstrap": True}
        with kubelet(self.program, self.containerd, home, self.ca, node, flags, **rotating):
            yield home / "pki"

    @property
    def ca(self) -> Path:
        return self.podling.instance.pki_dir / "ca.crt"

    def bootstrap(self, address: str) -> dict[str, Any]:
        """The kubeconfig of somebody who has nothing but the token."""
        cluster = {"server": f"https://{address}:{self.podling.port}", "certificate-authority": str(self.ca)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "podling", "cluster": cluster}],
            "users": [{"name": "joining", "user": {"token": f"{TOKEN_ID}.{TOKEN_SECRET}"}}],
            "contexts": [{"name": "joining", "context": {"cluster": "podling", "user": "joining"}}],
            "current-context": "joining",
        }

    def requests(self, signer: str, user: str) -> list[dict[str, Any]]:
        selector = f"--field-selector=spec.signerName={signer}"
        found: list[dict[str, Any]] = self.podling.get("csr", selector)["items"]
        return [one for one in found if one["spec"]["username"] == user]

    def wait_for_requests(self, signer: str, user: str, number: int, state: str) -> None:
        """Returns when so many of a user's requests have been seen in a state."""
        columns = "N:.metadata.name,U:.spec.username,S:.spec.signerName"
        state_of = {"Pending": "C:.spec.signerName", "Issued": "C:.status.certificate"}[state]
        kubectl = ["kubectl", "--kubeconfig", str(self.podling.instance.kubeconfig), "get", "csr", "--watch"]
        output = ["--no-headers", f"--output=custom-columns={columns},{state_of}", "--request-timeout=120s"]
        seen: set[str] = set()
        with subprocess.Popen([*kubectl, *output], stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout
            for line in watching.stdout:
                name, who, whom, what = line.split()
                if (who, whom) == (user, signer) and what != "<none>":
                    seen.add(name)
                if len(seen) == number:
                    break
            watching.kill()
        assert len(seen) == number

    def approve_serving(self, node: str) -> None:
        """As an administrator; nobody else does."""
        user = f"system:node:{node}"
        self.wait_for_requests(SERVING, user, 1, "Pending")
        (asked,) = self.requests(SERVING, user)
        assert "conditions" not in asked["status"]
        self.podling.kubectl("certificate", "approve", asked["metadata"]["name"])
        self.wait_for_requests(SERVING, user, 1, "Issued")


@pytest.fixture(scope="module")
def cluster(
    make_podling: Callable[[], Podling],
    make_part: Callable[..., Part],
    make_containerd: Callable[[], AbstractContextManager[RealContainerd]],
    kubernetes_programs: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    podling, directory = make_podling(), tmp_path_factory.mktemp("kubelet")
    data, pki = podling.instance.data_dir, podling.instance.pki_dir
    data.mkdir()
    authority = Authority(pki, datetime.now(UTC)).ca
    options: dict[str, dict[str, Any]] = {
        "apiserver": {
            "data-dir": data,
            "port": podling.port,
            "kubelet-certificate-authority": authority.certificate,
        },
        "scheduler": {"kubeconfig": data / "scheduler.conf", "secure-port": 0},
        "controllers": {
            "kubeconfig": data / "controller-manager.conf",
            "secure-port": 0,
            "cluster-signing-cert-file": authority.certificate,
            "cluster-signing-key-file": authority.key,
        },
    }
    arguments = {name: [f"--{key}={value}" for key, value in told.items()] for name, told in options.items()}
    parts = {name: make_part([name, *given], directory / f"{name}.log") for name, given in arguments.items()}
    with ExitStack() as ending:
        containerd = ending.enter_context(make_containerd())
        ending.enter_context(own_places(containerd))
        for name, part in parts.items():
            ending.callback(part.end)
            part.start(READY[name])
        podling.apply(SECRET)
        yield Cluster(podling, parts, containerd, kubernetes_programs / "kubelet", directory)


@pytest.fixture(scope="module")
def joined(cluster: Cluster) -> Iterator[Cluster]:
    """With a node that is ready, and whose server has the certificate that an administrator approved."""
    podling, node = cluster.podling, "joined"
    with cluster.kubelet(node):
        podling.kubectl("wait", "--for=create", f"node/{node}", "--timeout=60s", timeout=70)
        podling.wait("condition=Ready", f"node/{node}")
        cluster.approve_serving(node)
        yield cluster


def test_a_kubelet_joins_with_a_bootstrap_token(joined: Cluster) -> None:
    """Its certificate is approved by itself; who has only the token may do little else."""
    (asked,) = joined.requests(CLIENT, f"system:bootstrap:{TOKEN_ID}")
    (approved,) = asked["status"]["conditions"]
    assert approved["reason"] == "AutoApproved"
    assert joined.podling.get("node", "joined")["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.2"
    (joined.directory / "token.conf").write_text(yaml.safe_dump(joined.bootstrap("127.0.0.1")))
    told = ["kubectl", "--kubeconfig", str(joined.directory / "token.conf"), "auth", "can-i"]
    # Whether a node of its name is there it may ask, as in kubeadm's clusters.
    rights = [
        ("create", "csr", True),
        ("get", "nodes", True),
        ("list", "nodes", False),
        ("get", "secrets", False),
    ]
    for verb, what, allowed in rights:
        said = subprocess.run([*told, verb, what], capture_output=True, text=True, check=False)
        assert said.stdout == f"{'yes' if allowed else 'no'}\n", said.stderr


def test_it_asks_the_api_server_what_podlings_kubelet_asks(joined: Cluster) -> None:
    """Who may nothing is told which subresources of nodes would let him, and strangers nothing."""
    status = joined.podling.get("node", "joined")["status"]
    port = status["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    nobody = Authority(joined.ca.parent, datetime.now(UTC)).client("nobody", "nobody")
    tls, stranger = ssl.create_default_context(cafile=str(joined.ca)), ssl.create_default_context()
    tls.load_cert_chain(nobody.certificate, nobody.key)
    for context in (tls, stranger):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    said, ours = {}, {}
    for method, path in ASKED:
        said[method, path] = answered(port, tls, method, path)
        verb, subresource = verb_of(method), " ".join(subresources(path))
        told = f"(user=nobody, verb={verb}, resource=nodes, subresource(s)=[{subresource}])"
        ours[method, path] = 403, f"Forbidden {told}\n"
    assert said == ours
    assert answered(port, stranger, "GET", "/healthz") == (401, "Unauthorized")


def answered(port: int, tls: ssl.SSLContext, method: str, path: str) -> tuple[int, str]:
    with closing(HTTPSConnection(machine_address(), port, timeout=30, context=tls)) as connection:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_it_mounts_what_podlings_controllers_attach(joined: Cluster) -> None:
    """A driver is asked the same as by podling's kubelet (tests/e2e/test_csi.py)."""
    podling = joined.podling
    podling.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")
    podling.apply(DRIVER)
    with TemporaryDirectory(prefix="csi-") as place:
        driver = DriverOfNode(podling, Path(place), joined.directory / "joined" / "root")
        driver.program.start()
        driver.sidecars.start()
        try:
            driver.registered("joined")
            compare(story(driver, "joined"))
        finally:
            driver.sidecars.kill()
            driver.program.kill()


def test_a_pod_lives_on_it(joined: Cluster, tmp_path: Path) -> None:
    """Init containers, a sidecar, probes, exec, `kubectl debug`, logs, and a deletion in order."""
    podling = joined.podling
    podling.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")
    podling.apply(whole_pod.pod("whole", tmp_path))
    whole_pod.live(podling.said, "whole")
    assert podling.get("pod", "whole")["spec"]["nodeName"] == "joined"
    whole_pod.end(podling.said, "whole", tmp_path)


@pytest.fixture(scope="module")
def beside(
    joined: Cluster,
    make_part: Callable[..., Part],
    make_podling: Callable[[], Podling],
    make_containerd: Callable[[], AbstractContextManager[RealContainerd]],
) -> Iterator[str]:
    """A node of podling's kubelet in the same cluster."""
    podling, node, config = joined.podling, "ours", joined.directory / "ours.conf"
    url = f"https://127.0.0.1:{podling.port}"
    podling.command("kubeconfig", "--node", node, "--server", url, str(config))
    own = ["--node-name", node, "--data-dir", str(make_podling().instance.data_dir)]
    with make_containerd() as containerd:
        given = ["kubelet", "--kubeconfig", str(config), *own, "--cri-endpoint", containerd.socket]
        kubelet = make_part([*given, "--rotate-server-certificates"], joined.directory / "ours.log")
        kubelet.start(f"Node {node} of ")
        try:
            joined.approve_serving(node)
            yield node
        finally:
            podling.kubectl("delete", "deployment/spread", "--cascade=foreground", "--ignore-not-found")
            kubelet.end()
            podling.kubectl("delete", "node", node)


def test_it_is_a_node_beside_one_of_podlings_kubelet(joined: Cluster, beside: str) -> None:
    """Pods are spread over both, answer alike, and leave a node that is drained for the other."""
    podling = joined.podling
    podling.apply(SPREAD)
    podling.wait("condition=Available", "deployment/spread")
    pods = podling.get("pods", "-l", "app=spread")["items"]
    assert {one["spec"]["nodeName"] for one in pods} == {"joined", beside}
    for one in pods:
        name = one["metadata"]["name"]
        assert podling.said("exec", name, "--", "hostname").strip() == name
        assert podling.said("logs", name) == "begun\n"
    podling.kubectl("drain", "joined", "--ignore-daemonsets", "--timeout=60s", timeout=70)
    podling.kubectl("rollout", "status", "deployment/spread", "--timeout=60s", timeout=70)
    left = podling.get("pods", "-l", "app=spread", "--field-selector=status.phase=Running")["items"]
    assert [one["spec"]["nodeName"] for one in left] == [beside, beside]
    podling.kubectl("uncordon", "joined")


def told_of(podling: Podling, awaited: set[tuple[str, str]]) -> list[dict[str, Any]]:
    """All events, once there are some about these objects for these reasons."""
    end = time.monotonic() + TOLD_WITHIN
    while True:
        events: list[dict[str, Any]] = podling.get("events")["items"]
        missing = awaited - {(one["involvedObject"]["name"], one["reason"]) for one in events}
        if not missing:
            return events
        if time.monotonic() > end:
            late = {name for name, _ in missing}
            told = [
                f"{one['involvedObject']['name']} {one['reason']}: {one['message']}"
                for one in events
                if one["involvedObject"]["name"] in late
            ]
            raise AssertionError("\n".join([f"nothing of {missing}, but:", *told]))


def test_what_goes_wrong_is_told_in_the_same_words(joined: Cluster, beside: str) -> None:
    """Probes, hooks, images, volumes, configuration and admission: statuses and events of both kubelets, as
    far as both are at the same point."""
    podling, nodes = joined.podling, {"kubernetes": "joined", "podling": beside}
    podling.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")
    pods = [
        {"metadata": {"name": f"{name}-of-{whose}"}, "spec": {**spec, "nodeName": node}}
        for name, (spec, _) in told_alike.CASES.items()
        for whose, node in nodes.items()
    ]
    for node in nodes.values():
        podling.kubectl("cordon", node)
    # Later it might be one event too many about the node: each pod has Kubernetes' kubelet tell one.
    told_of(podling, {(node, "NodeNotSchedulable") for node in nodes.values()})
    podling.apply(*({"apiVersion": "v1", "kind": "Pod", **one} for one in pods), timeout=180)
    awaited = {
        (f"{name}-of-{whose}", reason) for name, (_, reason) in told_alike.CASES.items() for whose in nodes
    }
    events = told_of(podling, awaited)
    found = {one["metadata"]["name"]: one for one in podling.get("pods")["items"]}
    differences = [
        f"{name}: {difference}"
        for name in told_alike.CASES
        for difference in told_alike.differences(
            *(told_alike.told(found[f"{name}-of-{whose}"], events) for whose in nodes)
        )
    ]
    assert not differences, "\n".join(differences)
    of_nodes = [
        {
            (one["type"], one["reason"], one["message"].replace(node, "NODE"))
            for one in events
            if one["involvedObject"]["name"] == node and one["source"]["component"] == "kubelet"
        }
        for node in nodes.values()
    ]
    assert {reason for _, reason, _ in of_nodes[0] - of_nodes[1]} <= OF_KUBERNETES_ALONE
    assert not of_nodes[1] - of_nodes[0]
    # Where a hook is to succeed, it has time to, whoever else ends.
    succeed = [
        f"{name}-of-{whose}" for name, fails in told_alike.AT_THE_END.items() if not fails for whose in nodes
    ]
    podling.kubectl("delete", "pods", *succeed, "--grace-period=5", timeout=90)
    podling.kubectl("delete", "pods", "--all", "--grace-period=1", timeout=90)
    fail = {name for name, fails in told_alike.AT_THE_END.items() if fails}
    events = told_of(podling, {(f"{name}-of-{whose}", HOOK_FAILED) for name in fail for whose in nodes})
    first, second = (
        {
            (one["involvedObject"]["name"].removesuffix(whose), one["type"], one["reason"], one["message"])
            for one in events
            if one["reason"] in (HOOK_FAILED, FALLBACK)
            and one["involvedObject"]["name"].endswith(f"-{whose}")
        }
        for whose in nodes
    )
    assert first == second
    for node in nodes.values():
        podling.kubectl("uncordon", node)


def test_a_kubelet_renews_its_certificate(cluster: Cluster) -> None:
    """One that lasts a minute is renewed at once, by who has it, and used from then on."""
    controllers, node = cluster.parts["controllers"], "renewing"
    controllers.end(signal.SIGTERM)
    controllers.arguments += ["--cluster-signing-duration", "1m"]
    controllers.start(READY["controllers"])
    with cluster.kubelet(node) as certificates:
        cluster.wait_for_requests(CLIENT, f"system:node:{node}", 2, "Issued")
        renewed = cluster.requests(CLIENT, f"system:node:{node}")
        why = {one["status"]["conditions"][0]["message"] for one in renewed if "conditions" in one["status"]}
        assert why == {"Auto approving self kubelet client certificate after SubjectAccessReview."}
        current = x509.load_pem_x509_certificate((certificates / "kubelet-client-current.pem").read_bytes())
        assert current.subject.rfc4514_string() == f"CN=system:node:{node},O=system:nodes"
    cluster.podling.kubectl("delete", "node", node)
