"""R-CLI: `podling debug` in a real terminal, on podling and on Kubernetes' own API server and kubelet."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pexpect
import pyte
import pytest
import yaml

from proxy import Proxy, running

from .clusters import BUSYBOX, NAMESPACE, Cluster, cluster, kubernetes_cluster
from .old_server import old_server
from .relay import through_relay

__all__ = ["cluster", "kubernetes_cluster"]

PAUSE = "podling.test/pause:1"
RUNNING, ENDED = "running.startedAt", "terminated.finishedAt"
PAGE = Path(__file__).parents[2] / "docs/debugging.md"
SESSION = re.compile(r"```console\n\$ podling (debug shop[^\n]*)\n(.*?)```", re.DOTALL)
"""The session that the page shows: how it begins, and the screen."""
PATIENCE = 60
PROMPT = "/ # "
ROWS, COLUMNS = 24, 100
MEGABYTE = 1 << 20


@dataclass
class Screen:
    """A terminal with `podling debug` in it, as its user sees it."""

    program: pexpect.spawn[str]

    def until(self, text: str) -> None:
        self.program.expect_exact(text)

    def type(self, line: str) -> None:
        self.program.send(f"{line}\r")

    def end(self) -> int:
        self.program.expect(pexpect.EOF)
        self.program.close()
        return int(self.program.exitstatus or 0)


def played(file: Path) -> str:
    """The screen at the end of a recording, whose times never go back."""
    header, *events = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert [time for time, _, _ in events] == sorted(time for time, _, _ in events)
    screen = pyte.Screen(header["width"], header["height"])
    stream = pyte.Stream(screen)
    for _, code, data in events:
        if code == "r":
            columns, rows = data.split("x")
            screen.resize(int(rows), int(columns))
        elif code == "o":
            stream.feed(data)
    return "".join(f"{line.rstrip()}\n" for line in screen.display)


@pytest.fixture(scope="module")
def pod(cluster: Cluster) -> str:
    cluster.make_pod("web")
    return "web"


@pytest.fixture
def screen(cluster: Cluster) -> Iterator[Callable[..., Screen]]:
    """Runs `podling debug` in a terminal of its own."""
    opened: list[pexpect.spawn[str]] = []

    def open_screen(*arguments: str) -> Screen:
        program, *rest = cluster.command(*arguments)
        spawned = pexpect.spawn(
            program, rest, timeout=PATIENCE, dimensions=(ROWS, COLUMNS), encoding="utf-8", echo=True
        )
        opened.append(spawned)
        return Screen(spawned)

    yield open_screen
    for program in opened:
        program.close(force=True)


def test_one_shot_shows_all_and_ends_as_the_command_does(cluster: Cluster, pod: str) -> None:
    """R-CLI-2, R-CLI-3, with the target's processes."""
    done = cluster.debug(pod, "--target=app", "--", "sh", "-c", "echo first; ps; echo last; exit 7")
    assert done.returncode == 7, done.stderr
    assert done.stdout.startswith("first\n") and done.stdout.endswith("last\n")
    assert "sleep 3600" in done.stdout


def test_no_output_is_lost_or_shown_twice(cluster: Cluster, pod: str) -> None:
    """R-CLI-3: twenty, four at a time, with output on both streams."""

    def one(number: int) -> str:
        script = f"for i in 1 2 3; do echo {number} $i; done"
        done = cluster.debug(pod, "-c", f"many-{number}", "--", "sh", "-c", script)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with ThreadPoolExecutor(4) as pool:
        printed = list(pool.map(one, range(20)))
    assert printed == [f"{number} 1\n{number} 2\n{number} 3\n" for number in range(20)]


def test_commands_piped_in_are_answered(cluster: Cluster, pod: str) -> None:
    done = cluster.debug(pod, "-i", "--", "sh", input="echo one; echo two; exit 5\n")
    assert (done.returncode, done.stdout) == (5, "one\ntwo\n"), done.stderr


def test_a_pod_alone_opens_a_shell(cluster: Cluster, pod: str, screen: Callable[..., Screen]) -> None:
    """R-CLI-2: named, on a terminal of the right size, which is told of changes and is as before at the
    end."""
    shell = screen(pod)
    shell.until("Defaulting container name to debug")
    shell.until(PROMPT)
    shell.type("stty size")
    shell.until(f"{ROWS} {COLUMNS}")
    shell.until(PROMPT)
    shell.program.setwinsize(40, 120)
    shell.type("sleep 1; stty size; printf 'h\\303\\244\\n'")
    shell.until("40 120")
    shell.until("hä")
    shell.until(PROMPT)
    shell.type("exit 3")
    assert shell.end() == 3


def test_a_running_container_is_attached_to(cluster: Cluster, screen: Callable[..., Screen]) -> None:
    """R-CLI-2: by its name, with what it showed before; where nobody is, it goes on."""
    cluster.make_pod("again")
    done = cluster.debug("again", "-c", "tools", "-d", "-it", "--", "sh", "-c", "echo hello; exec sh")
    assert done.returncode == 0, done.stderr
    shell = screen("again", "-c", "tools", "-it")
    shell.until("hello")
    shell.type("echo typ''ed; exit 2")
    shell.until("typed")
    assert shell.end() == 2
    assert len(cluster.ephemeral("again")) == 1
    done = cluster.debug("again", "-c", "tools")
    assert done.returncode == 1
    assert "cannot be used again" in done.stderr


def test_what_hinders_is_said(cluster: Cluster, pod: str) -> None:
    """Nothing is left in the pod of what could be known before."""
    before = len(cluster.ephemeral(pod))
    missing = cluster.debug("missing")
    assert missing.returncode == 1 and 'pods "missing" not found' in missing.stderr
    target = cluster.debug(pod, "--target=ap")
    assert target.returncode == 1 and 'no container "ap": it has app' in target.stderr
    refused = cluster.debug(pod, "-c", "Not_A_Name")
    assert refused.returncode == 1 and "RFC 1123" in refused.stderr
    assert len(cluster.ephemeral(pod)) == before
    program = cluster.debug(pod, "-c", "no-program", "--", "/not/there")
    assert program.returncode == 125 and "/not/there" in program.stderr
    image = cluster.debug(pod, "-c", "no-image", "--image-pull-policy=Never", "-m", "not.there/x:1")
    assert image.returncode == 125 and "ErrImageNeverPull" in image.stderr


def test_a_time_limit_is_kept(cluster: Cluster, pod: str) -> None:
    late = cluster.debug(pod, "-c", "late", "-m", "127.0.0.1:1/x:1", "--timeout=1")
    assert late.returncode == 124 and "late does not run after 1 seconds" in late.stderr


def test_auto_keeps_to_what_the_namespace_allows(cluster: Cluster) -> None:
    """In a restricted namespace, with a line on what was given up."""
    cluster.make_pod(
        "safe",
        securityContext={"runAsNonRoot": True, "runAsUser": 7, "seccompProfile": {"type": "RuntimeDefault"}},
        containers=[
            {
                "name": "app",
                "image": BUSYBOX,
                "command": ["sleep", "3600"],
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    )
    label = "pod-security.kubernetes.io/enforce"
    cluster.kubectl("label", "namespace", NAMESPACE, f"{label}=restricted")
    try:
        done = cluster.debug("safe", "--", "id", "-u")
        refused = cluster.debug("safe", "--profile=sysadmin", "--", "id")
    finally:
        cluster.kubectl("label", "namespace", NAMESPACE, f"{label}-")
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr
    assert 'Profile restricted: the namespace enforces "restricted": no SYS_PTRACE.' in done.stderr
    assert refused.returncode == 1 and "violates PodSecurity" in refused.stderr
    assert len(cluster.ephemeral("safe")) == 1


@pytest.mark.parametrize("end", ["TERM", "HUP", "lost network"])
def test_the_terminal_is_as_before_however_a_session_ends(
    cluster: Cluster, pod: str, end: str, tmp_path: Path
) -> None:
    with through_relay(cluster, tmp_path) as (away, way):
        program = " ".join(away.command(pod, "--new", "-it"))
        shell = Screen(
            pexpect.spawn(
                "sh", ["-c", f"{program}; echo code $?; stty -a"], timeout=PATIENCE, encoding="utf-8"
            )
        )
        shell.until(PROMPT)
        if end == "lost network":
            way.lose()
        else:
            children = (
                Path(f"/proc/{shell.program.pid}/task/{shell.program.pid}/children").read_text().split()
            )
            os.kill(int(children[0]), getattr(signal, f"SIG{end}"))
        shell.program.expect(pexpect.EOF)
    said = pyte.Screen(COLUMNS, 200)
    stream = pyte.Stream(said)
    stream.feed(shell.program.before or "")
    shown = " ".join("".join(said.display).split())
    assert " icanon " in shown and " echo " in shown and "-icanon" not in shown
    assert f"code {1 if end == 'lost network' else 128 + getattr(signal, f'SIG{end}')}" in shown
    shell.program.close(force=True)


def test_pastes_and_all_characters_pass_whole(
    cluster: Cluster, pod: str, screen: Callable[..., Screen]
) -> None:
    """A megabyte, in brackets as terminals paste, in pieces that end within characters; a shell reads as many
    lines as are pasted; what a program writes in two halves is one character."""
    text = "gr\u00fc\u00dfe \u4e16\u754c \U0001f41a\r\n"
    pasted = f"\x1b[200~{text * 40_000}\x1b[201~".encode()[:MEGABYTE]
    script = (
        f"stty raw -echo; echo go ahead; head -c {len(pasted)} | md5sum; stty -raw echo;"
        " printf '\\344\\270'; sleep 0.3; printf '\\226 is wide\\n'; exec sh"
    )
    shell = screen(pod, "--new", "-it", "-c", "pasted", "--", "sh", "-c", script)
    shell.until("go ahead")
    for at in range(0, len(pasted), 4093):
        os.write(shell.program.child_fd, pasted[at : at + 4093])
    shell.until(hashlib.md5(pasted, usedforsecurity=False).hexdigest())
    shell.until("\u4e16 is wide")
    shell.until(PROMPT)
    # busybox's editor knows ASCII alone.
    shell.type("wc -c << END")
    blocks = [[f"{block}.{line} and some words" for line in range(20)] for block in range(20)]
    for lines in blocks:
        shell.program.send("".join(f"{line}\r" for line in lines))
        shell.until(lines[-1].partition(" ")[0])
    shell.type("END")
    count = sum(len(f"{line}\n".encode()) for lines in blocks for line in lines)
    shell.until(f"\r\n{count}\r\n")
    shell.type("exit 4")
    assert shell.end() == 4


def test_what_is_made_aside_ends_by_itself(cluster: Cluster, pod: str, screen: Callable[..., Screen]) -> None:
    """A copy and a pod on a node, also if their clients are killed: --ttl is kept by the node, which is told
    here that the time is up sooner."""
    node = cluster.node or cluster.kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
    copy = screen(pod, "--copy-to=brief", "--same-node", "--ttl=600", "--rm", "-c", "x", "-it")
    on_node = screen(f"node/{node}", "--ttl=600", "--rm", "-it")
    for session in (copy, on_node):
        session.until("Created pod ")
        session.until(PROMPT)
        session.program.kill(signal.SIGKILL)
    listed = json.loads(cluster.kubectl("get", "pods", "-o", "json"))["items"]
    specs = {one["metadata"]["name"]: one["spec"] for one in listed}
    (made,) = [name for name in specs if name.startswith(f"node-debugger-{node}-")]
    assert [specs[name]["activeDeadlineSeconds"] for name in ("brief", made)] == [600, 600]
    assert specs[made]["terminationGracePeriodSeconds"] == 1
    ended = "--for=jsonpath={.status.reason}=DeadlineExceeded"
    cluster.kubectl("patch", "pod", "brief", made, "-p", '{"spec": {"activeDeadlineSeconds": 1}}')
    cluster.kubectl("wait", ended, "pod/brief", f"pod/{made}", "--timeout=60s")


def test_a_copy_is_where_its_pod_finds_what_it_needs(cluster: Cluster) -> None:
    """In its namespace, with the configuration, the secrets and the account that the pod has there."""
    cluster.kubectl("create", "configmap", "said", "--from-literal=word=hello")
    cluster.kubectl("create", "secret", "generic", "kept", "--from-literal=word=hush")
    cluster.kubectl("create", "serviceaccount", "worker")
    app: dict[str, Any] = {"name": "app", "image": BUSYBOX, "command": ["sleep", "3600"]}
    app["env"] = [{"name": "KEPT", "valueFrom": {"secretKeyRef": {"name": "kept", "key": "word"}}}]
    app["volumeMounts"] = [{"name": "said", "mountPath": "/said"}]
    volumes = [{"name": "said", "configMap": {"name": "said"}}]
    cluster.make_pod("needy", serviceAccountName="worker", containers=[app], volumes=volumes)
    how = ["--copy-to=needy-copy", "--same-node", "-c", "app", "-i"]
    done = cluster.debug("needy", *how, "--", "sh", "-c", "cat /said/word; echo; echo $KEPT")
    assert (done.returncode, done.stdout) == (0, "hello\nhush\n"), done.stderr
    account = cluster.kubectl("get", "pod", "needy-copy", "-o", "jsonpath={.spec.serviceAccountName}")
    assert account == "worker"


def test_what_is_made_aside_goes_with_a_client_that_is_ended(
    cluster: Cluster, pod: str, screen: Callable[..., Screen]
) -> None:
    """--rm, for a copy and a pod on a node, when their terminals are closed."""
    node = cluster.node or cluster.kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
    copy = screen(pod, "--copy-to=closed", "--same-node", "--rm", "-c", "x", "-it")
    on_node = screen(f"node/{node}", "--rm", "-it")
    for session in (copy, on_node):
        session.until("Created pod ")
        session.until(PROMPT)
    made = re.findall(r"node-debugger-\S+", str(on_node.program.before))[0]
    for session in (copy, on_node):
        session.program.kill(signal.SIGHUP)
        assert session.end() == 128 + signal.SIGHUP
    cluster.kubectl("wait", "--for=delete", "pod/closed", f"pod/{made}", "--timeout=60s")


def test_a_step_that_fails_is_held_open(cluster: Cluster, pod: str, screen: Callable[..., Screen]) -> None:
    """The init container by hand, with its volumes; what it leaves lets the copy go on. A copy goes at the
    end when it shall."""
    step = {
        "name": "prepare",
        "image": BUSYBOX,
        "command": ["sh", "-c", "test -e /data/ready"],
        "env": [{"name": "WHAT", "value": "this"}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    app = {
        "name": "app",
        "image": BUSYBOX,
        "command": ["sleep", "3600"],
        "volumeMounts": step["volumeMounts"],
    }
    node = {"nodeName": cluster.node} if cluster.node else {}
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "initContainers": [step],
        "containers": [app],
        "volumes": [{"name": "data", "emptyDir": {}}],
        **node,
    }
    stuck = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stuck"}, "spec": spec}
    cluster.kubectl("create", "--validate=false", "-f", "-", input=json.dumps(stuck))
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/stuck", "--timeout=60s")
    shell = screen("stuck", "--hold=prepare", "--same-node", "--ttl=600")
    shell.until("Created pod stuck-held, a copy of stuck.")
    shell.until(PROMPT)
    shell.type("echo is $WHAT; touch /data/ready; exit 0")
    shell.until("is this")
    assert shell.end() == 0
    cluster.kubectl("wait", "--for=condition=Ready", "pod/stuck-held", "--timeout=60s")
    done = cluster.debug(pod, "--copy-to=third", "--same-node", "--rm", "-c", "x", "-i", "--", "true")
    assert done.returncode == 0, done.stderr
    cluster.kubectl("wait", "--for=delete", "pod/third", "--timeout=60s")


def test_a_node_is_looked_at_from_within(cluster: Cluster) -> None:
    """In its namespaces, with its files."""
    node = cluster.node or cluster.kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
    done = cluster.debug(f"node/{node}", "--rm", "-i", "--", "sh", "-c", "ls /host/proc/1; exit 6")
    assert done.returncode == 6, done.stderr
    assert "cmdline" in done.stdout.split()
    (made,) = re.findall(f"Created pod (node-debugger-.*) in namespace {NAMESPACE}", done.stderr)
    cluster.kubectl("wait", "--for=delete", f"pod/{made}", "--timeout=60s")
    # Its files as /, and the image's tools beside them.
    script = "test -e /etc/os-release && busybox true && test ! -e /host/etc && id -u"
    done = cluster.debug(f"node/{node}", "--rm", "--root", "-c", "tools", "-i", "--", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    refused = cluster.debug(f"node/{node}", "--root", "--profile=baseline", "--", "true")
    assert refused.returncode == 1 and "has no files of its node" in refused.stderr


def test_a_pod_on_a_node_is_in_a_namespace_of_its_own(cluster: Cluster) -> None:
    """Where none is named: it is made, with the label that lets a privileged pod in, and used again."""
    node = cluster.node or cluster.kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
    program, module, podling, *_ = cluster.podling("debug")
    flags = ["--kubeconfig", str(cluster.kubeconfig), "-m", BUSYBOX, "--rm"]
    command = [program, module, podling, "debug", *flags, f"node/{node}", "--", "true"]
    try:
        for _ in range(2):
            done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
            assert done.returncode == 0, done.stderr
            assert f" in namespace podling-debug on node {node}." in done.stderr
        label = "jsonpath={.metadata.labels.pod-security\\.kubernetes\\.io/enforce}"
        assert cluster.kubectl("get", "namespace", "podling-debug", "-o", label) == "privileged"
    finally:
        cluster.kubectl("delete", "namespace", "podling-debug", "--wait=false")


def test_why_says_where_a_pod_stands(cluster: Cluster) -> None:
    """The step, its exit, its last lines; and of a pod that is ready, that it is."""
    step = {"name": "prepare", "image": BUSYBOX, "command": ["sh", "-c", "echo no database; exit 4"]}
    app = {"name": "app", "image": BUSYBOX, "command": ["sleep", "3600"]}
    node = {"nodeName": cluster.node} if cluster.node else {}
    spec = {"restartPolicy": "Never", "initContainers": [step], "containers": [app], **node}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "broken"}, "spec": spec}
    cluster.kubectl("create", "--validate=false", "-f", "-", input=json.dumps(pod))
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/broken", "--timeout=60s")
    broken = cluster.run("why", "broken")
    assert broken.returncode == 3, broken.stderr
    assert broken.stdout.startswith("broken stands at init prepare: ended with exit code 4.\n")
    assert "Last lines of prepare:\n  no database\n" in broken.stdout
    cluster.make_pod("sound")
    sound = cluster.run("why", "sound")
    assert (sound.returncode, sound.stdout.splitlines()[0]) == (0, "sound is ready."), sound.stderr
    assert json.loads(cluster.run("why", "sound", "-o", "json").stdout)["is_ready"] is True


def test_sessions_tell_who_debugs_what(cluster: Cluster) -> None:
    cluster.make_pod("visited")
    assert cluster.debug("visited", "-c", "guest", "--", "true").returncode == 0
    listed = cluster.run("sessions", "-o", "json")
    assert listed.returncode == 0, listed.stderr
    (guest,) = [one for one in json.loads(listed.stdout) if one["pod"] == "visited"]
    assert (guest["container"], guest["image"], guest["by"]) == ("guest", BUSYBOX, getpass.getuser())
    assert guest["state"] == "Completed (0)"
    assert "visited/guest" in cluster.run("sessions", "-A", "-o", "name").stdout
    assert "visited" not in cluster.run("sessions", "--running").stdout


def test_kubectl_runs_and_completes_its_plugin(cluster: Cluster, pod: str) -> None:
    """`kubectl podling`, and what is offered while it is typed: pods, containers, namespaces, contexts."""
    path = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def run(*command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False, env=path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    flags = ["--kubeconfig", str(cluster.kubeconfig), "-n", NAMESPACE]
    assert run("kubectl", "podling", "why", pod, *flags).startswith(f"{pod} is ready.")

    def offered(*words: str) -> list[str]:
        *found, end = run("kubectl_complete-podling", *words).splitlines()
        assert end == ":4"
        return found

    assert pod in offered("debug", *flags, "")
    assert offered("debug", *flags, "-p", pod, "--target", "a") == ["app"]
    assert NAMESPACE in offered("why", *flags[:2], "-n", NAMESPACE[:3])
    assert len(offered("why", *flags[:2], "--context", "")) == 1
    assert "--hold" in offered("debug", *flags, "--h")
    assert offered("debug", "--kubeconfig", "/not/there", "") == []
    assert "sessions" in offered("se")


def test_a_fleet_is_audited_in_one_command(cluster: Cluster, tmp_path: Path) -> None:
    """R-CLI-5 *Automation*: a pod that cannot be debugged says why and stops nobody."""
    app = {"name": "app", "image": BUSYBOX, "command": ["sleep", "3600"]}
    node = {"nodeName": cluster.node} if cluster.node else {}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [app], **node}
    ended = {**spec, "restartPolicy": "Never", "containers": [{**app, "command": ["true"]}]}
    pods = [(f"fleet-{number}", spec) for number in range(6)] + [("fleet-ended", ended)]
    items = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"fleet": "yes"}},
            "spec": one,
        }
        for name, one in pods
    ]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    cluster.kubectl("create", "--validate=false", "-f", "-", input=listed)
    running = [f"pod/{name}" for name, _ in pods[:-1]]
    cluster.kubectl("wait", "--for=condition=Ready", *running, "--timeout=60s")
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/fleet-ended", "--timeout=60s")
    script = "hostname; test $(hostname) != fleet-3 || exit 9"
    asked = ["-l", "fleet=yes", "--parallel=3", f"--save={tmp_path}", "-o", "json", "--", "sh", "-c", script]
    done = cluster.debug(*asked)
    assert done.returncode == 1, done.stderr
    found = {one["pod"]: one for one in json.loads(done.stdout)}
    assert {name: one["exit_code"] for name, one in found.items()} == {
        **{f"fleet-{number}": 0 for number in range(6)},
        "fleet-3": 9,
        "fleet-ended": None,
    }
    assert "has finished (Succeeded)" in found["fleet-ended"]["why_not"]
    assert (tmp_path / NAMESPACE / "fleet-4.log").read_text() == "fleet-4\n"
    table = cluster.debug("-l", "fleet=yes", "-c", "again", "--", "true")
    assert table.returncode == 1
    assert "7/7" in table.stderr
    assert table.stdout.startswith("NAMESPACE   POD           RESULT")
    assert cluster.debug("-l", "fleet=no", "--", "true").stderr == "No pods found.\n"


def test_a_container_like_its_target_has_its_files_and_user(cluster: Cluster) -> None:
    cluster.make_pod(
        "worn",
        containers=[
            {
                "name": "app",
                "image": BUSYBOX,
                "command": ["sh", "-c", "echo data > /data/file; exec sleep 3600"],
                "env": [{"name": "WHO", "value": "app"}],
                "workingDir": "/data",
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                "securityContext": {"runAsUser": 7, "runAsGroup": 8},
            }
        ],
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    script = "cat file; echo $WHO; id -u; id -g"
    done = cluster.debug("worn", "--target=app", "--like-target", "--", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (0, "data\napp\n7\n8\n"), done.stderr


def test_the_files_of_a_target_are_the_root(cluster: Cluster) -> None:
    """--root: also of an image without a shell; else where they are, and why not more; nothing is written."""
    app: dict[str, Any] = {"name": "app", "image": BUSYBOX}
    app["command"] = ["sh", "-c", "echo data > /data/file; exec sleep 3600"]
    app["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    alone = {"name": "alone", "image": PAUSE, "securityContext": {"readOnlyRootFilesystem": True}}
    user: dict[str, Any] = {"name": "user", "image": BUSYBOX, "command": ["sleep", "3600"]}
    user["securityContext"] = {"runAsUser": 7, "runAsGroup": 8}
    cluster.make_pod("rooted", containers=[app, alone, user], volumes=[{"name": "data", "emptyDir": {}}])
    first = cluster.debug("rooted", "--root", "--", "cat", "/data/file")
    assert (first.returncode, first.stdout) == (0, "data\n"), first.stderr
    scratch = cluster.debug("rooted", "--root", "--target=alone", "--", "sh", "-c", "ls /bin /pause; exit 3")
    assert (scratch.returncode, "/pause\n" in scratch.stdout) == (3, True), scratch.stderr
    assert "No such file" in scratch.stderr + scratch.stdout
    beside = cluster.debug(
        "rooted", "--root", "--target=user", "--profile=restricted", "--", "sh", "-c", "id -u; pwd; ls"
    )
    assert beside.returncode == 0, beside.stderr
    assert beside.stdout.split()[-1] == "usr" or "bin" in beside.stdout.split()
    assert "the files of the target are here, in /proc/1/root" in beside.stderr + beside.stdout
    refused = cluster.debug(
        "rooted",
        "--root",
        "--target=app",
        "--profile=baseline",
        "--custom",
        "/dev/stdin",
        "--",
        "true",
        input='securityContext: {"runAsUser": 99}',
    )
    assert refused.returncode == 126, refused.stderr
    assert "user 99 may not look at the files of the target" in refused.stderr + refused.stdout


def test_a_session_is_ended_from_afar(cluster: Cluster) -> None:
    """--stop: by its name, or the only one; with what a user would type, or by its processes."""
    cluster.make_pod("stopped")
    started = cluster.debug("stopped", "-c", "shell", "-d", "-it")
    assert started.returncode == 0, started.stderr
    cluster.wait_for(RUNNING, "stopped", "shell")
    assert cluster.run("debug", "stopped", "--stop", "-c", "other").stderr == (
        "Error: no debug container other runs in pod stopped: there runs shell\n"
    )
    done = cluster.run("debug", "stopped", "--stop")
    assert (done.returncode, done.stderr) == (0, "shell has ended.\n")
    cluster.wait_for(ENDED, "stopped", "shell")
    started = cluster.debug("stopped", "-c", "sleeper", "--target=app", "-d", "--", "sleep", "3600")
    assert started.returncode == 0, started.stderr
    cluster.wait_for(RUNNING, "stopped", "sleeper")
    done = cluster.run("debug", "--stop", "stopped/sleeper")
    assert (done.returncode, done.stderr) == (0, "sleeper has ended.\n")
    assert "stopped" not in cluster.run("sessions", "--running", "-o", "name").stdout
    still = cluster.kubectl(
        "get", "pod", "stopped", "-o", "jsonpath={.status.containerStatuses[0].restartCount}"
    )
    assert still == "0"


def test_a_session_ends_with_its_user(cluster: Cluster, screen: Callable[..., Screen]) -> None:
    """--end-with-session: whoever closes the terminal leaves nothing running."""
    cluster.make_pod("left")
    shell = screen("left", "-c", "mine", "--end-with-session")
    shell.until(PROMPT)
    shell.program.kill(signal.SIGHUP)
    shell.program.expect(pexpect.EOF)
    cluster.wait_for(ENDED, "left", "mine")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_session_ends_with_its_user_before_it_has_begun(cluster: Cluster, sent: signal.Signals) -> None:
    """--end-with-session: whoever leaves while the container is made leaves none."""
    pod = f"hasty-{sent.name.lower()}"
    cluster.make_pod(pod)
    watch = ["get", "pod", pod, "--watch", "-o", "jsonpath={.spec.ephemeralContainers[*].name}{'.'}"]
    command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), "-n", NAMESPACE, *watch]
    with ExitStack() as ending:
        watching = ending.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        ending.callback(watching.kill)
        assert watching.stdout is not None
        assert watching.stdout.read(1) == "."
        session = ending.enter_context(
            subprocess.Popen(
                cluster.command(
                    pod, "-c", "mine", "--target=app", "--end-with-session", "--", "sleep", "3600"
                ),
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                # Who runs tests in the background may have it ignored.
                preexec_fn=lambda: signal.signal(sent, signal.SIG_DFL),
            )
        )
        ending.callback(session.kill)
        assert watching.stdout.read(1) == "m"
        session.send_signal(sent)
        _, told = session.communicate(timeout=60)
    assert session.returncode == 128 + sent, told
    cluster.wait_for(ENDED, pod, "mine")


def test_a_session_that_nobody_uses_ends(cluster: Cluster, screen: Callable[..., Screen]) -> None:
    """--idle-timeout: told on its terminal, also while a program runs in it."""
    cluster.make_pod("idle")
    shell = screen("idle", "--idle-timeout=1")
    shell.until(PROMPT)
    shell.type("exec sleep 3600")
    shell.until("nothing was typed or printed for 1 seconds: the session ends.")
    assert shell.end() in (129, 137, 143)


def test_a_session_that_runs_is_offered(cluster: Cluster, screen: Callable[..., Screen]) -> None:
    """A pod without a name is picked; a second session is asked for with --new, or n."""
    cluster.make_pod("offered-pod")
    first = screen()
    first.until("Which pod?")
    first.type("no-such")
    first.until("Which pod?")
    first.type("offered-p")
    first.until(PROMPT)
    first.type("echo fir''st")
    first.until("first")
    second = screen("offered-pod")
    second.until("Sessions that run in this pod:")
    second.until("Attach to which?")
    second.type("debug")
    second.type("echo sec''ond")
    second.until("second")
    first.until("second")
    second.type("exit")
    second.end()
    first.end()
    third = screen("offered-pod", "--new")
    third.until("Defaulting container name to debug-2")
    third.until(PROMPT)
    fourth = screen("offered-pod")
    fourth.until("Attach to which?")
    fourth.type("n")
    fourth.until("Defaulting container name to debug-3")
    fourth.until(PROMPT)


def test_what_would_be_sent_is_explained(cluster: Cluster) -> None:
    """--explain: the PATCH, who judges it, and that nothing is changed by asking."""
    # One whose debug containers of other tests would be judged, too, is refused.
    pod = "judged"
    cluster.make_pod(pod)
    before = cluster.ephemeral(pod)
    label = "pod-security.kubernetes.io/enforce"
    hook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "judge"},
        "webhooks": [
            {
                "name": "judge.example.com",
                "clientConfig": {"url": "https://127.0.0.1:1/"},
                "rules": [
                    {
                        "operations": ["UPDATE"],
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "resources": ["pods/ephemeralcontainers"],
                    }
                ],
                "failurePolicy": "Ignore",
                "timeoutSeconds": 1,
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }
    cluster.kubectl("create", "--validate=false", "-f", "-", input=json.dumps(hook))
    cluster.kubectl("label", "namespace", NAMESPACE, f"{label}=baseline")
    try:
        taken = cluster.debug(pod, "--explain", "-c", "asked", "--", "true")
        refused = cluster.debug(pod, "--explain", "--profile=sysadmin", "--", "true")
        copy = cluster.debug(pod, "--explain", "--copy-to=other", "--replace", "-c", "tools", "--", "true")
        on_node = cluster.debug("node/some", "--explain", "--root", "--", "true")
    finally:
        cluster.kubectl("label", "namespace", NAMESPACE, f"{label}-")
        cluster.kubectl("delete", "validatingwebhookconfiguration", "judge")
    assert taken.returncode == 0, taken.stderr
    assert f"PATCH /api/v1/namespaces/{NAMESPACE}/pods/{pod}/ephemeralcontainers\n" in taken.stdout
    assert '"name": "asked"' in taken.stdout
    assert "patch pods/ephemeralcontainers: allowed\n" in taken.stdout
    assert "Pod Security    baseline\n" in taken.stdout
    assert "webhooks        judge.example.com\n" in taken.stdout
    assert taken.stdout.endswith("The server would take it.\n")
    assert refused.returncode == 1
    assert "The server would refuse it: pods" in refused.stdout and "violates PodSecurity" in refused.stdout
    assert cluster.ephemeral(pod) == before
    # The webhook is about debug containers, and is not asked about pods.
    assert copy.stdout.startswith(f"POST /api/v1/namespaces/{NAMESPACE}/pods\n"), copy.stderr
    assert "delete pods: allowed\n" in copy.stdout and "webhooks        none is asked\n" in copy.stdout
    assert copy.returncode == 0 and copy.stdout.endswith("The server would take it.\n")
    assert on_node.returncode == 1 and '"nodeName": "some"' in on_node.stdout and "hostPID" in on_node.stdout
    assert pod in cluster.kubectl("get", "pods", "-o", "name")
    assert "other" not in cluster.kubectl("get", "pods", "-o", "name")


def test_a_copy_replaces_its_pod(cluster: Cluster) -> None:
    """--replace, and -q says nothing of it; --ttl is told by `podling sessions`."""
    cluster.make_pod("old")
    how = ["--copy-to=new", "--replace", "-q", "--same-node", "--ttl=900", "-c", "tools", "-d"]
    done = cluster.debug("old", *how, "--", "sleep", "60")
    assert (done.returncode, done.stderr) == (0, "")
    cluster.kubectl("wait", "--for=delete", "pod/old", "--timeout=60s")
    cluster.kubectl("wait", "--for=condition=Ready", "pod/new", "--timeout=60s")
    listed = cluster.run("sessions", "-o", "yaml").stdout
    (made,) = [one for one in yaml.safe_load(listed) if one["pod"] == "new"]
    assert (made["container"], made["by"], made["command"]) == ("tools", getpass.getuser(), ["sleep", "60"])
    assert made["until"] and made["node"]
    wide = cluster.run("sessions", "--running", "-o", "wide").stdout.splitlines()
    assert wide[0].split()[-4:] == ["ENDS", "IN", "NODE", "COMMAND"]
    assert [line for line in wide if line.endswith("sleep 60") and " new " in line]


def test_tools_are_an_image_by_what_they_are_for(cluster: Cluster, tmp_path: Path, pod: str) -> None:
    own = tmp_path / "podling/tools.yaml"
    own.parent.mkdir()
    own.write_text(f"shell: {BUSYBOX}\n")
    command = cluster.podling("debug", pod, "--tools", "shell", "--", "echo", "mine")
    env = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False, env=env)
    assert (done.returncode, done.stdout) == (0, "mine\n"), done.stderr
    assert "there is no image for" in cluster.run("debug", pod, "--tools", "no-such").stderr


def test_why_is_told_until_a_pod_is_ready(cluster: Cluster) -> None:
    """Again after each change."""
    waits = ["sh", "-c", "until [ -e /data/go ]; do sleep 0.1; done"]
    mounts = [{"name": "data", "mountPath": "/data"}]
    step = {"name": "prepare", "image": BUSYBOX, "command": waits, "volumeMounts": mounts}
    app = {"name": "app", "image": BUSYBOX, "command": ["sleep", "3600"]}
    spec = {
        "initContainers": [step],
        "containers": [app],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "terminationGracePeriodSeconds": 0,
        **({"nodeName": cluster.node} if cluster.node else {}),
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "watched"}, "spec": spec}
    cluster.kubectl("create", "--validate=false", "-f", "-", input=json.dumps(pod))
    program, *rest = cluster.podling("why", "watched", "-w")
    told = pexpect.spawn(program, rest, timeout=PATIENCE, dimensions=(ROWS, COLUMNS), encoding="utf-8")
    told.expect_exact("watched stands at init prepare: runs.")
    cluster.kubectl("exec", "watched", "-c", "prepare", "--", "touch", "/data/go")
    told.expect_exact("watched is ready.")
    told.expect(pexpect.EOF)
    told.close()
    assert told.exitstatus == 0


def test_a_server_that_speaks_only_spdy_is_spoken_to(cluster: Cluster, tmp_path: Path) -> None:
    """After its refusal of a WebSocket, with all streams, also after the end of what is typed, the terminal's
    size and the exit code."""
    cluster.make_pod("old-server")
    with old_server(cluster.kubeconfig, tmp_path) as (kubeconfig, asked):
        old = replace(cluster, kubeconfig=kubeconfig)
        done = old.debug("old-server", "-i", "--", "sh", input="echo one; sleep 0.5; echo two >&2; exit 5\n")
        assert (done.returncode, done.stdout) == (5, "one\n"), done.stderr
        assert done.stderr.endswith("two\n")
        assert asked == ["websocket", "SPDY/3.1"]
        program, *rest = old.command("old-server")
        shell = Screen(
            pexpect.spawn(program, rest, timeout=PATIENCE, dimensions=(ROWS, COLUMNS), encoding="utf-8")
        )
        shell.until(PROMPT)
        shell.type("stty size")
        shell.until(f"{ROWS} {COLUMNS}")
        shell.type("exit 6")
        assert shell.end() == 6
        assert asked == ["websocket", "SPDY/3.1"] * 2


def test_the_page_shows_a_session_as_it_is(
    cluster: Cluster, screen: Callable[..., Screen], tmp_path: Path
) -> None:
    """What is typed there is typed; its recording plays to the same screen, and with PODLING_RECORD the page
    gets that."""
    app = {"name": "app", "image": BUSYBOX, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    app["command"] = ["sh", "-c", "echo 12 apples > /data/orders; exec sleep 3600"]
    cluster.make_pod("shop", containers=[app], volumes=[{"name": "data", "emptyDir": {}}])
    page = PAGE.read_text()
    told = SESSION.search(page)
    assert told is not None
    _, *words = told[1].split()
    file = tmp_path / "shop.cast"
    shell = screen(*words, "--record", str(file))
    seen = ""
    for line in told[2].splitlines():
        # Hearing of its terminal's size a shell draws its prompt again: what a command says tells its end.
        shell.until(PROMPT if line.startswith(PROMPT) else line)
        seen += str(shell.program.before) + str(shell.program.after)
        if line.startswith(PROMPT):
            shell.type(line.removeprefix(PROMPT))
    shell.program.expect(pexpect.EOF)
    said = pyte.Screen(COLUMNS, ROWS)
    pyte.Stream(said).feed(seen + str(shell.program.before))
    *seen_lines, last = "".join(f"{line.rstrip()}\n" for line in said.display).rstrip().splitlines()
    assert last == f"Recorded in {file}."
    lines = played(file).rstrip().splitlines()
    assert lines == seen_lines
    shown = re.sub(r"\n+BusyBox v.*\nEnter 'help'.*\n\n", "\n", "\n".join(lines) + "\n")
    if os.environ.get("PODLING_RECORD"):
        PAGE.write_text(page.replace(told[2], shown))
    assert shown == told[2]


def test_a_session_is_recorded_while_it_lasts(
    cluster: Cluster, screen: Callable[..., Screen], tmp_path: Path
) -> None:
    """With a window that changes and what is typed; whoever is killed leaves a file that plays to that point.
    A file that is there is left alone."""
    cluster.make_pod("kept")
    file = tmp_path / "kept.cast"
    shell = screen("kept", "--record", str(file), "--record-input")
    shell.until(PROMPT)
    shell.program.setwinsize(30, 90)
    shell.type("until stty size | grep '30 90'; do sleep 0.1; done")
    shell.until("30 90\r\n")
    shell.type("echo gr\u00fc\u00df''e")
    shell.until("gr\u00fc\u00dfe\r\n")
    shell.until(PROMPT)
    shell.program.kill(signal.SIGKILL)
    shell.program.expect(pexpect.EOF)
    assert file.stat().st_mode & 0o777 == 0o600
    lines = played(file).rstrip().splitlines()
    assert "gr\u00fc\u00dfe" in lines and lines[-1] == PROMPT.rstrip()
    events = [json.loads(line) for line in file.read_bytes().splitlines()][1:]
    assert [data for _, code, data in events if code == "r"] == ["90x30"]
    typed = "".join(data for _, code, data in events if code == "i")
    assert typed.endswith("echo gr\u00fc\u00df''e\r")
    before = file.read_bytes()
    again = cluster.debug("kept", "--record", str(file), "--", "true")
    assert (again.returncode, again.stderr) == (1, f"Error: --record: {file} is there already\n")
    assert file.read_bytes() == before
    one = tmp_path / "one.cast"
    done = cluster.debug(
        "kept", "--record", str(one), "-q", "--", "sh", "-c", "echo out; echo err >&2; exit 3"
    )
    assert (done.returncode, done.stderr.replace("err\n", "")) == (3, "")
    assert sorted(played(one).split()) == ["err", "out"]


@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_the_way_may_lead_through_a_proxy(cluster: Cluster, pod: str, kind: str, tmp_path: Path) -> None:
    """Requests, WebSockets and SPDY alike."""
    with running(Proxy("ada:secret")) as proxy:
        for protocol in ("websocket", "SPDY/3.1"):
            proxy.asked.clear()
            with old_server(cluster.kubeconfig, tmp_path) as (old, asked):
                file = old if protocol == "SPDY/3.1" else cluster.kubeconfig
                config = yaml.safe_load(file.read_text())
                config["clusters"][0]["cluster"]["proxy-url"] = f"{kind}://ada:secret@127.0.0.1:{proxy.port}"
                (tmp_path / "proxied.conf").write_text(yaml.safe_dump(config))
                away = replace(cluster, kubeconfig=tmp_path / "proxied.conf")
                done = away.debug(pod, "-i", "--", "sh", input="echo one; exit 5\n")
                assert (done.returncode, done.stdout) == (5, "one\n"), done.stderr
                assert asked == (["websocket", "SPDY/3.1"] if protocol == "SPDY/3.1" else [])
            assert len(proxy.asked) > 1 and len(set(proxy.asked)) == 1
