"""Programs in pods that talk to the API server: they know where it is, whom to trust, and who they are."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes.client import ApiClient, AuthenticationV1Api, Configuration, V1SelfSubjectReview
from kubernetes.config.incluster_config import InClusterConfigLoader

from podling.cri.images.build import ImageConfig, build_image

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
KUBECTL = "podling.test/kubectl:1"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture(scope="module")
def kubectl_image(podling: Podling, tmp_path_factory: pytest.TempPathFactory) -> str:
    """kubectl and nothing else: no shell, no kubeconfig, no resolver."""
    places = os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)])
    program = shutil.which("kubectl", path=places)
    assert program, "scripts/setup.sh installs it"
    archive = tmp_path_factory.mktemp("kubectl") / "kubectl.tar"
    files = {"bin/kubectl": Path(program).resolve()}
    archive.write_bytes(build_image(KUBECTL, files, ImageConfig(entrypoint=["/bin/kubectl"])))
    podling.command("images", "load", str(archive))
    return KUBECTL


def job(podling: Podling, namespace: str, name: str, container: dict[str, Any], **spec: Any) -> str:
    """Run a container to its end; what it printed."""
    spec = {"restartPolicy": "Never", "containers": [{"name": "app", **container}], **spec}
    metadata = {"name": name, "namespace": namespace}
    podling.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    over = "jsonpath={.status.phase}=Succeeded"
    podling.kubectl("wait", f"--for={over}", f"pod/{name}", "-n", namespace, "--timeout=60s", timeout=70)
    printed: str = podling.kubectl("logs", name, "-n", namespace).stdout
    return printed


def variables(printed: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)


@pytest.mark.parametrize("network", ["its own", "the node's"])
def test_a_client_in_a_pod_finds_the_api_server(
    podling: Podling, namespace: str, kubectl_image: str, network: str
) -> None:
    """With nothing but what every pod has: kubectl's in-cluster configuration is that of client-go."""
    container = {"image": kubectl_image, "args": ["auth", "whoami", "-o", "json"]}
    said = json.loads(job(podling, namespace, "who", container, hostNetwork=network != "its own"))
    user = said["status"]["userInfo"]
    assert user["username"] == f"system:serviceaccount:{namespace}:default"
    assert user["extra"]["authentication.kubernetes.io/pod-name"] == ["who"]
    version = job(podling, namespace, "version", {"image": kubectl_image, "args": ["version"]})
    assert "Server Version: v1.36" in version


def test_the_python_client_finds_it_too(podling: Podling, namespace: str, tmp_path: Path) -> None:
    """From what a pod was told."""
    for name in ("token", "ca.crt"):
        script = f"cat {ACCOUNT}/{name}"
        container = {"image": BUSYBOX, "command": ["sh", "-c", script]}
        (tmp_path / name).write_text(job(podling, namespace, name.replace(".", "-"), container))
    told = variables(job(podling, namespace, "env", {"image": BUSYBOX, "command": ["env"]}))
    found = Configuration()
    loader = InClusterConfigLoader(str(tmp_path / "token"), str(tmp_path / "ca.crt"), environ=told)
    loader.load_and_set(found)
    with ApiClient(found) as client:
        said = AuthenticationV1Api(client).create_self_subject_review(V1SelfSubjectReview())
    assert said.status and said.status.user_info
    assert said.status.user_info.username == f"system:serviceaccount:{namespace}:default"


def test_services_of_the_namespace_are_told_of(podling: Podling, namespace: str) -> None:
    port = {"name": "http", "port": 80, "targetPort": 8080}
    metadata = {"name": "web-ui", "namespace": namespace}
    podling.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [port]}})
    address = podling.get("service", "web-ui", "-n", namespace)["spec"]["clusterIP"]
    container = {
        "image": BUSYBOX,
        "command": ["env"],
        "env": [{"name": "URL", "value": "http://$(WEB_UI_SERVICE_HOST):$(WEB_UI_SERVICE_PORT_HTTP)/"}],
    }
    told = variables(job(podling, namespace, "told", container))
    assert told["URL"] == f"http://{address}:80/"
    assert told["WEB_UI_PORT_80_TCP"] == f"tcp://{address}:80"
    told = variables(job(podling, namespace, "not-told", {**container, "env": []}, enableServiceLinks=False))
    assert not any(name.startswith("WEB_UI") for name in told)
    service = podling.get("service", "kubernetes", "-n", "default")
    assert told["KUBERNETES_SERVICE_HOST"] == service["spec"]["clusterIP"]
    assert told["KUBERNETES_SERVICE_PORT_HTTPS"] == "443"
