"""What a new object of a pod means to its worker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from podling.kubelet.worker.worker import is_echo
from podling.model.types.container import Container, EphemeralContainer
from podling.model.types.meta import ManagedFieldsEntry, ObjectMeta
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.pod_status import PodStatus


def pod() -> Pod:
    return Pod(
        metadata=ObjectMeta(name="web", resource_version="1", labels={"app": "web"}),
        spec=PodSpec(containers=[Container(name="app", image="app:1")]),
    )


def written(status: Pod) -> None:
    status.metadata.resource_version = "2"
    status.metadata.managed_fields = [ManagedFieldsEntry(manager="kubelet")]
    status.status = PodStatus(phase="Running")


def labelled(pod: Pod) -> None:
    pod.metadata.labels = {"app": "other"}


def deleted(pod: Pod) -> None:
    pod.metadata.deletion_timestamp = "2026-01-02T03:04:05Z"


def another_image(pod: Pod) -> None:
    pod.spec.containers[0].image = "app:2"


def debugged(pod: Pod) -> None:
    pod.spec.ephemeral_containers = [EphemeralContainer(name="d", image="d:1")]


def test_what_the_kubelet_wrote_itself_is_no_news() -> None:
    new = pod()
    written(new)
    assert is_echo(pod(), new)


@pytest.mark.parametrize("change", [labelled, deleted, another_image, debugged])
def test_all_else_is(change: Callable[[Pod], None]) -> None:
    new = pod()
    written(new)
    change(new)
    assert not is_echo(pod(), new)
