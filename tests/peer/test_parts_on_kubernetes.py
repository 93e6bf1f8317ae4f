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

from peer import control_plane
from peer.server import Server, running
from podling.machine.pki import Authority

pytestmark = pytest.mark.interop("kube-apiserver", "scheduler", "controllers", "kubelet")

NODE = "peer"
BUSYBOX = "podling.test/busybox:1"
NAMESPACE = "parts"
HERE = f"/api/v1/namespaces/{NAMESPACE}"
REQUESTS = re.compile(r"^apiserver_request_total\{(.*)\} (\d+)$", re.MULTILINE)
NOT_UNDERSTOOD = ('code="400"', 'code="415"', 'code="422"')
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
POD = {
    "metadata": {"name": "whole", "labels": {"app": "whole"}},
    "spec": {
        "terminationGracePeriodSeconds": 1,
        "initContainers": [
            {"name": "first", "image": BUSYBOX, "command": ["echo", "first"], "imagePullPolicy": "Never"}
        ],
        "containers": [
            {
                "name": "app",
                "image": BUSYBOX,
                "command": ["sleep", "3600"],
                "imagePullPolicy": "Never",
                "resources": {"requests": {"cpu": "10m"}, "limits": {"memory": "64Mi"}},
            }
        ],
    },
}
BESIDE = {
    f"{HERE}/services": {
        "metadata": {"name": "whole"},
        "spec": {"selector": {"app": "whole"}, "ports": [{"port": 80}]},
    },
    f"{HERE}/resourcequotas": {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "9"}}},
    f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets": {
        "metadata": {"name": "one"},
        "spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "whole"}}},
    },
}


class Parts(msgspec.Struct):
    """What runs beside the API server, with its logs in `directory`."""

    server: Server
    directory: Path

    def run_kubectl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["kubectl", "--kubeconfig", str(self.server.kubeconfig), "-n", NAMESPACE, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)

    def kubectl(self, *arguments: str) -> str:
        done = self.run_kubectl(*arguments)
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


def test_a_pod_with_a_token_lives_and_every_request_is_understood(parts: Parts) -> None:
    """R-SYS-2: nothing podling's own server would take and Kubernetes' would not."""
    before = parts.not_understood()
    parts.server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    parts.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")
    for where, what in BESIDE.items():
        assert parts.server.ask("POST", where, what).code == 201
    made = parts.server.ask("POST", f"{HERE}/pods", POD)
    assert made.code == 201, made.body
    make_trusted(parts, made.body)
    parts.kubectl("wait", "--for=condition=Ready", "pod/whole", "--timeout=60s")
    assert parts.kubectl("logs", "whole", "-c", "first") == "first\n"
    assert parts.kubectl("exec", "whole", "-c", "app", "--", "cat", TOKEN).count(".") == 2
    parts.kubectl("debug", "whole", f"--image={BUSYBOX}", "--target=app", "--profile=general", "--", "true")
    ended = "jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.exitCode}=0"
    parts.kubectl("wait", f"--for={ended}", "pod/whole", "--timeout=60s")
    (slice_,) = json.loads(parts.kubectl("get", "endpointslices", "-o", "json"))["items"]
    assert slice_["endpoints"][0]["targetRef"]["name"] == "whole"
    reasons = {event["reason"] for event in json.loads(parts.kubectl("get", "events", "-o", "json"))["items"]}
    assert {"Scheduled", "Created", "Started"} <= reasons
    parts.kubectl("delete", "pod", "whole", "--timeout=60s")
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
