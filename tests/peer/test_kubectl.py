"""R-SYS-1: the machine's kubectl and that of Kubernetes' release say of podling what they say of
kube-apiserver: one story of commands, each with its output, its errors and its exit code. Bodies are
validated by the server alone.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from peer.masks import ADDRESS, NOW, UUID
from peer.sequence import make_namespace
from peer.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN = "Warning: podling has no "
"""What podling keeps and does not act on it says."""
AGE = re.compile(r"\b\d+s\b|\d+ seconds? ago|<unknown>|<invalid>")
VERSION = re.compile(r'(resourceVersion"?: *"?)\d+')
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {a: b}}\ndata: {k: v}\n"
STORY: tuple[tuple[str, str], ...] = (
    ("create configmap m --from-literal=k=v", ""),
    ("create configmap m", ""),
    ("create secret generic s --from-literal=k=v", ""),
    ("create deployment d --image=i --replicas=2", ""),
    ("create job j --image=i -- true", ""),
    ("create cronjob cj --image=i --schedule='0 0 * * *'", ""),
    ("create service clusterip w --tcp=80:8080", ""),
    ("create role r --verb=get --resource=pods", ""),
    ("create rolebinding b --role=r --user=ann", ""),
    ("create quota q --hard=pods=1", ""),
    ("create pdb p --min-available=1 --selector=a=b", ""),
    ("create ingress i --rule=a.test/b=w:80", ""),
    ("create configmap Bad_Name", ""),
    ("apply --validate=false -f -", CONFIG),
    ("apply --validate=false -f -", CONFIG),
    ("apply --validate=false -f -", CONFIG.replace("v}", "w}")),
    ("diff -f -", CONFIG.replace("v}", "w}")),
    ("apply --server-side --validate=false -f -", CONFIG),
    ("apply --server-side --force-conflicts --validate=false -f -", CONFIG),
    ("replace --validate=false -f -", CONFIG),
    ("label configmap c x=y", ""),
    ("annotate configmap c x-", ""),
    ('patch configmap c -p \'{"data":{"l":"w"}}\'', ""),
    ("scale deployment d --replicas=3", ""),
    ("scale deployment d --current-replicas=7 --replicas=3", ""),
    ("set image deployment/d i=j", ""),
    ("set env deployment/d A=b", ""),
    ("autoscale deployment d --max=3", ""),
    ("expose deployment d --port=80", ""),
    ("run p --image=i --dry-run=server -o name", ""),
    ("get configmaps -l a=b", ""),
    ("get configmap c -o yaml", ""),
    ("get secret s -o jsonpath={.data}", ""),
    ("get all", ""),
    ("get deployments,jobs,cronjobs -o wide", ""),
    ("get role r -o json", ""),
    ("get pods --field-selector spec.x=y", ""),
    ("get nowhere", ""),
    ("get pod nowhere", ""),
    ("describe role r", ""),
    ("describe quota q", ""),
    ("api-resources --no-headers -o name", ""),
    ("api-versions", ""),
    ("auth can-i create pods --subresource=exec", ""),
    ("auth can-i get pods --as=ann", ""),
    ("auth can-i delete pods --as=ann", ""),
    ("create token default --duration=1s", ""),
    ("rollout history deployment d", ""),
    ("rollout pause deployment d", ""),
    ("rollout pause deployment d", ""),
    ("delete configmap m c", ""),
    ("delete configmap m", ""),
    ("delete secrets --all", ""),
    ("get configmaps,secrets", ""),
)


def said(program: str, server: Server, home: Path, namespace: str) -> Iterator[tuple[str, int, str]]:
    with server.asking() as asking:
        make_namespace(asking, namespace)
    for command, stdin in STORY:
        done = subprocess.run(
            [program, "--kubeconfig", str(server.kubeconfig), "-n", namespace, *shlex.split(command)],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        )
        yield command, done.returncode, _masked(done.stdout + done.stderr)


def _masked(text: str) -> str:
    for pattern, name in ((UUID, "<uid>"), (NOW, "<time>"), (ADDRESS, "<address>"), (AGE, "<age>")):
        text = pattern.sub(name, text)
    text = re.sub(r"/tmp/[\w-]+", "<file>", VERSION.sub(r"\1<version>", text))
    lines = (re.sub(" +", " ", line) for line in text.splitlines() if not line.startswith(OWN))
    return "\n".join(lines)


@pytest.mark.interop("kubectl", "API server")
@pytest.mark.parametrize("whose", ["machine", "release"])
def test_a_story_is_told_alike(
    whose: str, kubernetes: Server, podling: Server, kubernetes_programs: Path, tmp_path: Path
) -> None:
    program = str(kubernetes_programs / "kubectl")
    if whose == "machine":
        program = shutil.which("kubectl") or pytest.skip("there is no kubectl on this machine")
    theirs, ours = (
        list(said(program, server, tmp_path / server.name, f"kubectl-{whose}"))
        for server in (kubernetes, podling)
    )
    assert [one for one in ours if one not in theirs] == [one for one in theirs if one not in ours]
