"""What `podling debug` makes of a pod is what kubectl 1.36 makes of it, option by option."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from peer import control_plane
from peer.server import Server
from podling.cli.debug import debug
from podling.cli.main import main
from podling.debug.copies import DEBUGGED_IN

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
PROBE = {"tcpSocket": {"port": 80}}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": {"a": "b"}},
    "spec": {
        "nodeName": "n1",
        "initContainers": [{"name": "init", "image": "i"}],
        "containers": [
            {
                "name": "app",
                "image": "app:1",
                "command": ["run"],
                "args": ["fast"],
                "livenessProbe": PROBE,
                "readinessProbe": PROBE,
                "startupProbe": PROBE,
                "env": [{"name": "X", "value": "1"}],
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                "securityContext": {"runAsUser": 3},
            },
            {"name": "two", "image": "two:1"},
        ],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}
CUSTOM = {
    "env": [{"name": "X", "value": "c"}, {"name": "Z", "value": "z"}],
    "securityContext": {"runAsUser": 5, "capabilities": {"add": ["CHOWN"]}},
    "resources": {"limits": {"cpu": "1"}},
    "volumeMounts": [{"name": "v", "mountPath": "/w"}],
}
PROFILES = ("general", "baseline", "restricted", "netadmin", "sysadmin", "legacy")
KEEP = ("--keep-labels", "--keep-annotations", "--keep-liveness", "--keep-readiness", "--keep-startup")
EPHEMERAL = [
    *([f"--profile={profile}", "--image=b"] for profile in PROFILES),
    ["--image=b", "--env=A=1", "--env=B=x=y", "--target=app", "--image-pull-policy=Always"],
    ["--image=b", "--arguments-only", "-i", "-t", "--attach=false", "--", "one", "two"],
    ["--image=b", "--custom={part}", "--env=X=q", "--", "run"],
]
COPIES = [
    *([f"--profile={profile}", "--image=b", "-c", "tools"] for profile in PROFILES[:-1]),
    *([f"--profile={profile}", "--image=b", "-c", "app"] for profile in PROFILES[:-1]),
    *([keep, "--image=b", "-c", "tools"] for keep in KEEP),
    ["-c", "app", "--", "sh", "-c", "x"],
    ["-c", "app", "--arguments-only", "--", "x"],
    ["-c", "init", "--image=b", "--", "x"],
    ["--image=b", "-c", "tools", "--same-node", "--keep-init-containers=false", "--share-processes=false"],
    ["--image=b", "-c", "app", "--env=X=2", "--env=N=1", "-i", "-t", "--attach=false"],
    ["--set-image=*=z"],
    ["--set-image=app=z,two=y"],
    ["--set-image=two=y", "--image=b", "-c", "app"],
    ["--image=b", "-c", "tools", "--custom={custom}"],
    ["--image=b", "-c", "app", "--custom={custom}"],
]
OURS = {
    "--attach=false": ["-d"],
    "--share-processes=false": ["--no-share-processes"],
    "--keep-init-containers=false": ["--no-keep-init-containers"],
    "--set-image=app=z,two=y": ["--set-image=app=z", "--set-image=two=y"],
}
"""What kubectl calls otherwise."""


class Both:
    """The two commands, on one API server."""

    def __init__(self, server: Server, program: Path, directory: Path) -> None:
        self._server, self._program = server, program
        self._custom = directory / "custom.yaml"
        self._custom.write_text(yaml.safe_dump(CUSTOM))
        self._part = directory / "part.yaml"
        self._part.write_text(yaml.safe_dump({key: CUSTOM[key] for key in CUSTOM if key != "resources"}))

    def kubectl(self, *arguments: str, input: str = "") -> str:
        command = [str(self._program), *self._filled(arguments)]
        done = subprocess.run(command, capture_output=True, text=True, input=input, timeout=60, check=False)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        return done.stdout

    def podling(self, *arguments: str) -> None:
        done = CliRunner().invoke(main, self._filled(arguments))
        assert done.exit_code == 0, f"{arguments}\n{done.output}"

    def _filled(self, arguments: tuple[str, ...]) -> list[str]:
        command, *rest = (one.format(custom=self._custom, part=self._part) for one in arguments)
        return [command, "--kubeconfig", str(self._server.kubeconfig), *rest]

    def pod(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", "pod", name, "-o", "json"))
        return found


@pytest.fixture(scope="module")
def both(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    directory = tmp_path_factory.mktemp("podling")
    with control_plane.podling(directory, "--disable-admission-plugins", "ServiceAccount") as server:
        made = Both(server, kubernetes_programs / "kubectl", directory)
        for one in (NODE, POD):
            made.kubectl("create", "-f", "-", input=json.dumps(one))
        yield made


def test_every_option_of_kubectl_is_here(both: Both) -> None:
    """But `--attach`, which is `--detach` the other way round."""
    told = re.findall(r"^ +(?:(-\w), )?(--[\w-]+)=", both.kubectl("debug", "--help"), re.MULTILINE)
    kubectls = {name for names in told for name in names if name}
    here = {name for parameter in debug.params for name in parameter.opts}
    assert kubectls >= {"-c", "--copy-to", "--custom", "--keep-liveness"}
    assert kubectls - here == {"--attach"}


def ours(asked: list[str]) -> list[str]:
    return [word for one in asked for word in OURS.get(one, [one])]


@pytest.mark.parametrize("number", range(len(EPHEMERAL)), ids=lambda number: " ".join(EPHEMERAL[number]))
def test_ephemeral_containers_are_kubectls(both: Both, number: int) -> None:
    asked = EPHEMERAL[number]
    both.kubectl("debug", "web", "-c", f"theirs-{number}", *asked)
    both.podling("debug", "web", "-c", f"ours-{number}", "-d", *ours(asked))
    listed = {one.pop("name"): in_order(one) for one in both.pod("web")["spec"]["ephemeralContainers"]}
    assert listed[f"ours-{number}"] == listed[f"theirs-{number}"]


@pytest.mark.parametrize("number", range(len(COPIES)), ids=lambda number: " ".join(COPIES[number]))
def test_copies_are_kubectls(both: Both, number: int) -> None:
    asked = COPIES[number]
    both.kubectl("debug", "web", f"--copy-to=theirs-{number}", *asked)
    both.podling("debug", "web", f"--copy-to=ours-{number}", "-d", "--profile=general", *ours(asked))
    assert shown(both.pod(f"ours-{number}")) == shown(both.pod(f"theirs-{number}"))


@pytest.mark.parametrize("profile", PROFILES)
def test_pods_on_nodes_are_kubectls(both: Both, profile: str) -> None:
    """But for the label that says who made them."""
    for name in nodes_pods(both):
        both.kubectl("delete", name, "--force", "--grace-period=0")
    asked = ["node/n1", "--image=b", f"--profile={profile}", "-n", "default"]
    both.kubectl("debug", *asked)
    both.podling("debug", *asked, "-d")
    made = [shown(json.loads(both.kubectl("get", name, "-o", "json"))) for name in nodes_pods(both)]
    assert len(made) == 2
    for one in made:
        del one["labels"]
    assert made[0] == made[1]


def nodes_pods(both: Both) -> list[str]:
    return [name for name in both.kubectl("get", "pods", "-o", "name").split() if "node-debugger" in name]


def in_order(container: dict[str, Any]) -> dict[str, Any]:
    """kubectl takes the environment from a map, in any order."""
    container.get("env", []).sort(key=lambda one: one["name"])
    return container


def shown(pod: dict[str, Any]) -> dict[str, Any]:
    """What is asked for, but for the annotation that says what the pod is for."""
    pod["spec"]["containers"] = [in_order(one) for one in pod["spec"]["containers"]]
    metadata = pod["metadata"]
    if annotations := metadata.get("annotations"):
        annotations.pop(DEBUGGED_IN, None)
        metadata["annotations"] = annotations or None
    return {"spec": pod["spec"], **{key: metadata.get(key) for key in ("labels", "annotations")}}
