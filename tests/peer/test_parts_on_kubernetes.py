"""podling's kubelet, scheduler and controllers on Kubernetes' own API server: it understands all they say."""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from e2e import whole_pod
from peer import control_plane
from peer.server import Server, running
from podling.machine.pki import Authority

pytestmark = pytest.mark.interop("kube-apiserver", "scheduler", "controllers", "kubelet")

NODE = "peer"
NAMESPACE = "parts"
HERE = f"/api/v1/namespaces/{NAMESPACE}"
REQUESTS = re.compile(r"^apiserver_request_total\{(.*)\} (\d+)$", re.MULTILINE)
NOT_UNDERSTOOD = ('code="400"', 'code="415"', 'code="422"')
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
LABELS = {"app": "whole"}
BESIDE = {
    f"{HERE}/services": {
        "metadata": {"name": "whole"},
        "spec": {"selector": LABELS, "ports": [{"port": 80}]},
    },
    f"{HERE}/resourcequotas": {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "9"}}},
    f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets": {
        "metadata": {"name": "one"},
        "spec": {"minAvailable": 0, "selector": {"matchLabels": LABELS}},
    },
}


class Parts(msgspec.Struct):
    """What runs beside the API server, with its logs in `directory`."""

    server: Server
    directory: Path
    program: str = "kubectl"

    def run_kubectl(self, *arguments: str, input: str = "") -> subprocess.CompletedProcess[str]:
        command = [self.program, "--kubeconfig", str(self.server.kubeconfig), "-n", NAMESPACE, *arguments]
        return subprocess.run(command, input=input, capture_output=True, text=True, timeout=90, check=False)

    def kubectl(self, *arguments: str, input: str = "") -> str:
        done = self.run_kubectl(*arguments, input=input)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{self.logs()}"
        return done.stdout

    def logs(self) -> str:
        return "\n".join(log.read_text()[-4000:] for log in sorted(self.directory.glob("*.log")))

    def not_understood(self) -> Counter[str]:
        """The requests the server has refused for what they say, so far."""
        said = self.server.ask("GET", "/metrics").body
        counts = {labels: int(times) for labels, times in REQUESTS.findall(said)}
        return Counter({k: v for k, v in counts.items() if any(code in k for code in NOT_UNDERSTOOD)})


@pytest.fixture(scope="module")
def kubernetes(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One of its own: the parts act on whatever they find, also on what other tests leave behind."""
    with control_plane.kubernetes(kubernetes_programs, tmp_path_factory.mktemp("kubernetes")) as server:
        yield server


@pytest.fixture(scope="module")
def parts(
    kubernetes: Server, image_archives: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Parts]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    directory = tmp_path_factory.mktemp("parts")
    (directory / "node.conf").write_text(node_kubeconfig(kubernetes))
    data = ["--data-dir", str(directory / "node")]
    podling, silent = [sys.executable, "-m", "podling"], ["--secure-port", "0"]
    arguments = {
        "controllers": [
            "--kubeconfig",
            str(kubernetes.kubeconfig),
            "--root-ca-file",
            str(kubernetes.ca),
            *silent,
        ],
        "scheduler": ["--kubeconfig", str(kubernetes.kubeconfig), *silent],
        "kubelet": ["--kubeconfig", str(directory / "node.conf"), "--node-name", NODE, *data],
    }
    with ExitStack() as stack:
        stack.callback(subprocess.run, [*podling, "down", *data], check=True, timeout=120)
        for name, given in arguments.items():
            stack.enter_context(running([*podling, name, *given], directory / f"{name}.log"))
        parts = Parts(kubernetes, directory)
        parts.kubectl("wait", "--for=create", f"node/{NODE}", "--timeout=60s")
        for archive in image_archives.values():
            subprocess.run([*podling, "images", "load", str(archive), *data], check=True, timeout=120)
        parts.kubectl("wait", "--for=condition=Ready", f"node/{NODE}", "--timeout=60s")
        yield parts


def node_kubeconfig(server: Server) -> str:
    """The node authorizer lets its owner do what a node may, and nothing else."""
    pair = Authority(server.ca.parent, datetime.now(UTC)).client(
        "node", f"system:node:{NODE}", ["system:nodes"]
    )
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    return yaml.safe_dump(config)


def make_trusted(parts: Parts, pod: dict[str, Any]) -> None:
    """What a server's token volume holds beyond Kubernetes' own, nobody here would make."""
    sources = [source for v in pod["spec"]["volumes"] for source in v.get("projected", {}).get("sources", ())]
    for source in sources:
        name = source.get("configMap", {}).get("name", "kube-root-ca.crt")
        if name != "kube-root-ca.crt":
            body = {
                "metadata": {"name": name},
                "data": {item["key"]: "" for item in source["configMap"]["items"]},
            }
            assert parts.server.ask("POST", f"{HERE}/configmaps", body).code == 201


@pytest.mark.interop("kubectl", "scheduler", "controllers", "kubelet")
def test_pods_with_everything_live_and_every_request_is_understood(
    parts: Parts, kubernetes_programs: Path, tmp_path: Path
) -> None:
    """R-SYS-2: nothing podling's own server would take and Kubernetes' would not. A pod with a token, by the
    machine's kubectl; a Deployment, a StatefulSet and a Job, by that of Kubernetes' release."""
    before = parts.not_understood()
    parts.server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    parts.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")
    for where, what in BESIDE.items():
        assert parts.server.ask("POST", where, what).code == 201
    whole = whole_pod.pod("whole", tmp_path)
    made = parts.server.ask(
        "POST", f"{HERE}/pods", {**whole, "metadata": {"name": "whole", "labels": LABELS}}
    )
    assert made.code == 201, made.body
    make_trusted(parts, made.body)
    whole_pod.live(parts.kubectl, "whole")
    assert parts.kubectl("exec", "whole", "-c", "app", "--", "cat", TOKEN).count(".") == 2
    (slice_,) = json.loads(parts.kubectl("get", "endpointslices", "-o", "json"))["items"]
    assert slice_["endpoints"][0]["targetRef"]["name"] == "whole"
    reasons = {event["reason"] for event in json.loads(parts.kubectl("get", "events", "-o", "json"))["items"]}
    assert {"Scheduled", "Created", "Started"} <= reasons
    whole_pod.end(parts.kubectl, "whole", tmp_path)
    of_release = msgspec.structs.replace(parts, program=str(kubernetes_programs / "kubectl"))
    whole_pod.of_deployment(of_release.kubectl, tmp_path, "podling")
    whole_pod.of_set(of_release.kubectl, tmp_path)
    whole_pod.of_job(of_release.kubectl, tmp_path)
    parts.kubectl("delete", "namespace", NAMESPACE, "--timeout=60s")
    assert not parts.not_understood() - before, parts.logs()


def test_a_token_opens_the_kubelet_to_whom_its_api_server_lets_in(parts: Parts) -> None:
    """Webhook authentication and authorization: the owner of a token is who the API server says, and may what
    a role of RBAC allows."""
    account = "/api/v1/namespaces/default/serviceaccounts"
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    assert parts.server.ask("POST", account, {"metadata": {"name": "looks"}}).code == 201
    issued = parts.server.ask("POST", f"{account}/looks/token", {"spec": {}}).body["status"]["token"]
    status = parts.server.ask("GET", f"/api/v1/nodes/{NODE}").body["status"]
    address = next(one["address"] for one in status["addresses"] if one["type"] == "InternalIP")
    port = status["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    # Its certificate is of an authority of its own.
    kubelet = Server("kubelet", address, port, parts.server.ca, parts.server.kubeconfig, unverified())

    def asked(path: str, token: str) -> tuple[int, Any]:
        said = kubelet.ask("GET", path, Authorization=f"Bearer {token}")
        return said.code, said.body

    assert asked("/pods", "nobodys")[0] == 401
    who = "system:serviceaccount:default:looks"
    refused = f"Forbidden (user={who}, verb=get, resource=nodes, subresource(s)=[metrics])\n"
    assert asked("/metrics", issued) == (403, refused)
    role = {
        "metadata": {"name": "looks"},
        "rules": [{"apiGroups": [""], "resources": ["nodes/pods"], "verbs": ["get"]}],
    }
    binding = {
        "metadata": {"name": "looks"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "looks"},
        "subjects": [{"kind": "ServiceAccount", "name": "looks", "namespace": "default"}],
    }
    assert parts.server.ask("POST", f"{rbac}/clusterroles", role).code == 201
    assert parts.server.ask("POST", f"{rbac}/clusterrolebindings", binding).code == 201
    may = ["auth", "can-i", "get", "nodes/pods", f"--as={who}"]
    for _ in range(100):
        # The server learns of the binding soon, and the kubelet keeps a refusal for half a minute.
        if parts.run_kubectl(*may).returncode == 0:
            break
    code, listed = asked("/pods", issued)
    assert (code, listed["kind"]) == (200, "PodList")
    assert asked("/metrics", issued) == (403, refused)


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
