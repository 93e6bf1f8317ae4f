"""A container's whole configuration: what a kubelet tells the runtime about a known container."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.rules.container.container import STOP_SIGNALS
from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.cri_config.container import ContainerInputs, container_config, stop_signal
from podling.kubelet.plan.restart import definition_hash
from podling.kubelet.pod.actions import StartContainer
from podling.kubelet.pod.containers import ContainerType
from podling.kubelet.pod.sandbox import NodeFacts
from podling.model.types.container import (
    Container,
    ContainerPort,
    EphemeralContainer,
    ExecAction,
    Lifecycle,
    LifecycleHandler,
)
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

NODE = NodeFacts(name="n1", memory_bytes=1000)


def configured(
    pod: Pod,
    container: Container | EphemeralContainer,
    kind: ContainerType = ContainerType.REGULAR,
    **start: Any,
) -> pb.ContainerConfig:
    inputs = ContainerInputs("sha256:1", environment={"WHO": "world"}, mounts=[pb.Mount(container_path="/m")])
    return container_config(pod, container, StartContainer(container.name, kind, **start), inputs, NODE)


def test_what_the_runtime_is_told(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    (container,) = pod.spec.containers
    container.command, container.args = ["/bin/$(WHO)"], ["hello", "$(WHO)", "$$(WHO)", "$(NOBODY)"]
    container.working_dir, container.tty, container.stdin = "/w", True, True
    made = configured(pod, container, attempt=2)
    assert (made.metadata.name, made.metadata.attempt) == ("a", 2)
    assert (made.image.image, made.image.user_specified_image) == ("sha256:1", "image-a")
    assert list(made.command) == ["/bin/world"]
    assert list(made.args) == ["hello", "world", "$(WHO)", "$(NOBODY)"]
    assert [(e.key, e.value) for e in made.envs] == [("WHO", "world")]
    assert [m.container_path for m in made.mounts] == ["/m"]
    assert (made.working_dir, made.tty, made.stdin, made.stdin_once) == ("/w", True, True, False)
    assert made.log_path == "a/2.log"


@pytest.mark.parametrize("kind", list(ContainerType))
def test_labels_say_whose_and_what_kind(scene: type[Scene], kind: ContainerType) -> None:
    """R-DBG-3"""
    pod = scene.pod("a")
    assert dict(configured(pod, pod.spec.containers[0], kind).labels) == {
        "io.kubernetes.pod.name": "p",
        "io.kubernetes.pod.namespace": "ns",
        "io.kubernetes.pod.uid": "u1",
        "io.kubernetes.container.name": "a",
        "io.kubernetes.container.type": kind.value,
    }


def test_annotations_hold_what_a_later_kubelet_needs(scene: type[Scene]) -> None:
    """R-INIT-11"""
    pod = scene.pod("a", termination_grace_period_seconds=7)
    pod.metadata.deletion_grace_period_seconds = 3
    (container,) = pod.spec.containers
    container.termination_message_path, container.termination_message_policy = "/dev/termination-log", "File"
    container.lifecycle = Lifecycle(pre_stop=LifecycleHandler(exec=ExecAction(command=["bye"])))
    container.ports = [ContainerPort(container_port=80)]
    assert dict(configured(pod, container, attempt=4, crashes=3).annotations) == {
        "io.kubernetes.container.hash": definition_hash(container),
        "io.kubernetes.container.restartCount": "4",
        "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
        "io.kubernetes.container.terminationMessagePolicy": "File",
        "io.kubernetes.container.preStopHandler": '{"exec":{"command":["bye"]}}',
        "io.kubernetes.container.ports": '[{"containerPort":80}]',
        "io.kubernetes.pod.deletionGracePeriod": "3",
        "io.kubernetes.pod.terminationGracePeriod": "7",
        "podling.io/container.crashes": "3",
    }


def test_the_target_of_an_ephemeral_container_is_joined(scene: type[Scene]) -> None:
    """R-EPH-4"""
    pod = scene.pod("/ a / e>a")
    made = configured(pod, pod.spec.ephemeral_containers[0], ContainerType.EPHEMERAL, target_id="a-0")
    options = made.linux.security_context.namespace_options
    assert (options.pid, options.target_id) == (pb.TARGET, "a-0")


SIGNALS = [
    (None, pb.RUNTIME_DEFAULT),
    ("SIGUSR1", pb.SIGUSR1),
    ("SIGRTMIN+3", pb.SIGRTMINPLUS3),
    ("SIGRTMAX-14", pb.SIGRTMAXMINUS14),
    ("SIGRTMAX", 65),
]


@pytest.mark.parametrize(("named", "told"), SIGNALS)
def test_the_signal_it_is_stopped_with(scene: type[Scene], named: str | None, told: int) -> None:
    pod = scene.pod("a")
    (container,) = pod.spec.containers
    container.lifecycle = Lifecycle(stop_signal=named)
    assert configured(pod, container).stop_signal == told


def test_every_signal_the_api_takes_can_be_told() -> None:
    for name in STOP_SIGNALS["linux"]:
        container = Container(lifecycle=Lifecycle(stop_signal=name))
        assert pb.Signal.Value(stop_signal(container))
