"""R-CLI: `podling cp`, on podling and on Kubernetes' own API server and kubelet."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from .clusters import BUSYBOX, NAMESPACE, Cluster, cluster, kubernetes_cluster

__all__ = ["cluster", "kubernetes_cluster"]

PAUSE = "podling.test/pause:1"
WAYS = ("exec", "container")
BIG = 64 * 1024 * 1024


@pytest.fixture(scope="module")
def pod(cluster: Cluster) -> str:
    """With a volume, a link into it, and files of all kinds."""
    script = """
        mkdir -p /data/sub /data/locked; cd /data; echo one > file; echo two > sub/run; chmod 750 sub/run
        ln -s /etc/passwd outward; ln file same; mkfifo pipe; chmod 500 locked; ln -s /data /link
        printf raw > "$(printf 'n\\303\\244me \\n x')"; exec sleep 3600"""
    mounts = [{"name": "data", "mountPath": "/data"}]
    app = {"name": "app", "image": BUSYBOX, "command": ["sh", "-c", script], "volumeMounts": mounts}
    cluster.make_pod("files", containers=[app], volumes=[{"name": "data", "emptyDir": {}}])
    cluster.kubectl("exec", "files", "--", "sh", "-c", "while ! test -L /link; do usleep 10000; done")
    return "files"


def cp(cluster: Cluster, *arguments: str | Path, code: int = 0) -> str:
    """What was said of it."""
    done = cluster.run("cp", "-m", BUSYBOX, *map(str, arguments))
    assert done.returncode == code, done.stderr
    return done.stderr


def inside(cluster: Cluster, script: str) -> str:
    return cluster.kubectl("exec", "files", "--", "sh", "-c", script)


@pytest.mark.parametrize("via", WAYS)
def test_a_directory_comes_out_as_it_is(cluster: Cluster, pod: str, tmp_path: Path, via: str) -> None:
    """By a path with a link in it; what is no file is told of, and nothing else is left out."""
    said = cp(cluster, f"{pod}:/link/", tmp_path / "out", "--via", via, code=1)
    assert "pipe: neither file, directory nor link" in said
    out = tmp_path / "out"
    assert {str(path.relative_to(out)) for path in out.rglob("*")} == {
        "file",
        "same",
        "sub",
        "sub/run",
        "outward",
        "locked",
        "näme \n x",
    }
    assert (out / "file").read_text() == "one\n" and (out / "same").samefile(out / "file")
    assert (out / "sub/run").stat().st_mode & 0o777 == 0o750
    assert (out / "locked").stat().st_mode & 0o777 == 0o500
    assert str((out / "outward").readlink()) == "/etc/passwd"


@pytest.mark.parametrize("via", WAYS)
def test_names_are_as_with_cp(cluster: Cluster, pod: str, tmp_path: Path, via: str) -> None:
    """To a directory, to a new name, over a file; in both directions."""
    cp(cluster, f"{NAMESPACE}/{pod}:/data/file", tmp_path, "--via", via)
    cp(cluster, f"{pod}:/data/file", tmp_path / "new", "--via", via)
    assert (tmp_path / "file").read_text() == (tmp_path / "new").read_text() == "one\n"
    tree = tmp_path / "tree"
    (tree / "a").mkdir(parents=True)
    (tree / "a/b").write_text("b")
    (tree / "a/b").chmod(0o705)
    (tree / "to").symlink_to("a/b")
    base = f"/data/{via}"
    cp(cluster, tree, f"{pod}:{base}", "--via", via)
    cp(cluster, tree, f"{pod}:{base}", "--via", via)
    cp(cluster, tmp_path / "file", f"{pod}:/link/{via}/a/b", "--via", via)
    cp(cluster, tmp_path / "file", f"{pod}:{base}/a/", "--via", via)
    shown = inside(
        cluster, f"cd {base}; find . | sort; cat a/b tree/a/b; readlink to; stat -c '%a %u' tree/a/b"
    )
    assert shown.split() == [
        *(".", "./a", "./a/b", "./a/file", "./to", "./tree", "./tree/a", "./tree/a/b", "./tree/to"),
        *("one", "ba/b", "705", "0"),
    ]
    assert "there is no such directory" in cp(
        cluster, tmp_path / "file", f"{pod}:/none/none/x", "--via", via, code=1
    )
    assert "not found" in cp(cluster, f"{pod}:/none", tmp_path, "--via", via, code=1)
    assert "neither a file nor" in cp(cluster, f"{pod}:/data/pipe", tmp_path, "--via", via, code=1)


@pytest.mark.parametrize("via", WAYS)
def test_a_big_file_goes_there_and_back(cluster: Cluster, pod: str, tmp_path: Path, via: str) -> None:
    """In little memory, and on from where it was cut."""
    data = os.urandom(1024 * 1024) * (BIG // 1024 // 1024)
    big = tmp_path / "big"
    big.write_bytes(data)
    command = cluster.command()[:3]
    flags = ["--kubeconfig", str(cluster.kubeconfig), "-n", NAMESPACE]
    words = [*command, "cp", "-m", BUSYBOX, "--via", via, *flags, str(big), f"{pod}:/data/big"]
    limited = f'ulimit -d {BIG // 1024} && exec "$@"'
    subprocess.run(["bash", "-c", limited, "bash", *words], check=True, timeout=90)
    (tmp_path / "back.podling-part").write_bytes(data[: BIG // 2])
    cp(cluster, f"{pod}:/data/big", tmp_path / "back", "--resume", "--via", via)
    assert (tmp_path / "back").read_bytes() == data
    inside(cluster, f"cd /data; head -c {BIG // 3} big > third")
    cp(cluster, big, f"{pod}:/data/third", "--resume", "--via", via)
    assert inside(cluster, "cd /data; cmp big third && rm big third && echo same") == "same\n"
    (tmp_path / "bad.podling-part").write_bytes(b"other")
    inside(cluster, "seq 1000 > /data/seq")
    said = cp(cluster, f"{pod}:/data/seq", tmp_path / "bad", "--resume", "--via", via, code=1)
    assert "seq: it differs from what was copied" in said


def test_a_container_without_tar_and_shell_is_reached(cluster: Cluster, tmp_path: Path) -> None:
    """As root, with a container that is gone when the copy is done."""
    cluster.make_pod("bare", containers=[{"name": "app", "image": PAUSE}])
    (tmp_path / "config").write_text("x = 1\n")
    cp(cluster, tmp_path / "config", "bare:/config")
    assert len(cluster.ephemeral("bare")) == 1
    cp(cluster, "bare:/config", tmp_path / "back")
    assert (tmp_path / "back").read_text() == "x = 1\n"
    names = sorted(container["name"] for container in cluster.ephemeral("bare"))
    assert names == ["podling-cp", "podling-cp-2"]
    for name in names:
        query = f'{{.status.ephemeralContainerStatuses[?(@.name=="{name}")].state.terminated.exitCode}}'
        cluster.kubectl("wait", f"--for=jsonpath={query}", "pod/bare", "--timeout=30s")
    said = cp(cluster, tmp_path / "config", "bare:/config", "--via=exec", code=1)
    assert "/config" in said or "sh" in said


def test_pods_that_share_processes_and_users_that_are_not_root(cluster: Cluster, tmp_path: Path) -> None:
    """In a namespace that is restricted the target's user reaches the target's files."""
    rights = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    context = {"runAsNonRoot": True, "runAsUser": 7, "seccompProfile": {"type": "RuntimeDefault"}}
    sleeper = {"image": BUSYBOX, "command": ["sleep", "3600"], "securityContext": rights}
    one = {**sleeper, "name": "one", "env": [{"name": "A", "value": "1"}]}
    cluster.make_pod(
        "shared",
        shareProcessNamespace=True,
        securityContext=context,
        containers=[one, {**sleeper, "name": "two"}],
    )
    cluster.kubectl("exec", "shared", "-c", "two", "--", "sh", "-c", "echo two > /tmp/x")
    label = "pod-security.kubernetes.io/enforce"
    cluster.kubectl("label", "namespace", NAMESPACE, f"{label}=restricted")
    try:
        cp(cluster, "shared:/tmp/x", tmp_path, "-c", "two", "--via=container")
        (tmp_path / "new").write_text("new")
        cp(cluster, tmp_path / "new", "shared:/tmp/new", "-c", "two", "--via=container")
    finally:
        cluster.kubectl("label", "namespace", NAMESPACE, f"{label}-")
    shown = cluster.kubectl("exec", "shared", "-c", "two", "--", "stat", "-c", "%u", "/tmp/new")
    assert shown == "7\n"
    assert (tmp_path / "x").read_text() == "two\n"
