"""Volumes in real containers: kept up to date, never larger than themselves, gone with their pod."""

from __future__ import annotations

import os
import re
import shlex
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
GATE = "--feature-gates=ContainerVolumes=true"
GATES = Path(__file__).parents[2] / "docs/gates.md"
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def pod(name: str, namespace: str, *, command: str = "sleep 3600", **spec: Any) -> dict[str, Any]:
    mounts = spec.pop("mounts", [])
    script = f"trap 'exit 0' TERM; {command} & wait"
    container = {"name": "c", "image": BUSYBOX, "command": ["sh", "-c", script], "volumeMounts": mounts}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"generation": "one"}},
        "spec": {"terminationGracePeriodSeconds": 3, "containers": [container], **spec},
    }


def settings(namespace: str, text: str) -> dict[str, Any]:
    meta = {"name": "settings", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"key": text}}


class Shell:
    """What is in a pod, as `kubectl exec` shows it."""

    def __init__(self, podling: Podling, namespace: str, name: str) -> None:
        self._podling = podling
        self._where = ("-n", namespace, name)

    def __call__(self, script: str, *, check: bool = True) -> str:
        done = self._podling.kubectl("exec", *self._where, "--", "sh", "-c", script, check=check)
        text: str = done.stdout
        return text.strip()

    def until(self, script: str, expected: str, seconds: float = 10) -> None:
        deadline = time.monotonic() + seconds
        while (said := self(script)) != expected:
            assert time.monotonic() < deadline, f"{script} says {said}, not {expected}"


def start(podling: Podling, namespace: str, *objects: dict[str, Any]) -> Shell:
    podling.apply(*objects)
    name = next(obj["metadata"]["name"] for obj in objects if obj["kind"] == "Pod")
    podling.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "-n", namespace, "--timeout=60s")
    return Shell(podling, namespace, name)


def mounts_of(uid: str) -> list[str]:
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if uid in line]


def gone(podling: Podling, namespace: str, name: str) -> None:
    """The pod, every mount of it, and its directory."""
    uid = podling.get("pod", name, "-n", namespace)["metadata"]["uid"]
    assert (podling.instance.kubelet_dir / "pods" / uid).exists()
    podling.kubectl("delete", "pod", name, "-n", namespace)
    deadline = time.monotonic() + 10
    while mounts_of(uid) or (podling.instance.kubelet_dir / "pods" / uid).exists():
        assert time.monotonic() < deadline, mounts_of(uid)
        time.sleep(0.05)  # noqa: TID251 - nothing tells of mounts that go


def test_files_follow_what_they_are_made_of_but_sub_paths_do_not(podling: Podling, namespace: str) -> None:
    labels = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    volumes = [
        {"name": "settings", "configMap": {"name": "settings"}},
        {"name": "facts", "downwardAPI": {"items": [labels]}},
    ]
    mounts = [
        {"name": "settings", "mountPath": "/settings"},
        {"name": "settings", "mountPath": "/one", "subPath": "key"},
        {"name": "facts", "mountPath": "/facts"},
    ]
    web = pod("web", namespace, mounts=mounts, volumes=volumes)
    shell = start(podling, namespace, settings(namespace, "first"), web)
    assert shell("cat /settings/key /one /facts/labels") == 'firstfirstgeneration="one"'
    podling.apply(settings(namespace, "second"))
    podling.kubectl("label", "pod/web", "-n", namespace, "generation=two", "--overwrite")
    shell.until("cat /settings/key", "second")
    shell.until("cat /facts/labels", 'generation="two"')
    assert shell("cat /one") == "first"
    gone(podling, namespace, "web")


@pytest.mark.parametrize("user", [None, 4321])
def test_a_pod_reaches_the_api_server_with_its_token(
    podling: Podling, namespace: str, user: int | None
) -> None:
    context: dict[str, Any] = {"securityContext": {"runAsUser": user, "runAsNonRoot": True}} if user else {}
    shell = start(podling, namespace, pod("web", namespace, **context))
    assert shell(f"ls {SERVICE_ACCOUNT}").split() == ["ca.crt", "namespace", "token"]
    assert shell(f"cat {SERVICE_ACCOUNT}/namespace") == namespace
    assert shell(f"stat -Lc %a:%u {SERVICE_ACCOUNT}/token") == ("600:4321" if user else "644:0")
    token = shell(f"cat {SERVICE_ACCOUNT}/token")
    who = podling.kubectl(
        "auth",
        "whoami",
        "-o",
        "json",
        f"--token={token}",
        "--kubeconfig=/dev/null",
        f"--server=https://127.0.0.1:{podling.port}",
        "--insecure-skip-tls-verify",
    ).stdout
    assert f"system:serviceaccount:{namespace}:default" in who
    assert '"authentication.kubernetes.io/pod-name": [' in who
    gone(podling, namespace, "web")


def test_a_pod_that_wants_no_token_gets_none(podling: Podling, namespace: str) -> None:
    shell = start(podling, namespace, pod("web", namespace, automountServiceAccountToken=False))
    assert shell("ls /var/run/secrets", check=False) == ""


def test_an_image_is_a_read_only_volume_without_programs(podling: Podling, namespace: str) -> None:
    """R-VOL-2"""
    volumes = [{"name": "tools", "image": {"reference": BUSYBOX, "pullPolicy": "Never"}}]
    mounts = [
        {"name": "tools", "mountPath": "/tools", "readOnly": True},
        {"name": "tools", "mountPath": "/programs", "subPath": "bin"},
    ]
    shell = start(podling, namespace, pod("web", namespace, mounts=mounts, volumes=volumes))
    assert (
        shell("cmp /tools/bin/busybox /bin/busybox && cmp /programs/busybox /bin/busybox && echo same")
        == "same"
    )
    for place in ("/tools", "/programs"):
        assert "Read-only" in shell(f"touch {place}/new 2>&1", check=False)
    uid = podling.get("pod", "web", "-n", namespace)["metadata"]["uid"]
    assert mounts_of(uid)
    flags = shell("grep -E ' /(tools|programs) ' /proc/mounts").splitlines()
    assert len(flags) == 2 and all({"ro", "noexec"} <= set(line.split()[3].split(",")) for line in flags)
    assert "Permission denied" in shell("/tools/bin/busybox true 2>&1", check=False)
    gone(podling, namespace, "web")


def test_an_image_that_cannot_be_had_is_said_of_who_mounts_it(podling: Podling, namespace: str) -> None:
    """R-VOL-2"""
    volumes = [{"name": "v", "image": {"reference": "podling.test/none:1", "pullPolicy": "Never"}}]
    podling.apply(pod("web", namespace, mounts=[{"name": "v", "mountPath": "/v"}], volumes=volumes))
    reason = "jsonpath={.status.containerStatuses[0].state.waiting.reason}=ErrImageNeverPull"
    podling.kubectl("wait", f"--for={reason}", "pod/web", "-n", namespace, "--timeout=30s")
    events = podling.kubectl("get", "events", "-n", namespace).stdout
    assert 'Container image "podling.test/none:1" is not present with pull policy of Never' in events
    gone(podling, namespace, "web")


@pytest.fixture
def fresh(make_podling: Callable[[], Podling], image_archives: dict[str, Path]) -> Iterator[Podling]:
    """A podling of the test's own, where containers may be volumes."""
    podling = make_podling()
    podling.up(GATE)
    for archive in image_archives.values():
        podling.command("images", "load", str(archive))
    podling.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")
    yield podling
    # A test that failed may have left more directories in each other than pytest can remove.
    subprocess.run(["rm", "-rf", *podling.instance.kubelet_dir.glob("pods/*/volumes/*/*/d")], check=True)
    podling.command("down")


def test_a_volume_container_fills_its_volume_first(fresh: Podling) -> None:
    """R-VOL-1: the seed's clone of a repository, as a volume."""
    script = "echo cloned > /repo/readme; echo done"
    mount = {"name": "repo", "mountPath": "/repo"}
    clone = {"name": "clone", "image": BUSYBOX, "command": ["sh", "-c", script], "volumeMounts": [mount]}
    web = pod("web", "default", mounts=[mount], volumes=[{"name": "repo", "container": clone}])
    shell = start(fresh, "default", web)
    assert shell("cat /repo/readme") == "cloned"
    # kubectl itself looks for the name in the lists it knows (decision 038).
    refused = fresh.kubectl("logs", "web", "-c", "clone", check=False)
    assert "container clone is not valid for pod web" in refused.stderr
    documented = re.findall(
        r"^`kubectl (get --raw .*log\?container=clone')`$", GATES.read_text(), re.MULTILINE
    )
    assert fresh.kubectl(*shlex.split(documented[0])).stdout == "done\n"
    [status] = fresh.get("pod", "web")["status"]["initContainerStatuses"]
    assert (status["name"], status["state"]["terminated"]["reason"]) == ("clone", "Completed")
    gone(fresh, "default", "web")


def test_volumes_live_on_when_podling_is_killed(fresh: Podling, tmp_path: Path) -> None:
    """As their containers have made them: one exchanges a directory of its volume for a link to the host all
    the while, and has made more directories in each other than Python could call itself."""
    volumes = [
        {"name": "settings", "configMap": {"name": "settings"}},
        {"name": "tools", "image": {"reference": BUSYBOX, "pullPolicy": "Never"}},
        {"name": "memory", "emptyDir": {"medium": "Memory"}},
        {"name": "disk", "emptyDir": {}},
    ]
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    mounts.append({"name": "memory", "mountPath": "/part", "subPath": "part"})
    host = tmp_path / "host"
    host.mkdir(mode=0o700)
    (host / "file").touch(mode=0o600)
    swap = f"cd /disk; mkdir x; while :; do mv x y; ln -s {host} x; mv x z; mv y x; rm z; done"
    group = {"securityContext": {"fsGroup": 4321}}
    web = pod("web", "default", mounts=mounts, volumes=volumes, command=f"({swap}) & sleep 3600", **group)
    shell = start(fresh, "default", settings("default", "one"), web)
    owned = shell("stat -Lc '%g %a' /disk /memory /settings/key")
    assert owned.split("\n") == ["4321 2777", "4321 2777", "4321 644"]
    shell("echo kept > /part/file; chown 5:5 /disk; chmod 710 /disk")
    before = mounts_of(fresh.get("pod", "web")["metadata"]["uid"])
    shell("cd /disk; i=0; while [ $i -lt 1500 ]; do mkdir d; cd d; i=$((i+1)); done")
    fresh.send_signal(signal.SIGKILL)
    fresh.up(GATE)
    fresh.apply(settings("default", "two"))
    shell.until("cat /settings/key", "two")
    assert shell("cat /memory/part/file; ls /tools/bin/busybox") == "kept\n/tools/bin/busybox"
    assert shell("stat -c '%u %g %a' /disk") == "5 5 710"
    assert mounts_of(fresh.get("pod", "web")["metadata"]["uid"]) == before
    fresh.wait("condition=Ready", "pod/web")
    assert fresh.get("pod", "web")["status"]["containerStatuses"][0]["restartCount"] == 0
    gone(fresh, "default", "web")
    of_host = [(path.stat().st_gid, stat.S_IMODE(path.stat().st_mode)) for path in (host, host / "file")]
    assert of_host == [(os.getegid(), 0o700), (os.getegid(), 0o600)]


def test_volumes_of_every_kind_in_one_pod(podling: Podling, namespace: str, tmp_path: Path) -> None:
    """Sizes, owners, types and expressions, as a process sees them."""
    device = tmp_path / "device"
    os.mknod(device, 0o600 | stat.S_IFBLK, os.makedev(7, 0))
    volumes = [
        {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": "work", "emptyDir": {}},
        {"name": "settings", "configMap": {"name": "settings", "defaultMode": 0o440}},
        {"name": "device", "hostPath": {"path": str(device), "type": "BlockDevice"}},
        {"name": "made", "hostPath": {"path": f"{tmp_path}/a/b", "type": "DirectoryOrCreate"}},
    ]
    mounts = [
        {"name": "memory", "mountPath": "/memory"},
        {"name": "work", "mountPath": "/work"},
        {"name": "work", "mountPath": "/mine", "subPathExpr": "of/$(NAME)"},
        {"name": "settings", "mountPath": "/settings"},
        {"name": "device", "mountPath": "/dev/mine"},
        {"name": "made", "mountPath": "/made", "readOnly": True, "recursiveReadOnly": "IfPossible"},
    ]
    context = {"runAsUser": 1000, "fsGroup": 4321}
    web = pod("web", namespace, mounts=mounts, volumes=volumes, securityContext=context)
    web["spec"]["containers"][0]["env"] = [{"name": "NAME", "value": "web"}]
    shell = start(podling, namespace, settings(namespace, "one"), web)
    assert "No space left" in shell("dd if=/dev/zero of=/memory/x bs=1M count=2 2>&1", check=False)
    assert shell("touch /work/x /mine/y && stat -c %u:%g /work/x /work/of/web/y") == "1000:4321\n1000:4321"
    assert shell("cat /settings/key; stat -Lc %a:%g /settings/key") == "one440:4321"
    assert shell("stat -c %F /dev/mine") == "block special file"
    assert "Read-only" in shell("touch /made/x 2>&1", check=False)
    assert (tmp_path / "a/b").is_dir()
    gone(podling, namespace, "web")
    assert (tmp_path / "a/b").is_dir(), "what is the host's stays"


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A mount whose mounts are everybody's."""
    subprocess.run(["mount", "-t", "tmpfs", "shared", tmp_path], check=True)
    subprocess.run(["mount", "--make-shared", tmp_path], check=True)
    yield tmp_path
    for point in ("inner", "outer", ""):
        subprocess.run(["umount", tmp_path / point], check=False, capture_output=True)


def test_mounts_pass_between_host_and_container_as_asked(
    podling: Podling, namespace: str, shared: Path
) -> None:
    for name in ("inner", "outer"):
        (shared / name).mkdir()
    volumes = [{"name": "v", "hostPath": {"path": str(shared)}}]
    both = [{"name": "v", "mountPath": "/both", "mountPropagation": "Bidirectional"}]
    web = pod("web", namespace, mounts=both, volumes=volumes)
    web["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    for name, how in (("from", "HostToContainer"), ("none", "None")):
        mount = {"name": "v", "mountPath": f"/{name}", "mountPropagation": how}
        command = ["sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"]
        more = {"name": name, "image": BUSYBOX, "command": command, "volumeMounts": [mount]}
        web["spec"]["containers"].append(more)
    shell = start(podling, namespace, web)
    subprocess.run(["mount", "-t", "tmpfs", "outer", shared / "outer"], check=True)
    (shared / "outer/file").touch()
    shell("mount -t tmpfs inner /both/inner && touch /both/inner/file")
    assert (shared / "inner/file").exists()
    for container, place, seen in (("c", "/both", 2), ("from", "/from", 2), ("none", "/none", 0)):
        where = ("-n", namespace, "web", "-c", container)
        found = podling.kubectl("exec", *where, "--", "sh", "-c", f"ls {place}/outer/ {place}/inner/")
        assert found.stdout.count("file") == seen, container
    gone(podling, namespace, "web")


@pytest.mark.parametrize(
    ("volume", "mount", "why"),
    [
        (
            {"hostPath": {"path": "/etc/hostname", "type": "Directory"}},
            {},
            'MountVolume.SetUp failed for volume "v" : hostPath type check failed: '
            "/etc/hostname is not a directory",
        ),
        (
            {"emptyDir": {"medium": "HugePages"}},
            {},
            'storage medium "HugePages" is not supported by this kubelet',
        ),
        (
            {"emptyDir": {}},
            {"readOnly": True, "recursiveReadOnly": "Enabled"},
            'volume "v" requested recursive read-only mode, but it is not supported by the runtime',
        ),
    ],
)
def test_what_only_the_node_can_know_is_said_in_an_event(
    podling: Podling, namespace: str, volume: dict[str, Any], mount: dict[str, Any], why: str
) -> None:
    mounts = [{"name": "v", "mountPath": "/v", **mount}]
    podling.apply(pod("web", namespace, mounts=mounts, volumes=[{"name": "v", **volume}]))
    deadline = time.monotonic() + 15
    while why not in podling.kubectl("get", "events", "-n", namespace).stdout:
        assert time.monotonic() < deadline
    gone(podling, namespace, "web")
