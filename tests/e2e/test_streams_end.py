"""How kubectl's streams end when what serves them goes: the kubelet, its runtime, or what they lead to."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import TYPE_CHECKING

import pytest

from podling.machine.node_runtime import settings

from .conftest import run

if TYPE_CHECKING:
    from e2e.conftest import Part, Podling

BUSYBOX = "podling.test/busybox:1"
NODE = "apart"
SCRIPT = "mkdir /www; echo page > /www/index.html; httpd -p 8080 -h /www; echo up; exec sh"
STREAMS = {
    "exec": ["exec", "-i", "ends", "--", "sh", "-c", "echo up; sleep 1000"],
    "attach": ["attach", "-i", "ends"],
    "logs": ["logs", "-f", "ends"],
    "port-forward": ["port-forward", "ends", ":8080", "--address=127.0.0.1"],
}
LOST = "error: lost connection to pod"
PATIENCE = 20

both_protocols = pytest.mark.parametrize("websockets", ["true", "false"], ids=["websocket", "spdy"])


@dataclass
class Cluster:
    """API server and kubelet as two processes; a pod that names its node needs nobody else. `podling` has
    kubectl and the server's directory, `node` the kubelet's."""

    podling: Podling
    node: Podling
    server: Part
    kubelet: Part

    def start_kubelet(self) -> None:
        self.kubelet.start(f"Node {NODE} of ")

    def files(self) -> int:
        """How many the API server has open, also connections, but for those that the kubelet has made: it
        keeps as many for a while as it has needed at once."""
        made = run(["ss", "-Htnp", f"dport = :{self.podling.port}"]).stdout.splitlines()
        kubelet = self.kubelet.process
        of_kubelet = sum(f"pid={kubelet.pid}," in line for line in made) if kubelet else 0
        return len(os.listdir(f"/proc/{self.server.running.pid}/fd")) - of_kubelet

    def has_let_go(self, files: int) -> bool:
        """Whether the API server has no more files open than that. It is given some requests' time."""
        return any(
            self.podling.kubectl("get", "--raw", "/livez") and self.files() <= files for _ in range(50)
        )

    def run_pod(self, name: str, script: str) -> None:
        container = {"name": "app", "image": BUSYBOX, "command": ["sh", "-c", script], "stdin": True}
        spec = {"nodeName": NODE, "terminationGracePeriodSeconds": 1, "containers": [container]}
        self.podling.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
        self.podling.wait("condition=Ready", f"pod/{name}")


@pytest.fixture(scope="module")
def cluster(
    make_podling: Callable[[], Podling], make_part: Callable[..., Part], image_archives: dict[str, Path]
) -> Iterator[Cluster]:
    server, node = make_podling(), make_podling()
    directory = server.instance.data_dir
    directory.mkdir()
    log, credentials = directory / "parts.log", directory / "kubelet.conf"
    of_node = ["--data-dir", str(node.instance.data_dir), "--node-name", NODE]
    cluster = Cluster(
        server,
        node,
        make_part(["apiserver", "--data-dir", str(directory), "--port", str(server.port)], log),
        make_part(["kubelet", "--kubeconfig", str(credentials), *of_node], log),
    )
    try:
        cluster.server.start("API server on ")
        url = f"https://127.0.0.1:{server.port}"
        server.command("kubeconfig", "--node", NODE, "--server", url, str(credentials))
        cluster.start_kubelet()
        for archive in image_archives.values():
            node.command("images", "load", str(archive))
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        server.apply({**account, "automountServiceAccountToken": False})
        yield cluster
    finally:
        cluster.kubelet.end()
        cluster.server.end()
        node.command("down")


@pytest.fixture
def pod(cluster: Cluster) -> Iterator[None]:
    """One to stream with."""
    cluster.run_pod("ends", SCRIPT)
    yield
    cluster.podling.kubectl("delete", "pod", "--all", "--timeout=60s", timeout=70)


@contextmanager
def streaming(cluster: Cluster, websockets: str) -> Iterator[dict[str, Popen[str]]]:
    """A kubectl for each sort of stream, each with its stream open."""
    names = ("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "KUBECTL_PORT_FORWARD_WEBSOCKETS")
    env = {**os.environ, **dict.fromkeys(names, websockets)}
    kubectl = ["kubectl", "--kubeconfig", str(cluster.podling.instance.kubeconfig)]
    with ExitStack() as stack:
        clients = {}
        for kind, arguments in STREAMS.items():
            command = [*kubectl, *arguments]
            client = Popen(command, env=env, text=True, stdin=PIPE, stdout=PIPE, stderr=PIPE)
            stack.callback(end, client)
            clients[kind] = client
        say(clients["attach"], "echo up")
        for kind, client in clients.items():
            assert client.stdout
            line = client.stdout.readline()
            assert line == "up\n" or line.startswith("Forwarding"), (kind, line)
        yield clients


def say(client: Popen[str], line: str) -> None:
    assert client.stdin
    client.stdin.write(f"{line}\n")
    client.stdin.flush()


def end(client: Popen[str]) -> None:
    client.kill()
    client.communicate()


def said_at_end(client: Popen[str]) -> tuple[int, str]:
    """The exit code, and the last thing it said."""
    client.wait(PATIENCE)
    assert client.stderr
    return client.returncode, client.stderr.read().strip().rpartition("\n")[2]


@both_protocols
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_streams_end_with_the_kubelet(
    cluster: Cluster, pod: None, websockets: str, number: signal.Signals
) -> None:
    """One that is told to stop takes leave of its clients. One that is killed cannot, and with SPDY kubectl
    takes the end of the connection for the end of the command, whoever serves it."""
    files = cluster.files()
    with streaming(cluster, websockets) as clients:
        cluster.kubelet.running.send_signal(number)
        ended = {kind: said_at_end(client) for kind, client in clients.items()}
        cluster.kubelet.end(number)
    assert cluster.has_let_go(files)
    cluster.start_kubelet()
    assert ended["logs"] == (1, "error: unexpected EOF")
    assert ended["port-forward"] == (1, LOST)
    for kind in ("exec", "attach"):
        code, said = ended[kind]
        if number is signal.SIGTERM:
            assert (code, said) == (1, "error: Internal error occurred: the kubelet is being stopped")
        elif websockets == "true":
            assert code == 1
            assert "websocket: close 1006 (abnormal closure)" in said


@both_protocols
def test_streams_end_with_the_runtime_and_logs_do_not(cluster: Cluster, pod: None, websockets: str) -> None:
    files = cluster.files()
    with streaming(cluster, websockets) as clients:
        os.kill(int(settings(cluster.node.instance).pid_file.read_text()), signal.SIGKILL)
        for kind in ("exec", "attach"):
            why = "error: Internal error occurred: the container runtime ended the stream"
            assert said_at_end(clients[kind]) == (1, why)
        assert said_at_end(clients["port-forward"]) == (1, LOST)
        cluster.run_pod("later", "exec sh")
        cluster.podling.kubectl("exec", "ends", "--", "sh", "-c", "echo still here > /proc/1/fd/1")
        assert clients["logs"].stdout
        assert [clients["logs"].stdout.readline() for _ in range(2)] == ["up\n", "still here\n"]
    assert cluster.has_let_go(files)


@both_protocols
def test_streams_end_with_their_pod(cluster: Cluster, pod: None, websockets: str) -> None:
    with streaming(cluster, websockets) as clients:
        cluster.podling.kubectl("delete", "pod", "ends", "--timeout=30s")
        assert said_at_end(clients["port-forward"]) == (1, LOST)
        assert said_at_end(clients["exec"]) == (137, "command terminated with exit code 137")
        assert said_at_end(clients["attach"])[0] == 0
        assert said_at_end(clients["logs"]) == (0, "")
