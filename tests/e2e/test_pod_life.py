"""What a pod may ask for beside its containers, read from within real ones: users, capabilities, namespaces,
names, sysctls, host ports, static pods."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ports import free_port

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
STATUS = "cat /proc/self/status"
SLEEP = ["sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"]
NET_ADMIN = 1 << 12


def says(name: str, script: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": BUSYBOX, "command": ["sh", "-c", script], **more}


def pod(namespace: str, name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    spec = {"containers": containers, "terminationGracePeriodSeconds": 5, "restartPolicy": "Never", **spec}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def wait(podling: Podling, namespace: str, name: str, condition: str) -> None:
    podling.kubectl("wait", f"--for={condition}", f"pod/{name}", "-n", namespace, "--timeout=60s", timeout=70)


def run(podling: Podling, namespace: str, made: dict[str, Any]) -> Callable[[str], str]:
    """Run a pod to its end; what its containers said."""
    name = made["metadata"]["name"]
    podling.apply(made)
    wait(podling, namespace, name, "jsonpath={.status.phase}=Succeeded")
    return lambda container: podling.kubectl("logs", name, "-c", container, "-n", namespace).stdout


def fields(status: str) -> dict[str, str]:
    """/proc/PID/status."""
    pairs = (line.partition(":") for line in status.splitlines())
    return {name: " ".join(value.split()) for name, _, value in pairs}


def namespaces(*kinds: str) -> list[str]:
    return [os.readlink(f"/proc/self/ns/{kind}") for kind in kinds]


def test_security_contexts(podling: Podling, namespace: str) -> None:
    profile = {
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_ERRNO"}],
    }
    (podling.instance.kubelet_dir / "seccomp").mkdir(exist_ok=True)
    (podling.instance.kubelet_dir / "seccomp" / "no-mkdir.json").write_text(json.dumps(profile))
    narrow = {
        "runAsUser": 0,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
    }
    local = {"seccompProfile": {"type": "Localhost", "localhostProfile": "no-mkdir.json"}}
    said = run(
        podling,
        namespace,
        pod(
            namespace,
            "secure",
            says("plain", STATUS),
            says("own", STATUS, securityContext={"runAsUser": 1001, "runAsGroup": 2001}),
            says("narrow", STATUS, securityContext=narrow),
            says("default", STATUS, securityContext={"seccompProfile": {"type": "RuntimeDefault"}}),
            says("free", STATUS, securityContext={"seccompProfile": {"type": "Unconfined"}}),
            says("local", f"mkdir /tmp/x; {STATUS}", securityContext=local),
            says(
                "fixed",
                "touch /x 2>&1; true",
                securityContext={"readOnlyRootFilesystem": True, "runAsUser": 0},
            ),
            says(
                "mighty",
                f"{STATUS}; wc -c < /proc/keys",
                securityContext={"privileged": True, "runAsUser": 0},
            ),
            says("masked", "wc -c < /proc/keys", securityContext={"runAsUser": 0}),
            securityContext={
                "runAsUser": 1000,
                "runAsGroup": 2000,
                "fsGroup": 3000,
                "supplementalGroups": [4000],
            },
        ),
    )
    plain, own = fields(said("plain")), fields(said("own"))
    assert (plain["Uid"], plain["Gid"]) == ("1000 1000 1000 1000", "2000 2000 2000 2000")
    assert {"3000", "4000"} <= set(plain["Groups"].split())
    assert (plain["NoNewPrivs"], plain["CapEff"]) == ("0", "0" * 16)
    assert (own["Uid"].split()[0], own["Gid"].split()[0]) == ("1001", "2001")
    narrowed = fields(said("narrow"))
    assert (narrowed["NoNewPrivs"], int(narrowed["CapBnd"], 16)) == ("1", NET_ADMIN)
    assert [fields(said(name))["Seccomp"] for name in ("plain", "default", "free", "local")] == list("0202")
    assert "mkdir: can't create directory '/tmp/x'" in said("local")
    assert "Read-only file system" in said("fixed")
    mighty = fields(said("mighty"))
    assert int(mighty["CapEff"], 16) == int(fields(Path("/proc/self/status").read_text())["CapEff"], 16)
    assert said("masked") == "0\n"
    status = podling.get("pod", "secure", "-n", namespace)["status"]
    assert {s["state"]["terminated"]["reason"] for s in status["containerStatuses"]} == {"Completed"}


def test_a_container_that_must_not_be_root_and_would_is_not_started(podling: Podling, namespace: str) -> None:
    sleeper = says("app", "sleep 1000")
    podling.apply(
        pod(namespace, "image", sleeper, securityContext={"runAsNonRoot": True}),
        pod(namespace, "zero", {**sleeper, "securityContext": {"runAsNonRoot": True, "runAsUser": 0}}),
    )
    reasons = {
        "image": "container has runAsNonRoot and image will run as root",
        "zero": "breaks non-root policy",
    }
    for name, reason in reasons.items():
        waiting = "jsonpath={.status.containerStatuses[0].state.waiting.reason}=CreateContainerConfigError"
        wait(podling, namespace, name, waiting)
        status = podling.get("pod", name, "-n", namespace)["status"]
        assert reason in status["containerStatuses"][0]["state"]["waiting"]["message"]
        assert status["phase"] == "Pending"


def test_the_nodes_namespaces(podling: Podling, namespace: str) -> None:
    links = "for kind in net pid ipc; do readlink /proc/self/ns/$kind; done"
    said = run(
        podling,
        namespace,
        pod(
            namespace,
            "host",
            says("app", f"{links}; cat /etc/hosts"),
            hostNetwork=True,
            hostPID=True,
            hostIPC=True,
            hostAliases=[{"ip": "192.0.2.7", "hostnames": ["seven"]}],
        ),
    )("app")
    assert said.splitlines()[:3] == namespaces("net", "pid", "ipc")
    assert "# Kubernetes-managed hosts file (host network)." in said
    assert "192.0.2.7\tseven" in said


def test_namespaces_and_names_of_its_own(podling: Podling, namespace: str) -> None:
    script = """
        for kind in net pid ipc; do readlink /proc/self/ns/$kind; done
        hostname; cat /proc/sys/kernel/shm_rmid_forced; cat /etc/resolv.conf; cat /etc/hosts
        echo pid $$; while ! grep -q other /proc/[0-9]*/cmdline 2>/dev/null; do sleep 0.1; done
    """
    said = run(
        podling,
        namespace,
        pod(
            namespace,
            "names",
            says("app", script),
            says("other", "sleep 3; true other"),
            hostname="web",
            subdomain="sub",
            setHostnameAsFQDN=True,
            shareProcessNamespace=True,
            dnsPolicy="None",
            dnsConfig={
                "nameservers": ["192.0.2.53"],
                "searches": ["lab.example"],
                "options": [{"name": "ndots", "value": "3"}],
            },
            securityContext={"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]},
        ),
    )("app")
    lines = said.splitlines()
    assert not set(lines[:3]) & set(namespaces("net", "pid", "ipc"))
    name = f"web.sub.{namespace}.svc.cluster.local"
    assert lines[3:5] == [name, "1"]
    assert {"nameserver 192.0.2.53", "search lab.example", "options ndots:3"} <= set(lines)
    address = podling.get("pod", "names", "-n", namespace)["status"]["podIP"]
    assert f"{address}\t{name}\tweb" in lines
    assert "pid 1" not in lines


def test_sysctls_that_are_not_safe_are_refused(podling: Podling, namespace: str) -> None:
    sysctls = [{"name": "net.ipv4.tcp_timestamps", "value": "0"}]
    podling.apply(pod(namespace, "odd", says("app", "true"), securityContext={"sysctls": sysctls}))
    wait(podling, namespace, "odd", "jsonpath={.status.phase}=Failed")
    status = podling.get("pod", "odd", "-n", namespace)["status"]
    assert status["reason"] == "SysctlForbidden"
    assert (
        status["message"] == 'Pod was rejected: forbidden sysctl: "net.ipv4.tcp_timestamps" not allowlisted'
    )


def test_a_host_port_leads_to_the_container(podling: Podling, namespace: str) -> None:
    port = free_port()
    app = says("app", "echo hello | nc -l -p 8080", ports=[{"containerPort": 8080, "hostPort": port}])
    podling.apply(pod(namespace, "port", app))
    wait(podling, namespace, "port", "condition=Ready")
    (node,) = podling.get("nodes")["items"]
    address = next(a["address"] for a in node["status"]["addresses"] if a["type"] == "InternalIP")
    with socket.create_connection((address, port), timeout=10) as connection:
        assert connection.recv(100) == b"hello\n"


def test_rules_on_exit_codes_and_what_is_left_as_a_message(podling: Podling, namespace: str) -> None:
    """A rule restarts what the policy would not; the file, or the log, is the message."""
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
    again = says(
        "again",
        "echo run >> /work/runs; [ $(wc -l < /work/runs) = 2 ] || exit 42; echo well > /dev/termination-log",
        restartPolicy="Never",
        restartPolicyRules=[rule],
        volumeMounts=[{"name": "work", "mountPath": "/work"}],
    )
    fails = says("fails", "echo it went wrong; exit 3", terminationMessagePolicy="FallbackToLogsOnError")
    podling.apply(pod(namespace, "rules", again, fails, volumes=[{"name": "work", "emptyDir": {}}]))
    wait(podling, namespace, "rules", "jsonpath={.status.phase}=Failed")
    statuses = podling.get("pod", "rules", "-n", namespace)["status"]["containerStatuses"]
    by_name = {status["name"]: status for status in statuses}
    assert by_name["again"]["restartCount"] == 1
    assert by_name["again"]["state"]["terminated"]["message"] == "well\n"
    assert by_name["again"]["lastState"]["terminated"]["exitCode"] == 42
    assert by_name["fails"]["state"]["terminated"]["message"] == "it went wrong\n"


@pytest.fixture
def with_stop_signals(
    make_podling: Callable[[], Podling], image_archives: dict[str, Path]
) -> Iterator[Podling]:
    podling = make_podling()
    podling.up("--feature-gates", "ContainerStopSignals=true")
    for archive in image_archives.values():
        podling.command("images", "load", str(archive))
    yield podling
    podling.command("down")


def test_a_container_is_told_with_the_signal_it_asks_for(with_stop_signals: Podling, tmp_path: Path) -> None:
    """On a containerd whose CRI does not know of it."""
    podling, namespace = with_stop_signals, "default"
    script = "trap 'echo told > /out/said; exit 0' USR1; sleep 1000 & wait"
    app = says("app", script, lifecycle={"stopSignal": "SIGUSR1"})
    app["volumeMounts"] = [{"name": "out", "mountPath": "/out"}]
    out = {"name": "out", "hostPath": {"path": str(tmp_path)}}
    grace = {"terminationGracePeriodSeconds": 30}
    podling.apply(pod(namespace, "signal", app, os={"name": "linux"}, volumes=[out], **grace))
    wait(podling, namespace, "signal", "condition=Ready")
    podling.kubectl("delete", "pod", "signal", "-n", namespace, timeout=20)
    assert (tmp_path / "said").read_text() == "told\n"


@pytest.fixture
def with_manifests(
    make_podling: Callable[[], Podling], image_archives: dict[str, Path], tmp_path: Path
) -> Iterator[tuple[Podling, Path]]:
    """A podling of the test's own, and the directory of its static pods."""
    podling = make_podling()
    podling.up("--pod-manifest-path", str(tmp_path))
    for archive in image_archives.values():
        podling.command("images", "load", str(archive))
    yield podling, tmp_path
    podling.command("down")


def test_static_pods(with_manifests: tuple[Podling, Path]) -> None:
    podling, directory = with_manifests
    node = podling.get("nodes")["items"][0]["metadata"]["name"]
    name = f"static-{node.lower()}"
    made = pod("default", "static", {"name": "app", "image": BUSYBOX, "command": SLEEP})
    (directory / "static.json").write_text(json.dumps({**made, "metadata": {"name": "static"}}))
    podling.kubectl("wait", "--for=create", f"pod/{name}", "--timeout=30s")
    podling.wait("condition=Ready", f"pod/{name}")
    assert podling.kubectl("exec", name, "--", "echo", "alive").stdout == "alive\n"
    before = podling.get("pod", name)
    # Not waited for: the next is there so soon that kubectl may never see that it was gone.
    podling.kubectl("delete", "pod", name, "--wait=false")
    uids = (found["metadata"]["uid"] for _ in range(100) for found in podling.get("pods")["items"])
    assert next((uid for uid in uids if uid != before["metadata"]["uid"]), None)
    podling.wait("condition=Ready", f"pod/{name}")
    after = podling.get("pod", name)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    assert "Started" in podling.kubectl("describe", "pod", name).stdout
    (directory / "static.json").unlink()
    podling.kubectl("wait", "--for=delete", f"pod/{name}", "--timeout=30s")
