"""Issue 13, priority and fairness: what a node owes in time is on time beside a flood of requests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from e2e.conftest import kubectl_program
from e2e.test_probes import SERVE, container, events, pod, until

if TYPE_CHECKING:
    from e2e.conftest import Podling

FLOOD = Path(__file__).parents[2] / "bench/flood.py"
AGAIN = 3
"""Times; each flood lasts three seconds."""
RENEWAL = timedelta(seconds=10)
LATE = timedelta(seconds=2)
"""Of which jitter is 0.4 s."""


@contextmanager
def flooding(names: tuple[str, ...], url: str, token: str) -> Iterator[None]:
    env = {**os.environ, "FLOOD_AUTHORIZATION": f"Bearer {token}"}
    with ExitStack() as floods:
        started = []
        for name in names:
            once = f"{sys.executable} {FLOOD} --flood '{name}' {url}"
            command = ["nice", "-n", "19", "sh", "-c", "; ".join([once] * AGAIN)]
            flood = subprocess.Popen(
                command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
            )
            started.append(flood)
            floods.callback(flood.wait)
            floods.callback(os.killpg, flood.pid, 9)
            assert flood.stdout
            floods.enter_context(flood.stdout)
            assert flood.stdout.readline() == b"begun\n"
        yield
        assert all(flood.poll() is None for flood in started), "they have ended too early"


def renewals(podling: Podling, node: str) -> Generator[datetime, None, None]:
    """When the node's lease was renewed last, and then each time it is."""
    command = [kubectl_program(), "--kubeconfig", str(podling.instance.kubeconfig), "get", "lease", node]
    form = ["-n", "kube-node-lease", "--watch", "-o", 'jsonpath={.spec.renewTime}{"\\n"}']
    watching = subprocess.Popen([*command, *form], stdout=subprocess.PIPE, text=True)
    assert watching.stdout
    try:
        for line in watching.stdout:
            yield datetime.fromisoformat(line.strip())
    finally:
        watching.kill()
        watching.wait()
        watching.stdout.close()


@pytest.mark.parametrize(
    "names",
    [
        ("new connections without end", "a label selector of 20,000 terms"),
        ("anonymous, a body of 3 MB", "YAML of 20,000 lines"),
    ],
)
def test_leases_and_probes_are_on_time_beside_a_flood(
    podling: Podling, namespace: str, names: tuple[str, ...]
) -> None:
    """From the last time before the flood to the first in it the lease is renewed within its period; no probe
    fails, and none is left out."""
    probe = {"httpGet": {"path": "/health", "port": 8080}, "periodSeconds": 1, "failureThreshold": 1}
    startup = {**probe, "failureThreshold": 60}
    verbose = SERVE.replace("httpd -f", "httpd -f -vv")
    podling.apply(pod(namespace, "web", verbose, livenessProbe=probe, startupProbe=startup))
    until(podling, namespace, "condition=Ready", "web")
    token = podling.kubectl("create", "token", "default", "-n", namespace).stdout.strip()
    podling.kubectl(
        *("create", "clusterrolebinding", namespace),
        *("--clusterrole=edit", f"--serviceaccount={namespace}:default"),
    )
    [node] = [one["metadata"]["name"] for one in podling.get("nodes")["items"]]
    with closing(renewals(podling, node)) as renewed:
        next(renewed)
        before = next(renewed)
        with flooding(names, f"https://127.0.0.1:{podling.port}", token):
            beside = next(renewed)
    assert beside - before < RENEWAL + LATE
    assert not [said for said in events(podling, namespace) if said.startswith("Unhealthy: Liveness")]
    assert container(podling, namespace, "web")["restartCount"] == 0
    log = podling.kubectl("logs", "web", "-n", namespace, "--timestamps").stdout
    asked = [datetime.fromisoformat(line.split()[0]) for line in log.splitlines() if "/health" in line]
    during = [moment for moment in asked if before <= moment <= beside]
    assert len(during) > 6
    assert max(later - earlier for earlier, later in pairwise(during)) < timedelta(seconds=1) + LATE
