"""What an operator finds on a running podling: health, metrics, the audit log, tokens."""

from __future__ import annotations

import json
import ssl
import stat
import subprocess
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"


def audited(podling: Podling) -> list[Any]:
    return [json.loads(line) for line in podling.instance.audit_log.read_text().splitlines()]


def ask(podling: Podling, url: str, token: str) -> Any:
    """As a pod does, that trusts the cluster's authority and has a token."""
    trust = ssl.create_default_context(cafile=str(podling.instance.pki_dir / "ca.crt"))
    request = Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with urlopen(request, timeout=20, context=trust) as answer:
            return json.load(answer)
    except HTTPError as refusal:
        return json.load(refusal)


def test_it_is_ready(podling: Podling) -> None:
    told = podling.kubectl("get", "--raw", "/readyz?verbose").stdout
    assert told.startswith("[+]ping ok\n") and told.endswith("readyz check passed\n")
    assert "[+]etcd ok" in told and "[-]" not in told


def test_an_ephemeral_container_is_counted_and_audited(podling: Podling, namespace: str) -> None:
    """R-EPH-7, R-EPH-9."""
    container = {"name": "main", "image": BUSYBOX, "command": ["sleep", "1000"]}
    metadata = {"name": "watched", "namespace": namespace}
    podling.apply(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    )
    patch = {"spec": {"ephemeralContainers": [{"name": "eye", "image": BUSYBOX}]}}
    podling.kubectl(
        "patch",
        "pod",
        "watched",
        "-n",
        namespace,
        "--subresource=ephemeralcontainers",
        "-p",
        json.dumps(patch),
    )
    metrics = podling.kubectl("get", "--raw", "/metrics").stdout.splitlines()
    counted = [line for line in metrics if 'subresource="ephemeralcontainers"' in line and "_total" in line]
    assert any('code="200"' in line and 'resource="pods"' in line for line in counted)
    assert any(line.startswith('workqueue_adds_total{name="') for line in metrics)
    assert any(line.startswith("podling_loop_stall_seconds_count") for line in metrics)
    (event,) = [
        event
        for event in audited(podling)
        if event["verb"] == "patch"
        and event.get("objectRef", {}).get("subresource") == "ephemeralcontainers"
        and event["objectRef"]["namespace"] == namespace
    ]
    assert event["user"]["username"] == "kubernetes-admin"
    assert event["responseStatus"]["code"] == 200
    assert event["requestObject"]["spec"] == patch["spec"]


def test_who_debugged_a_pod_is_one_command(podling: Podling, namespace: str) -> None:
    """R-EPH-14, with the real `kubectl debug`."""
    container = {"name": "main", "image": BUSYBOX, "command": ["sleep", "1000"]}
    metadata = {"name": "web", "namespace": namespace}
    podling.apply(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    )
    how = ("debug", "web", "-n", namespace, f"--image={BUSYBOX}", "--target=main", "--container=eye")
    began = datetime.now(UTC)
    podling.kubectl(*how, "--profile=general", "--as=roy", "--as-group=system:masters", "--", "true")
    ended = datetime.now(UTC)

    def told(*form: str) -> str:
        asked = ("audit", "debugged", "web", "-n", namespace, *form)
        command = [sys.executable, "-m", "podling", *asked, "--data-dir", str(podling.instance.data_dir)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    (found,) = json.loads(told("-o", "json"))
    assert (found["impersonatedUser"], found["container"], found["image"]) == ("roy", "eye", BUSYBOX)
    assert (found["profile"], found["target"], found["code"]) == ("general", "main", 200)
    assert began <= datetime.fromisoformat(found["time"]) <= ended
    head, line = told().splitlines()
    heads = "TIME USER NAMESPACE POD ACTION CONTAINER IMAGE RIGHTS ALLOWED"
    assert head.split() == heads.split()
    who = f"kubernetes-admin as roy {namespace} web debug eye {BUSYBOX} +SYS_PTRACE yes"
    assert line.split() == [f"{found['time'][:19]}Z", *who.split()]


def test_a_token_is_an_identity_where_pods_ask(podling: Podling, namespace: str) -> None:
    token = podling.kubectl("create", "token", "default", "-n", namespace, "--duration=10m").stdout.strip()
    (subset,) = podling.get("endpoints", "kubernetes")["subsets"]
    host, port = subset["addresses"][0]["ip"], subset["ports"][0]["port"]
    pods = ask(podling, f"https://{host}:{port}/api/v1/namespaces/{namespace}/pods", token)
    assert pods["code"] == 403
    assert f'User "system:serviceaccount:{namespace}:default" cannot list' in pods["message"]
    found = ask(podling, f"https://{host}:{port}/.well-known/openid-configuration", token)
    assert found["jwks_uri"] == f"https://{host}:{port}/openid/v1/jwks"


def test_the_older_watch(podling: Podling) -> None:
    path = "/api/v1/watch/namespaces/default/endpoints/kubernetes"
    answer = podling.kubectl("get", "--raw", f"{path}?timeoutSeconds=1").stdout
    assert json.loads(answer.splitlines()[0])["object"]["metadata"]["name"] == "kubernetes"


def test_nobody_else_reads_its_secrets_or_takes_its_locks(podling: Podling) -> None:
    instance = podling.instance
    assert stat.S_IMODE(instance.data_dir.stat().st_mode) == 0o711
    secrets = [instance.lock_file, instance.log_file, instance.kubeconfig, *instance.pki_dir.glob("*.key")]
    secrets += instance.data_dir.glob("state.db*")
    assert len(secrets) > 10
    assert {str(path): oct(path.stat().st_mode & 0o777) for path in secrets} == dict.fromkeys(
        map(str, secrets), "0o600"
    )
