"""kubectl's streams, over WebSocket and over SPDY, through API server, kubelet and containerd."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from e2e.conftest import Completed, Podling

BUSYBOX = "podling.test/busybox:1"
SERVER = "mkdir /www; echo page > /www/index.html; echo started; httpd -f -p 8080 -h /www"

both_commands = pytest.mark.parametrize("websockets", ["true", "false"], ids=["websocket", "spdy"])


@pytest.fixture
def pod(podling: Podling, namespace: str) -> str:
    """A pod with an init container that has spoken, a web server and a shell with a terminal."""
    spec = {
        "terminationGracePeriodSeconds": 1,
        "initContainers": [{"name": "init", "image": BUSYBOX, "command": ["echo", "prepared"]}],
        "containers": [
            {"name": "web", "image": BUSYBOX, "command": ["sh", "-c", SERVER]},
            {"name": "shell", "image": BUSYBOX, "command": ["sh"], "stdin": True, "tty": True},
        ],
    }
    meta = {"name": "streams", "namespace": namespace}
    podling.apply({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    podling.kubectl(
        "wait", "--for=condition=Ready", "pod/streams", "-n", namespace, "--timeout=60s", timeout=70
    )
    return namespace


def execute(
    podling: Podling, namespace: str, websockets: str, *arguments: str, input: str | None = None
) -> Completed:
    command = ("exec", "-n", namespace, "streams", *arguments)
    return podling.kubectl(*command, input=input, check=False, KUBECTL_REMOTE_COMMAND_WEBSOCKETS=websockets)


@both_commands
def test_exec_gives_outputs_exit_codes_and_takes_input(podling: Podling, pod: str, websockets: str) -> None:
    done = execute(podling, pod, websockets, "-c", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout) == (7, "out\n")
    assert done.stderr == "err\ncommand terminated with exit code 7\n"
    done = execute(podling, pod, websockets, "-i", "-c", "web", "--", "cat", input="through\n")
    assert (done.returncode, done.stdout) == (0, "through\n")


@both_commands
def test_megabytes_pass_both_ways_unchanged(podling: Podling, pod: str, websockets: str) -> None:
    sent = "0123456789abcdef" * 65536 * 8
    done = execute(podling, pod, websockets, "-i", "-c", "web", "--", "sha256sum", input=sent)
    assert done.stdout.split()[0] == hashlib.sha256(sent.encode()).hexdigest()
    done = execute(podling, pod, websockets, "-c", "web", "--", "sh", "-c", "yes | head -c 8388608")
    assert done.stdout == "y\n" * 4194304


def test_what_cannot_be_is_said_in_kubectls_usual_words(podling: Podling, pod: str) -> None:
    done = execute(podling, pod, "true", "-c", "init", "--", "true")
    why = 'unable to upgrade connection: container not found ("init")'
    assert done.stderr == f"error: Internal error occurred: {why}\n"
    assert execute(podling, pod, "false", "-c", "init", "--", "true").stderr == f"error: {why}\n"


@both_commands
def test_a_shell_outlives_the_client_that_attached_to_it(podling: Podling, pod: str, websockets: str) -> None:
    """R-EPH-6."""
    for typed, shown in (("kept=remembered\n", b"kept=remembered"), ("echo is:$kept\n", b"is:remembered")):
        with attached(podling, pod, websockets) as client:
            client.stdin.write(typed.encode())
            client.stdin.flush()
            heard = b""
            while shown not in heard:
                piece = os.read(client.stdout.fileno(), 4096)
                assert piece, heard
                heard += piece


@contextmanager
def attached(podling: Podling, namespace: str, websockets: str) -> Iterator[Any]:
    """A kubectl that is killed at the end, as by a lost connection."""
    command = ["kubectl", "--kubeconfig", str(podling.instance.kubeconfig), "-n", namespace]
    client = subprocess.Popen(
        [*command, "attach", "-i", "streams", "-c", "shell"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets},
    )
    try:
        yield client
    finally:
        client.kill()
        client.communicate()


@pytest.mark.parametrize("websockets", ["true", "false"], ids=["tunnel", "spdy"])
def test_port_forward_carries_one_connection_after_the_other(
    podling: Podling, pod: str, websockets: str
) -> None:
    command = ["kubectl", "--kubeconfig", str(podling.instance.kubeconfig), "-n", pod]
    forwarding = subprocess.Popen(
        [*command, "port-forward", "streams", ":8080", "--address=127.0.0.1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "KUBECTL_PORT_FORWARD_WEBSOCKETS": websockets},
    )
    try:
        assert forwarding.stdout
        address = forwarding.stdout.readline().split()[2]
        for _ in range(3):
            with urllib.request.urlopen(f"http://{address}/", timeout=10) as answer:
                assert answer.read() == b"page\n"
    finally:
        forwarding.kill()
        forwarding.communicate()


def test_logs_of_every_container(podling: Podling, pod: str) -> None:
    """R-INIT-8."""
    logs = [podling.kubectl("logs", "streams", "-n", pod, "-c", name).stdout for name in ("init", "web")]
    assert logs == ["prepared\n", "started\n"]
    stamped = podling.kubectl("logs", "streams", "-n", pod, "-c", "web", "--timestamps", "--tail=1").stdout
    assert stamped.split()[1] == "started"
    followed = podling.kubectl("logs", "streams", "-n", pod, "-c", "init", "-f").stdout
    assert followed == "prepared\n"


def test_a_bad_log_option_is_refused(podling: Podling, pod: str) -> None:
    path = f"/api/v1/namespaces/{pod}/pods/streams/log?container=web&limitBytes=0"
    done = podling.kubectl("get", "--raw", path, check=False)
    assert "limitBytes: Invalid value: 0: must be greater than 0" in done.stderr


@both_commands
def test_files_are_copied_both_ways_unchanged(
    podling: Podling, pod: str, websockets: str, tmp_path: Path
) -> None:
    """256 MiB; `bench/streams.py` passes a gigabyte each way."""
    there, back = tmp_path / "there", tmp_path / "back"
    there.write_bytes(random.Random(1).randbytes(1 << 20) * 256)
    for source, target in ((str(there), "streams:/tmp/file"), ("streams:/tmp/file", str(back))):
        copy = ("cp", "-n", pod, "-c", "web", source, target)
        podling.kubectl(*copy, timeout=150, KUBECTL_REMOTE_COMMAND_WEBSOCKETS=websockets)
    with there.open("rb") as one, back.open("rb") as other:
        assert hashlib.file_digest(one, "sha256").digest() == hashlib.file_digest(other, "sha256").digest()


@both_commands
def test_clients_that_do_not_read_cost_no_memory(podling: Podling, pod: str, websockets: str) -> None:
    """What they do not take waits in the container."""
    before = resident(podling)
    with ExitStack() as stack:
        idle = [stack.enter_context(started(podling, pod, websockets, "cat", "/dev/zero")) for _ in range(8)]
        for client in idle:
            assert client.stdout.read(1) == b"\0"
        # By the time another has read this much, they have filled whatever there is to fill.
        with started(podling, pod, websockets, "head", "-c", str(64 << 20), "/dev/zero") as reader:
            assert len(reader.stdout.read()) == 64 << 20
        assert resident(podling) - before < 64 << 20


@both_commands
def test_streams_end_with_their_pod(podling: Podling, pod: str, websockets: str) -> None:
    with (
        started(podling, pod, websockets, "sh", "-c", "echo in; sleep 1000") as inside,
        attached(podling, pod, websockets) as shell,
    ):
        assert inside.stdout.read(3) == b"in\n"
        podling.kubectl("delete", "pod", "streams", "-n", pod, "--wait=false")
        assert inside.wait(timeout=30) != 0
        shell.wait(timeout=30)


def test_a_client_that_does_not_read_keeps_no_pod_from_going(podling: Podling, namespace: str) -> None:
    """containerd 1.6 alone would wait for it."""
    spam = "trap 'exit 0' TERM; yes $(head -c 4000 /dev/zero | tr '\\0' x) & wait"
    container = {"name": "shell", "image": BUSYBOX, "command": ["sh", "-c", spam], "stdin": True}
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    meta = {"name": "streams", "namespace": namespace}
    podling.apply({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    ready = ("wait", "--for=condition=Ready", "pod/streams", "--timeout=60s", "-n", namespace)
    podling.kubectl(*ready, timeout=70)
    with attached(podling, namespace, "true") as idle:
        assert idle.stdout.read(1) == b"x"
        written = "$(grep wchar /proc/$(pidof yes)/io)"
        held_up = f'until [ "$was" = "{written}" ]; do was="{written}"; sleep 1; done'
        podling.kubectl("exec", "streams", "-n", namespace, "--", "sh", "-c", held_up)
        podling.kubectl("delete", "pod", "streams", "-n", namespace, "--timeout=40s")


@contextmanager
def started(podling: Podling, namespace: str, websockets: str, *command: str) -> Iterator[Any]:
    """A kubectl exec that is killed at the end."""
    kubectl = ["kubectl", "--kubeconfig", str(podling.instance.kubeconfig), "-n", namespace]
    client = subprocess.Popen(
        [*kubectl, "exec", "streams", "-c", "web", "--", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets},
    )
    try:
        yield client
    finally:
        client.kill()
        client.communicate()


def resident(podling: Podling) -> int:
    """Bytes of memory podling has now."""
    statm = Path(f"/proc/{podling.instance.running()}/statm").read_text()
    return int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE")
