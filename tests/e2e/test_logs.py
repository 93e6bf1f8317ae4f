"""R-CLI, R-INIT-8: `podling logs`, on podling and on Kubernetes' own API server and kubelet."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from .clusters import BUSYBOX, NAMESPACE, Cluster, cluster, kubernetes_cluster
from .relay import through_relay

__all__ = ["cluster", "kubernetes_cluster"]


def container(name: str, script: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": BUSYBOX, "command": ["sh", "-c", script], **more}


def make(cluster: Cluster, name: str, labels: dict[str, str] | None = None, **spec: Any) -> None:
    """Without waiting for it."""
    whole = {"terminationGracePeriodSeconds": 0, "restartPolicy": "Never", **spec}
    if cluster.node:
        whole["nodeName"] = cluster.node
    metadata = {"name": name, "labels": labels or {}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole}
    cluster.kubectl("create", "--validate=false", "-f", "-", input=json.dumps(pod))


def until(cluster: Cluster, name: str, phase: str) -> None:
    cluster.kubectl("wait", f"--for=jsonpath={{.status.phase}}={phase}", f"pod/{name}", "--timeout=60s")


def test_it_follows_from_the_first_step_into_the_app_to_the_end(cluster: Cluster) -> None:
    """Labelled as by kubectl, what steps print before what follows them, whenever it is asked for."""
    make(
        cluster,
        "whole",
        initContainers=[container("one", "echo 1; sleep 1; echo 2"), container("two", "echo 3 >&2")],
        containers=[container("app", "for i in 1 2 3; do echo app $i; sleep 0.3; done; printf end")],
    )
    whole = [
        "[pod/whole/one] 1",
        "[pod/whole/one] 2",
        "[pod/whole/two] 3",
        *(f"[pod/whole/app] app {number}" for number in (1, 2, 3)),
        "[pod/whole/app] end",
    ]
    for _ in range(2):
        followed = cluster.run("logs", "-f", "whole")
        assert followed.returncode == 0, followed.stderr
        assert followed.stdout.splitlines() == whole
    read = cluster.run("logs", "whole")
    assert (read.returncode, read.stdout.splitlines()) == (0, whole), read.stderr
    assert cluster.run("logs", "whole", "-c", "two", "--no-prefix").stdout == "3\n"


def test_a_container_that_is_restarted_is_followed_on(cluster: Cluster) -> None:
    volumes = [{"name": "data", "emptyDir": {}}]
    mounts = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    first = "echo first; touch /data/x; until test -e /data/followed; do sleep 0.1; done; exit 3"
    script = f"if test -e /data/x; then echo again; else {first}; fi"
    make(
        cluster,
        "again",
        restartPolicy="OnFailure",
        containers=[container("app", script, **mounts)],
        volumes=volumes,
    )
    command = cluster.podling("logs", "-f", "again")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as followed:
        assert followed.stdout
        assert followed.stdout.readline() == "first\n"
        cluster.kubectl("exec", "again", "--", "touch", "/data/followed")
        assert followed.stdout.read() == "again\n"
    assert followed.returncode == 0
    forever = "test -e /data/x && exec sleep 3600; echo first; touch /data/x; exit 3"
    make(
        cluster,
        "twice",
        restartPolicy="OnFailure",
        containers=[container("app", forever, **mounts)],
        volumes=volumes,
    )
    cluster.kubectl(
        "wait", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "pod/twice", "--timeout=60s"
    )
    assert cluster.run("logs", "-p", "twice").stdout == "first\n"


def test_no_line_is_lost_or_doubled_by_lost_connections(cluster: Cluster, tmp_path: Path) -> None:
    """3,000 lines of two containers while every connection is cut after 10 kB."""
    script = (
        "i=0; while [ $i -lt 1500 ]; do i=$((i+1)); echo line $i; [ $((i%100)) = 0 ] && sleep 0.2; done; :"
    )
    with through_relay(cluster, tmp_path, limit=10_000, times=10) as (bad, way):
        make(cluster, "many", containers=[container("a", script), container("b", script)])
        followed = bad.run("logs", "-f", "many")
    assert followed.returncode == 0, followed.stderr
    lines = followed.stdout.splitlines()
    for name in "ab":
        own = [line for line in lines if line.startswith(f"[pod/many/{name}]")]
        assert own == [f"[pod/many/{name}] line {number}" for number in range(1, 1501)]
    assert way.cut >= 5


def test_it_shows_what_kubectl_shows(cluster: Cluster) -> None:
    """For one container, with the options that both have."""
    script = "for i in 1 2 3 4 5; do echo $i; sleep 0.4; done"
    make(cluster, "same", containers=[container("app", script)])
    until(cluster, "same", "Succeeded")
    for options in (
        [],
        ["--tail=2"],
        ["--tail=0"],
        ["--timestamps"],
        ["--since=1h"],
        ["--since-time=2020-01-02T03:04:05Z"],
        ["--prefix"],
    ):
        shown = cluster.run("logs", "same", *options)
        assert (shown.returncode, shown.stdout) == (0, cluster.kubectl("logs", "same", *options)), options
    stamps = cluster.run("logs", "same", "--timestamps").stdout.splitlines()
    third = re.sub(r"\.\d+", "", stamps[2].split()[0])
    since = cluster.run("logs", "same", f"--since-time={third}").stdout
    assert since == cluster.kubectl("logs", "same", f"--since-time={third}")
    missing = cluster.run("logs", "-p", "same", "-c", "app")
    assert missing.returncode == 1 and "previous terminated container" in missing.stderr


def test_pods_that_come_while_others_are_followed_join_them(cluster: Cluster) -> None:
    """And debug containers do; containers that never began, and options that cannot be, are told of."""
    labels = {"app": "joined"}
    make(
        cluster,
        "first",
        labels,
        containers=[container("app", "echo one; while ! test -e /end; do sleep 0.1; done")],
    )
    until(cluster, "first", "Running")
    flags = ["--kubeconfig", str(cluster.kubeconfig), "-n", NAMESPACE]
    command = cluster.command()[:3]
    with subprocess.Popen(
        [*command, "logs", *flags, "-f", "-l", "app=joined"], stdout=subprocess.PIPE, text=True
    ) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == "[pod/first/app] one\n"
        make(cluster, "second", labels, containers=[container("app", "echo two")])
        assert follower.stdout.readline() == "[pod/second/app] two\n"
        done = cluster.debug("first", "-c", "tools", "-d", "--", "echo", "three")
        assert done.returncode == 0, done.stderr
        assert follower.stdout.readline() == "[pod/first/tools] three\n"
        cluster.kubectl("exec", "first", "--", "touch", "/end")
        assert follower.stdout.read() == ""
        assert follower.wait(60) == 0


def test_what_cannot_be_shown_is_said(cluster: Cluster) -> None:
    make(
        cluster,
        "stuck",
        containers=[container("app", "true", image="not.there/x:1", imagePullPolicy="Never")],
    )
    cases = {
        ("nobody",): 'pods "nobody" not found',
        ("stuck", "-c", "ap"): "pod stuck has no container ap: there are app",
        ("stuck", "-c", "app"): 'container "app" in pod "stuck" is waiting to start',
        (): "which pods?",
        ("stuck", "-f", "-p"): "nothing is there to --follow",
        ("stuck", "--since=x"): "is not a duration",
    }
    for given, said in cases.items():
        done = cluster.run("logs", *given)
        assert done.returncode in (1, 2) and said in done.stderr, (given, done.stderr)
    assert cluster.run("logs", "stuck").returncode == 0
