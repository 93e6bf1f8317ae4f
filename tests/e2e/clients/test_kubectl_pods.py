"""R-SYS-1: kubectl runs pods and looks into them, and takes care of nodes."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from e2e.clients.conftest import Kubectl
    from e2e.conftest import Podling

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.interop("kubectl", "API server", "scheduler", "controllers", "kubelet"),
]

BUSYBOX = "podling.test/busybox:1"
Manifest = dict[str, Any]
MakePod = Callable[..., Manifest]


@pytest.fixture
def running(kubectl: Kubectl, web: Manifest) -> Kubectl:
    """A kubectl in the namespace of a pod called `web` that is ready."""
    kubectl("create -f -", json.dumps(web))
    kubectl("wait --for=condition=Ready pod/web --timeout=60s")
    return kubectl


def test_run(kubectl: Kubectl) -> None:
    """With its options for a pod that stays, one that speaks, and one that is gone when it has spoken."""
    options = f"--image={BUSYBOX} --restart=Never --env=WHO=you --labels=a=b"
    kubectl.says(f"run dry {options} --dry-run=server -o yaml", "name: WHO")
    kubectl.says(f"run one {options} --command -- sh -c 'echo hello $WHO'", "pod/one created")
    kubectl.says("wait --for=jsonpath={.status.phase}=Succeeded pod/one --timeout=60s", "condition met")
    kubectl.says("logs one", r"\Ahello you\n\Z")
    kubectl.says("get pods -l a=b", r"one +0/1 +Completed +0 +")
    kubectl.says(f"run two {options} -i --rm --command -- sh -c 'read a; echo got $a'", "got it\n", "it\n")
    kubectl.refuses("get pod two", "NotFound")


def test_what_runs_is_shown(running: Kubectl) -> None:
    running.says("get pods", r"NAME +READY +STATUS +RESTARTS +AGE\nweb +1/1 +Running +0 +\d+s\n")
    running.says("get pods -o wide", r"IP +NODE +NOMINATED NODE +READINESS GATES\n.* 10\.\d+\.\d+\.\d+ +")
    described = running("describe pod web")
    for line in ("Status: +Running", "Port: +8080/TCP", "Readiness: +http-get http://:http/ delay="):
        assert re.search(line, described), described
    assert re.search(r"Normal +Started +\d+s +kubelet +", described)
    running.says("events --for pod/web --types=Normal", "(?s)Scheduled.*Pulled.*Created.*Started")
    running.says("get events --field-selector=reason=Started", "pod/web")
    running.says("get events --sort-by=.lastTimestamp -o name", "event/web")


def test_looking_inside(running: Kubectl, tmp_path: Path) -> None:
    running.says("exec web -- cat /www/index.html", "served\n")
    assert running.run("exec web -- sh -c 'exit 7'").code == 7
    running.says("exec -i web -c app -- cat", "through", "through")
    (tmp_path / "file").write_text("copied\n")
    running(f"cp {tmp_path / 'file'} web:/tmp/file")
    running.says("exec web -- cat /tmp/file", "copied")
    running(f"cp web:/www {tmp_path / 'www'}")
    assert (tmp_path / "www" / "index.html").read_text() == "served\n"
    running("exec web -- sh -c 'echo spoken > /proc/1/fd/1'")
    running.says("logs web --tail=1 --timestamps --prefix", r"pod/web/app\] \d{4}-\S+ spoken\n")
    running.says("logs -l app=web --all-containers", "spoken")


def test_a_port_is_forwarded(running: Kubectl) -> None:
    running("expose pod web --port=80 --target-port=http")
    for target in ("pod/web :8080", "service/web :80"):
        forwarding = running.start(f"port-forward {target} --address=127.0.0.1")
        try:
            assert forwarding.stdout
            said = re.search(r":(\d+) ->", forwarding.stdout.readline())
            assert said
            port = int(said[1])
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as page:
                assert page.read() == b"served\n"
        finally:
            forwarding.kill()
            forwarding.communicate()


def test_expose(running: Kubectl) -> None:
    running.says("expose pod web --port=80 --target-port=http --name=s --dry-run=server", "server dry run")
    running.says("expose pod web --port=80 --target-port=http --name=s --type=NodePort", "service/s exposed")
    running.says(
        "wait --for=jsonpath='{.endpoints}' endpointslice -l kubernetes.io/service-name=s", "condition met"
    )
    address = running("get pod web -o jsonpath={.status.podIP}")
    running.says("get endpointslices -l kubernetes.io/service-name=s", rf"IPv4 +8080 +{address}")
    running.says("describe service s", rf"Endpoints: +{address}:8080")
    running.says("get service s", r"s +NodePort +10\.\d+\.\S+ +<none> +80:3\d+/TCP")


def test_debug(running: Kubectl) -> None:
    """R-EPH-1"""
    running.says(
        f"debug web --image={BUSYBOX} --target=app --container=look -- sh -c 'ps; echo looked'",
        "Targeting container",
    )
    finished = "{.status.ephemeralContainerStatuses[0].state.terminated.exitCode}"
    running("wait pod/web --for=jsonpath='" + finished + "'=0 --timeout=60s")
    running.says("logs web -c look", "(?s)httpd.*looked\n")
    running.says("describe pod web", "(?s)Ephemeral Containers:\n +look:")
    running(f"debug web --copy-to=copy --set-image=app={BUSYBOX} --same-node")
    running.says("get pod copy -o name", "pod/copy")


def test_ways_to_delete_a_pod(kubectl: Kubectl, make_pod: MakePod) -> None:
    for name in ("soft", "now", "force", "wait", "label"):
        kubectl("create -f -", json.dumps(make_pod(name)))
    kubectl("wait --for=condition=Ready pod --all --timeout=60s")
    kubectl.says("delete pod soft --grace-period=2", 'pod "soft" deleted')
    kubectl.says("delete pod now --now", 'pod "now" deleted')
    kubectl.says(
        "delete pod force --force --grace-period=0", '"force" force deleted(?s:.*)Immediate deletion'
    )
    kubectl.says("delete pod wait --wait=false", 'pod "wait" deleted')
    kubectl("wait --for=delete pod/wait --timeout=60s")
    kubectl.says("delete pod -l app=label", 'pod "label" deleted')
    kubectl.says("get pods", "No resources found")


def test_a_node_is_cordoned_tainted_and_drained(running: Kubectl, space: str) -> None:
    """Only the pod of this test leaves."""
    node = running("get nodes -o jsonpath={.items[0].metadata.name}")
    running(f"label pod web leaves={space}")
    drain = f"drain {node} --force --pod-selector=leaves={space} --grace-period=1"
    try:
        running.says(f"cordon {node}", f"node/{node} cordoned")
        running.says(f"cordon {node}", f"node/{node} already cordoned")
        running.says("get nodes", "Ready,SchedulingDisabled")
        running.says(drain, f"(?s)evicting pod {space}/web.*pod/web evicted.*node/{node} drained")
    finally:
        running.says(f"uncordon {node}", f"node/{node} uncordoned")
    running.says(f"taint node {node} tests=here:PreferNoSchedule", f"node/{node} tainted")
    running.says(f"describe node {node}", "tests=here:PreferNoSchedule")
    running.says(f"taint node {node} tests:PreferNoSchedule-", f"node/{node} untainted")
    running.says(f"label node {node} example.com/x=1", "labeled")
    running.says(f"label node {node} example.com/x-", "unlabeled")


def test_resources_of_a_namespace(kubectl: Kubectl) -> None:
    """A quota counts what is made, and says what it keeps from being made."""
    kubectl("create quota q --hard=pods=1,requests.cpu=1")
    kubectl("wait --for=jsonpath='{.status.hard.pods}'=1 quota/q --timeout=30s")
    kubectl.refuses(f"run one --image={BUSYBOX}", "failed quota: q: must specify requests.cpu")
    limits = '{"spec":{"containers":[{"name":"x","image":"x","resources":{"requests":{"cpu":"2"}}}]}}'
    kubectl.refuses(f"run x --image=x --overrides='{limits}'", "exceeded quota: q, requested: requests.cpu=2")
    kubectl.says("describe quota q", r"pods +0 +1")


def test_a_pod_is_resized(kubectl: Kubectl, make_pod: MakePod) -> None:
    pod = make_pod("sized")
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10m", "memory": "8Mi"}}
    kubectl("create -f -", json.dumps(pod))
    kubectl("wait --for=condition=Ready pod/sized --timeout=60s")
    patch = '{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"20m"}}}]}}'
    kubectl.refuses(f"patch pod sized -p '{patch}'", "pod updates may not change fields other than")
    kubectl.says(f"patch pod sized --subresource=resize -p '{patch}'", "pod/sized patched")
    assert kubectl("get pod sized -o jsonpath={.spec.containers[0].resources.requests.cpu}") == "20m"
    best_effort = (
        '{"spec":{"containers":[{"name":"app","resources":{"limits":{"cpu":"20m","memory":"8Mi"}}}]}}'
    )
    kubectl.refuses(
        f"patch pod sized --subresource=resize -p '{best_effort}'", "Pod QOS Class may not change"
    )


def test_a_token_of_a_service_account(
    kubectl: Kubectl, kubectl_program: str, podling: Podling, space: str
) -> None:
    token = kubectl("create token default --duration=10m").strip()
    ca = podling.instance.data_dir / "pki" / "ca.crt"
    # A certificate goes before a token: a kubeconfig with neither.
    bearer = f"--kubeconfig=/dev/null --server=https://127.0.0.1:{podling.port} --certificate-authority={ca}"
    alone = type(kubectl)(kubectl_program, bearer.split(), kubectl.home)
    alone.says(f"auth whoami --token={token}", f"Username +system:serviceaccount:{space}:default")
    alone.refuses(f"auth whoami --token={token[:-9]}", "Unauthorized")
