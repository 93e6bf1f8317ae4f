"""R-SYS-8: of podling's scheduler and Kubernetes', one acts at a time: they ask for the same Lease, which
says the same of either.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from peer import control_plane
from peer.sequence import make_namespace
from peer.server import Asking, running
from ports import free_port

pytestmark = pytest.mark.interop("kube-scheduler", "API server")

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
PODS = "/api/v1/namespaces/elected/pods"
POD = {"containers": [{"name": "a", "image": "i"}], "tolerations": [{"operator": "Exists"}]}
CAPACITY = {"cpu": "4", "memory": "8Gi", "pods": "20"}
TAKEN_OVER_WITHIN = 16 + 2
"""Seconds: what a Lease lasts and the goal's second, and the time between two looks of who waits."""
LOOK, LOOKS = 0.1, 400

Start = Callable[[], AbstractContextManager["subprocess.Popen[bytes]"]]


@pytest.fixture(scope="module")
def cluster(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Asking, Start, Start]]:
    """How podling's scheduler starts, and how Kubernetes'."""
    directory = tmp_path_factory.mktemp("election")
    with control_plane.podling(directory) as server, server.asking() as asking:
        make_namespace(asking, "elected")
        node = {"metadata": {"name": "n"}, "status": {"allocatable": CAPACITY, "capacity": CAPACITY}}
        assert asking.ask("POST", "/api/v1/nodes", node).code == 201
        at = f"--kubeconfig={server.kubeconfig}"
        ours = [sys.executable, "-m", "podling", "scheduler", at, "--secure-port=0"]
        theirs = [str(kubernetes_programs / "kube-scheduler"), at, "--bind-address=127.0.0.1"]
        theirs += [f"--secure-port={free_port()}", f"--cert-dir={directory}"]
        yield (
            asking,
            partial(running, ours, directory / "podling-scheduler.log"),
            partial(running, theirs, directory / "kube-scheduler.log"),
        )


def until(process: subprocess.Popen[bytes], looks: Callable[[], Any]) -> Any:
    """What it sees, once it sees anything, while the process runs."""
    for _ in range(LOOKS):
        if seen := looks():
            return seen
        try:
            process.wait(LOOK)
        except subprocess.TimeoutExpired:
            continue
        pytest.fail(f"it has ended with {process.returncode}")
    pytest.fail("it does not come")


def spec(asking: Asking) -> dict[str, Any]:
    found: dict[str, Any] = asking.ask("GET", LEASE).body.get("spec", {})
    return found


def other_than(asking: Asking, holder: str) -> dict[str, Any] | None:
    said = spec(asking)
    return said if said.get("holderIdentity", "") not in ("", holder) else None


def scheduled(asking: Asking, process: subprocess.Popen[bytes], name: str) -> None:
    asking.ask("POST", PODS, {"metadata": {"name": name}, "spec": POD})
    until(process, lambda: asking.ask("GET", f"{PODS}/{name}").body["spec"].get("nodeName"))


def test_one_scheduler_acts_at_a_time(cluster: tuple[Asking, Start, Start]) -> None:
    asking, ours, theirs = cluster
    with ExitStack() as stack:
        first = stack.enter_context(ours())
        of_first = until(first, lambda: other_than(asking, ""))
        scheduled(asking, first, "by-podling")
        second = stack.enter_context(theirs())
        scheduled(asking, second, "still-by-podling")
        assert spec(asking)["holderIdentity"] == of_first["holderIdentity"]

        first.send_signal(signal.SIGTERM)
        of_second = until(second, lambda: other_than(asking, of_first["holderIdentity"]))
        assert first.wait(10) == 0
        assert of_second.keys() == of_first.keys()
        unlike = {"holderIdentity", "acquireTime", "renewTime", "leaseTransitions"}
        same = of_first.keys() - unlike
        assert {key: of_second[key] for key in same} == {key: of_first[key] for key in same}
        assert of_second["leaseTransitions"] == of_first["leaseTransitions"] + 1
        scheduled(asking, second, "by-kubernetes")

        third = stack.enter_context(ours())
        scheduled(asking, third, "still-by-kubernetes")
        assert spec(asking)["holderIdentity"] == of_second["holderIdentity"]
        second.kill()
        killed = time.monotonic()
        scheduled(asking, third, "by-podling-again")
        assert time.monotonic() - killed < TAKEN_OVER_WITHIN
        assert other_than(asking, of_second["holderIdentity"])


def test_who_loses_the_lease_ends_and_says_so(cluster: tuple[Asking, Start, Start]) -> None:
    asking, ours, _ = cluster
    asking.ask("DELETE", LEASE)
    with ours() as process:
        until(process, lambda: other_than(asking, ""))
        lease = asking.ask("GET", LEASE).body
        lease["spec"]["holderIdentity"] = "other"
        assert asking.ask("PUT", LEASE, lease).code == 200
        assert process.wait(10) == 1
    assert spec(asking)["holderIdentity"] == "other"
